// Who may speak to a server on this machine, and what others learn.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "remote/address.h"
#include "remote/client/connection.h"
#include "remote/handshake.h"
#include "remote_testing.h"

namespace remote {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Handshake, BothSidesProveThatTheyKnowTheToken) {
  const ClientHandshake client(kToken, "a 1 b 2");
  ServerHandshake server(kToken, "a 1 b 2");
  const auto challenge = server.Answer(client.hello());
  ASSERT_TRUE(challenge);
  const auto proof = client.Answer(*challenge);
  ASSERT_TRUE(proof);
  EXPECT_TRUE(server.Accepts(*proof));
}

TEST(Handshake, NothingElseWillDo) {
  const ClientHandshake client(kToken, "ends");
  ServerHandshake server(kToken, "ends"), fresh(kToken, "ends");
  const std::string challenge = *server.Answer(client.hello());
  const std::string proof = *client.Answer(challenge);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto changed = [&](std::string bytes) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      return bytes;
    };
    EXPECT_FALSE(client.Answer(changed(challenge)));
    EXPECT_FALSE(server.Accepts(changed(proof)));
  }
  // Not another conversation's, nor one's own words.
  EXPECT_FALSE(fresh.Accepts(proof));
  (void)fresh.Answer(client.hello());
  EXPECT_FALSE(fresh.Accepts(proof));
  EXPECT_FALSE(server.Accepts(challenge.substr(kNonceBytes)));
  EXPECT_FALSE(server.Accepts(""));
  EXPECT_FALSE(client.Answer(""));
  EXPECT_FALSE(fresh.Answer(std::string(kHelloBytes, 'x')));
  // Nor with another token, or at another connection's ends.
  ServerHandshake thief("another token, as long", "ends"), relayed(kToken, "other ends");
  EXPECT_FALSE(client.Answer(*thief.Answer(client.hello())));
  EXPECT_FALSE(client.Answer(*relayed.Answer(client.hello())));
}

