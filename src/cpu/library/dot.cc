// dot_general. Products of f32 go to oneDNN's sgemm, which has the least overhead of all, or where
// that is slow to its matmul primitive, as those of bf16, or to OpenBLAS, as f64, c64 and c128;
// integers go to loops here. Other types are converted on the way in and out. The work is cut into
// slices of the batch and of the result's rows or columns, one thread each.
#include <cblas.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <cstring>
#include <map>
#include <string>

#include "cpu/library/bind.h"
#include "cpu/library/contraction_shape.h"
#include "cpu/library/onednn.h"
#include "cpu/library/strided_copy.h"
#include "cpu/library/vector_clones.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::ElementType;

// One matrix product: C[m,n] = A[m,k] B[k,n], C dense in rows `ldc` apart. The strides of A and B
// say where rows and columns lie; one of each pair is 1.
struct Product {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, ldc;

  bool a_transposed() const { return a_column != 1; }
  bool b_transposed() const { return b_column != 1; }
  // The leading dimension as BLAS checks it: at least the row's length, also where there is one
  // row.
  int64_t lda() const { return a_transposed() ? std::max(a_column, m) : std::max(a_row, k); }
  int64_t ldb() const { return b_transposed() ? std::max(b_column, k) : std::max(b_row, n); }
  auto operator<=>(const Product&) const = default;
};

// The routine behind the products of one dot.
class ProductRoutine {
 public:
  virtual ~ProductRoutine() = default;
  // Called while binding for each product that will be run.
  virtual void Prepare(const Product& product) {}
  virtual void Run(const Product& product, const void* a, const void* b, void* c) const = 0;
  virtual std::string Name(const Product& product) const = 0;
};

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

// oneDNN's sgemm, or what is quicker where that is slow; all by measurement.
class FloatRoutine : public ProductRoutine {
 public:
  void Prepare(const Product& product) override {
    if (PrefersMatmul(product)) matmul_.Prepare(product);
  }

