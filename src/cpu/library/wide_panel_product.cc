#include "cpu/library/panel_product.h"

#include <algorithm>
#include <array>

#include "cpu/library/onednn.h"
#include "cpu/library/transpose_8x8.h"
#include "hlo/size_arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {

#if defined(__x86_64__)

#define CPU_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))

namespace {

// A tile of the result stays in registers: 8 rows of three vectors take 24 of the 32, B's row
// three, an element of A one.
constexpr int64_t kWideRows = 8, kVectors = 3, kLanes = 16, kWideColumns = kVectors * kLanes;
// Of k at a time, so that B's panel stays in the first cache while the rows of A pass by; and of
// A's rows, so that these stay in the second while the panels pass by.
constexpr int64_t kWideDepth = 512, kWideBlockRows = 512;

// A tile of C = or += some rows of A times a panel of B.
struct Tile {
  int64_t depth;
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t ldc;
  __mmask16 last;  // the columns of the last vector
  bool accumulate;
};

template <int kTileRows, int kTileVectors>
CPU_AVX512 void MultiplyTile(const Tile& t) {
  const auto mask = [&](int vector) CPU_AVX512 {
    return vector + 1 < kTileVectors ? __mmask16{0xffff} : t.last;
  };
  __m512 sums[kTileRows][kTileVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors; ++v) {
      sums[r][v] = _mm512_setzero_ps();
      _mm_prefetch(reinterpret_cast<const char*>(t.c + r * t.ldc + v * kLanes), _MM_HINT_T0);
    }
  }
  // Eight rows by two addresses and three distances.
  const float *upper = t.a, *lower = t.a + 4 * t.a_row, *b = t.b;
  const int64_t one = t.a_row, two = 2 * t.a_row, three = 3 * t.a_row;
  for (int64_t k = 0; k < t.depth; ++k, upper += t.a_column, lower += t.a_column, b += t.b_row) {
    __m512 columns[kTileVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors; ++v) {
      columns[v] = _mm512_maskz_loadu_ps(mask(v), b + v * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const float* base = r < 4 ? upper : lower;
      const int64_t distance = r % 4 == 0 ? 0 : r % 4 == 1 ? one : r % 4 == 2 ? two : three;
      const __m512 value = _mm512_set1_ps(base[distance]);
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors; ++v) {
        sums[r][v] = _mm512_fmadd_ps(value, columns[v], sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < kTileVectors; ++v) {
      float* c = t.c + r * t.ldc + v * kLanes;
      if (t.accumulate) {
        sums[r][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(mask(v), c), sums[r][v]);
      }
      _mm512_mask_storeu_ps(c, mask(v), sums[r][v]);
    }
  }
}

using WideTileFunction = void (*)(const Tile&);
template <int kTileVectors>
constexpr std::array<WideTileFunction, kWideRows + 1> kWideTilesOf = {
    nullptr,
    MultiplyTile<1, kTileVectors>,
    MultiplyTile<2, kTileVectors>,
    MultiplyTile<3, kTileVectors>,
    MultiplyTile<4, kTileVectors>,
    MultiplyTile<5, kTileVectors>,
    MultiplyTile<6, kTileVectors>,
    MultiplyTile<7, kTileVectors>,
    MultiplyTile<8, kTileVectors>};
constexpr std::array<const WideTileFunction*, kVectors + 1> kWideTiles = {
    nullptr, kWideTilesOf<1>.data(), kWideTilesOf<2>.data(), kWideTilesOf<3>.data()};

// Columns of B that lie in lines. What is beside the last stays as it is: no tile reads it.
CPU_AVX512 void TransposeColumns(int64_t columns, int64_t depth, const float* b, int64_t column,
                                 float* panel) {
  constexpr int64_t kBlock = 8;
  int64_t j = 0;
  for (; j + kBlock <= columns; j += kBlock) {
    const float* lines = b + j * column;
    int64_t k = 0;
    for (; k + kBlock <= depth; k += kBlock) {
      Transpose8x8(lines + k, column, panel + k * kWideColumns + j, kWideColumns);
    }
    for (; k < depth; ++k) {
      for (int64_t i = 0; i < kBlock; ++i) panel[k * kWideColumns + j + i] = lines[i * column + k];
    }
  }
  for (; j < columns; ++j) {
    for (int64_t k = 0; k < depth; ++k) panel[k * kWideColumns + j] = b[j * column + k];
  }
}

// Some rows of A times columns of B, for a part of k.
struct Piece {
  int64_t rows, columns, depth;
  const float* a;
  const float* b;
  int64_t b_row;
  float* c;
  bool accumulate;
};

CPU_AVX512 void MultiplyPiece(const Product& p, const Piece& piece) {
  const int64_t vectors = hlo::CeilDivide(piece.columns, kLanes);
  const int64_t last = piece.columns - (vectors - 1) * kLanes;
  Tile tile = {.depth = piece.depth,
               .a = piece.a,
               .a_row = p.a_row,
               .a_column = p.a_column,
               .b = piece.b,
               .b_row = piece.b_row,
               .c = piece.c,
               .ldc = p.ldc,
               .last = static_cast<__mmask16>((1u << last) - 1),
               .accumulate = piece.accumulate};
  for (int64_t i = 0; i < piece.rows; i += kWideRows) {
    tile.a = piece.a + i * p.a_row;
    tile.c = piece.c + i * p.ldc;
    kWideTiles[vectors][std::min(kWideRows, piece.rows - i)](tile);
  }
}

}  // namespace

void WidePanelProduct(const Product& p, const float* a, const float* b, float* c) {
  auto* const panel =
      p.b_transposed()
          ? static_cast<float*>(ThreadScratch(kWideDepth * kWideColumns * sizeof(float)))
          : nullptr;
  const auto part = [](int64_t size, int64_t most) {
    return hlo::CeilDivide(size, hlo::CeilDivide(size, most));
  };
  const int64_t block_depth = part(p.k, kWideDepth);
  const int64_t block_rows = hlo::RoundUp(part(p.m, kWideBlockRows), kWideRows);
  for (int64_t k = 0; k < p.k; k += block_depth) {
    const int64_t depth = std::min(block_depth, p.k - k);
    for (int64_t i = 0; i < p.m; i += block_rows) {
      for (int64_t j = 0; j < p.n; j += kWideColumns) {
        Piece piece = {.rows = std::min(block_rows, p.m - i),
                       .columns = std::min(kWideColumns, p.n - j),
                       .depth = depth,
                       .a = a + i * p.a_row + k * p.a_column,
                       .b = b + k * p.b_row + j * p.b_column,
                       .b_row = p.b_row,
                       .c = c + i * p.ldc + j,
                       .accumulate = k > 0};
        if (p.b_transposed()) {
          TransposeColumns(piece.columns, depth, piece.b, p.b_column, panel);
          piece.b = panel;
          piece.b_row = kWideColumns;
        }
        MultiplyPiece(p, piece);
      }
    }
  }
}

#else

void WidePanelProduct(const Product&, const float*, const float*, float*) {}

#endif

}  // namespace cpu
