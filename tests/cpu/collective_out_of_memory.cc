// A collective that finds no memory, not even for the words of its error, is an error of that
// collective. Replaces operator new, and so is a program of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "cpu/collective/communicator.h"
#include "hlo/error.h"

namespace {

std::atomic<long> allocations_left{-1};  // then all fail; negative: none does

}  // namespace

void* operator new(size_t bytes) {
  long left = allocations_left.load();
  while (left > 0 && !allocations_left.compare_exchange_weak(left, left - 1)) {
  }
  void* memory = left != 0 ? std::malloc(std::max<size_t>(bytes, 1)) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cpu {
namespace {

TEST(CollectiveOutOfMemory, IsAnErrorOfTheCollective) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.operands = {hlo::Shape(hlo::ElementType::kF32, {4})};
  collective.source = "a program whose name is not short enough to be kept without memory:1";
  alarm(60);  // a hang is a failure
  const std::vector<float> input{1, 2, 3, 4};
  long n = 0;
  for (bool failed = true; failed; ++n) {
    const auto world = ConnectCommunicator({}, {});
    std::vector<float> output(4);
    const void* operand = input.data();
    void* result = output.data();
    // On this thread, and on the world's.
    for (const bool here : {true, false}) {
      failed = false;
      allocations_left = n;
      try {
        if (here) {
          world->Run(collective, &operand, &result);
        } else {
          world->Wait(world->Start(collective, &operand, &result));
        }
      } catch (const std::exception&) {
        failed = true;
      }
      allocations_left = -1;
      EXPECT_TRUE(failed || output == input);
    }
  }
  EXPECT_GT(n, 5);
}

}  // namespace
}  // namespace cpu