TEST(Token, IsOneThatNobodyReadsOrGuesses) {
  const std::string path = OwnFolder() + "/some_token";
  auto error = [&](const std::string& text, mode_t mode) -> std::string {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    try {
      (void)ReadToken(path);
    } catch (const hlo::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error("  0123456789abcdef\n", 0600), "");
  EXPECT_EQ(ReadToken(path), "0123456789abcdef");
  EXPECT_NE(error("0123456789abcdef", 0640).find("chmod 600"), std::string::npos);
  EXPECT_NE(error("0123456789abcdef", 0602).find("chmod 600"), std::string::npos);
  EXPECT_NE(error("short", 0600).find("could be guessed"), std::string::npos);
  std::filesystem::remove(path);
  // What is no file is not waited for.
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW((void)ReadToken(path), hlo::Error);
  std::filesystem::remove(path);
}

hlo::ErrorCode CodeOfDial(const std::string& address, const std::string& token = kToken) {
  try {
    (void)Dial(address, token);
  } catch (const hlo::Error& error) {
    return error.code();
  }
  return static_cast<hlo::ErrorCode>(0);
}

// Listens where a server should, and does with each connection what it is told.
class Squatter {
 public:
  explicit Squatter(std::function<void(int)> talk)
      : listener_(Listen("127.0.0.1:0")), thread_([this, talk = std::move(talk)] {
          pollfd readable = {listener_.sockets[0].get(), POLLIN, 0};
          while (!ends_) {
            if (poll(&readable, 1, 10) <= 0) continue;
            const Descriptor client(accept(readable.fd, nullptr, nullptr));
            talk(client.get());
          }
        }) {}
  ~Squatter() {
    ends_ = true;
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(listener_.port); }

 private:
  Listener listener_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

std::string ReceiveSome(int connection) {
  std::string bytes(4096, '\0');
  const ssize_t count = recv(connection, bytes.data(), bytes.size(), 0);
  bytes.resize(std::max<ssize_t>(count, 0));
  return bytes;
}

// Whatever it says, a client tells it a random number and no more.
TEST(Access, SquatterLearnsNothing) {
  std::mt19937 random(1);
  for (int kind = 0; kind < 4; ++kind) {
    std::string learned;
    {
      Squatter squatter([&](int connection) {
        learned += ReceiveSome(connection);
        std::string said(kind == 0 ? 0 : kChallengeBytes, '\0');
        for (char& byte : said) byte = static_cast<char>(random());
        if (kind == 2) said = (learned + learned).substr(0, kChallengeBytes);
        if (kind == 3) said = "HTTP/1.1 200 OK\r\n\r\n";
        (void)send(connection, said.data(), said.size(), MSG_NOSIGNAL);
        shutdown(connection, SHUT_WR);
        while (true) {
          const std::string more = ReceiveSome(connection);
          if (more.empty()) break;
          learned += more;
        }
      });
      EXPECT_EQ(CodeOfDial(squatter.address()), hlo::ErrorCode::kUnauthenticated);
    }
    EXPECT_EQ(learned.size(), kHelloBytes);
    EXPECT_EQ(learned.find(kToken), std::string::npos);
  }
}

// A whole client says so, and nothing of what it has leaves it.
TEST(Access, ClientNamesTheStranger) {
  std::string learned, address, said;
  {
    Squatter squatter([&](int connection) { learned += ReceiveSome(connection); });
    address = squatter.address();
    setenv("PJRT_REMOTE_ADDRESS", address.c_str(), 1);
    try {
      (void)pjrt::Client::Create(pjrt::Plugin::Load(PLUGIN_REMOTE));
    } catch (const hlo::Error& error) {
      said = error.what();
    }
    setenv("PJRT_REMOTE_ADDRESS", TestAddress().c_str(), 1);
  }
  EXPECT_NE(said.find("is no runtime server of this user's"), std::string::npos) << said;
  EXPECT_NE(said.find(address), std::string::npos) << said;
  EXPECT_EQ(learned.find(kToken), std::string::npos);
}

// A child that is forked while a client waits for the server's proof does not keep its connection:
// the server sees the end of it.
TEST(Access, ForkedChildrenGiveUpWhatStillConnects) {
  std::atomic<bool> has_ended{false};
  {
    const Squatter squatter([&](int connection) {
      EXPECT_EQ(ReceiveSome(connection).size(), kHelloBytes);
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        pause();
        _exit(0);
      }
      const std::string wrong(kChallengeBytes, '\0');
      EXPECT_GT(send(connection, wrong.data(), wrong.size(), MSG_NOSIGNAL), 0);
      pollfd readable = {connection, POLLIN, 0};
      has_ended = poll(&readable, 1, 5000) == 1 && ReceiveSome(connection).empty();
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    });
    Endpoint endpoint;
    endpoint.address = squatter.address();
    endpoint.token = kToken;
    EXPECT_THROW((void)Connection::Describe(endpoint), hlo::Error);
  }
  EXPECT_TRUE(has_ended);
}

// One that passes everything on to the user's own server gets nowhere either.
TEST(Access, RelayIsRefused) {
  Squatter squatter([&](int client) {
    const Descriptor server = Connect(TestAddress());
    const int ends[] = {client, server.get()};
    while (true) {
      pollfd readable[] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
      if (poll(readable, 2, 1000) <= 0) return;
      for (int i = 0; i < 2; ++i) {
        if (readable[i].revents == 0) continue;
        const std::string bytes = ReceiveSome(ends[i]);
        if (bytes.empty()) return;
        (void)send(ends[1 - i], bytes.data(), bytes.size(), MSG_NOSIGNAL);
      }
    }
  });
  EXPECT_EQ(CodeOfDial(squatter.address()), hlo::ErrorCode::kUnauthenticated);
}

TEST(Access, WhoDoesNotKnowTheTokenReachesNothing) {
  const Server server(TestOptions());
  const std::string address = "localhost:" + std::to_string(server.port());
  EXPECT_EQ(CodeOfDial(address, "another token, as long"), hlo::ErrorCode::kUnauthenticated);
  EXPECT_EQ(CodeOfDial(address, ""), hlo::ErrorCode::kUnauthenticated);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  wire::Description description;
  const auto plain = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  EXPECT_FALSE(wire::RuntimeServer::NewStub(plain)->Describe(&context, {}, &description).ok());
  EXPECT_EQ(description.devices_size(), 0);
  EXPECT_EQ(server.num_sessions_so_far(), 0);
  EXPECT_EQ(CodeOfDial(address), static_cast<hlo::ErrorCode>(0));
}

TEST(Access, ServerAtAPortNeedsAToken) {
  ServerOptions options = TestOptions();
  options.token = "";
  EXPECT_THROW(Server{options}, hlo::Error);
}

// A stranger at one of the addresses of "localhost" would get the clients that try it first.
TEST(Access, ServerTakesAllAddressesOfAName) {
  Listener stranger;
  try {
    stranger = Listen("[::1]:0");
  } catch (const hlo::Error&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  ServerOptions options = TestOptions();
  options.address = "localhost:" + std::to_string(stranger.port);
  bool both = false;
  {
    const Listener probe = Listen("localhost:0");
    both = probe.sockets.size() > 1;
  }
  if (!both) GTEST_SKIP() << "localhost is not ::1 here";
  EXPECT_THROW(Server{options}, hlo::Error);
}

// A stranger may take 5 s to say who it is: who waits for one is not in time, a busy machine is.
constexpr auto kNoDelay = std::chrono::seconds(3);

TEST(Access, SilentStrangersDelayNobody) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(Connect(TestAddress()));
    if (i % 3 == 0) (void)send(strangers.back().get(), "torch", 5, MSG_NOSIGNAL);
  }
  for (int i = 0; i < 20; ++i) {
    const auto begin = Clock::now();
    EXPECT_EQ(CodeOfDial(TestAddress()), static_cast<hlo::ErrorCode>(0));
    EXPECT_LT(Clock::now() - begin, kNoDelay);
  }
}

