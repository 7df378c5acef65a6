#include "cpu/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "cpu/executable.h"
#include "cpu/step_sequence.h"
#include "hlo/builder.h"
#include "hlo/module.h"

namespace cpu {
namespace {

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The first time is for caches, pages and generated code.
double BestSecondsOf(const std::function<void()>& work) {
  work();
  double best = SecondsOf(work);
  for (int i = 0; i < 3; ++i) best = std::min(best, SecondsOf(work));
  return best;
}

// Not from the engine's own memory, whose use and peak are the program's.
struct Free {
  void operator()(void* pointer) const { std::free(pointer); }
};
using Array = std::unique_ptr<void, Free>;

Array Zeros(size_t bytes) {
  Array array(std::aligned_alloc(64, bytes));
  if (array == nullptr) throw std::bad_alloc();
  std::memset(array.get(), 0, bytes);
  return array;
}

double MeasureFlops() {
  constexpr int64_t kSize = 768;
  hlo::Module module("peak");
  hlo::Computation* entry = module.AddComputation("main");
  hlo::Builder builder(entry);
  const hlo::Shape shape(hlo::ElementType::kF32, {kSize, kSize});
  hlo::Value x = builder.Parameter(shape), y = builder.Parameter(shape);
  entry->set_results({builder.MatMul(x, y)});
  module.set_entry(entry);
  const std::unique_ptr<Executable> executable = Compile(module);
  const Array a = Zeros(shape.byte_size()), b = Zeros(shape.byte_size()),
              c = Zeros(shape.byte_size());
  const void* const arguments[] = {a.get(), b.get()};
  void* const results[] = {c.get()};
  const double seconds = BestSecondsOf([&] { executable->Run(arguments, results, {}); });
  return 2.0 * kSize * kSize * kSize / seconds;
}

double MeasureBytes() {
  constexpr size_t kBytes = 64 << 20;
  const Array from = Zeros(kBytes), to = Zeros(kBytes);
  const double seconds =
      BestSecondsOf([&] { ParallelCopy(ThreadPool::Default(), to.get(), from.get(), kBytes); });
  return 2.0 * kBytes / seconds;
}

}  // namespace

const Peaks& MeasuredPeaks() {
  static const Peaks peaks{MeasureFlops(), MeasureBytes()};
  return peaks;
}

}  // namespace cpu
