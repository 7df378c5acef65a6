// Threads that write parts of one tensor, sync and read, beside others that ask for reports, record
// profiles and forget what is kept. No value is lost; ThreadSanitizer sees the rest.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "hlo/error.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/live_data.h"
#include "lazy/metrics.h"
#include "lazy/op.h"
#include "lazy/program_cache.h"
#include "lazy/span.h"
#include "lazy/storage.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"

namespace lazy {
namespace {

constexpr int64_t kRows = 4, kColumns = 8;
constexpr int kSteps = 60;

hlo::Value PlusOne(hlo::Builder& b, hlo::Value x, hlo::Value one) {
  return b.Add(x, b.BroadcastInDim(one, x->dimensions(), {}));
}

Value Increased(const Value& x) {
  const float one = 1;
  OperandList operands;
  operands.Add(x);
  operands.Add({Node::MakeScalar(hlo::ElementType::kF32, &one), 0});
  return {Op<&PlusOne>::Record(operands, std::tuple()), 0};
}

ViewChain Row(int64_t row) {
  ViewStep step{ViewStep::Kind::kSlice};
  step.start = row;
  step.size = 1;
  return {step};
}

TEST(Threads, WriteTheirRowsBesideReports) {
#ifndef PLUGIN_CPU
  FAIL() << "this build has no engine";
#else
  setenv("PJRT_DEVICE", "LIBRARY", 1);
  setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
  Device* device = Runtime::Get().device(0);
  const hlo::Shape shape(hlo::ElementType::kF32, {kRows, kColumns});
  const std::vector<float> zeros(kRows * kColumns, 0);
  Reference<Data> data = Data::FromHost(device, shape, zeros.data());
  const ShapeRef interned = data->shape();
  auto table = Storage::Make(device, {Node::MakeData(std::move(data), interned), 0});

  std::atomic<int64_t> writers{kRows};
  std::vector<std::thread> threads;
  for (int64_t row = 0; row < kRows; ++row) {
    threads.emplace_back([&, row] {
      const Reference<View> view(new View(table, Row(row)));
      for (int step = 0; step < kSteps; ++step) {
        view->Write(Increased(view->Read()), /*is_stretched=*/false);
        if (step % 5 == row) Sync(device);
        if (step % 7 == row) {
          const hlo::Literal read = Evaluate(device, view->Read())->buffer().ToLiteral();
          EXPECT_EQ(read.data<float>()[0], step + 1);
        }
      }
      --writers;
    });
  }
  const std::function<void()> others[] = {
      [] { EXPECT_FALSE(MetricsReport().empty()); },
      [] { (void)DescribeLiveTensors(), (void)ComputationCacheStatistics(); },
      [] { (void)(StartRecordingSpans() && !StopRecordingSpans().lines.empty()); },
      [] { ClearComputationCache(), OperationTable::GiveUpUnused(); },
  };
  for (const auto& other : others) {
    threads.emplace_back([&] {
      while (writers > 0) {
        other();
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const hlo::Literal all = Materialized(table)->buffer().ToLiteral();
  for (const float value : all.data<float>()) EXPECT_EQ(value, kSteps);
#endif
}

// A wish to donate holds whoever else refers to the data.
TEST(Threads, ReadWhatAnotherGivesUp) {
#ifndef PLUGIN_CPU
  FAIL() << "this build has no engine";
#else
  setenv("PJRT_DEVICE", "LIBRARY", 1);
  setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
  Device* device = Runtime::Get().device(0);
  const hlo::Shape shape(hlo::ElementType::kF32, {kColumns});
  const std::vector<float> ones(kColumns, 1);
  for (int round = 0; round < 100; ++round) {
    const Reference<Data> data = Data::FromHost(device, shape, ones.data());
    std::atomic<bool> has_read{false};
    std::thread reader([&] {
      std::vector<float> read(kColumns);
      try {
        for (;;) {
          data->ToHost(read.data(), kColumns * sizeof(float));
          EXPECT_EQ(read, ones);
          has_read = true;
        }
      } catch (const hlo::Error& error) {
        EXPECT_EQ(error.code(), hlo::ErrorCode::kFailedPrecondition);
      }
    });
    while (!has_read) std::this_thread::yield();
    {
      std::lock_guard lock(SyncMutex());
      data->Drop();
    }
    reader.join();
    EXPECT_FALSE(data->has_buffer());
  }
#endif
}

}  // namespace
}  // namespace lazy
