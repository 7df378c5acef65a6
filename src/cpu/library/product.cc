#include "cpu/library/product.h"

#include <cblas.h>

#include <climits>
#include <complex>
#include <map>
#include <span>
#include <vector>

#include "cpu/isa.h"
#include "cpu/library/onednn.h"
#include "cpu/library/panel_product.h"
#include "cpu/library/row_product.h"
#include "cpu/library/vector_clones.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::ElementType;

// oneDNN's matmul primitive, one per distinct product.
class MatmulRoutine : public ProductRoutine {
 public:
  MatmulRoutine(dnnl::memory::data_type type, dnnl::memory::data_type result_type)
      : type_(type), result_type_(result_type) {}

  void Prepare(const Product& p) override {
    OneThread one_thread;
    if (primitives_.contains(p)) return;
    Primitive made;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    made.a = {{p.m, p.k}, type_, Strides(p.a_row, p.a_column, p.m, p.k)};
    made.b = {{p.k, p.n}, type_, Strides(p.b_row, p.b_column, p.k, p.n)};
    made.c = {{p.m, p.n}, result_type_, dnnl::memory::dims{p.ldc, 1}};
    dnnl::matmul::primitive_desc descriptor(OneDnnEngine(), made.a, made.b, made.c, attributes);
    made.scratchpad = descriptor.scratchpad_desc();
    made.primitive = dnnl::matmul(descriptor);
    primitives_.emplace(p, std::move(made));
  }

  void Run(const Product& product, const void* a, const void* b, void* c) const override {
    OneThread one_thread;
    const Primitive& p = primitives_.at(product);
    const dnnl::engine& engine = OneDnnEngine();
    dnnl::memory scratch(p.scratchpad, engine, ThreadScratch(p.scratchpad.get_size()));
    p.primitive.execute(OneDnnStream(),
                        {{DNNL_ARG_SRC, dnnl::memory(p.a, engine, const_cast<void*>(a))},
                         {DNNL_ARG_WEIGHTS, dnnl::memory(p.b, engine, const_cast<void*>(b))},
                         {DNNL_ARG_DST, dnnl::memory(p.c, engine, c)},
                         {DNNL_ARG_SCRATCHPAD, scratch}});
  }
  std::string Name(const Product& product) const override { return "oneDNN matmul"; }

 private:
  struct Primitive {
    dnnl::memory::desc a, b, c, scratchpad;
    dnnl::matmul primitive;
  };

  // A dimension of size 1 must not carry a stride that contradicts the other's.
  static dnnl::memory::dims Strides(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    if (column == 1) return {std::max(row, columns), 1};
    return {1, std::max(column, rows)};
  }

  dnnl::memory::data_type type_, result_type_;
  std::map<Product, Primitive> primitives_;
};

template <typename T>
class BlasRoutine : public ProductRoutine {
 public:
  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    auto ta = p.a_transposed() ? CblasTrans : CblasNoTrans;
    auto tb = p.b_transposed() ? CblasTrans : CblasNoTrans;
    T one = 1, zero = 0;
    if constexpr (std::is_same_v<T, float>) {
      cblas_sgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, one, static_cast<const T*>(a), p.lda(),
                  static_cast<const T*>(b), p.ldb(), zero, static_cast<T*>(c), p.ldc);
    } else if constexpr (std::is_same_v<T, double>) {
      cblas_dgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, one, static_cast<const T*>(a), p.lda(),
                  static_cast<const T*>(b), p.ldb(), zero, static_cast<T*>(c), p.ldc);
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      cblas_cgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, &one, a, p.lda(), b, p.ldb(), &zero, c,
                  p.ldc);
    } else {
      cblas_zgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, &one, a, p.lda(), b, p.ldb(), &zero, c,
                  p.ldc);
    }
  }
  std::string Name(const Product& product) const override { return "OpenBLAS gemm"; }
};

