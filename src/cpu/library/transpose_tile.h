// Tiles of a transposition, whose lines the cache holds on both sides.
#pragma once

#include <cstdint>
#include <cstring>

namespace cpu {

inline constexpr int64_t kTransposeTile = 16;

#if defined(__x86_64__)
// Eight by eight of 32 bits in registers.
using Vector8 __attribute__((vector_size(32))) = int32_t;

template <typename T>
__attribute__((target("avx2"))) inline void TransposeEight(const T* from, int64_t from_stride,
                                                           T* to, int64_t to_stride) {
  Vector8 r[8], t[8];
  for (int i = 0; i < 8; ++i) std::memcpy(&r[i], from + i * from_stride, 32);
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    r[i + 2] = __builtin_shufflevector(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 3] = __builtin_shufflevector(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    t[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < 8; ++i) std::memcpy(to + i * to_stride, &t[i], 32);
}

// The same as TransposeTile below.
template <typename T>
__attribute__((target("avx2"))) void TransposeByEights(const T* from, int64_t from_stride, T* to,
                                                       int64_t to_stride, int64_t rows,
                                                       int64_t columns) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    int64_t j = 0;
    for (; j + 8 <= columns; j += 8) {
      TransposeEight(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
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
