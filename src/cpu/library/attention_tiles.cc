#include "cpu/library/attention_tiles.h"

#include "cpu/isa.h"
#include "cpu/library/transpose_8x8.h"  // IWYU pragma: keep: attention_tiles.inc wants it

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {

#if defined(__x86_64__)

namespace avx2 {

#define CPU_TARGET __attribute__((target("avx2,fma")))

using Vector = __m256;
constexpr int64_t kLanes = 8;
// Twelve of the 16 registers hold sums.
constexpr int kTileRows = 6, kTileVectors = 2;

CPU_TARGET inline Vector Load(const float* x) { return _mm256_loadu_ps(x); }
CPU_TARGET inline void Store(float* x, Vector value) { _mm256_storeu_ps(x, value); }
CPU_TARGET inline Vector Broadcast(float x) { return _mm256_set1_ps(x); }
CPU_TARGET inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
CPU_TARGET inline Vector Max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
// b where one of them is NaN.
CPU_TARGET inline Vector Min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
CPU_TARGET inline Vector ZeroWhereLess(Vector x, Vector limit, Vector value) {
  return _mm256_andnot_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ), value);
}
CPU_TARGET inline Vector BitsAsExponent(Vector x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23));
}
CPU_TARGET inline Vector MultiplySubtract(Vector a, Vector b, Vector c) {
  return _mm256_fmsub_ps(a, b, c);
}
CPU_TARGET inline float First(Vector x) { return _mm256_cvtss_f32(x); }
CPU_TARGET inline float Sum(Vector x) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
CPU_TARGET inline float Largest(Vector x) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

#include "cpu/library/attention_tiles.inc"
#undef CPU_TARGET

}  // namespace avx2

namespace avx512 {

#define CPU_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))

using Vector = __m512;
constexpr int64_t kLanes = 16;
// 24 of the 32 registers hold sums.
constexpr int kTileRows = 6, kTileVectors = 4;

CPU_TARGET inline Vector Load(const float* x) { return _mm512_loadu_ps(x); }
CPU_TARGET inline void Store(float* x, Vector value) { _mm512_storeu_ps(x, value); }
CPU_TARGET inline Vector Broadcast(float x) { return _mm512_set1_ps(x); }
CPU_TARGET inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
// GCC warns of the undefined vectors in the forms without a mask.
CPU_TARGET inline Vector Max(Vector a, Vector b) { return _mm512_maskz_max_ps(0xffff, a, b); }
CPU_TARGET inline Vector Min(Vector a, Vector b) { return _mm512_maskz_min_ps(0xffff, a, b); }
CPU_TARGET inline Vector ZeroWhereLess(Vector x, Vector limit, Vector value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), value);
}
CPU_TARGET inline Vector BitsAsExponent(Vector x) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(x), 23));
}
CPU_TARGET inline Vector MultiplySubtract(Vector a, Vector b, Vector c) {
  return _mm512_fmsub_ps(a, b, c);
}
CPU_TARGET inline float First(Vector x) { return _mm512_cvtss_f32(x); }
template <int kHalf>
CPU_TARGET inline __m256 Half(Vector x) {
  return _mm512_maskz_extractf32x8_ps(0xff, x, kHalf);
}
CPU_TARGET inline float Sum(Vector x) { return avx2::Sum(_mm256_add_ps(Half<0>(x), Half<1>(x))); }
CPU_TARGET inline float Largest(Vector x) {
  return avx2::Largest(_mm256_max_ps(Half<0>(x), Half<1>(x)));
}

#include "cpu/library/attention_tiles.inc"
#undef CPU_TARGET

}  // namespace avx512

const AttentionTiles* FindAttentionTiles() {
  if (KernelIsa() >= Isa::kAvx512) return &avx512::kAttentionTiles;
  return KernelIsa() >= Isa::kAvx2 ? &avx2::kAttentionTiles : nullptr;
}

#else

const AttentionTiles* FindAttentionTiles() { return nullptr; }

#endif

}  // namespace cpu
