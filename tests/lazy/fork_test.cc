// Forks beside threads that record, sync, upload and run collectives: no fork hangs, and every
// child computes. TORCH_XLA_TEST_FORKS is their number.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/op.h"
#include "lazy/program_cache.h"
#include "lazy/storage.h"
#include "lazy/sync.h"

namespace lazy {
namespace {

using hlo::ElementType;

constexpr int64_t kSize = 20'000;  // work for several threads

hlo::Value Add(hlo::Builder& b, hlo::Value x, hlo::Value y) { return b.Add(x, y); }
hlo::Value Scale(hlo::Builder& b, hlo::Value x, hlo::Value factor) {
  return b.Multiply(x, b.BroadcastInDim(factor, x->dimensions(), {}));
}

Value Upload(float element) {
  static const SharedShape shape = InternShape(hlo::Shape(ElementType::kF32, {kSize}));
  const std::vector<float> host(kSize, element);
  return {
      Node::MakeData(Data::FromHost(Runtime::Get().device(0), *shape, host.data()), shape.get()),
      0};
}

template <auto f>
Value Record(const Value& x, const Value& y) {
  OperandList operands;
  operands.Add(x);
  operands.Add(y);
  return {Op<f>::Record(operands, std::tuple()), 0};
}

// (x + x) * factor, by a sync.
float Compute(float x, float factor) {
  const Value uploaded = Upload(x);
  const Value number{Node::MakeScalar(ElementType::kF32, &factor), 0};
  auto storage = Storage::Make(Runtime::Get().device(0),
                               Record<&Scale>(Record<&Add>(uploaded, uploaded), number));
  Sync(Runtime::Get().device(0));
  const hlo::Literal literal = Materialized(storage)->buffer().ToLiteral();
  const float* values = literal.data<float>().data();
  for (int64_t i = 1; i < kSize; ++i) {
    if (values[i] != values[0]) return -1;
  }
  return values[0];
}

int NumberOfForks() {
  const char* text = std::getenv("TORCH_XLA_TEST_FORKS");
  return text != nullptr ? std::atoi(text) : 100;
}

// Forks so often, and each child must do `body` well, within 60 s.
template <typename Body>
void ForkOften(Body body) {
  for (int i = 0; i < NumberOfForks(); ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      bool good = false;
      try {
        good = body(i);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child %d: %s\n", i, error.what());
      }
      _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "child " << i << " hung: signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0) << "child " << i;
  }
}

class Threads {
 public:
  template <typename Body>
  explicit Threads(std::vector<Body> bodies) {
    for (Body& body : bodies) {
      threads_.emplace_back([this, body] {
        for (int i = 0; !stop_; ++i) body(i);
      });
    }
  }
  ~Threads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(Fork, BesideThreadsThatSyncAndUpload) {
#ifndef PLUGIN_CPU
  FAIL() << "this build has no engine";
#else
  setenv("PJRT_DEVICE", "LIBRARY", 1);
  setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
  alarm(2 * NumberOfForks() + 120);  // a hang is a failure
  const Value shared = Upload(3);
  EXPECT_EQ(Compute(1, 2), 4);
  using Body = std::function<void(int)>;
  const Body sync = [](int i) { EXPECT_EQ(Compute(static_cast<float>(i % 100), 3), i % 100 * 6); };
  const Body upload = [](int i) { Upload(static_cast<float>(i)); };
  // Storages that several threads write and the children read.
  auto storage = Storage::Make(Runtime::Get().device(0), shared);
  const Body record = [&](int) { storage->set_value(Record<&Add>(shared, shared)); };
  const Body compile = [](int) {
    ClearComputationCache();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  {
    const Threads threads(std::vector<Body>{sync, sync, upload, record, compile});
    ForkOften([&](int i) {
      const auto x = static_cast<float>(i % 10);
      const hlo::Literal value = Materialized(storage)->buffer().ToLiteral();
      return Compute(x, 5) == x * 10 &&
             (value.data<float>()[0] == 3 || value.data<float>()[0] == 6);
    });
  }
  alarm(0);
#endif
}

}  // namespace
}  // namespace lazy
