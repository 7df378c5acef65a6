#include "cpu/library/row_product.h"

// IWYU pragma: begin_keep: row_product.inc wants them
#include <algorithm>
#include <array>
#include <utility>
// IWYU pragma: end_keep

#include "cpu/isa.h"
#include "hlo/size_arithmetic.h"  // IWYU pragma: keep: row_product.inc wants it

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cpu {

#if defined(__x86_64__)

namespace {

// The elements of lines that have no C++ type of their own here.
struct Rounded {
  float value;
};
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

}  // namespace

namespace row_product_avx2 {
namespace {

#define CPU_TARGET __attribute__((target("avx2,fma,f16c")))

using Vector = __m256;
constexpr int64_t kLanes = 8;
constexpr int kTileRows = 2;

CPU_TARGET inline Vector Zero() { return _mm256_setzero_ps(); }
CPU_TARGET inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
CPU_TARGET inline Vector Load(const float* x) { return _mm256_loadu_ps(x); }
CPU_TARGET inline Vector Load(const Rounded* x) {
  const Vector value = _mm256_loadu_ps(&x->value);
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i above = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nearest = _mm256_and_si256(above, _mm256_set1_epi32(~0xffff));
  return _mm256_blendv_ps(_mm256_castsi256_ps(nearest), value,
                          _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}
CPU_TARGET inline Vector Load(const BFloat16* x) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
CPU_TARGET inline Vector Load(const Float16* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
CPU_TARGET inline Vector Load(const int8_t* x) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
CPU_TARGET inline Vector Broadcast(float x) { return _mm256_set1_ps(x); }
CPU_TARGET inline void Store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
CPU_TARGET inline void StoreSums(const Vector (&x)[4], float* sums) {
  const Vector pairs = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
  _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)));
}

#include "cpu/library/row_product.inc"
#undef CPU_TARGET

}  // namespace
}  // namespace row_product_avx2

namespace row_product_avx512 {
namespace {

#define CPU_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))

using Vector = __m512;
constexpr int64_t kLanes = 16;
constexpr int kTileRows = 4;
constexpr __mmask16 kAll = 0xffff;  // GCC warns of the undefined vectors in forms without a mask

CPU_TARGET inline Vector Zero() { return _mm512_setzero_ps(); }
CPU_TARGET inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
CPU_TARGET inline Vector Load(const float* x) { return _mm512_loadu_ps(x); }
CPU_TARGET inline Vector Load(const Rounded* x) {
  const Vector value = _mm512_loadu_ps(&x->value);
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd =
      _mm512_and_si512(_mm512_maskz_srli_epi32(kAll, bits, 16), _mm512_set1_epi32(1));
  const __m512i above = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i nearest = _mm512_and_si512(above, _mm512_set1_epi32(~0xffff));
  return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_ORD_Q),
                            _mm512_castsi512_ps(nearest));
}
CPU_TARGET inline Vector Load(const BFloat16* x) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, bits), 16));
}
CPU_TARGET inline Vector Load(const Float16* x) {
  return _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
CPU_TARGET inline Vector Load(const int8_t* x) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepi8_epi32(kAll, bytes));
}
CPU_TARGET inline Vector Broadcast(float x) { return _mm512_set1_ps(x); }
CPU_TARGET inline void Store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
CPU_TARGET inline void StoreSums(const Vector (&x)[4], float* sums) {
  const auto low = [&](int i) CPU_TARGET { return _mm512_maskz_unpacklo_ps(kAll, x[i], x[i + 1]); };
  const auto high = [&](int i)
                        CPU_TARGET { return _mm512_maskz_unpackhi_ps(kAll, x[i], x[i + 1]); };
  const Vector first = _mm512_add_ps(low(0), high(0)), second = _mm512_add_ps(low(2), high(2));
  const Vector quarters = _mm512_add_ps(_mm512_maskz_shuffle_ps(kAll, first, second, 0x44),
                                        _mm512_maskz_shuffle_ps(kAll, first, second, 0xee));
  const __m256 halves = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, quarters, 0),
                                      _mm512_maskz_extractf32x8_ps(0xff, quarters, 1));
  _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}

#include "cpu/library/row_product.inc"
#undef CPU_TARGET

}  // namespace
}  // namespace row_product_avx512

namespace {

template <typename T>
void MultiplyLines(const Product& p, const float* a, const void* b, float* c) {
  const auto* lines = static_cast<const T*>(b);
  const bool wide = KernelIsa() >= Isa::kAvx512;
  // Of a single line of B its elements are the lines of a transposed B, of one number each.
  const bool is_line = p.k == 1 && p.b_column == 1;
  if (p.b_row == 1 && !is_line) {
    return wide ? row_product_avx512::MultiplyLines(p, a, lines, c)
                : row_product_avx2::MultiplyLines(p, a, lines, c);
  }
  wide ? row_product_avx512::SumLines(p, a, lines, c) : row_product_avx2::SumLines(p, a, lines, c);
}

void RowProduct(LineType type, const Product& p, const float* a, const void* b, float* c) {
  switch (type) {
    case LineType::kFloat:
      return MultiplyLines<float>(p, a, b, c);
    case LineType::kRounded:
      return MultiplyLines<Rounded>(p, a, b, c);
    case LineType::kBFloat16:
      return MultiplyLines<BFloat16>(p, a, b, c);
    case LineType::kFloat16:
      return MultiplyLines<Float16>(p, a, b, c);
    case LineType::kInt8:
      return MultiplyLines<int8_t>(p, a, b, c);
  }
}

}  // namespace

bool RunsRows() {
  static const bool runs = KernelIsa() >= Isa::kAvx2 && __builtin_cpu_supports("f16c") != 0;
  return runs;
}

#else

namespace {
void RowProduct(LineType, const Product&, const float*, const void*, float*) {}
}  // namespace

bool RunsRows() { return false; }

#endif

namespace {

class RowRoutine : public ProductRoutine {
 public:
  explicit RowRoutine(LineType type) : type_(type) {}

  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    RowProduct(type_, p, static_cast<const float*>(a), b, static_cast<float*>(c));
  }
  std::string Name(const Product&) const override {
    switch (type_) {
      case LineType::kFloat:
        return "rows";
      case LineType::kRounded:
        return "rows, rhs rounded to bf16";
      case LineType::kBFloat16:
        return "rows, rhs of bf16";
      case LineType::kFloat16:
        return "rows, rhs of f16";
      case LineType::kInt8:
        return "rows, rhs of s8";
    }
    return "";
  }

 private:
  LineType type_;
};

}  // namespace

std::optional<LineType> LineTypeOf(hlo::ElementType stored, hlo::ElementType read) {
  using enum hlo::ElementType;
  if (read != kF32 && read != kBF16 && read != kF16) return std::nullopt;
  if (stored == kS8) return LineType::kInt8;
  if (stored == kBF16 && (read == kBF16 || read == kF32)) return LineType::kBFloat16;
  if (stored == kF16 && (read == kF16 || read == kF32)) return LineType::kFloat16;
  if (stored == kF32 && read == kF32) return LineType::kFloat;
  if (stored == kF32 && read == kBF16) return LineType::kRounded;
  return std::nullopt;
}

std::unique_ptr<ProductRoutine> MakeRowRoutine(LineType type) {
  return std::make_unique<RowRoutine>(type);
}

}  // namespace cpu
