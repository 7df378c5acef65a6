#include "cpu/library/tap_columns.h"

#include <algorithm>
#include <utility>

#include "cpu/isa.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

#define TAP_INLINE [[gnu::always_inline]] inline

template <int64_t bytes>
struct Floats {
  using Vector [[gnu::vector_size(bytes), gnu::may_alias]] = float;
  using Unaligned [[gnu::vector_size(bytes), gnu::may_alias, gnu::aligned(4)]] = float;
  static constexpr int64_t kLanes = bytes / static_cast<int64_t>(sizeof(float));
};

// Sums of `rows` rows, one class's, of `vectors` vectors each, which stay in registers.
template <int64_t bytes, int rows, int vectors>
struct TapBlock {
  using Vector = typename Floats<bytes>::Vector;
  using Unaligned = typename Floats<bytes>::Unaligned;
  static constexpr int64_t kLanes = Floats<bytes>::kLanes;

  Vector sums[rows][vectors] = {};

  // What a row of the plane counts for: rows i - taps + 1 to i of the result.
  template <int taps, int i, int v, int... k>
  TAP_INLINE void AddVector(const float* from, int64_t step, const float* weights,
                            std::integer_sequence<int, k...>) {
    const Vector x = *reinterpret_cast<const Unaligned*>(from + i * step + v * kLanes);
    const auto add = [&]<int tap>() __attribute__((always_inline)) {
      if constexpr (i >= tap && i - tap < rows) sums[i - tap][v] += x * weights[tap];
    };
    (add.template operator()<k>(), ...);
  }
  template <int taps, int... i>
  TAP_INLINE void AddRows(const float* from, int64_t step, const float* weights,
                          std::integer_sequence<int, i...>) {
    constexpr std::make_integer_sequence<int, taps> kTaps;
    (AddVector<taps, i, 0>(from, step, weights, kTaps), ...);
    if constexpr (vectors > 1) (AddVector<taps, i, 1>(from, step, weights, kTaps), ...);
  }
  template <int taps>
  TAP_INLINE void Add(const float* from, int64_t step, const float* weights) {
    AddRows<taps>(from, step, weights, std::make_integer_sequence<int, rows + taps - 1>());
  }

  template <int... less>
  TAP_INLINE void AddColumn(int64_t taps, const float* from, int64_t step, const float* weights,
                            std::integer_sequence<int, less...>) {
    ((taps == less + 1 && (Add<less + 1>(from, step, weights), true)) || ...);
  }

  TAP_INLINE void AddColumns(const TapPlan& plan, const float* plane, const float* weights) {
    const int64_t step = plan.step();
    for (const TapColumn& column : plan.columns) {
      const float* from = plane + column.place;
      AddColumn(column.taps, from, step, weights,
                std::make_integer_sequence<int, kMostTapsInColumn>());
      weights += column.taps;
    }
  }

  TAP_INLINE void Store(float* out, int64_t step) const {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        *reinterpret_cast<Unaligned*>(out + r * step + v * kLanes) = sums[r][v];
      }
    }
  }
};

template <int64_t bytes, int rows>
TAP_INLINE void SumRows(const TapPlan& plan, const float* plane, const float* weights,
                        int64_t length, float* out) {
  constexpr int64_t kLanes = Floats<bytes>::kLanes;
  for (int64_t at = 0; at < length;) {
    if (at + kLanes < length) {
      TapBlock<bytes, rows, 2> block;
      block.AddColumns(plan, plane + at, weights);
      block.Store(out + at, plan.step());
      at += 2 * kLanes;
    } else {
      TapBlock<bytes, rows, 1> block;
      block.AddColumns(plan, plane + at, weights);
      block.Store(out + at, plan.step());
      at += kLanes;
    }
  }
}

// most: rows whose sums the registers hold.
template <int64_t bytes, int most>
TAP_INLINE void SumClasses(const TapPlan& plan, const float* plane, const float* weights,
                           int64_t rows, int64_t length, float* out) {
  for (int64_t c = 0; c < std::min(plan.classes, rows); ++c) {
    int64_t left = hlo::CeilDivide(rows - c, plan.classes);
    int64_t at = c * plan.line;
    const auto sum = [&](auto of) __attribute__((always_inline)) {
      constexpr int kRows = decltype(of)::value;
      for (; left >= kRows; left -= kRows, at += kRows * plan.step()) {
        SumRows<bytes, kRows>(plan, plane + at, weights, length, out + at);
      }
    };
    sum(std::integral_constant<int, most>());
    if constexpr (most > 4) sum(std::integral_constant<int, 4>());
    sum(std::integral_constant<int, 2>());
    sum(std::integral_constant<int, 1>());
  }
}

using SumTapsFunction = void (*)(const TapPlan&, const float*, const float*, int64_t, int64_t,
                                 float*);

void SumTapsInShortVectors(const TapPlan& plan, const float* plane, const float* weights,
                           int64_t rows, int64_t length, float* out) {
  SumClasses<16, 4>(plan, plane, weights, rows, length, out);
}
#if defined(__x86_64__)
// (A compiler's clones for AVX2 keep vectors of AVX-512 in memory.)
__attribute__((target("avx2,fma"))) void SumTapsInAvx2(const TapPlan& plan, const float* plane,
                                                       const float* weights, int64_t rows,
                                                       int64_t length, float* out) {
  SumClasses<32, 4>(plan, plane, weights, rows, length, out);
}
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma"))) void SumTapsInAvx512(
    const TapPlan& plan, const float* plane, const float* weights, int64_t rows, int64_t length,
    float* out) {
  SumClasses<64, 8>(plan, plane, weights, rows, length, out);
}
#endif

SumTapsFunction ChooseSumTaps() {
#if defined(__x86_64__)
  if (KernelIsa() >= Isa::kAvx512) return SumTapsInAvx512;
  if (KernelIsa() >= Isa::kAvx2) return SumTapsInAvx2;
#endif
  return SumTapsInShortVectors;
}

}  // namespace

void SumTaps(const TapPlan& plan, const float* plane, const float* weights, int64_t rows,
             int64_t length, float* out) {
  static const SumTapsFunction sum = ChooseSumTaps();
  sum(plan, plane, weights, rows, length, out);
}

}  // namespace cpu