class SgemmRoutine : public ProductRoutine {
 public:
  // The process's first product without copies makes oneDNN generate the code of all of these,
  // which takes longer than most small programs do: where a program is compiled, not where it first
  // runs.
  void Prepare(const Product& product) override {
    if (!IsWithoutCopies(product)) return;
    static const bool is_generated = [] {
      OneThread one_thread;
      constexpr int64_t kSize = 16;
      const std::vector<float> ones(kSize * kSize, 1.0f);
      std::vector<float> product(ones.size());
      // Should it fail, a program's own product says so.
      return dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1.0f, ones.data(), kSize, ones.data(), kSize,
                        0.0f, product.data(), kSize) == dnnl_success;
    }();
    (void)is_generated;
  }
  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    OneThread one_thread;
    dnnl_status_t status =
        dnnl_sgemm(p.a_transposed() ? 'T' : 'N', p.b_transposed() ? 'T' : 'N', p.m, p.n, p.k, 1.0f,
                   static_cast<const float*>(a), p.lda(), static_cast<const float*>(b), p.ldb(),
                   0.0f, static_cast<float*>(c), p.ldc);
    if (status != dnnl_success) {
      throw hlo::Error(hlo::ErrorCode::kInternal,
                       "oneDNN's sgemm failed with status " + std::to_string(status));
    }
  }
  std::string Name(const Product& product) const override { return "oneDNN sgemm"; }

 private:
  // True if oneDNN is likely to read both operands where they lie. The code for vectors and for
  // what is worth copying first is another, of which there is a tenth as much.
  static bool IsWithoutCopies(const Product& p) {
    constexpr int64_t kWorthCopying = 256;  // multiplications of each element copied
    return std::min(p.m, p.n) > 1 && p.m * p.n < kWorthCopying * (p.m + p.n);
  }
};

// A kernel of our own.
class OwnRoutine : public ProductRoutine {
 public:
  using Kernel = void (*)(const Product&, const float*, const float*, float*);
  OwnRoutine(const char* name, Kernel kernel) : name_(name), kernel_(kernel) {}

  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    kernel_(p, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c));
  }
  std::string Name(const Product& product) const override { return name_; }

 private:
  const char* name_;
  Kernel kernel_;
};

// Of each product the quickest.
class FloatRoutine : public ProductRoutine {
 public:
  void Prepare(const Product& product) override {
    if (std::ranges::find(choices_, product, &Choice::product) != choices_.end()) return;
    const FloatKernel kernel = QuickestFloatKernel(product);
    auto made = std::ranges::find(routines_, kernel, &Made::kernel);
    if (made == routines_.end()) {
      routines_.push_back({kernel, MakeFloatRoutine(kernel)});
      made = routines_.end() - 1;
    }
    made->routine->Prepare(product);
    choices_.push_back({product, made->routine.get()});
  }
  // The products of a dot are four at most: a whole block, and the last of its row and column.
  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    const auto choice = std::ranges::find(choices_, p, &Choice::product);
    if (choice == choices_.end()) {
      throw hlo::Error(hlo::ErrorCode::kInternal, "a product runs that nobody prepared");
    }
    choice->routine->Run(p, a, b, c);
  }
  std::string Name(const Product& product) const override {
    return MakeFloatRoutine(QuickestFloatKernel(product))->Name(product);
  }

 private:
  struct Made {
    FloatKernel kernel;
    std::unique_ptr<ProductRoutine> routine;
  };
  struct Choice {
    Product product;
    const ProductRoutine* routine;
  };
  std::vector<Made> routines_;
  std::vector<Choice> choices_;
};

// c[j] += a * b[j]: wraps around for integers.
template <typename T>
inline void MultiplyAdd(T* c, T a, const T* b, int64_t n) {
  // Narrow types in unsigned: int's overflow is undefined.
  using Wide = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, T>;
  for (int64_t j = 0; j < n; ++j) c[j] = static_cast<T>(Wide{c[j]} + Wide{a} * Wide{b[j]});
}
template <>
inline void MultiplyAdd(bool* c, bool a, const bool* b, int64_t n) {
  if (!a) return;
  for (int64_t j = 0; j < n; ++j) c[j] |= b[j];
}

template <typename T>
inline void BlockedProduct(const Product& p, const T* a, const T* b, T* c) {
  constexpr int64_t kRows =
      64;  // of B at a time, so that they stay in the cache over all rows of A
  for (int64_t i = 0; i < p.m; ++i) std::fill_n(c + i * p.ldc, p.n, T{});
  if (p.b_column == 1) {
    for (int64_t k0 = 0; k0 < p.k; k0 += kRows) {
      int64_t k1 = std::min(p.k, k0 + kRows);
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t k = k0; k < k1; ++k) {
          MultiplyAdd(c + i * p.ldc, a[i * p.a_row + k * p.a_column], b + k * p.b_row, p.n);
        }
      }
    }
    return;
  }
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      T sum{};
      for (int64_t k = 0; k < p.k; ++k) {
        MultiplyAdd(&sum, a[i * p.a_row + k * p.a_column], b + k * p.b_row + j * p.b_column, 1);
      }
      c[i * p.ldc + j] = sum;
    }
  }
}

