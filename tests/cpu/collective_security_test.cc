// Ranks among strangers: who may join a world, and what others see of it. This program forks: each
// child is a rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <thread>

#include "collective_relay.h"
#include "collective_testing.h"
#include "cpu/collective/introduction.h"
#include "cpu/collective/shared_segment.h"
#include "cpu/collective/tls.h"

namespace cpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Side = TlsStream::Side;
using Progress = TlsStream::Progress;

const std::string kSecret = "the secret of this job, which only its ranks know";
const std::string kOther = "the secret of another job, which others may know";
const std::string kMark = "these bytes are what the tensor holds";

// All ranks get all of the others' bytes.
void GatherMarks(Communicator& world) {
  Collective collective;
  collective.kind = CollectiveKind::kAllGather;
  collective.operands = {hlo::Shape(hlo::ElementType::kU8, {1 << 20})};
  std::string mine(1 << 20, static_cast<char>('a' + world.rank()));
  mine.replace(500'000, kMark.size(), kMark);
  std::string all(mine.size() * world.size(), '\0');
  const void* operand = mine.data();
  void* result = all.data();
  world.Run(collective, &operand, &result);
  for (int64_t rank = 0; rank < world.size(); ++rank) {
    std::string theirs(mine.size(), static_cast<char>('a' + rank));
    theirs.replace(500'000, kMark.size(), kMark);
    Require(all.compare(rank * mine.size(), mine.size(), theirs) == 0, "other bytes came");
  }
}

struct Seen {
  std::vector<int> statuses;
  bool data, greeting;
};

// Two ranks, of which the second reaches the first through a relay.
Seen SeenOnTheWay(const std::string& secret, const char* tls) {
  FolderStore store;
  Relay relay(store.Store());
  auto children = StartRanks("ab", relay.Store(),
                             [&](CommunicatorOptions options, const KeyValueStore& shared) {
                               setenv("TORCH_XLA_TLS", tls, 1);
                               options.secret = secret;
                               auto world = ConnectCommunicator(options, shared);
                               for (int i = 0; i < 3; ++i) GatherMarks(*world);
                               CarryOut(*world, AllReduceOf(300'000, ""));
                             });
  Seen seen;
  seen.statuses = Await(children);
  seen.data = relay.HasSeen(kMark);
  seen.greeting = relay.HasSeen(kGreetingMagic);
  return seen;
}

TEST(CollectiveSecurityTest, WithASecretNothingIsInTheClear) {
  const Seen seen = SeenOnTheWay(kSecret, "1");
  EXPECT_EQ(seen.statuses, std::vector<int>({0, 0}));
  EXPECT_FALSE(seen.data);
  EXPECT_FALSE(seen.greeting);
}

TEST(CollectiveSecurityTest, EncryptionCanBeLeftOutByName) {
  const Seen seen = SeenOnTheWay(kSecret, "0");
  EXPECT_EQ(seen.statuses, std::vector<int>({0, 0}));
  EXPECT_TRUE(seen.data);
  EXPECT_FALSE(seen.greeting);  // the ranks have proven themselves all the same
}

TEST(CollectiveSecurityTest, WithoutASecretAllIsInTheClear) {
  const Seen seen = SeenOnTheWay("", "1");
  EXPECT_EQ(seen.statuses, std::vector<int>({0, 0}));
  EXPECT_TRUE(seen.data);
  EXPECT_TRUE(seen.greeting);
}

TEST(CollectiveSecurityTest, WhatWasChangedOnTheWayIsNoData) {
  FolderStore store;
  Relay relay(store.Store(), 600'000);
  const auto statuses = Await(StartRanks(
      "ab", relay.Store(), [&](CommunicatorOptions options, const KeyValueStore& shared) {
        options.secret = kSecret;
        auto world = ConnectCommunicator(options, shared);
        RequireWords(ErrorOf([&] {
                       for (int i = 0; i < 2; ++i) GatherMarks(*world);
                     }),
                     {"rank " + std::to_string(1 - options.rank)});
      }));
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
}

// Each rank with a secret of its own, and what it is told.
void ExpectRefused(const std::vector<std::string>& secrets, const std::vector<const char*>& tls,
                   const std::vector<std::vector<std::string>>& words) {
  FolderStore store;
  const auto statuses = Await(StartRanks(
      "ab", store.Store(), [&](CommunicatorOptions options, const KeyValueStore& shared) {
        setenv("TORCH_XLA_TLS", tls[options.rank], 1);
        options.secret = secrets[options.rank];
        options.heartbeat_timeout = milliseconds(1000);
        RequireWords(ErrorOf([&] { ConnectCommunicator(options, shared); }), words[options.rank]);
      }));
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
}

TEST(CollectiveSecurityTest, AnotherSecretIsRefused) {
  for (const char* tls : {"1", "0"}) {
    ExpectRefused({kSecret, kOther}, {tls, tls},
                  {{"did not come: 1", "called itself rank 1", "has another job secret"},
                   {"rank 1 and rank 0 have different job secrets", "TORCH_XLA_JOB_SECRET"}});
  }
}

TEST(CollectiveSecurityTest, AMissingSecretIsRefused) {
  const std::vector<std::string> words{"rank 0 has a job secret, but rank 1 has none"};
  ExpectRefused({kSecret, ""}, {"1", "1"}, {words, words});
}

TEST(CollectiveSecurityTest, EncryptionIsForAllOrNone) {
  const std::vector<std::string> words{"rank 1 encrypts what it sends, but rank 0 does not",
                                       "TORCH_XLA_TLS"};
  ExpectRefused({kSecret, kSecret}, {"0", "1"}, {words, words});
}

TEST(CollectiveSecurityTest, TheStoreHoldsNoSecret) {
  FolderStore store;
  const auto statuses =
      Await(StartRanks("ab", store.Store(), [&](CommunicatorOptions options, KeyValueStore shared) {
        shared.put = [put = shared.put](const std::string& key, const std::string& value) {
          Require(value.find(kSecret) == std::string::npos, "the secret is in the store");
          put(key, value);
        };
        // Whoever knows all that is in the store, but no secret, is refused by whoever has one.
        options.secret = kSecret;
        ConnectCommunicator(options, shared);
      }));
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
}

// The address of what a rank says it listens at.
sockaddr_in AddressIn(const std::string& entry) {
  std::istringstream text(entry);
  std::string host;
  int port = 0;
  text >> host >> port;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// So many connections to what a rank listens at, as soon as it does.
class Strangers {
 public:
  Strangers(const std::string& entry, int count, const std::string& words) {
    const sockaddr_in address = AddressIn(entry);
    for (int i = 0; i < count; ++i) {
      const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      Require(connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
              "a stranger cannot connect");
      if (!words.empty()) send(file, words.data(), words.size(), MSG_NOSIGNAL);
      files_.push_back(file);
    }
  }
  Strangers(const Strangers&) = delete;
  ~Strangers() {
    for (int file : files_) close(file);
  }

 private:
  std::vector<int> files_;
};

// A process that connects as fast as it can for as long as this lives, and keeps what it may.
class Flood {
 public:
  explicit Flood(const std::string& entry) : process_(fork()) {
    if (process_ != 0) return;
    const sockaddr_in address = AddressIn(entry);
    std::vector<int> files(500, -1);
    for (size_t i = 0;; i = (i + 1) % files.size()) {
      if (files[i] >= 0) close(files[i]);
      files[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (files[i] < 0) continue;
      (void)connect(files[i], reinterpret_cast<const sockaddr*>(&address), sizeof address);
      if (getppid() == 1) _exit(0);
    }
  }
  Flood(const Flood&) = delete;
  ~Flood() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
};

// The listener's queue is full by then.
constexpr milliseconds kTimeToFill(300);

struct Crowd {
  int count;          // of strangers who come at once
  std::string words;  // that each says
  bool never_ends = false;
};

// How long the world of two takes to come to stand.
milliseconds TimeToMeet(const std::string& secret, const Crowd& crowd) {
  FolderStore store;
  const auto begin = Clock::now();
  const auto statuses =
      Await(StartRanks("ab", store.Store(), [&](CommunicatorOptions options, KeyValueStore shared) {
        std::unique_ptr<Strangers> here;
        std::unique_ptr<Flood> flood;
        options.secret = secret;
        shared.put = [&, put = shared.put](const std::string& key, const std::string& value) {
          // They come before the others know where.
          if (key.find("network") != std::string::npos) {
            here = std::make_unique<Strangers>(value, crowd.count, crowd.words);
            if (crowd.never_ends) {
              flood = std::make_unique<Flood>(value);
              std::this_thread::sleep_for(kTimeToFill);
            }
          }
          put(key, value);
        };
        CarryOut(*ConnectCommunicator(options, shared), AllReduceOf(1000, ""));
      }));
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
  const auto waited = crowd.never_ends ? kTimeToFill : milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin - waited);
}

// The shortest of some: a busy machine delays, too.
milliseconds ShortestTimeToMeet(const std::string& secret, const Crowd& crowd) {
  milliseconds shortest = TimeToMeet(secret, crowd);
  for (int i = 0; i < 4 && shortest > milliseconds(500); ++i) {
    shortest = std::min(shortest, TimeToMeet(secret, crowd));
  }
  return shortest;
}

TEST(CollectiveSecurityTest, StrangersDelayNobody) {
  // Each of them may be silent for 10 s. A flood takes a processor of the world's as well, and the
  // places that its ranks would have: they come in after some tries.
  const seconds most(1), most_in_a_flood(10);
  for (const std::string& secret : {std::string(), kSecret}) {
    const milliseconds alone = ShortestTimeToMeet(secret, {0, ""});
    // Silent ones, those that say something, more than are kept, and those of whom there is no end.
    for (const Crowd& crowd :
         {Crowd{100, ""}, Crowd{100, std::string(300, 'x')}, Crowd{400, ""}, Crowd{0, "", true}}) {
      const milliseconds taken = ShortestTimeToMeet(secret, crowd);
      std::cout << crowd.count << (crowd.never_ends ? " and ever more" : "") << " strangers, "
                << crowd.words.size() << " bytes: " << taken.count() << " ms, alone "
                << alone.count() << std::endl;
      EXPECT_LT(taken - alone, crowd.never_ends ? most_in_a_flood : most);
    }
  }
}

// Two ends of a connection.
struct Ends {
  int files[2];
  Tls tls[2];
  TlsStream connects, accepts;

  Ends(const std::string& secret, const std::string& other, int64_t bytes_per_key,
       const std::string& ciphers = Tls::FastestFirst())
      : files{-1, -1},
        tls{Tls(secret, "one", ciphers), Tls(other, "two")},
        connects(tls[0], Side::kConnects, File(0), bytes_per_key),
        accepts(tls[1], Side::kAccepts, File(1), bytes_per_key) {}
  ~Ends() {
    for (int file : files) close(file);
  }

  int File(int i) {
    if (i == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, files) != 0) {
      ADD_FAILURE() << "no sockets";
    }
    return files[i];
  }

  std::pair<Progress, Progress> Handshake() {
    Progress one = Progress::kMustWrite, two = Progress::kMustRead;
    for (int i = 0; i < 10; ++i) {
      if (one == Progress::kMustRead || one == Progress::kMustWrite) one = connects.Handshake();
      if (two == Progress::kMustRead || two == Progress::kMustWrite) two = accepts.Handshake();
    }
    return {one, two};
  }
};

// Without a secret a stranger may have named any file of the user's as the ranks' shared memory.
TEST(SharedSegmentTest, OpensNoOtherFile) {
  const SharedSegment made(0, 2);
  EXPECT_NO_THROW(SharedSegment(1, 2, made.address()));
  EXPECT_THROW(SharedSegment(1, 3, made.address()), hlo::Error);  // of another size
  std::string path = testing::TempDir() + "/diary-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "dear diary", 10), 10);
  EXPECT_THROW(SharedSegment(1, 2, path), hlo::Error);
  EXPECT_THROW(SharedSegment(1, 2, "/proc/self/fd/" + std::to_string(file)), hlo::Error);
  char text[64];
  EXPECT_EQ(pread(file, text, sizeof text, 0), 10);
  EXPECT_EQ(std::memcmp(text, "dear diary", 10), 0);
  close(file);
  unlink(path.c_str());
}

TEST(TlsTest, OnlyTheSameSecretOpensAConnection) {
  Ends same(kSecret, kSecret, 1 << 30);
  EXPECT_EQ(same.Handshake(), std::pair(Progress::kDone, Progress::kDone));
  EXPECT_EQ(same.accepts.claimed_name(), "one");
  Ends different(kSecret, kOther, 1 << 30);
  EXPECT_EQ(different.Handshake(), std::pair(Progress::kRefused, Progress::kRefused));
}

TEST(TlsTest, TheOneThatConnectsChoosesTheCipher) {
  const std::string aes = "TLS_AES_128_GCM_SHA256", chacha = "TLS_CHACHA20_POLY1305_SHA256";
  EXPECT_TRUE(Tls::FastestFirst() == aes + ":" + chacha ||
              Tls::FastestFirst() == chacha + ":" + aes);
  for (const std::string& first : {aes, chacha}) {
    Ends ends(kSecret, kSecret, 1 << 30, first + ":" + (first == aes ? chacha : aes));
    ASSERT_EQ(ends.Handshake(), std::pair(Progress::kDone, Progress::kDone));
    EXPECT_EQ(ends.connects.cipher(), first);
    EXPECT_EQ(ends.accepts.cipher(), first);
    char byte = 'x';
    EXPECT_EQ(ends.connects.Write(&byte, 1), 1);
    EXPECT_EQ(ends.accepts.Read(&byte, 1), 1);
  }
}

// A call of the system for each record costs as much as encrypting it.
TEST(TlsTest, ManyRecordsAreSentAtOnce) {
  Ends ends(kSecret, kSecret, 1 << 30);
  ASSERT_EQ(ends.Handshake(), std::pair(Progress::kDone, Progress::kDone));
  const std::string data(100'000, 'x');
  EXPECT_EQ(ends.connects.Write(data.data(), data.size()), 100'000);
  // What waits for the other side counts once it has gone, all of it.
  int64_t sent = 100'000, received = 0;
  while (ends.connects.Write(data.data(), data.size()) > 0) sent += 100'000;
  std::string bytes(1 << 20, '\0');
  while (const int64_t count = ends.accepts.Read(bytes.data(), bytes.size())) {
    ASSERT_GT(count, 0);
    received += count;
  }
  EXPECT_GE(received, sent);  // and perhaps a part of what waits
  EXPECT_EQ(ends.connects.Write(data.data(), data.size()), 100'000);
}

TEST(TlsTest, KeysChangeWhileDataFlowsBothWays) {
  Ends ends(kSecret, kSecret, 100'000);
  ASSERT_EQ(ends.Handshake(), std::pair(Progress::kDone, Progress::kDone));
  ends.accepts.ReadAhead();
  std::string data(5'000'000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7919 >> 5);
  struct Way {
    TlsStream &from, &to;
    size_t sent = 0;
    std::string received;
  };
  Way ways[] = {{ends.connects, ends.accepts, 0, ""}, {ends.accepts, ends.connects, 0, ""}};
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (Clock::now() < deadline &&
         (ways[0].received.size() < data.size() || ways[1].received.size() < data.size())) {
    for (Way& way : ways) {
      if (way.sent < data.size()) {
        const int64_t sent = way.from.Write(data.data() + way.sent, data.size() - way.sent);
        ASSERT_GE(sent, 0);
        way.sent += static_cast<size_t>(sent);
      }
      char bytes[30'000];
      const int64_t count = way.to.Read(bytes, sizeof bytes);
      ASSERT_GE(count, 0);
      way.received.append(bytes, static_cast<size_t>(count));
    }
  }
  EXPECT_TRUE(ways[0].received == data);
  EXPECT_TRUE(ways[1].received == data);
}

}  // namespace
}  // namespace cpu
