// One matrix product over strided memory, and the routines that compute it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "hlo/element_type.h"

namespace cpu {

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

// The routine behind the products of one dot. Immutable after Prepare.
class ProductRoutine {
 public:
  virtual ~ProductRoutine() = default;
  // Called while binding for each product that will be run.
  virtual void Prepare(const Product& product) {}
  virtual void Run(const Product& product, const void* a, const void* b, void* c) const = 0;
  virtual std::string Name(const Product& product) const = 0;
};

// Throws dnnl::error where oneDNN has no products of bf16 on this processor.
std::unique_ptr<ProductRoutine> MakeBFloat16Routine(bool bfloat16_result);

// What computes products of f32.
enum class FloatKernel : char {
  kSgemm = 's',       // oneDNN's: the least overhead, reads operands where they lie
  kMatmul = 'm',      // oneDNN's primitive
  kBlas = 'b',        // OpenBLAS, which copies operands first
  kPanels = 'p',      // ours (panel_product.h)
  kWidePanels = 'w',  // ours for AVX-512 (panel_product.h)
  kRows = 'r',        // ours, of few rows (row_product.h)
};
// True if this processor can run it.
bool Runs(FloatKernel kernel);
// True if it can besides compute this product.
bool Serves(FloatKernel kernel, const Product& product);
// The quickest for such a product on this processor, by measurement.
FloatKernel QuickestFloatKernel(const Product& product);
std::unique_ptr<ProductRoutine> MakeFloatRoutine(FloatKernel kernel);
// The quickest of each product.
std::unique_ptr<ProductRoutine> MakeFloatRoutine();

// OpenBLAS: f64, c64, c128.
std::unique_ptr<ProductRoutine> MakeBlasRoutine(hlo::ElementType type);

// Loops of ours: integers, which wrap around, pred, and f32.
std::unique_ptr<ProductRoutine> MakeLoopRoutine(hlo::ElementType type);

}  // namespace cpu
