// Tiles of a transposition, whose lines the cache holds on both sides.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/library/transpose_8x8.h"

namespace cpu {

inline constexpr int64_t kTransposeTile = 16;

#if defined(__x86_64__)
// The same as TransposeTile below.
template <typename T>
__attribute__((target("avx2"))) void TransposeByEights(const T* from, int64_t from_stride, T* to,
                                                       int64_t to_stride, int64_t rows,
                                                       int64_t columns) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    int64_t j = 0;
    for (; j + 8 <= columns; j += 8) {
      // Any 32 bits: nothing computes with them.
      Transpose8x8(reinterpret_cast<const float*>(from + i * from_stride + j), from_stride,
                   reinterpret_cast<float*>(to + j * to_stride + i), to_stride);
    }
    for (; j < columns; ++j) {
      for (int64_t k = i; k < i + 8; ++k) to[j * to_stride + k] = from[k * from_stride + j];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}
#endif

// to[j * to_stride + i] = from[i * from_stride + j] for rows i and columns j of `from`, at most a
// tile of each.
template <typename T>
void TransposeTile(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                   int64_t columns) {
#if defined(__x86_64__)
  if constexpr (sizeof(T) == 4) {
    static const bool avx2 = __builtin_cpu_supports("avx2");
    if (avx2) return TransposeByEights(from, from_stride, to, to_stride, rows, columns);
  }
#endif
  if (rows == kTransposeTile && columns == kTransposeTile) {
    T block[kTransposeTile][kTransposeTile];
    for (int64_t i = 0; i < kTransposeTile; ++i) {
      for (int64_t j = 0; j < kTransposeTile; ++j) block[j][i] = from[i * from_stride + j];
    }
    for (int64_t j = 0; j < kTransposeTile; ++j) {
      std::memcpy(to + j * to_stride, block[j], sizeof(block[j]));
    }
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace cpu