  void Run(const Product& p, const void* a, const void* b, void* c) const override {
    if (PrefersMatmul(p)) return matmul_.Run(p, a, b, c);
    if (PrefersBlas(p)) return blas_.Run(p, a, b, c);
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
  std::string Name(const Product& product) const override {
    if (PrefersMatmul(product)) return matmul_.Name(product);
    return PrefersBlas(product) ? blas_.Name(product) : "oneDNN sgemm";
  }

 private:
  // sgemm takes up to thirty times as long where both are transposed. Where only B is, up to six
  // times for few rows or columns and many multiplications each; as long for many of both, and half
  // as long for a handful.
  static bool PrefersMatmul(const Product& p) {
    if (!p.b_transposed()) return false;
    const int64_t shorter = std::min(p.m, p.n);
    return p.a_transposed() || (shorter >= 16 && shorter <= 128 && p.k >= 256);
  }

  // Without AVX-512, sgemm reads small and middling matrices where they lie. Lines a multiple of
  // 2 KB apart share few sets of the cache: it takes up to twice as long then, and threads disturb
  // each other.
  static bool PrefersBlas(const Product& p) {
    static const bool has_avx512 = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    constexpr int64_t kLine = 512, kPacked = 768;
    if (has_avx512 || (p.m >= kPacked && p.n >= kPacked)) return false;
    if (std::max({p.m, p.n, p.k, p.lda(), p.ldb(), p.ldc}) > INT_MAX) return false;
    const bool collides =
        (!p.b_transposed() && p.ldb() % kLine == 0) || (p.a_transposed() && p.lda() % kLine == 0);
    return collides && (p.k >= 96 || p.m <= 64);
  }

  MatmulRoutine matmul_{dnnl::memory::data_type::f32, dnnl::memory::data_type::f32};
  BlasRoutine<float> blas_;
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

bool NativeBFloat16() {
  static const bool native = [] {
    try {
      MatmulRoutine routine(dnnl::memory::data_type::bf16, dnnl::memory::data_type::f32);
      routine.Prepare({.m = 64,
                       .n = 64,
                       .k = 64,
                       .a_row = 64,
                       .a_column = 1,
                       .b_row = 64,
                       .b_column = 1,
                       .ldc = 64});
      auto isa = dnnl::get_effective_cpu_isa();
      return isa >= dnnl::cpu_isa::avx512_core_bf16;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return native;
}

// The type that products are computed in.
ElementType ComputeType(const hlo::Instruction& dot) {
  ElementType lhs = dot.operand(0)->element_type(), rhs = dot.operand(1)->element_type();
  ElementType result = dot.element_type();
  if (result == ElementType::kBF16 || result == ElementType::kF16 || result == ElementType::kF32) {
    bool bf16 = lhs == ElementType::kBF16 && rhs == ElementType::kBF16 && NativeBFloat16();
    return bf16 ? ElementType::kBF16 : ElementType::kF32;
  }
  return result;
}

class DotCall : public LibraryCall {
 public:
  DotCall(const hlo::Instruction& dot, const Epilogue* epilogue, const hlo::Shape& result_shape)
      : compute_type_(ComputeType(dot)),
        lhs_type_(dot.operand(0)->element_type()),
        rhs_type_(dot.operand(1)->element_type()),
        result_type_(result_shape.element_type()),
        shape_(AnalyzeDot(dot, lhs_type_ != compute_type_, rhs_type_ != compute_type_)) {
    if (epilogue != nullptr) {
      epilogue_ = *epilogue;
      lhs_operand_ = static_cast<int>(dot.operand(0)->parameter_number());
      rhs_operand_ = static_cast<int>(dot.operand(1)->parameter_number());
    }
    ChooseRoutine();
    PlanSlices();
    PlanScratch(dot);
  }

  int64_t scratch_bytes() const override { return lhs_bytes_ + rhs_bytes_; }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (batch_ * shape_.m * shape_.n == 0) return;
    auto* scratch = static_cast<std::byte*>(context.scratch);
    const void* lhs = Pack(context, shape_.lhs, operands[lhs_operand_], lhs_type_, scratch);
    const void* rhs =
        Pack(context, shape_.rhs, operands[rhs_operand_], rhs_type_, scratch + lhs_bytes_);
    context.threads.ParallelFor(chunks_, [&](int64_t chunk) {
      int64_t begin = chunk * slices_per_chunk_;
      int64_t end = std::min(begin + slices_per_chunk_, batch_ * row_slices_ * column_slices_);
      for (int64_t slice = begin; slice < end; ++slice) {
        RunSlice(slice, lhs, rhs, operands, results[0]);
      }
    });
  }

  std::string Description() const override {
    std::string text = routine_->Name(MakeProduct(row_block_, column_block_));
    text.append(" ").append(hlo::ShortName(compute_type_));
    if (batch_ > 1) text.append(" ").append(std::to_string(batch_)).append(" x");
    text.append(" ").append(hlo::ToString(std::vector{shape_.m, shape_.k}));
    text.append(" x ").append(hlo::ToString(std::vector{shape_.k, shape_.n}));
    if (shape_.lhs.packed) text += ", packs lhs";
    if (shape_.rhs.packed) text += ", packs rhs";
    return text + (epilogue_ ? epilogue_->Description() : "");
  }

 private:
  Product MakeProduct(int64_t m, int64_t n) const {
    return {.m = m,
            .n = n,
            .k = shape_.k,
            .a_row = shape_.lhs.free_stride,
            .a_column = shape_.lhs.contracted_stride,
            .b_row = shape_.rhs.contracted_stride,
            .b_column = shape_.rhs.free_stride,
            .ldc = direct_ ? shape_.n : n};
  }

  void ChooseRoutine() {
    bool plain = !epilogue_ || epilogue_->empty();
    product_type_ = compute_type_ == ElementType::kBF16 ? ElementType::kF32 : compute_type_;
    direct_ = result_type_ == product_type_;
    int64_t volume = shape_.m * shape_.n * shape_.k;
    switch (compute_type_) {
      case ElementType::kBF16: {
        bool narrow = plain && result_type_ == ElementType::kBF16;
        if (narrow) {
          product_type_ = ElementType::kBF16;
          direct_ = true;
        }
        routine_ = std::make_unique<MatmulRoutine>(
            dnnl::memory::data_type::bf16,
            narrow ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32);
        break;
      }
      case ElementType::kF32:
        if (volume <= 512) {
          routine_ = std::make_unique<LoopRoutine<float>>();
        } else {
          routine_ = std::make_unique<FloatRoutine>();
        }
        break;
      case ElementType::kF64:
        routine_ = std::make_unique<BlasRoutine<double>>();
        break;
      case ElementType::kC64:
        routine_ = std::make_unique<BlasRoutine<std::complex<float>>>();
        break;
      case ElementType::kC128:
        routine_ = std::make_unique<BlasRoutine<std::complex<double>>>();
        break;
      case ElementType::kPred:
        routine_ = std::make_unique<LoopRoutine<bool>>();
        break;
      default:
        switch (hlo::ByteWidth(compute_type_)) {
          case 1:
            routine_ = std::make_unique<LoopRoutine<uint8_t>>();
            break;
          case 2:
            routine_ = std::make_unique<LoopRoutine<uint16_t>>();
            break;
          case 4:
            routine_ = std::make_unique<LoopRoutine<uint32_t>>();
            break;
          default:
            routine_ = std::make_unique<LoopRoutine<uint64_t>>();
        }
    }
  }

  // Several slices per thread, so that a thread that is held up delays the others little, but none
  // so small that packing inside the routine or the hand-over shows.
  void PlanSlices() {
    batch_ = shape_.batch_count();
    double work = 2.0 * shape_.m * shape_.n * std::max<int64_t>(shape_.k, 1);
    double rate = compute_type_ == ElementType::kF32    ? 1
                  : compute_type_ == ElementType::kBF16 ? 0.3
                                                        : 4;
    double minimum = 0.5e6 / rate;  // floating point operations worth a hand-over
    int64_t threads = ThreadPool::Default().num_threads();
    double total = work * static_cast<double>(batch_);
    int64_t wanted = threads == 1 || total < 2 * minimum
                         ? 1
                         : std::min<int64_t>(static_cast<int64_t>(total / minimum),
                                             total > 100 * minimum ? 4 * threads : threads);
    row_block_ = shape_.m;
    column_block_ = shape_.n;
    if (wanted > batch_) SplitMatrix(hlo::CeilDivide(wanted, std::max<int64_t>(batch_, 1)));
    row_slices_ = row_block_ == 0 ? 0 : hlo::CeilDivide(shape_.m, row_block_);
    column_slices_ = column_block_ == 0 ? 0 : hlo::CeilDivide(shape_.n, column_block_);
    int64_t slices = batch_ * row_slices_ * column_slices_;
    slices_per_chunk_ = std::max<int64_t>(1, slices / std::max<int64_t>(wanted, 1));
    chunks_ = hlo::CeilDivide(slices, slices_per_chunk_);
    if (batch_ * shape_.m * shape_.n * shape_.k == 0) return;
    for (int64_t m : {row_block_, shape_.m - (row_slices_ - 1) * row_block_}) {
      for (int64_t n : {column_block_, shape_.n - (column_slices_ - 1) * column_block_}) {
        routine_->Prepare(MakeProduct(m, n));
      }
    }
  }

  // What the routines pack for a piece of m x n is m + n elements for each m * n multiplications:
  // of pieces below this they spend a good part of the time packing.
  static bool PacksTooMuch(int64_t m, int64_t n) { return m * n < 64 * (m + n); }

  // Halves the longer side until there are enough pieces, or one for each thread that are worth it.
  void SplitMatrix(int64_t pieces) {
    constexpr int64_t kRows = 16, kColumns = 48;  // multiples of the routines' register blocks
    const int64_t threads = ThreadPool::Default().num_threads();
    int64_t made = 1;
    while (made < pieces) {
      if (made * batch_ >= threads && PacksTooMuch(row_block_ / 2, column_block_)) {
        return;
      }
      bool rows = row_block_ >= 2 * kRows && row_block_ * 2 >= column_block_;
      bool columns = column_block_ >= 2 * kColumns;
      if (!rows && !columns) {
        if (row_block_ < 2 * kRows) return;
        rows = true;
      }
      int64_t& block = rows ? row_block_ : column_block_;
      int64_t unit = rows ? kRows : kColumns;
      block = hlo::RoundUp(hlo::CeilDivide(block, 2), unit);
      made *= 2;
    }
  }

  void PlanScratch(const hlo::Instruction& dot) {
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(compute_type_));
    auto bytes = [&](const ContractionOperand& operand, int64_t index) {
      return operand.packed ? AlignedSize(dot.operand(index)->shape().num_elements() * width) : 0;
    };
    lhs_bytes_ = bytes(shape_.lhs, 0);
    rhs_bytes_ = bytes(shape_.rhs, 1);
  }

  const void* Pack(const CallContext& context, const ContractionOperand& operand, const void* data,
                   ElementType type, void* scratch) const {
    if (!operand.packed) return data;
    PackStrided(context.threads, operand.packing_dimensions, operand.packing_strides, data, type,
                scratch, compute_type_);
    return scratch;
  }

  void RunSlice(int64_t slice, const void* lhs, const void* rhs, const void* const* operands,
                void* result) const {
    int64_t column = slice % column_slices_ * column_block_;
    int64_t row = slice / column_slices_ % row_slices_ * row_block_;
    int64_t index = slice / column_slices_ / row_slices_;
    int64_t m = std::min(row_block_, shape_.m - row),
            n = std::min(column_block_, shape_.n - column);
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(compute_type_));
    auto* a = static_cast<const std::byte*>(lhs) +
              (shape_.Offset(shape_.lhs, index) + row * shape_.lhs.free_stride) * width;
    auto* b = static_cast<const std::byte*>(rhs) +
              (shape_.Offset(shape_.rhs, index) + column * shape_.rhs.free_stride) * width;
    int64_t position = (index * shape_.m + row) * shape_.n + column;
    auto* out = static_cast<std::byte*>(result) + position * hlo::ByteWidth(result_type_);
    Product product = MakeProduct(m, n);
    if (direct_) {
      Multiply(product, a, b, out);
      Finish(reinterpret_cast<float*>(out), shape_.n, m, n, position, operands, nullptr);
      return;
    }
    Block values(m * n * hlo::ByteWidth(product_type_));
    Multiply(product, a, b, values.data());
    Finish(static_cast<float*>(values.data()), n, m, n, position, operands, out);
  }

  void Multiply(const Product& p, const void* a, const void* b, void* c) const {
    if (p.k > 0) return routine_->Run(p, a, b, c);
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(product_type_));
    for (int64_t i = 0; i < p.m; ++i) {
      std::memset(static_cast<std::byte*>(c) + i * p.ldc * width, 0, p.n * width);
    }
  }