// Clones cannot be templates: one function per type.
#define CPU_PRODUCT(T)                                                                \
  CPU_VECTOR_CLONES void RunProduct(const Product& p, const T* a, const T* b, T* c) { \
    BlockedProduct(p, a, b, c);                                                       \
  }
CPU_PRODUCT(bool)
CPU_PRODUCT(uint8_t)
CPU_PRODUCT(uint16_t)
CPU_PRODUCT(uint32_t)
CPU_PRODUCT(uint64_t)
CPU_PRODUCT(float)
#undef CPU_PRODUCT

// Signed integers are computed as unsigned ones: the same bits, and wrapping is defined.
template <typename T>
class LoopRoutine : public ProductRoutine {
 public:
  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    RunProduct(p, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c));
  }
  std::string Name(const Product& product) const override { return "loop"; }
};

// Lines a multiple of 2 KB apart share few sets of the cache: what reads them where they lie takes
// up to twice as long.
bool LinesCollide(const Product& p) {
  constexpr int64_t kLine = 512;
  return (!p.b_transposed() && p.ldb() % kLine == 0) || (p.a_transposed() && p.lda() % kLine == 0);
}

// OpenBLAS counts in int.
bool FitsBlas(const Product& p) {
  return std::max({p.m, p.n, p.k, p.lda(), p.ldb(), p.ldc}) <= INT_MAX;
}

// A table of measured kernels: a string for each form and each of colliding lines or not, a letter
// for each class of sizes.
struct KernelTable {
  std::span<const int64_t> row_limits, column_limits, depth_limits;
  std::span<const char* const> kernels;

  FloatKernel At(const Product& p) const {
    const auto class_of = [](int64_t size, std::span<const int64_t> limits) {
      return std::ranges::lower_bound(limits, size) - limits.begin();
    };
    const auto classes = [](std::span<const int64_t> limits) {
      return static_cast<int64_t>(limits.size()) + 1;
    };
    const int form = (p.a_transposed() ? 2 : 0) + (p.b_transposed() ? 1 : 0);
    const int64_t row = class_of(p.m, row_limits), column = class_of(p.n, column_limits);
    const int64_t index = (row * classes(column_limits) + column) * classes(depth_limits) +
                          class_of(p.k, depth_limits);
    return static_cast<FloatKernel>(kernels[form * 2 + (LinesCollide(p) ? 1 : 0)][index]);
  }
};

namespace avx2 {
#include "cpu/library/float_kernels_avx2.inc"
constexpr KernelTable kTable = {kRowLimits, kColumnLimits, kDepthLimits, kKernels};
}  // namespace avx2

namespace avx512 {
#include "cpu/library/float_kernels_avx512.inc"
constexpr KernelTable kTable = {kRowLimits, kColumnLimits, kDepthLimits, kKernels};
}  // namespace avx512

// OpenBLAS counts in int.
FloatKernel WithinBlas(FloatKernel kernel, const Product& p) {
  return kernel == FloatKernel::kBlas && !FitsBlas(p) ? FloatKernel::kPanels : kernel;
}

// Sizes at which sgemm is slow. It takes up to thirty times as long as others where both are
// transposed. Where only B is, up to six times for few rows or columns and many multiplications
// each; as long for many of both, and half as long for a handful.
bool SlowsSgemm(const Product& p) {
  if (!p.b_transposed()) return false;
  const int64_t shorter = std::min(p.m, p.n);
  return p.a_transposed() || (shorter >= 16 && shorter <= 128 && p.k >= 256);
}

// Some rows times a large transposed B, with AVX-512: matmul transposes it up to 4 % quicker than
// wide panels do, which is less than the table's measurement tells apart.
bool FavorsMatmul(const Product& p) {
  return !p.a_transposed() && p.b_transposed() && p.m > 96 && p.m <= 192 && p.n > 512 && p.k > 512;
}

// Few rows times a B that the second cache does not hold: what counts is how fast it is read from
// memory, and the table's measurements read what is in the third one. Where B is not transposed,
// each row's sums are loaded and stored again with every four of its lines, which pays for several
// rows where the others' lines collide and no wide panels serve, and not for short lines.
bool ReadsMemory(const Product& p) {
  constexpr int64_t kLeastSummedColumns = 256;
  const bool sums = p.b_column == 1 && (p.b_row != 1 || p.k == 1);
  if (sums && (p.n < kLeastSummedColumns || p.k > kMostSummedRows)) return false;
  constexpr int64_t kMost = 8, kMostOfSums = 2, kCachedElements = int64_t{1} << 18;
  const bool pays = p.b_transposed() || (LinesCollide(p) && KernelIsa() < Isa::kAvx512);
  return p.m <= (pays ? kMost : kMostOfSums) && p.n * p.k > kCachedElements && !p.a_transposed();
}

