#include "cpu/library/row_product.h"

#include <algorithm>
#include <array>

#include "hlo/size_arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {

#if defined(__x86_64__)

#define CPU_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))

namespace {

// Of a tile of the result: 16 vectors of sums hide the latency of a multiplication, and are read
// for from eight lines.
constexpr int64_t kRows = 4, kColumns = 4, kLanes = 16;
// Of k at a time as much as lets the rows of A stay in the first cache while B passes by, but not
// so little that the sums' own sums show.
constexpr int64_t kCachedElements = 8192, kLeastDepth = 512;

// Four vectors' sums, side by side.
CPU_AVX512 inline __m128 Sums(const __m512 (&x)[kColumns]) {
  constexpr __mmask16 kAll = 0xffff;  // GCC warns of the undefined vectors in forms without a mask
  const auto low = [&](int i) CPU_AVX512 { return _mm512_maskz_unpacklo_ps(kAll, x[i], x[i + 1]); };
  const auto high = [&](int i)
                        CPU_AVX512 { return _mm512_maskz_unpackhi_ps(kAll, x[i], x[i + 1]); };
  const __m512 first = _mm512_add_ps(low(0), high(0)), second = _mm512_add_ps(low(2), high(2));
  const __m512 quarters = _mm512_add_ps(_mm512_maskz_shuffle_ps(kAll, first, second, 0x44),
                                        _mm512_maskz_shuffle_ps(kAll, first, second, 0xee));
  const __m256 halves = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, quarters, 0),
                                      _mm512_maskz_extractf32x8_ps(0xff, quarters, 1));
  return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

// A tile of C = or += rows of A times columns of B, for p.k of k.
template <int kTileRows, int kTileColumns>
CPU_AVX512 void MultiplyTile(const Product& p, const float* a, const float* b, float* c,
                             bool accumulate) {
  __m512 sums[kTileRows][kColumns];
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) sums[r][j] = _mm512_setzero_ps();
  }
  const auto add = [&](int64_t k, __mmask16 mask) CPU_AVX512 {
    __m512 lines[kTileColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kTileColumns; ++j) {
      lines[j] = _mm512_maskz_loadu_ps(mask, b + j * p.b_column + k);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kTileRows; ++r) {
      const __m512 row = _mm512_maskz_loadu_ps(mask, a + r * p.a_row + k);
#pragma GCC unroll 4
      for (int j = 0; j < kTileColumns; ++j)
        sums[r][j] = _mm512_fmadd_ps(row, lines[j], sums[r][j]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= p.k; k += kLanes) add(k, 0xffff);
  if (k < p.k) add(k, static_cast<__mmask16>((1u << (p.k - k)) - 1));
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; ++r) {
    constexpr __mmask8 kMask = (1u << kTileColumns) - 1;
    __m128 value = Sums(sums[r]);
    if (accumulate) value = _mm_add_ps(_mm_maskz_loadu_ps(kMask, c + r * p.ldc), value);
    _mm_mask_storeu_ps(c + r * p.ldc, kMask, value);
  }
}

using TileFunction = void (*)(const Product&, const float*, const float*, float*, bool);
template <int kTileRows>
constexpr std::array<TileFunction, kColumns + 1> kTilesOf = {
    nullptr, MultiplyTile<kTileRows, 1>, MultiplyTile<kTileRows, 2>, MultiplyTile<kTileRows, 3>,
    MultiplyTile<kTileRows, 4>};
constexpr std::array<const TileFunction*, kRows + 1> kTiles = {
    nullptr, kTilesOf<1>.data(), kTilesOf<2>.data(), kTilesOf<3>.data(), kTilesOf<4>.data()};

}  // namespace

void RowProduct(const Product& p, const float* a, const float* b, float* c) {
  const int64_t most = std::max(kLeastDepth, kCachedElements / p.m);
  const int64_t depth = hlo::RoundUp(hlo::CeilDivide(p.k, hlo::CeilDivide(p.k, most)), kLanes);
  Product part = p;
  for (int64_t k = 0; k < p.k; k += depth) {
    part.k = std::min(depth, p.k - k);
    for (int64_t j = 0; j < p.n; j += kColumns) {
      for (int64_t i = 0; i < p.m; i += kRows) {
        kTiles[std::min(kRows, p.m - i)][std::min(kColumns, p.n - j)](
            part, a + i * p.a_row + k, b + j * p.b_column + k, c + i * p.ldc + j, k > 0);
      }
    }
  }
}

#else

void RowProduct(const Product&, const float*, const float*, float*) {}

#endif

}  // namespace cpu
