// What has no memory or no thread is an error of that compile or that step: this program fails the
// n-th allocation, or thread, for n = 1, 2, 3, … until none is left to fail; afterwards all works.
// Of a compile, which has tens of thousands, the ordinary run leaves out most.
// TORCH_XLA_TEST_EVERY_FAILURE=K/N runs the K-th of N shares of them all, and starts nothing more
// after TORCH_XLA_TEST_SECONDS; it prints how much that was.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engines.h"

namespace {

// Which call fails; none if negative. Then all calls fail until there have been `failures_left`.
struct Injection {
  std::atomic<long> calls_left{-1};
  std::atomic<long> failures_left{0};

  void Arm(long n, long failures) {
    failures_left = failures;
    calls_left = n;
  }
  // True if something has failed.
  bool Disarm() { return calls_left.exchange(-1) == 0; }
  bool Fails() {
    long left = calls_left.load();
    while (left > 0 && !calls_left.compare_exchange_weak(left, left - 1)) {
    }
    return (left == 0 || left == 1) && failures_left.fetch_sub(1) > 0;
  }
};
Injection allocations, threads;

void* Allocate(size_t bytes, size_t alignment) {
  if (allocations.Fails()) return nullptr;
  bytes = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, bytes);
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  void* memory = Allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

// LLVM is not written for exceptions: it loses what it holds when one goes through it, and code
// that it was loading is abandoned.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:llvm::\nleak:cpu::LoadedCode::LoadedCode\n";
}

void* operator new(size_t bytes) { return AllocateOrThrow(bytes, kDefault); }
void* operator new[](size_t bytes) { return AllocateOrThrow(bytes, kDefault); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kDefault);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kDefault);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*), void* argument) {
  using Function = decltype(&pthread_create);
  static const auto system = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads.Fails()) return EAGAIN;
  return system(thread, attributes, main, argument);
}

namespace pjrt {
namespace {

constexpr int64_t kSize = 50'000;  // work for several threads

// Enough different kernels to be compiled on several threads, and an intermediate value. Each is of
// another length: those of one would be one kernel.
std::unique_ptr<hlo::Module> ManyKernels() {
  return MakeModule("kernels", [](hlo::Builder& b) {
    const hlo::Shape shape(hlo::ElementType::kF32, {kSize});
    hlo::Value x = b.Parameter(shape);
    std::vector<hlo::Value> results;
    for (hlo::Value y : {x, b.Add(x, x), b.Multiply(x, x), b.Abs(x), b.Negate(x), b.Exp(x)}) {
      const int64_t shorter = kSize - static_cast<int64_t>(results.size());
      results.push_back(b.Reduce(hlo::Opcode::kAdd, b.SliceInDim(y, 0, 0, shorter), {0}));
    }
    return results;
  });
}

// Which of very many failures to try: some, or a share of them all. A share goes in sweeps, each
// over the whole length, so that what there is time for lies everywhere.
struct Share {
  using Clock = std::chrono::steady_clock;
  long first = 1, stride = 0;  // 0: ever longer ones
  long sweeps = 1;
  Clock::time_point end = Clock::time_point::max();

  static Share FromEnvironment() {
    Share share;
    const char* text = std::getenv("TORCH_XLA_TEST_EVERY_FAILURE");
    if (text == nullptr) return share;
    share.sweeps = 64;
    if (std::sscanf(text, "%ld/%ld", &share.first, &share.stride) != 2 || share.first < 1 ||
        share.stride < share.first) {
      ADD_FAILURE() << "TORCH_XLA_TEST_EVERY_FAILURE is '" << text << "', and not like 1/4";
      share.sweeps = 0;
    }
    if (const char* seconds = std::getenv("TORCH_XLA_TEST_SECONDS")) {
      share.end = Clock::now() + std::chrono::seconds(std::atol(seconds));
    }
    return share;
  }
  long First(long sweep) const { return first + sweep * 37 % sweeps * stride; }  // far apart
  long Next(long n) const { return n + (stride > 0 ? sweeps * stride : 1 + n / 10); }
  bool HasTime() const { return Clock::now() < end; }
};

class Failures : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(OurEngine().path.empty()) << "the plugin is not built";
    setenv("TORCH_XLA_NUM_THREADS", "3", 1);
    // Room for a kernel or two: each compile compiles, and the cache changes.
    setenv("TORCH_XLA_KERNEL_CACHE_BYTES", "60000", 1);
    client_ = Client::Create(Plugin::Load(OurEngine().path));
    hlo::Literal ones(hlo::Shape(hlo::ElementType::kF32, {kSize}));
    for (float& element : ones.mutable_data<float>()) element = 1;
    argument_ = client_->BufferFromLiteral(ones, *client_->devices()[0]);
    // What LLVM makes once and for all cannot fail without harm: its code knows no exceptions.
    executable_ = client_->Compile(*ManyKernels());
    expected_ = Run(*executable_);
  }

