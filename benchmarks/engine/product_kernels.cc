// Times every kernel for products of f32 on each class of products, on one thread, and prints the
// table of the quickest as the engine includes it:
//
//   chrt -r 1 taskset -c 0 build/benchmarks/engine/product_kernels >
//   src/cpu/library/float_kernels_avx2.inc
//
// or float_kernels_avx512.inc, on a processor that has AVX-512. With the sizes of a product, and
// `a`, `b` or `ab` for what is transposed, it prints each kernel's GFLOP/s instead:
//
//   chrt -r 1 taskset -c 0 build/benchmarks/engine/product_kernels 8 768 768 b
//
// The time is the thread's own, the fastest of many runs, which other work disturbs little.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include "cpu/library/product.h"
#include "cpu/memory.h"

namespace {

using cpu::FloatKernel;
using cpu::Product;

// A class ends at its limit, and is measured at a size within it.
struct Class {
  int64_t limit, size;
};
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr Class kRows[] = {{1, 1},   {4, 3},   {12, 8},    {24, 16},
                           {48, 32}, {96, 64}, {192, 128}, {kNone, 384}};
constexpr Class kColumns[] = {{8, 4}, {32, 16}, {128, 64}, {512, 256}, {kNone, 1024}};
constexpr Class kDepths[] = {{32, 16}, {128, 64}, {512, 256}, {kNone, 1024}};
constexpr int64_t kMostElements = int64_t{4} << 20;  // of a matrix
constexpr FloatKernel kKernels[] = {FloatKernel::kWidePanels, FloatKernel::kRows,
                                    FloatKernel::kPanels,     FloatKernel::kBlas,
                                    FloatKernel::kSgemm,      FloatKernel::kMatmul};
constexpr int64_t kLine =
    512;  // lines a multiple of so many elements apart share sets of the cache

double Now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t LineLength(int64_t size, bool collide) {
  const int64_t lines = (size + kLine - 1) / kLine;
  return collide ? lines * kLine : size + 16 + (size % kLine == kLine - 16 ? 16 : 0);
}

// `line` says how far apart lines of so many elements are.
template <typename Line>
Product MakeProduct(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed,
                    const Line& line) {
  const int64_t lda = line(a_transposed ? m : k), ldb = line(b_transposed ? k : n);
  return {.m = m,
          .n = n,
          .k = k,
          .a_row = a_transposed ? 1 : lda,
          .a_column = a_transposed ? lda : 1,
          .b_row = b_transposed ? 1 : ldb,
          .b_column = b_transposed ? ldb : 1,
          .ldc = line(n)};
}

class Bench {
 public:
  // A call of a small product is repeated, so that the clock's own time does not count.
  double Seconds(FloatKernel kernel, const Product& p, double until) {
    auto routine = cpu::MakeFloatRoutine(kernel);
    routine->Prepare(p);
    const double work = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n * p.k);
    const int calls = std::clamp(static_cast<int>(2e6 / work), 1, 200);
    const int times = std::clamp(static_cast<int>(2e8 / (work * calls)), 4, 40);
    double best = until * 100;
    for (int i = 0; i < times; ++i) {
      const double start = Now();
      for (int call = 0; call < calls; ++call) routine->Run(p, a_.data(), b_.data(), c_.data());
      best = std::min(best, (Now() - start) / calls);
      if (i == 1 && best > 3 * until) break;  // hopeless
    }
    return best;
  }

  // Ours unless another is clearly quicker: how matrices lie, and what other threads do, disturbs
  // it least.
  FloatKernel Quickest(const Product& p) {
    constexpr double kWorth = 0.98;
    FloatKernel quickest = FloatKernel::kMatmul;
    double least = 1e9;
    for (FloatKernel kernel : kKernels) {
      if (!cpu::Serves(kernel, p)) continue;
      const double seconds = Seconds(kernel, p, least);
      if (seconds < kWorth * least) {
        least = seconds;
        quickest = kernel;
      }
    }
    return quickest;
  }

 private:
  static cpu::Block Filled() {
    cpu::Block block(kMostElements * sizeof(float));
    std::fill_n(static_cast<float*>(block.data()), kMostElements, 0.5f);
    return block;
  }
  cpu::Block a_ = Filled(), b_ = Filled(), c_ = Filled();
};

template <size_t N>
void PrintLimits(const char* name, const Class (&classes)[N]) {
  std::printf("constexpr int64_t %s[] = {", name);
  for (size_t i = 0; i + 1 < N; ++i) {
    std::printf("%s%ld", i == 0 ? "" : ", ", static_cast<long>(classes[i].limit));
  }
  std::printf("};\n");
}

// Of matrices without room between their lines. False for sizes that no matrix here has.
bool PrintRates(int64_t m, int64_t n, int64_t k, const std::string& transposed) {
  if (std::min({m, n, k}) < 1 || std::max({m, n, k}) > kMostElements ||
      std::max({m * n, m * k, n * k}) > kMostElements) {
    std::fprintf(stderr, "A matrix has 1 to %ld elements.\n", static_cast<long>(kMostElements));
    return false;
  }
  const bool a = transposed.find('a') != std::string::npos;
  const bool b = transposed.find('b') != std::string::npos;
  const Product p = MakeProduct(m, n, k, a, b, [](int64_t size) { return size; });
  Bench bench;
  std::map<FloatKernel, double> least;
  for (int turn = 0; turn < 4; ++turn) {
    for (FloatKernel kernel : kKernels) {
      if (!cpu::Serves(kernel, p)) continue;
      const double seconds = bench.Seconds(kernel, p, 1e9);
      least[kernel] = turn == 0 ? seconds : std::min(least[kernel], seconds);
    }
  }
  const double work = 2e-9 * static_cast<double>(m) * static_cast<double>(n * k);
  for (const auto& [kernel, seconds] : least) {
    std::printf("%7.1f  %s%s\n", work / seconds, cpu::MakeFloatRoutine(kernel)->Name(p).c_str(),
                kernel == cpu::QuickestFloatKernel(p) ? ", which serves" : "");
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count >= 4) {
    return PrintRates(std::atoll(arguments[1]), std::atoll(arguments[2]), std::atoll(arguments[3]),
                      count > 4 ? arguments[4] : "")
               ? 0
               : 1;
  }
  std::printf("// Written by benchmarks/engine/product_kernels.cc.\n");
  PrintLimits("kRowLimits", kRows);
  PrintLimits("kColumnLimits", kColumns);
  PrintLimits("kDepthLimits", kDepths);
  std::printf(
      "// A row of the table for each class of m, in it the classes of n, in these of k.\n");
  std::printf("constexpr const char* kKernels[] = {\n");
  Bench bench;
  for (int form = 0; form < 8; ++form) {
    const bool a_transposed = (form & 4) != 0, b_transposed = (form & 2) != 0,
               collide = (form & 1) != 0;
    std::printf("    // A%s B%s%s\n", a_transposed ? " transposed," : ",",
                b_transposed ? " transposed" : "", collide ? ", lines collide" : "");
    for (const Class& rows : kRows) {
      std::string letters;
      for (const Class& columns : kColumns) {
        for (const Class& depth : kDepths) {
          const Product p =
              MakeProduct(rows.size, columns.size, depth.size, a_transposed, b_transposed,
                          [&](int64_t size) { return LineLength(size, collide); });
          letters += static_cast<char>(bench.Quickest(p));
        }
      }
      std::printf("    \"%s\"%s\n", letters.c_str(), &rows == std::end(kRows) - 1 ? "," : "");
      std::fflush(stdout);
    }
  }
  std::printf("};\n");
}