// Each that has left before the server looks.
TEST(Access, StrangersWhoAreGoneDelayNobody) {
  const linger at_once = {1, 0};
  for (int i = 0; i < 200; ++i) {
    const Descriptor stranger = Connect(TestAddress());
    setsockopt(stranger.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  const auto begin = Clock::now();
  EXPECT_EQ(CodeOfDial(TestAddress()), static_cast<hlo::ErrorCode>(0));
  EXPECT_LT(Clock::now() - begin, kNoDelay);
}

// A server at a socket in a folder of its own.
class SocketTest : public testing::Test {
 protected:
  SocketTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    options_.address = "unix:" + path();
    options_.token = "";
  }
  ~SocketTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/server.sock"; }
  std::string ErrorOfStart() const {
    try {
      const Server server(options_);
    } catch (const hlo::Error& error) {
      return error.what();
    }
    return "";
  }
  bool Serves() const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    wire::Description description;
    return wire::RuntimeServer::NewStub(TestChannel(options_.address))
        ->Describe(&context, {}, &description)
        .ok();
  }

  std::string folder_ = std::filesystem::temp_directory_path() / "remote_socket-XXXXXX";
  ServerOptions options_ = TestOptions();
};

TEST_F(SocketTest, Serves) {
  {
    const Server server(options_);
    struct stat status = {};
    ASSERT_EQ(stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    EXPECT_TRUE(Serves());
    EXPECT_NE(ErrorOfStart().find("in use"), std::string::npos);
    EXPECT_TRUE(Serves());
    setenv("PJRT_REMOTE_ADDRESS", options_.address.c_str(), 1);
    EXPECT_EQ(pjrt::Client::Create(pjrt::Plugin::Load(PLUGIN_REMOTE))->devices().size(), 2U);
    setenv("PJRT_REMOTE_ADDRESS", TestAddress().c_str(), 1);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(CodeOfDial(options_.address), hlo::ErrorCode::kUnavailable);
}

// What a server that was killed leaves is replaced; what is no socket is not.
TEST_F(SocketTest, ReplacesWhatADeadServerLeft) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  {
    const Descriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path()));
  {
    const Server server(options_);
    EXPECT_TRUE(Serves());
  }
  std::ofstream(path()) << "precious";
  EXPECT_NE(ErrorOfStart().find("there is a file of that name"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(SocketTest, FoldersOfOthersAreRefused) {
  chmod(folder_.c_str(), 0755);
  EXPECT_NE(ErrorOfStart().find("chmod 700"), std::string::npos);
  chmod(folder_.c_str(), 0700);
  const std::string link = folder_ + "-link";
  std::filesystem::create_symlink(folder_, link);
  options_.address = "unix:" + link + "/server.sock";
  EXPECT_NE(ErrorOfStart().find("must be a folder"), std::string::npos);
  std::filesystem::remove(link);
  options_.address = "unix:" + folder_ + "/" + std::string(200, 'x');
  EXPECT_NE(ErrorOfStart().find("less than"), std::string::npos);
  options_.address = "unix:relative.sock";
  EXPECT_NE(ErrorOfStart().find("absolute"), std::string::npos);
}

// What `body`, which must not allocate, returns in a process of another user.
int AsAnotherUser(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(100);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

// The folder keeps others out; the kernel's word on who they are does too, without it.
TEST_F(SocketTest, OtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const Server server(options_);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  auto visit = [&address] {  // 1: no way in; 2: sent away; 3: served
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
    char byte = 0;
    return recv(connection, &byte, 1, 0) == 0 ? 2 : 3;
  };
  EXPECT_EQ(AsAnotherUser(visit), 1);
  chmod(folder_.c_str(), 0755);
  chmod(path().c_str(), 0666);
  EXPECT_EQ(AsAnotherUser(visit), 2);
  EXPECT_EQ(server.num_sessions_so_far(), 0);
  chmod(folder_.c_str(), 0700);
  EXPECT_TRUE(Serves());
}

// Nor does a client speak to a process of another user that listens there.
TEST_F(SocketTest, ServersOfOtherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor stranger(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  // The kernel remembers who began to listen.
  EXPECT_EQ(AsAnotherUser([&] { return listen(stranger.get(), 1); }), 0);
  EXPECT_EQ(CodeOfDial(options_.address), hlo::ErrorCode::kUnauthenticated);
}

}  // namespace
}  // namespace remote
