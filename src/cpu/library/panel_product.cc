#include "cpu/library/panel_product.h"

#include <algorithm>

#include "cpu/library/onednn.h"
#include "cpu/library/transpose_8x8.h"
#include "hlo/size_arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {

#if defined(__x86_64__)

#define CPU_AVX2 __attribute__((target("avx2,fma")))

namespace {

// A tile of the result stays in registers: 6 rows of two vectors take 12 of the 16, B's row two,
// an element of A one.
constexpr int64_t kRows = 6, kColumns = 16;
// Of k at a time. A panel of B, 16 KB, stays in the first cache while A passes by; that of A's
// panels, half a megabyte, in the second. By measurement.
constexpr int64_t kDepth = 256, kBlockRows = 480;

// A tile of C = or += a panel of A (kRows numbers for each of `depth` columns) times a panel of B
// (kColumns for each of its rows).
template <int kTileRows>
CPU_AVX2 void MultiplyTile(int64_t depth, const float* a, const float* b, float* c, int64_t ldc,
                           bool accumulate) {
  __m256 sums[kTileRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kTileRows; ++r) {
    sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    _mm_prefetch(reinterpret_cast<const char*>(c + r * ldc), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(c + r * ldc + kColumns - 1), _MM_HINT_T0);
  }
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kColumns) {
    const __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kTileRows; ++r) {
      const __m256 value = _mm256_broadcast_ss(a + r);
      sums[r][0] = _mm256_fmadd_ps(value, b0, sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(value, b1, sums[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kTileRows; ++r, c += ldc) {
    if (accumulate) {
      sums[r][0] = _mm256_add_ps(_mm256_loadu_ps(c), sums[r][0]);
      sums[r][1] = _mm256_add_ps(_mm256_loadu_ps(c + 8), sums[r][1]);
    }
    _mm256_storeu_ps(c, sums[r][0]);
    _mm256_storeu_ps(c + 8, sums[r][1]);
  }
}

using TileFunction = void (*)(int64_t, const float*, const float*, float*, int64_t, bool);
constexpr TileFunction kTiles[kRows + 1] = {nullptr,         MultiplyTile<1>, MultiplyTile<2>,
                                            MultiplyTile<3>, MultiplyTile<4>, MultiplyTile<5>,
                                            MultiplyTile<6>};

// The same of a tile that ends before a panel does, through a whole one.
void MultiplyLastColumns(int64_t rows, int64_t columns, int64_t depth, const float* a,
                         const float* b, float* c, int64_t ldc, bool accumulate) {
  alignas(32) float tile[kRows * kColumns];
  kTiles[rows](depth, a, b, tile, kColumns, false);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      float& out = c[r * ldc + j];
      out = accumulate ? out + tile[r * kColumns + j] : tile[r * kColumns + j];
    }
  }
}

// Six whole rows, each contiguous: four columns at a time are transposed in registers.
CPU_AVX2 void PackContiguousRows(int64_t depth, const float* a, int64_t row, float* panel) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4, panel += 4 * kRows) {
    __m128 r0 = _mm_loadu_ps(a + k), r1 = _mm_loadu_ps(a + row + k);
    __m128 r2 = _mm_loadu_ps(a + 2 * row + k), r3 = _mm_loadu_ps(a + 3 * row + k);
    const __m128 r4 = _mm_loadu_ps(a + 4 * row + k), r5 = _mm_loadu_ps(a + 5 * row + k);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    const __m128 low = _mm_unpacklo_ps(r4, r5), high = _mm_unpackhi_ps(r4, r5);
    auto half = [&](int64_t column) {
      return reinterpret_cast<__m64*>(panel + column * kRows + 4);
    };
    _mm_storeu_ps(panel, r0);
    _mm_storel_pi(half(0), low);
    _mm_storeu_ps(panel + kRows, r1);
    _mm_storeh_pi(half(1), low);
    _mm_storeu_ps(panel + 2 * kRows, r2);
    _mm_storel_pi(half(2), high);
    _mm_storeu_ps(panel + 3 * kRows, r3);
    _mm_storeh_pi(half(3), high);
  }
  for (; k < depth; ++k) {
    for (int64_t r = 0; r < kRows; ++r) *panel++ = a[r * row + k];
  }
}

