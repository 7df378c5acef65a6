// Ranks that are slow, stopped, or cannot be reached for a while: life and progress are different
// things. This program forks: each child is a rank.
#include <gtest/gtest.h>
#include <signal.h>

#include "collective_relay.h"
#include "collective_testing.h"
#include "cpu/collective/heartbeat.h"

namespace cpu {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTimeout(2000);

TEST(FailureDetectorTest, CountsOnlyWhatCouldHaveBeenHeard) {
  const milliseconds timeout(10'000), period = FailureDetector::Period(timeout);
  FailureDetector detector;
  int periods = 0;
  while (!detector.Listen(false, period, timeout)) ++periods;
  // Told in time: what is known may be two periods old.
  EXPECT_LE((periods + 3) * period, timeout);
  EXPECT_GT((periods + 3) * period, timeout / 2);
  EXPECT_FALSE(detector.Listen(true, period, timeout));
  // This process was stopped itself, for hours.
  EXPECT_FALSE(detector.Listen(false, std::chrono::hours(2), timeout));
  EXPECT_FALSE(detector.Listen(true, period, timeout));
}

class CollectiveLifeTest : public testing::TestWithParam<Layout> {
 protected:
  int64_t last() const { return static_cast<int64_t>(GetParam().size()) - 1; }
  std::string Last() const { return "rank " + std::to_string(last()); }

  // How each rank has ended.
  std::vector<int> Run(const std::function<void(Communicator&)>& body) const {
    FolderStore store;
    return Await(StartRanks(GetParam(), store.Store(),
                            [&](CommunicatorOptions options, const KeyValueStore& shared) {
                              options.heartbeat_timeout = kTimeout;
                              options.secret = "a secret of this job and of no other";
                              body(*ConnectCommunicator(options, shared));
                            }));
  }

  // The last rank is killed in the end, the others have no error.
  void ExpectOthersWell(const std::vector<int>& statuses) const {
    for (int64_t rank = 0; rank <= last(); ++rank) {
      EXPECT_EQ(statuses[rank], rank == last() ? SIGKILL : 0) << "rank " << rank;
    }
  }

  // Stopped, and killed when the test is over.
  static void Stop() {
    if (const pid_t waker = fork(); waker == 0) {
      std::this_thread::sleep_for(2 * kTimeout);
      kill(getppid(), SIGKILL);
      _exit(0);
    }
    raise(SIGSTOP);
  }
};

// More data than the system's buffers hold waits for a rank that sleeps for longer than one may be
// silent.
TEST_P(CollectiveLifeTest, SleepsInsideAnAllGather) {
  const auto statuses = Run([&](Communicator& world) {
    Collective collective;
    collective.kind = CollectiveKind::kAllGather;
    collective.operands = {hlo::Shape(hlo::ElementType::kU8, {64 << 20})};
    std::string mine(64 << 20, static_cast<char>('a' + world.rank()));
    std::string all(mine.size() * world.size(), '\0');
    CarryOut(world, AllReduceOf(3, ""));
    if (world.rank() == last()) std::this_thread::sleep_for(3 * kTimeout / 2);
    const void* operand = mine.data();
    void* result = all.data();
    world.Run(collective, &operand, &result);
    for (int64_t rank = 0; rank < world.size(); ++rank) {
      Require(all[(rank + 1) * mine.size() - 1] == static_cast<char>('a' + rank), "bytes");
    }
  });
  EXPECT_EQ(statuses, std::vector<int>(GetParam().size(), 0));
}

TEST_P(CollectiveLifeTest, StopsWhileOthersWait) {
  ExpectOthersWell(Run([&](Communicator& world) {
    CarryOut(world, AllReduceOf(3, "first.py:1"));
    if (world.rank() == last()) Stop();
    const auto begin = Clock::now();
    const hlo::Error error = ErrorOf([&] { CarryOut(world, AllReduceOf(5, "second.py:2")); });
    RequireWords(error, {Last(), "no sign of life for 2", "TORCH_XLA_HEARTBEAT_TIMEOUT",
                         "second.py:2", "first.py:1"});
    // (The world's first collective and this one are close together.)
    Require(Clock::now() - begin < 3 * kTimeout / 2, "told late");
  }));
}

TEST_P(CollectiveLifeTest, StopsWhileOthersAreIdle) {
  ExpectOthersWell(Run([&](Communicator& world) {
    CarryOut(world, AllReduceOf(3, ""));
    if (world.rank() == last()) Stop();
    std::this_thread::sleep_for(kTimeout + milliseconds(500));
    const auto begin = Clock::now();
    RequireWords(ErrorOf([&] { CarryOut(world, AllReduceOf(5, "")); }),
                 {Last(), "no sign of life"});
    Require(Clock::now() - begin < milliseconds(1000), "it was known before");
  }));
}

// As when a machine is suspended, or a group of containers frozen: nobody is to blame.
TEST_P(CollectiveLifeTest, AllStopAndGoOn) {
  const auto statuses = Run([&](Communicator& world) {
    CarryOut(world, AllReduceOf(3, ""));
    if (const pid_t waker = fork(); waker == 0) {
      std::this_thread::sleep_for(3 * kTimeout / 2);
      kill(getppid(), SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
    std::this_thread::sleep_for(kTimeout / 2);
    CarryOut(world, AllReduceOf(5, ""));
  });
  EXPECT_EQ(statuses, std::vector<int>(GetParam().size(), 0));
}

INSTANTIATE_TEST_SUITE_P(Layouts, CollectiveLifeTest, testing::Values("aa", "ab", "aabb"),
                         [](const auto& info) { return info.param; });

// Collectives of two ranks over a relay, during which `disturb` is called.
std::vector<int> OverRelay(const std::function<void(const Relay&)>& disturb,
                           const std::function<void(Communicator&)>& body) {
  FolderStore store;
  Relay relay(store.Store());
  const auto children = StartRanks("ab", relay.Store(),
                                   [&](CommunicatorOptions options, const KeyValueStore& shared) {
                                     options.heartbeat_timeout = kTimeout;
                                     body(*ConnectCommunicator(options, shared));
                                   });
  std::this_thread::sleep_for(milliseconds(500));
  disturb(relay);
  return Await(children);
}

TEST(CollectiveLinkTest, AWayThatIsBlockedForAWhileIsNoEnd) {
  const auto statuses = OverRelay(
      [](const Relay& relay) {
        relay.Stop();
        std::this_thread::sleep_for(kTimeout / 2);
        relay.GoOn();
      },
      [](Communicator& world) {
        const auto begin = Clock::now();
        float ends = 0;
        while (ends == 0) {
          CarryOut(world, AllReduceOf(100'000, ""));
          // All end after the same one.
          ends = Clock::now() - begin > 3 * kTimeout / 2 ? 1.f : 0.f;
          void* array = &ends;
          world.Run(AllReduceOf(1, ""), &array, &array);
        }
      });
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
}

TEST(CollectiveLinkTest, AWayThatStaysBlockedNamesThePeerOnBothSides) {
  const auto statuses = OverRelay([](const Relay& relay) { relay.Stop(); },
                                  [](Communicator& world) {
                                    const std::string other =
                                        "rank " + std::to_string(1 - world.rank());
                                    const hlo::Error error = ErrorOf([&] {
                                      while (true) CarryOut(world, AllReduceOf(100'000, ""));
                                    });
                                    RequireWords(error, {other, "no sign of life"});
                                  });
  EXPECT_EQ(statuses, std::vector<int>({0, 0}));
}

}  // namespace
}  // namespace cpu
