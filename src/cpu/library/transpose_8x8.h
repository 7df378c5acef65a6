// Eight lines of eight numbers, transposed in registers. For processors with AVX2; included where
// the calling function is compiled for it.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

namespace cpu {

__attribute__((target("avx2"))) inline void Transpose8x8(const float* from, int64_t from_stride,
                                                         float* to, int64_t to_stride) {
  __m256 v[8], t[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = _mm256_loadu_ps(from + i * from_stride);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(v[i], v[i + 4], 0x20));
    _mm256_storeu_ps(to + (4 + i) * to_stride, _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
}

}  // namespace cpu

#endif