  // The epilogue in place, then the conversion to `out` when there is one.
  void Finish(float* values, int64_t stride, int64_t m, int64_t n, int64_t position,
              const void* const* operands, std::byte* out) const {
    bool has_epilogue = epilogue_ && !epilogue_->empty();
    if (!has_epilogue && out == nullptr) return;
    for (int64_t i = 0; i < m; ++i) {
      if (has_epilogue) {
        epilogue_->Apply(values + i * stride, position + i * shape_.n, n, operands);
      }
      if (out != nullptr) {
        ConvertRow(values + i * stride, product_type_,
                   out + i * shape_.n * hlo::ByteWidth(result_type_), result_type_, n);
      }
    }
  }

  ElementType compute_type_, product_type_, lhs_type_, rhs_type_, result_type_;
  ContractionShape shape_;
  std::optional<Epilogue> epilogue_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
  std::unique_ptr<ProductRoutine> routine_;
  bool direct_ = true;  // the routine writes into the result
  int64_t batch_ = 1, row_block_ = 0, column_block_ = 0, row_slices_ = 0, column_slices_ = 0;
  int64_t slices_per_chunk_ = 1, chunks_ = 0;
  int64_t lhs_bytes_ = 0, rhs_bytes_ = 0;
};

}  // namespace

std::unique_ptr<LibraryCall> BindDot(const hlo::Instruction& dot, const Epilogue* epilogue,
                                     const hlo::Shape& result_shape) {
  for (ElementType type : {dot.operand(0)->element_type(), dot.operand(1)->element_type(),
                           dot.element_type(), result_shape.element_type()}) {
    if (!hlo::IsNative(type)) return nullptr;
  }
  if (epilogue != nullptr) {
    ElementType compute = ComputeType(dot);
    if (compute != ElementType::kF32 && compute != ElementType::kBF16) return nullptr;
  }
  return std::make_unique<DotCall>(dot, epilogue, result_shape);
}

}  // namespace cpu
