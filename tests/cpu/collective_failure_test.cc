// Ranks that die, hang, leave or diverge: the others get an error that names them. This program
// forks: each child is a rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include "collective_testing.h"
#include "cpu/collective/host_identity.h"

namespace cpu {
namespace {

using hlo::ErrorCode;
using std::chrono::milliseconds;

// Of a collective; long enough for the first one of all ranks, also on a busy machine.
constexpr milliseconds kTimeout(2000);

class CollectiveFailureTest : public testing::TestWithParam<Layout> {
 protected:
  int64_t last() const { return static_cast<int64_t>(GetParam().size()) - 1; }
  std::string Last() const { return "rank " + std::to_string(last()); }

  // The last rank ends by `signal` (0: normally, with status 0), the others without an error.
  void Expect(const std::function<void(Communicator&)>& body, int signal,
              milliseconds timeout = std::chrono::seconds(60)) {
    const std::vector<int> statuses = StatusesOf(GetParam(), body, timeout);
    for (int64_t rank = 0; rank <= last(); ++rank) {
      EXPECT_EQ(statuses[rank], rank == last() ? signal : 0) << "rank " << rank;
    }
  }
};

TEST_P(CollectiveFailureTest, DiesBetweenCollectives) {
  Expect(
      [&](Communicator& world) {
        CarryOut(world, AllReduceOf(3, "first.py:1"));
        if (world.rank() == last()) raise(SIGKILL);
        const hlo::Error error = ErrorOf([&] { CarryOut(world, AllReduceOf(5, "second.py:2")); });
        RequireWords(error, {Last() + " has died", "all_reduce(sum) of f32[5]", "second.py:2",
                             "first.py:1"});
        // What follows fails at once.
        RequireWords(ErrorOf([&] { CarryOut(world, AllReduceOf(7, "")); }), {Last() + " has died"});
      },
      SIGKILL);
}

TEST_P(CollectiveFailureTest, DiesInsideOne) {
  Expect(
      [&](Communicator& world) {
        CarryOut(world, AllReduceOf(3, "first.py:1"));
        const Collective large = AllReduceOf(20'000'000, "large.py:3");
        if (world.rank() == last()) {
          std::thread([] {
            std::this_thread::sleep_for(milliseconds(10));
            raise(SIGKILL);
          }).detach();
        }
        const hlo::Error error = ErrorOf([&] {
          for (int i = 0; i < 1000; ++i) CarryOut(world, large);
        });
        RequireWords(error, {Last() + " has died", "f32[20000000]", "large.py:3"});
      },
      SIGKILL);
}

TEST_P(CollectiveFailureTest, Leaves) {
  Expect(
      [&](Communicator& world) {
        CarryOut(world, AllReduceOf(3, "first.py:1"));
        if (world.rank() == last()) return;
        const hlo::Error error = ErrorOf([&] { CarryOut(world, AllReduceOf(5, "second.py:2")); });
        RequireWords(error, {Last() + " has closed its client", "second.py:2"});
      },
      0);
}

// Of a program that was made for a world of another size.
TEST_P(CollectiveFailureTest, HasRoomForOtherGroups) {
  const auto size = static_cast<int64_t>(GetParam().size());
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    Expect(
        [&](Communicator& world) {
          Collective collective;
          collective.kind = kind;
          collective.operands = {hlo::Shape(hlo::ElementType::kF32, {size * (size + 1)})};
          collective.group_size = size + 1;
          const hlo::Error error = ErrorOf([&] { CarryOut(world, collective); });
          RequireWords(error, {"a group of " + std::to_string(size + 1) + " ranks",
                               "this one has " + std::to_string(size)});
        },
        0);
  }
}

TEST_P(CollectiveFailureTest, Diverges) {
  Expect(
      [&](Communicator& world) {
        const bool other = world.rank() == last();
        CarryOut(world, AllReduceOf(3, ""));
        const Collective mine = other ? AllReduceOf(6, "other.py:7") : AllReduceOf(5, "same.py:6");
        const hlo::Error error = ErrorOf([&] { CarryOut(world, mine); });
        RequireWords(error, {"diverge", Last(), "f32[5]", "f32[6]", "same.py:6", "other.py:7"});
      },
      0);
}

TEST_P(CollectiveFailureTest, DivergesInKind) {
  Expect(
      [&](Communicator& world) {
        Collective mine = AllReduceOf(4, "");
        if (world.rank() == last()) mine.kind = CollectiveKind::kBroadcast;
        std::vector<float> in(4), out(4);
        const void* operand = in.data();
        void* result = out.data();
        const hlo::Error error = ErrorOf([&] {
          world.Run(mine, &operand, &result);
          CarryOut(world, mine);
        });
        RequireWords(error, {"diverge", "all_reduce", "collective_broadcast"});
      },
      0);
}

TEST_P(CollectiveFailureTest, Hangs) {
  Expect(
      [&](Communicator& world) {
        CarryOut(world, AllReduceOf(3, "first.py:1"));
        if (world.rank() == last()) {
          std::this_thread::sleep_for(2 * kTimeout);
          // (What the others sent for the first may be here, and is enough.)
          const hlo::Error error = ErrorOf([&] {
            for (int i = 0; i < 2; ++i) CarryOut(world, AllReduceOf(5, "late.py:4"));
          });
          RequireWords(error, {"second.py:2"});
          return;
        }
        const hlo::Error error = ErrorOf([&] { CarryOut(world, AllReduceOf(5, "second.py:2")); });
        RequireWords(error, {Last(), "second.py:2", "first.py:1"});
      },
      0, kTimeout);
}

TEST_P(CollectiveFailureTest, Stops) {
  FolderStore store;
  std::vector<pid_t> others = StartRanks(
      GetParam(), store.Store(), [&](CommunicatorOptions options, const KeyValueStore& shared) {
        options.timeout = kTimeout;
        const auto world = ConnectCommunicator(options, shared);
        CarryOut(*world, AllReduceOf(3, "first.py:1"));
        if (world->rank() == last()) {
          prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody else would end it
          raise(SIGSTOP);
        }
        const hlo::Error error = ErrorOf([&] { CarryOut(*world, AllReduceOf(5, "second.py:2")); });
        RequireWords(error, {Last(), "second.py:2", "first.py:1"});
      });
  const pid_t stopped = others.back();
  others.pop_back();
  EXPECT_EQ(Await(others), std::vector<int>(others.size(), 0));
  kill(stopped, SIGKILL);
  EXPECT_EQ(Await({stopped}), std::vector<int>({SIGKILL}));
}

// A rank of which a child lives on, as workers of a loader do.
TEST_P(CollectiveFailureTest, DiesAndLeavesAChild) {
  Expect(
      [&](Communicator& world) {
        CarryOut(world, AllReduceOf(3, "first.py:1"));
        if (world.rank() == last()) {
          if (fork() == 0) {
            alarm(5);
            pause();
          }
          raise(SIGKILL);
        }
        const hlo::Error error = ErrorOf([&] { CarryOut(world, AllReduceOf(5, "second.py:2")); });
        RequireWords(error, {Last() + " has died"});
      },
      SIGKILL);
}

// Ranks that never come are named.
TEST_P(CollectiveFailureTest, DoesNotCome) {
  FolderStore store;
  CommunicatorOptions options;
  options.size = static_cast<int64_t>(GetParam().size());
  options.host = "a";
  options.timeout = milliseconds(200);
  const hlo::Error error = ErrorOf([&] { ConnectCommunicator(options, store.Store()); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(std::string(error.what()).find("did not come: 1"), std::string::npos) << error.what();
}

INSTANTIATE_TEST_SUITE_P(Layouts, CollectiveFailureTest,
                         testing::Values("aa", "ab", "aaaa", "abcd", "aabb"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cpu