  std::vector<hlo::Literal> Run(const LoadedExecutable& executable) {
    std::vector<hlo::Literal> results;
    const Buffer* arguments[] = {argument_.get()};
    for (const auto& output : executable.Execute(arguments).outputs) {
      results.push_back(output->ToLiteral());
    }
    return results;
  }

  // Calls `work` with ever later failures until there is none. The number of failures.
  template <typename Work>
  long FailEach(Injection& injection, Work work, bool sparsely) {
    long count = 0;
    for (const long failures : {1, 40}) {
      count += sparsely ? FailShare(injection, work, failures) : FailAll(injection, work, failures);
      EXPECT_EQ(Run(*client_->Compile(*ManyKernels())), expected_);
    }
    return count;
  }

  template <typename Work>
  long FailAll(Injection& injection, Work work, long failures) {
    long n = 1;
    for (; FailsAt(n, injection, work, failures); ++n) ExpectAlive(n);
    return n - 1;
  }

  template <typename Work>
  long FailShare(Injection& injection, Work work, long failures) {
    const Share share = Share::FromEnvironment();
    long count = 0, sweep = 0;
    for (; sweep < share.sweeps && share.HasTime(); ++sweep) {
      for (long n = share.First(sweep); FailsAt(n, injection, work, failures); n = share.Next(n)) {
        if (++count % 8 == 0) ExpectAlive(n);
      }
    }
    std::printf("%ld failures of %ld at a time: %ld of %ld sweeps\n", count, failures, sweep,
                share.sweeps);
    return count;
  }

  // False if there is no n-th to fail.
  template <typename Work>
  bool FailsAt(long n, Injection& injection, Work work, long failures) {
    injection.Arm(n, failures);
    try {
      work();
    } catch (const std::exception&) {
      // An error, as it should be.
    }
    return injection.Disarm();
  }

  void ExpectAlive(long n) { EXPECT_EQ(Run(*executable_), expected_) << "after failure " << n; }

  std::shared_ptr<Client> client_;
  std::unique_ptr<Buffer> argument_;
  std::unique_ptr<LoadedExecutable> executable_;
  std::vector<hlo::Literal> expected_;
};

TEST_F(Failures, OfAllocationsOfACompile) {
  const auto module = ManyKernels();
  EXPECT_GT(FailEach(allocations, [&] { client_->Compile(*module); }, /*sparsely=*/true), 50);
}

TEST_F(Failures, OfAllocationsOfALoad) {
  const std::string bytes = executable_->executable().Serialize();
  const auto load = [&] { client_->DeserializeAndLoad(bytes); };
  EXPECT_GT(FailEach(allocations, load, /*sparsely=*/false), 50);
}

TEST_F(Failures, OfThreadsOfACompile) {
  const auto module = ManyKernels();
  std::unique_ptr<LoadedExecutable> executable;
  EXPECT_GT(
      FailEach(threads, [&] { executable = client_->Compile(*module); }, /*sparsely=*/false), 0);
  EXPECT_EQ(Run(*executable), expected_);
}

TEST_F(Failures, OfAllocationsOfALaunch) {
  EXPECT_GT(FailEach(
                allocations, [&] { EXPECT_EQ(Run(*executable_), expected_); }, /*sparsely=*/false),
            10);
}

// Each client's first launch starts its queue's thread.
TEST_F(Failures, OfThreadsOfALaunch) {
  const auto first_launch = [&] {
    auto client = Client::Create(Plugin::Load(OurEngine().path));
    auto argument = client->BufferFromLiteral(argument_->ToLiteral(), *client->devices()[0]);
    auto executable = client->DeserializeAndLoad(executable_->executable().Serialize());
    const Buffer* arguments[] = {argument.get()};
    auto results = executable->Execute(arguments);
    EXPECT_EQ(results.outputs[0]->ToLiteral(), expected_[0]);
  };
  EXPECT_GT(FailEach(threads, first_launch, /*sparsely=*/false), 0);
}

}  // namespace
}  // namespace pjrt
