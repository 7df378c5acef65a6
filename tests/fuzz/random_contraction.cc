// Products and convolutions with what follows them, and other calls of libraries.
#include <algorithm>
#include <numeric>

#include "hlo/error.h"
#include "random_generator.h"

namespace fuzz {

Value Generator::Product(Value x) {
  const int64_t rank = x->shape().rank();
  hlo::DotAttributes attributes;
  Dimensions other;
  for (int64_t i = 0; i < rank && bytes_.Chance(90); ++i) {
    attributes.lhs_batching_dimensions.push_back(i);
    attributes.rhs_batching_dimensions.push_back(i);
    other.push_back(x->dimensions()[i]);
  }
  const auto batching = static_cast<int64_t>(other.size());
  int64_t free = std::max<int64_t>(1, x->shape().num_elements());
  if (batching < rank) {
    const int64_t contracted =
        bytes_.Chance(150) ? rank - 1 : batching + bytes_.Below(rank - batching);
    attributes.lhs_contracting_dimensions.push_back(contracted);
    free /= std::max<int64_t>(1, x->dimensions()[contracted]);
    const int64_t size = x->dimensions()[contracted];
    const int64_t columns = kSizes[bytes_.Below(std::size(kSizes))];
    const bool has_columns = free * columns <= kMostElements && bytes_.Chance(220);
    if (has_columns && bytes_.Chance(100)) {
      other.push_back(columns);
      attributes.rhs_contracting_dimensions.push_back(static_cast<int64_t>(other.size()));
      other.push_back(size);
    } else {
      attributes.rhs_contracting_dimensions.push_back(static_cast<int64_t>(other.size()));
      other.push_back(size);
      if (has_columns) other.push_back(columns);
    }
  }
  return b_.DotGeneral(x, Like(x->shape().WithDimensions(other)), attributes);
}

void Generator::Dot() { Push(Product(Any())); }

void Generator::SumOfDots() {
  const ElementType type = AnyFloat();
  const int64_t m = 1 + bytes_.Below(8), n = 1 + bytes_.Below(8);
  Value sum = nullptr;
  for (int64_t i = 0, terms = 2 + bytes_.Below(2); i < terms; ++i) {
    const int64_t k = 1 + bytes_.Below(4);
    Value product = b_.MatMul(Like(Shape(type, {m, k})), Like(Shape(type, {k, n})));
    sum = sum == nullptr ? product : b_.Add(sum, product);
  }
  Push(sum);
}

void Generator::Convolution() {
  const int64_t spatial = 1 + bytes_.Below(2);
  const ElementType type = bytes_.Chance(230) ? AnyFloat() : AnyType();
  const int64_t groups = bytes_.Chance(50) ? 2 : 1;
  const int64_t features = groups * (1 + bytes_.Below(3));
  const int64_t outputs = groups * (1 + bytes_.Below(4));
  hlo::ConvolutionAttributes attributes;
  attributes.feature_group_count = groups;
  attributes.window = hlo::Window::Trivial(spatial);
  attributes.window.dimensions.clear();
  Dimensions input = {1 + bytes_.Below(3), features}, kernel = {outputs, features / groups};
  for (int64_t i = 0; i < spatial; ++i) {
    input.push_back(1 + bytes_.Below(9));
    kernel.push_back(1 + bytes_.Below(3));
    attributes.window.strides[i] = 1 + bytes_.Below(2);
    attributes.window.padding_low[i] = bytes_.Below(3);
    attributes.window.padding_high[i] = bytes_.Below(3);
    if (bytes_.Chance(40)) attributes.window.base_dilations[i] = 2;
    if (bytes_.Chance(40)) attributes.window.window_dilations[i] = 2;
  }
  attributes.window.reversal.assign(spatial, bytes_.Chance(40));
  attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(spatial);
  Value x = Like(Shape(type, input));
  Value w = Like(Shape(type, kernel));
  if (bytes_.Chance(60)) {
    Dimensions reversed;
    for (int64_t i = 0; i < spatial; ++i) reversed.push_back(2 + i);
    w = b_.Reverse(w, reversed);
  }
  Value y = b_.Convolution(x, w, attributes);
  if (bytes_.Chance(128)) {
    y = b_.Add(y, b_.BroadcastInDim(Like(Shape(type, {outputs})), y->dimensions(), {1}));
  }
  Push(y);
}

void Generator::Epilogue() {
  Value y = Product(Any());
  const int64_t rank = y->shape().rank();
  if (rank > 0 && bytes_.Chance(200)) {
    Value bias = Like(Shape(y->element_type(), {y->dimensions().back()}));
    y = b_.Add(y, b_.BroadcastInDim(bias, y->dimensions(), {rank - 1}));
  }
  if (bytes_.Chance(128)) y = b_.Maximum(y, b_.Zeros(y->shape()));
  if (bytes_.Chance(100)) y = b_.Add(y, Like(y->shape()));
  if (bytes_.Chance(100)) y = b_.Multiply(y, Like(y->shape()));
  Push(y);
}

void Generator::Random() {
  constexpr ElementType kBits[] = {ElementType::kU32, ElementType::kU64, ElementType::kU8,
                                   ElementType::kU16, ElementType::kS32};
  const Shape shape(kBits[bytes_.Below(std::size(kBits))], AnyDimensions(512));
  const auto algorithm =
      bytes_.Chance(128) ? hlo::RngAlgorithm::kThreeFry : hlo::RngAlgorithm::kPhilox;
  Push(b_.RngBitGenerator(Like(Shape(ElementType::kU64, {2})), algorithm, shape));
}

void Generator::Fft() {
  constexpr hlo::FftType kKinds[] = {hlo::FftType::kFft, hlo::FftType::kIfft, hlo::FftType::kRfft,
                                     hlo::FftType::kIrfft};
  const hlo::FftType kind = kKinds[bytes_.Below(4)];
  Value x = Any();
  const bool wide = bytes_.Chance(128);
  x = To(x, kind == hlo::FftType::kRfft ? (wide ? ElementType::kF64 : ElementType::kF32)
                                        : (wide ? ElementType::kC128 : ElementType::kC64));
  if (x->shape().rank() == 0) return;
  Dimensions length = {x->dimensions().back()};
  if (kind == hlo::FftType::kIrfft) {
    length[0] = std::max<int64_t>(0, 2 * (length[0] - 1) + bytes_.Below(2));
  }
  Push(b_.Fft(x, kind, length));
}

void Generator::LinearAlgebra() {
  const ElementType type = bytes_.Chance(128) ? ElementType::kF32 : ElementType::kF64;
  const int64_t n = 1 + bytes_.Below(6), batch = 1 + bytes_.Below(3);
  const Dimensions dimensions = {batch, n, n};
  Value a = b_.Unary(Opcode::kSine, Like(Shape(type, dimensions)));
  Value rows = b_.Iota(Shape(ElementType::kS32, dimensions), 1);
  Value columns = b_.Iota(Shape(ElementType::kS32, dimensions), 2);
  const Shape shape = a->shape();
  a = b_.Add(b_.Add(a, b_.Transpose(a, {0, 2, 1})),
             b_.Select(b_.Eq(rows, columns), b_.Full(shape, 2.0 * static_cast<double>(n) + 2),
                       b_.Full(shape, 0.0)));
  const bool lower = bytes_.Chance(128);
  if (bytes_.Chance(128)) {
    // What stands in the other triangle is not specified.
    Value inside = lower ? b_.Ge(rows, columns) : b_.Le(rows, columns);
    return Push(b_.Select(inside, b_.Cholesky(a, lower), b_.Full(shape, 0.0)));
  }
  hlo::TriangularSolveAttributes attributes;
  attributes.left_side = bytes_.Chance(128);
  attributes.lower = lower;
  attributes.unit_diagonal = bytes_.Chance(60);
  attributes.transpose_a =
      bytes_.Chance(128) ? hlo::Transpose::kTranspose : hlo::Transpose::kNoTranspose;
  const int64_t columns_of_b = 1 + bytes_.Below(4);
  Push(b_.TriangularSolve(
      a,
      Like(Shape(type, attributes.left_side ? Dimensions{batch, n, columns_of_b}
                                            : Dimensions{batch, columns_of_b, n})),
      attributes));
}

}  // namespace fuzz