// Rows of A, kRows to a panel; the last panel may have fewer.
void PackRows(int64_t rows, int64_t depth, const float* a, int64_t row, int64_t column,
              float* panels) {
  for (int64_t i = 0; i < rows; i += kRows, a += kRows * row, panels += kRows * depth) {
    const int64_t count = std::min(kRows, rows - i);
    if (count == kRows && column == 1) {
      PackContiguousRows(depth, a, row, panels);
    } else if (count == kRows && row == 1) {
      for (int64_t k = 0; k < depth; ++k) std::copy_n(a + k * column, kRows, panels + k * kRows);
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t r = 0; r < count; ++r) panels[k * kRows + r] = a[r * row + k * column];
      }
    }
  }
}

// Eight contiguous columns of B: eight rows at a time are transposed in registers.
CPU_AVX2 void PackContiguousColumns(int64_t depth, const float* b, int64_t column, float* panel) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) Transpose8x8(b + k, column, panel + k * kColumns, kColumns);
  for (; k < depth; ++k) {
    for (int64_t j = 0; j < 8; ++j) panel[k * kColumns + j] = b[j * column + k];
  }
}

CPU_AVX2 void PackContiguousRowsOfPanel(int64_t depth, const float* b, int64_t row, float* panel) {
  for (int64_t k = 0; k < depth; ++k, b += row, panel += kColumns) {
    _mm256_store_ps(panel, _mm256_loadu_ps(b));
    _mm256_store_ps(panel + 8, _mm256_loadu_ps(b + 8));
  }
}

// Columns of B as a panel; zeros after the last.
void PackColumns(int64_t columns, int64_t depth, const float* b, int64_t row, int64_t column,
                 float* panel) {
  if (columns == kColumns && column == 1) return PackContiguousRowsOfPanel(depth, b, row, panel);
  if (columns == kColumns && row == 1) {
    PackContiguousColumns(depth, b, column, panel);
    return PackContiguousColumns(depth, b + 8 * column, column, panel + 8);
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < kColumns; ++j) {
      panel[k * kColumns + j] = j < columns ? b[k * row + j * column] : 0;
    }
  }
}

}  // namespace

void PanelProduct(const Product& p, const float* a, const float* b, float* c) {
  auto* const b_panel =
      static_cast<float*>(ThreadScratch((kDepth * kColumns + kDepth * kBlockRows) * sizeof(float)));
  float* const a_panels = b_panel + kDepth * kColumns;
  // Blocks of equal size, so that the last is not a small one.
  const int64_t blocks = hlo::CeilDivide(p.m, kBlockRows);
  const int64_t block_rows = hlo::RoundUp(hlo::CeilDivide(p.m, blocks), kRows);
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, p.k - k);
    for (int64_t block = 0; block < p.m; block += block_rows) {
      const int64_t rows = std::min(block_rows, p.m - block);
      PackRows(rows, depth, a + block * p.a_row + k * p.a_column, p.a_row, p.a_column, a_panels);
      for (int64_t j = 0; j < p.n; j += kColumns) {
        const int64_t columns = std::min(kColumns, p.n - j);
        PackColumns(columns, depth, b + k * p.b_row + j * p.b_column, p.b_row, p.b_column, b_panel);
        for (int64_t i = 0; i < rows; i += kRows) {
          const int64_t tile_rows = std::min(kRows, rows - i);
          const float* a_panel = a_panels + i * depth;
          float* out = c + (block + i) * p.ldc + j;
          if (columns == kColumns) {
            kTiles[tile_rows](depth, a_panel, b_panel, out, p.ldc, k > 0);
          } else {
            MultiplyLastColumns(tile_rows, columns, depth, a_panel, b_panel, out, p.ldc, k > 0);
          }
        }
      }
    }
  }
}

#else

void PanelProduct(const Product&, const float*, const float*, float*) {}

#endif

}  // namespace cpu
