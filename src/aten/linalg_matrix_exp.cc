// The exponential of a matrix: a Taylor polynomial of the matrix scaled down by a power of two,
// squared as often.
#include <ATen/native/LinearAlgebraUtils.h>

#include <array>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/linalg.h"
#include "aten/matmul.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

constexpr int kBlocks = 5;  // of four terms each; the remainder for a norm of 1 is below 2^-64

// Each matrix's number in all of its elements.
Value SpreadOverMatrices(Builder& b, Value numbers, Value like) {
  Dimensions leading(numbers->shape().rank());
  for (size_t i = 0; i < leading.size(); ++i) leading[i] = static_cast<int64_t>(i);
  return b.BroadcastInDim(numbers, like->dimensions(), leading);
}

// Degree 20 at the cost of seven products: a polynomial in x^4, whose coefficients are polynomials
// of degree 3.
Value Taylor(Builder& b, Value x) {
  std::array<Value, 4> powers = {IdentityLike(b, x), x, nullptr, nullptr};
  powers[2] = BatchMatMul(b, x, x);
  powers[3] = BatchMatMul(b, powers[2], x);
  Value fourth = BatchMatMul(b, powers[2], powers[2]);
  std::array<double, 4 * kBlocks + 1> coefficients = {1};
  for (size_t i = 1; i < coefficients.size(); ++i) {
    coefficients[i] = coefficients[i - 1] / static_cast<double>(i);
  }
  auto times = [&](Value v, int i) { return b.Multiply(v, Like(b, v, coefficients[i])); };
  Value sum = times(fourth, 4 * kBlocks);
  for (int block = kBlocks - 1; block >= 0; --block) {
    for (int i = 3; i >= 0; --i) sum = b.Add(sum, times(powers[i], 4 * block + i));
    if (block > 0) sum = BatchMatMul(b, sum, fourth);
  }
  return sum;
}

// For each matrix, how often to halve it until its norm is at most 1, and by what it is multiplied
// then. The norms are finite.
std::pair<Value, Value> Halvings(Builder& b, Value norms) {
  Value count = b.Zeros(Shape(ElementType::kS32, norms->dimensions()));
  const std::vector<Shape> state = {count->shape(), norms->shape(), norms->shape()};
  auto too_large = [](Builder& c, const Values& s) {
    return c.Gt(c.Multiply(s[1], s[2]), Like(c, s[1], 1));
  };
  auto* condition = b.Region("too_large", state, [&](Builder& c, const Values& s) -> Values {
    return {c.Reduce(Opcode::kOr, too_large(c, s), AllDimensions(s[1]->shape().rank()))};
  });
  auto* body = b.Region("halve", state, [&](Builder& c, const Values& s) -> Values {
    Value large = too_large(c, s);
    return {c.Add(s[0], c.Convert(large, ElementType::kS32)),
            c.Select(large, c.Multiply(s[1], Like(c, s[1], 0.5)), s[1]), s[2]};
  });
  Value loop = b.While({count, Like(b, norms, 1), norms}, condition, body);
  return {b.GetTupleElement(loop, 0), b.GetTupleElement(loop, 1)};
}

// x squared as often as each matrix was halved.
Value Square(Builder& b, Value x, Value halvings) {
  const std::vector<Shape> state = {x->shape(), halvings->shape()};
  auto left = [](Builder& c, Value count) { return c.Gt(count, Like(c, count, 0)); };
  auto* condition = b.Region("squares_left", state, [&](Builder& c, const Values& s) -> Values {
    return {c.Reduce(Opcode::kOr, left(c, s[1]), AllDimensions(s[1]->shape().rank()))};
  });
  auto* body = b.Region("square", state, [&](Builder& c, const Values& s) -> Values {
    Value square =
        c.Select(SpreadOverMatrices(c, left(c, s[1]), s[0]), BatchMatMul(c, s[0], s[0]), s[0]);
    return {square, c.Subtract(s[1], Like(c, s[1], 1))};
  });
  return b.GetTupleElement(b.While({x, halvings}, condition, body), 0);
}

Value MatrixExp(Builder& b, Value a) {
  if (IsEmpty(a)) return a;
  Value x = ToAccumulation(b, a);
  int64_t rank = x->shape().rank();
  Value norms = Max(b, Sum(b, b.Abs(x), {rank - 2}), {rank - 2});
  Value is_finite = b.Lt(norms, Like(b, norms, kInfinity));
  auto [halvings, scale] = Halvings(b, ZeroUnless(b, is_finite, norms));
  Value spread = SpreadOverMatrices(b, b.Convert(scale, x->element_type()), x);
  Value result = Square(b, Taylor(b, b.Multiply(x, spread)), halvings);
  result = b.Select(SpreadOverMatrices(b, is_finite, x), result, Like(b, x, kNaN));
  return b.Convert(result, a->element_type());
}

at::Tensor CheckedMatrixExp(const at::Tensor& a) {
  at::native::squareCheckInputs(a, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(a, "linalg.matrix_exp");
  return Record<&MatrixExp>(a);
}

}  // namespace

// As eager's, which neither fills `out` nor resizes it.
at::Tensor& AddLinearCombination(const at::Tensor& x, const at::Tensor& coefficients,
                                 at::Tensor& out) {
  return out.add_(at::_compute_linear_combination(x, coefficients));
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("linalg_matrix_exp", &CheckedMatrixExp);
  RunBy<&MatrixExp>(+[](const at::Tensor& a) {
    const at::ScalarType type = a.scalar_type();
    // torch's kernel adds its terms up in the matrix's type.
    return at::isReducedFloatingType(type) ? at::linalg_matrix_exp(a.to(at::kFloat)).to(type)
                                           : at::linalg_matrix_exp(a);
  });
  m.impl("_compute_linear_combination.out", &AddLinearCombination);
}

}  // namespace torch_xla
