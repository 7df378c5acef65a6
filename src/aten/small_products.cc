#include "aten/small_products.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstdint>

// The BLAS that torch is built with, if it shows it.
extern "C" [[gnu::weak]] void sgemm_(const char* transpose_a, const char* transpose_b, const int* m,
                                     const int* n, const int* k, const float* alpha, const float* a,
                                     const int* lda, const float* b, const int* ldb,
                                     const float* beta, float* c, const int* ldc);

namespace torch_xla {
namespace {

// Products of more terms take so long that the preparation is nothing beside them.
constexpr int64_t kMostTermsOfProduct = int64_t{1} << 22;

struct HostMatrix {
  const float* data = nullptr;
  int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 0;

  HostMatrix Transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// Of plain numbers that it may be multiplied by.
bool ArePlainFloats(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.layout() == at::kStrided && !x.is_neg();
}

HostMatrix HostMatrixOf(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), x.size(0), x.size(1), x.stride(0), x.stride(1)};
}

// A column-major operand as BLAS wants it.
struct GemmFactor {
  const float* data = nullptr;
  bool is_transposed = false;
  int stride = 0;  // from one column, or row, to the next

  // Null where the matrix lies in neither way: torch copies it then.
  static GemmFactor Of(const HostMatrix& matrix) {
    const auto apart = [](int64_t stride, int64_t length) {
      return stride >= std::max<int64_t>(1, length);
    };
    if (matrix.row_stride == 1 && apart(matrix.column_stride, matrix.rows))
      return {matrix.data, false, static_cast<int>(matrix.column_stride)};
    if (matrix.column_stride == 1 && apart(matrix.row_stride, matrix.columns))
      return {matrix.data, true, static_cast<int>(matrix.row_stride)};
    return {};
  }
};

// Whether float32 is multiplied as such, and not in fewer bits as the user may have allowed.
bool MultipliesInFull() {
  const auto precision =
      at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return precision != at::Float32Precision::TF32 && precision != at::Float32Precision::BF16;
}

bool MakeSmallProduct(const HostMatrix& x, const HostMatrix& y) {
  // A result of one column is laid out, and multiplied, in another way.
  if (x.columns != y.rows || x.rows < 1 || x.columns < 1 || y.columns < 2) return false;
  return x.rows * x.columns <= kMostTermsOfProduct &&
         x.columns * y.columns <= kMostTermsOfProduct &&
         x.rows * y.columns <= kMostTermsOfProduct &&
         x.rows * x.columns * y.columns <= kMostTermsOfProduct;
}

// The result's rows, each the bias.
void SetRowsTo(float* result, int64_t rows, int64_t columns, const at::Tensor& bias) {
  const auto* numbers = bias.const_data_ptr<float>();
  for (int64_t i = 0; i < rows; ++i) std::copy_n(numbers, columns, result + i * columns);
}

// Into row-major memory: that of the transposed result in columns, which is y^T x^T.
bool MultiplyInto(const HostMatrix& x, const HostMatrix& y, float beta, float* result) {
  const GemmFactor a = GemmFactor::Of(y.Transposed()), b = GemmFactor::Of(x.Transposed());
  if (a.data == nullptr || b.data == nullptr) return false;
  const int m = static_cast<int>(y.columns), n = static_cast<int>(x.rows),
            k = static_cast<int>(x.columns);
  // As torch has it: of one row or column, the stride means nothing.
  const int lda = !a.is_transposed && k == 1 ? m : a.stride;
  const int ldb = b.is_transposed ? (k == 1 ? n : b.stride) : (n == 1 ? k : b.stride);
  const int ldc = m;
  const float alpha = 1;
  sgemm_(a.is_transposed ? "T" : "N", b.is_transposed ? "T" : "N", &m, &n, &k, &alpha, a.data, &lda,
         b.data, &ldb, &beta, result, &ldc);
  return true;
}

// Into memory of these sizes.
at::Tensor SmallProduct(const HostMatrix& x, const HostMatrix& y, const at::Tensor& bias,
                        at::IntArrayRef sizes) {
  if (sgemm_ == nullptr || !MakeSmallProduct(x, y) || !MultipliesInFull()) return {};
  const bool has_bias = bias.defined();
  if (has_bias && (bias.dim() != 1 || bias.size(0) != y.columns || !ArePlainFloats(bias) ||
                   bias.stride(0) != 1))
    return {};
  at::Tensor result(at::detail::empty_cpu(sizes, at::kFloat));
  auto* const numbers = result.mutable_data_ptr<float>();
  if (has_bias) SetRowsTo(numbers, x.rows, y.columns, bias);
  return MultiplyInto(x, y, has_bias ? 1 : 0, numbers) ? result : at::Tensor();
}

}  // namespace

at::Tensor ProductOnHost(const at::Tensor& x, const at::Tensor& y, const at::Tensor& bias) {
  if (x.dim() != 2 || y.dim() != 2 || !ArePlainFloats(x) || !ArePlainFloats(y)) return {};
  return SmallProduct(HostMatrixOf(x), HostMatrixOf(y), bias, {x.size(0), y.size(1)});
}

at::Tensor LinearOnHost(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (weight.dim() != 2 || x.dim() < 2 || !ArePlainFloats(x) || !ArePlainFloats(weight)) return {};
  if (x.dim() == 2) {
    return SmallProduct(HostMatrixOf(x), HostMatrixOf(weight).Transposed(), bias,
                        {x.size(0), weight.size(0)});
  }
  // With a bias torch makes a matrix of the rows.
  if (!bias.defined() || x.dim() != 3 || !x.is_contiguous()) return {};
  const int64_t width = x.size(2);
  const HostMatrix rows{x.const_data_ptr<float>(), x.size(0) * x.size(1), width, width, 1};
  return SmallProduct(rows, HostMatrixOf(weight).Transposed(), bias,
                      {x.size(0), x.size(1), weight.size(0)});
}

}  // namespace torch_xla