// One sum of products, of which all that the others do to begin is more than the sum.
bool IsOneSum(const Product& p) { return p.m == 1 && p.n == 1 && p.a_column == 1 && p.b_row == 1; }

}  // namespace

bool Runs(FloatKernel kernel) {
  switch (kernel) {
    case FloatKernel::kPanels:
      return KernelIsa() >= Isa::kAvx2;
    case FloatKernel::kWidePanels:
      return KernelIsa() >= Isa::kAvx512;
    case FloatKernel::kRows:
      return RunsRows();
    default:
      return true;
  }
}

bool Serves(FloatKernel kernel, const Product& p) {
  if (kernel == FloatKernel::kBlas) return FitsBlas(p);
  return Runs(kernel) && (kernel != FloatKernel::kRows || !p.a_transposed());
}

FloatKernel QuickestFloatKernel(const Product& p) {
  if (RunsRows() && (IsOneSum(p) || ReadsMemory(p))) return FloatKernel::kRows;
  static const bool has_avx512 = OneDnnIsa() >= dnnl::cpu_isa::avx512_core;
  if (KernelIsa() >= Isa::kAvx512 && has_avx512) {
    // sgemm is at its worst at sizes that stand for no class.
    FloatKernel kernel = WithinBlas(avx512::kTable.At(p), p);
    if (kernel == FloatKernel::kSgemm && SlowsSgemm(p)) kernel = FloatKernel::kWidePanels;
    return kernel == FloatKernel::kWidePanels && FavorsMatmul(p) ? FloatKernel::kMatmul : kernel;
  }
  if (KernelIsa() >= Isa::kAvx2) return WithinBlas(avx2::kTable.At(p), p);
  if (SlowsSgemm(p)) return FloatKernel::kMatmul;
  const bool packed_by_sgemm = p.m >= 768 && p.n >= 768;
  if (!packed_by_sgemm && LinesCollide(p) && (p.k >= 96 || p.m <= 64) && FitsBlas(p)) {
    return FloatKernel::kBlas;
  }
  return FloatKernel::kSgemm;
}

std::unique_ptr<ProductRoutine> MakeFloatRoutine(FloatKernel kernel) {
  switch (kernel) {
    case FloatKernel::kSgemm:
      return std::make_unique<SgemmRoutine>();
    case FloatKernel::kMatmul:
      return std::make_unique<MatmulRoutine>(dnnl::memory::data_type::f32,
                                             dnnl::memory::data_type::f32);
    case FloatKernel::kBlas:
      return std::make_unique<BlasRoutine<float>>();
    case FloatKernel::kPanels:
      return std::make_unique<OwnRoutine>("panels", &PanelProduct);
    case FloatKernel::kWidePanels:
      return std::make_unique<OwnRoutine>("wide panels", &WidePanelProduct);
    case FloatKernel::kRows:
      return MakeRowRoutine(LineType::kFloat);
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "the table of kernels names none");
}

std::unique_ptr<ProductRoutine> MakeFloatRoutine() { return std::make_unique<FloatRoutine>(); }

std::unique_ptr<ProductRoutine> MakeBFloat16Routine(bool bfloat16_result) {
  using Type = dnnl::memory::data_type;
  return std::make_unique<MatmulRoutine>(Type::bf16, bfloat16_result ? Type::bf16 : Type::f32);
}

std::unique_ptr<ProductRoutine> MakeBlasRoutine(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return std::make_unique<BlasRoutine<double>>();
    case ElementType::kC64:
      return std::make_unique<BlasRoutine<std::complex<float>>>();
    default:
      return std::make_unique<BlasRoutine<std::complex<double>>>();
  }
}

std::unique_ptr<ProductRoutine> MakeLoopRoutine(ElementType type) {
  if (type == ElementType::kF32) return std::make_unique<LoopRoutine<float>>();
  if (type == ElementType::kPred) return std::make_unique<LoopRoutine<bool>>();
  switch (hlo::ByteWidth(type)) {
    case 1:
      return std::make_unique<LoopRoutine<uint8_t>>();
    case 2:
      return std::make_unique<LoopRoutine<uint16_t>>();
    case 4:
      return std::make_unique<LoopRoutine<uint32_t>>();
    default:
      return std::make_unique<LoopRoutine<uint64_t>>();
  }
}

}  // namespace cpu
