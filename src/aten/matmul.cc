// Matrix and vector products.
#include "aten/matmul.h"

#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm_cpu_dispatch.h>

#include <algorithm>

#include "aten/broadcast.h"
#include "aten/constant.h"
#include "aten/dimension.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refuse.h"
#include "aten/small_products.h"

namespace torch_xla {
namespace {

void RequireSameType(Value x, Value y) {
  if (x->element_type() == y->element_type()) return;
  throw hlo::Error("expected m1 and m2 to have the same dtype, but got: " + x->shape().ToString() +
                   " and " + y->shape().ToString());
}

void RequireRank(Value x, int64_t rank, const char* name, const char* argument) {
  if (x->shape().rank() == rank) return;
  throw hlo::Error(std::string(name) + ": Expected argument '" + argument + "' to have " +
                   std::to_string(rank) + " dimensions, but got " + x->shape().ToString());
}

// Contracts x's last dimension with y's first.
Value Contract(Builder& b, Value x, Value y) {
  RequireSameType(x, y);
  hlo::DotAttributes attributes;
  attributes.lhs_contracting_dimensions = {x->shape().rank() - 1};
  attributes.rhs_contracting_dimensions = {0};
  return b.DotGeneral(x, y, attributes);
}

std::string NotMultiplied(Value x, Value y) {
  auto text = [](Value v) {
    std::string out;
    for (int64_t d : v->dimensions()) out += (out.empty() ? "" : "x") + std::to_string(d);
    return out;
  };
  return "mat1 and mat2 shapes cannot be multiplied (" + text(x) + " and " + text(y) + ")";
}

void RequireInner(Value x, Value y, int64_t x_dimension, int64_t y_dimension) {
  if (x->shape().dimension(x_dimension) == y->shape().dimension(y_dimension)) return;
  throw hlo::Error(NotMultiplied(x, y));
}

void CheckMatrix(Value x, const char* position, const char* name) {
  if (x->shape().rank() == 2) return;
  Refuse(c10::str(name, " must be a matrix"), "mm(): expected the ", position, " input tensor ",
         x->shape().ToString(), " to be a matrix (i.e. a 2D tensor).");
}

Value Mm(Builder& b, Value x, Value y) {
  CheckMatrix(x, "first", "self");
  CheckMatrix(y, "second", "mat2");
  const int64_t inner = x->shape().dimension(1), rows = y->shape().dimension(0);
  if (inner != rows) {
    Refuse(NotMultiplied(x, y), "mm(): cannot matrix-multiply tensors ", x->shape().ToString(),
           " and ", y->shape().ToString(),
           ". Expected the size of dimension 1 of the first input tensor (", inner,
           ") to be equal the size of dimension 0 of the second input tensor (", rows, ").");
  }
  return Contract(b, x, y);
}

Value Mv(Builder& b, Value x, Value y) {
  RequireRank(x, 2, "mv", "self");
  RequireRank(y, 1, "mv", "vec");
  RequireInner(x, y, 1, 0);
  return Contract(b, x, y);
}

Value Dot(Builder& b, Value x, Value y) {
  if (x->shape().rank() != 1 || y->shape().rank() != 1) {
    throw hlo::Error("1D tensors expected, but got " + std::to_string(x->shape().rank()) +
                     "D and " + std::to_string(y->shape().rank()) + "D tensors");
  }
  if (x->dimensions() != y->dimensions()) {
    throw hlo::Error("inconsistent tensor size, expected tensor [" +
                     std::to_string(x->shape().dimension(0)) + "] and src [" +
                     std::to_string(y->shape().dimension(0)) +
                     "] to have the same number of elements");
  }
  return Contract(b, x, y);
}

Value Vdot(Builder& b, Value x, Value y) {
  if (IsComplexValue(x)) x = b.Complex(b.Real(x), b.Negate(b.Imag(x)));
  return Dot(b, x, y);
}

Value Bmm(Builder& b, Value x, Value y) {
  if (x->shape().rank() != 3) throw hlo::Error("batch1 must be a 3D tensor");
  if (y->shape().rank() != 3) throw hlo::Error("batch2 must be a 3D tensor");
  if (x->shape().dimension(0) != y->shape().dimension(0) ||
      x->shape().dimension(2) != y->shape().dimension(1)) {
    throw hlo::Error("Expected size for first two dimensions of batch2 tensor to be: [" +
                     std::to_string(x->shape().dimension(0)) + ", " +
                     std::to_string(x->shape().dimension(2)) + "] but got: [" +
                     std::to_string(y->shape().dimension(0)) + ", " +
                     std::to_string(y->shape().dimension(1)) + "].");
  }
  return BatchMatMul(b, x, y);
}

// The numbers beta and alpha, 1 unless given: constants of the graph, which need no multiplication
// then.
Value Times(Builder& b, Value x, const Constant& factor) {
  if (IsNumber(factor, 1)) return x;
  if (!std::holds_alternative<std::complex<double>>(factor)) {
    return b.Multiply(x, Like(b, x, NumberOf(factor)));
  }
  auto z = std::get<std::complex<double>>(factor);
  Shape real(hlo::RealType(x->element_type()), x->dimensions());
  return b.Multiply(x, b.Complex(b.Full(real, z.real()), b.Full(real, z.imag())));
}

// beta * bias + alpha * product. A beta of 0 ignores the bias, NaN and all. Of 16-bit floats the
// numbers and their products are those of f32.
Value Accumulate(Builder& b, Value bias, Value product, const Constant& beta,
                 const Constant& alpha) {
  RequireSameType(bias, product);
  Value stretched = b.BroadcastTo(bias, product->dimensions());
  if (IsNumber(alpha, 1) && IsNumber(beta, 1)) return b.Add(product, stretched);
  Value result = Times(b, ToAccumulation(b, product), alpha);
  if (!IsNumber(beta, 0)) {
    result = b.Add(result, Times(b, ToAccumulation(b, stretched), beta));
  }
  return b.Convert(result, product->element_type());
}

// The same of a product of matrices, which an alpha of 0 ignores, too.
Value AccumulateDot(Builder& b, Value bias, Value dot, const Constant& beta,
                    const Constant& alpha) {
  return Accumulate(b, bias, IsNumber(alpha, 0) ? b.Zeros(dot->shape()) : dot, beta, alpha);
}

Value Addmm(Builder& b, Value bias, Value x, Value y, ComputedConstant beta,
            ComputedConstant alpha) {
  return AccumulateDot(b, bias, Mm(b, x, y), beta, alpha);
}
Value Addmv(Builder& b, Value bias, Value x, Value y, FittingConstant beta, FittingConstant alpha) {
  return AccumulateDot(b, bias, Mv(b, x, y), beta, alpha);
}
Value Baddbmm(Builder& b, Value bias, Value x, Value y, ComputedConstant beta,
              ComputedConstant alpha) {
  return AccumulateDot(b, bias, Bmm(b, x, y), beta, alpha);
}
Value Addbmm(Builder& b, Value bias, Value x, Value y, ComputedConstant beta,
             ComputedConstant alpha) {
  Bmm(b, x, y);  // checks
  hlo::DotAttributes attributes;
  attributes.lhs_contracting_dimensions = {0, 2};
  attributes.rhs_contracting_dimensions = {0, 1};
  return AccumulateDot(b, bias, b.DotGeneral(x, y, attributes), beta, alpha);
}

Value Outer(Builder& b, Value x, Value y) {
  Dimensions dimensions = {x->shape().dimension(0), y->shape().dimension(0)};
  return b.Multiply(b.BroadcastInDim(x, dimensions, {0}), b.BroadcastInDim(y, dimensions, {1}));
}
Value Addr(Builder& b, Value bias, Value x, Value y, FittingConstant beta, FittingConstant alpha) {
  Values all = {bias, x, y};
  PromoteAll(b, all);
  if (IsIntegral(all[0]) &&
      (std::holds_alternative<double>(beta) || std::holds_alternative<double>(alpha))) {
    throw hlo::Error(
        "For integral input tensors, alpha and beta must not be floating point numbers.");
  }
  if (!IsPred(all[0]) &&
      (std::holds_alternative<bool>(beta) || std::holds_alternative<bool>(alpha))) {
    throw hlo::Error("Boolean alpha and beta only supported for Boolean results.");
  }
  return Accumulate(b, all[0], Outer(b, all[1], all[2]), beta, alpha);
}

// The sum over some dimensions of the product of three tensors, each with new dimensions of size 1;
// f16 and bf16 are rounded once, at the end.
Value Trilinear(Builder& b, Value x, Value y, Value z, Dimensions expand_x, Dimensions expand_y,
                Dimensions expand_z, Dimensions summed, int64_t unroll) {
  auto expand = [&](Value v, const Dimensions& at) {
    Dimensions dimensions = v->dimensions();
    for (int64_t d : at) dimensions.insert(dimensions.begin() + d, 1);
    return b.Reshape(v, dimensions);
  };
  ElementType type = x->element_type();
  Values all = {expand(x, expand_x), expand(y, expand_y), expand(z, expand_z)};
  for (Value& v : all) v = ToAccumulation(b, v);
  BroadcastAll(b, all);
  Dimensions reduced = summed;
  std::sort(reduced.begin(), reduced.end());
  return b.Convert(Sum(b, b.Multiply(b.Multiply(all[0], all[1]), all[2]), reduced), type);
}

// --- Where no derivative is asked for, what torch composes is one operation

int64_t ElementsBefore(Value x, int64_t dimension) {
  int64_t count = 1;
  for (int64_t d = 0; d < dimension; ++d) count *= x->shape().dimension(d);
  return count;
}

// [..., k] x [k, n]
Value TimesMatrix(Builder& b, Value x, Value y) {
  const int64_t last = x->shape().rank() - 1;
  Dimensions result = x->dimensions();
  result[last] = y->shape().dimension(1);
  return b.Reshape(Mm(b, b.Reshape(x, {ElementsBefore(x, last), x->shape().dimension(last)}), y),
                   result);
}

Value Linear(Builder& b, Value x, Value weight, OptionalValue bias) {
  Value product = TimesMatrix(b, x, SwapLastTwo(b, weight));
  if (bias) RequireSameType(*bias, product);
  return bias ? b.Add(product, b.BroadcastTo(*bias, product->dimensions())) : product;
}

// Weights of 8 bits, [out, in], and the scale of each output. Rounded where the operators that it
// is made of round.
Value QuantizedLinear(Builder& b, Value x, Value weight, Value scale) {
  const ElementType type = x->element_type();
  Value product = ToAccumulation(b, Linear(b, x, b.Convert(weight, type), std::nullopt));
  Value wide = b.Convert(b.Convert(scale, type), product->element_type());
  return b.Convert(b.Multiply(product, b.BroadcastTo(wide, product->dimensions())), type);
}

// Of ranks 2 and more.
Value MatMul(Builder& b, Value x, Value y) {
  if (y->shape().rank() == 2) return TimesMatrix(b, x, y);
  const auto batch_of = [](Value v) {
    return Dimensions(v->dimensions().begin(), v->dimensions().end() - 2);
  };
  const Dimensions batch = BroadcastDimensions(batch_of(x), batch_of(y));
  const auto flat = [&](Value v) {
    const Dimensions matrix(v->dimensions().end() - 2, v->dimensions().end());
    Dimensions full = batch;
    full.insert(full.end(), matrix.begin(), matrix.end());
    v = b.BroadcastTo(v, full);
    return b.Reshape(v, {ElementsBefore(v, v->shape().rank() - 2), matrix[0], matrix[1]});
  };
  Dimensions result = batch;
  result.push_back(x->dimensions().end()[-2]);
  result.push_back(y->dimensions().back());
  return b.Reshape(BatchMatMul(b, flat(x), flat(y)), result);
}

bool NeedsGradient(const at::Tensor& x) { return x.requires_grad() && at::GradMode::is_enabled(); }

// A plain tensor of rank 2 or more without a derivative, of this type. Nothing is empty, and no
// number an integer: torch has rules for that.
bool IsMatrixOf(at::ScalarType type, const at::Tensor& x) {
  return (at::isFloatingType(type) || at::isComplexType(type)) && IsPlainTensor(x) &&
         !NeedsGradient(x) && x.scalar_type() == type && x.dim() >= 2 && x.numel() > 0;
}

bool IsBias(const at::Tensor& bias, const at::Tensor& weight) {
  return IsPlainTensor(bias) && !NeedsGradient(bias) && bias.dim() == 1 &&
         bias.scalar_type() == weight.scalar_type() && bias.size(0) == weight.size(0);
}

// What eager's kernel of products adds, if x has not two dimensions: a vector.
bool IsVector(const at::Tensor& bias) {
  const auto is_long = [](int64_t size) { return size != 1; };
  return bias.dim() == 1 || std::ranges::count_if(bias.sizes(), is_long) == 1;
}

at::Tensor RecordLinear(const at::Tensor& x, const at::Tensor& weight,
                        const std::optional<at::Tensor>& bias) {
  const bool has_bias = bias && bias->defined();
  if (IsMatrixOf(weight.scalar_type(), x) && IsMatrixOf(weight.scalar_type(), weight) &&
      weight.dim() == 2 && x.size(-1) == weight.size(1) && (!has_bias || IsBias(*bias, weight))) {
    return Record<&Linear>(x, weight, has_bias ? bias : std::nullopt);
  }
  // Where eager adds the bias in the product's kernel, which takes one type; torch's own formula
  // for this device adds it afterwards.
  if (has_bias && bias->scalar_type() != weight.scalar_type() && weight.dim() == 2 && x.dim() > 0 &&
      x.is_contiguous() && (x.dim() == 2 || IsVector(*bias))) {
    return at::addmm(*bias, x.reshape({-1, x.size(-1)}), weight.t());  // throws
  }
  return at::native::linear(x, weight, bias);
}

bool BatchesBroadcast(at::IntArrayRef x, at::IntArrayRef y) {
  for (size_t i = 3; i <= std::min(x.size(), y.size()); ++i) {
    const int64_t a = x[x.size() - i], b = y[y.size() - i];
    if (a != b && a != 1 && b != 1) return false;
  }
  return true;
}

at::Tensor RecordMatMul(const at::Tensor& x, const at::Tensor& y) {
  const bool is_one_already = x.dim() == 2 && y.dim() == 2;  // mm
  if (!is_one_already && IsMatrixOf(y.scalar_type(), x) && IsMatrixOf(y.scalar_type(), y) &&
      x.size(-1) == y.size(-2) && BatchesBroadcast(x.sizes(), y.sizes())) {
    return Record<&MatMul>(x, y);
  }
  // torch's own removes the dimension in place, which a tensor that is only traced cannot.
  if (x.dim() == 1 && y.dim() == 2) return at::mm(x.unsqueeze(0), y).squeeze(0);
  return at::native::matmul(x, y);
}

// What differs from the plain case, errors and derivatives included, is composed in Python
// (experimental/xla_quantized_matmul.py).
at::Tensor QuantizedMatMul(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                           const std::optional<at::Tensor>& zero_point, int64_t block_size,
                           bool int4_weight, bool quantize_activation) {
  const auto is_plain = [](const auto&... tensors) { return (IsPlainTensor(tensors) && ...); };
  const bool has_point = zero_point && zero_point->defined();
  if (!has_point && block_size == -1 && !quantize_activation && is_plain(x, weight, scale) &&
      !NeedsGradient(x) && !NeedsGradient(scale) && x.dim() > 0 &&
      at::isFloatingType(x.scalar_type()) && weight.dim() == 2 &&
      weight.scalar_type() == at::kChar && x.size(-1) == weight.size(1) &&
      at::isFloatingType(scale.scalar_type()) && scale.sizes() == weight.sizes().slice(0, 1)) {
    return Record<&QuantizedLinear>(x, weight, scale);
  }
  static const auto composed = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("xla::_quantized_matmul", "")
                                   .typed<decltype(QuantizedMatMul)>();
  return composed.call(x, weight, scale, zero_point, block_size, int4_weight, quantize_activation);
}

bool AreFloats(const at::Tensor& x) { return x.scalar_type() == at::kFloat && !x.is_neg(); }

// What torch's composite comes to, without its questions.
at::Tensor RunLinear(const at::Tensor& x, const at::Tensor& weight,
                     const std::optional<at::Tensor>& bias) {
  at::Tensor product = LinearOnHost(x, weight, bias.value_or(at::Tensor()));
  if (product.defined()) return product;
  const bool are_matrices = x.dim() == 2 && weight.dim() == 2 && AreFloats(x) && AreFloats(weight);
  if (!are_matrices || !bias || !AreFloats(*bias)) return at::linear(x, weight, bias);
  return at::cpu::addmm(*bias, x, weight.t());
}

at::Tensor RunAddmm(const at::Tensor& bias, const at::Tensor& x, const at::Tensor& y,
                    const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor sum;
  if (beta.equal(1) && alpha.equal(1)) sum = ProductOnHost(x, y, bias);
  return sum.defined() ? sum : at::addmm(bias, x, y, beta, alpha);
}

at::Tensor RunMm(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor product = ProductOnHost(x, y);
  return product.defined() ? product : at::mm(x, y);
}
at::Tensor RunMatMul(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor product = ProductOnHost(x, y);
  return product.defined() ? product : at::matmul(x, y);
}

// Above autograd, where derivatives are asked for or not; below, where it is off.
void RegisterProducts(torch::Library& m) {
  m.impl("linear", &RecordLinear);
  m.impl("matmul", &RecordMatMul);
}

}  // namespace

Value SwapLastTwo(Builder& b, Value x) {
  Dimensions permutation = AllDimensions(x->shape().rank());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return b.Transpose(x, permutation);
}

Value BatchMatMul(Builder& b, Value x, bool transpose_x, Value y, bool transpose_y,
                  std::optional<ElementType> type) {
  RequireSameType(x, y);
  int64_t rank = x->shape().rank();
  hlo::DotAttributes attributes;
  attributes.lhs_batching_dimensions = AllDimensions(rank - 2);
  attributes.rhs_batching_dimensions = AllDimensions(rank - 2);
  attributes.lhs_contracting_dimensions = {transpose_x ? rank - 2 : rank - 1};
  attributes.rhs_contracting_dimensions = {transpose_y ? rank - 1 : rank - 2};
  return b.DotGeneral(x, y, attributes, type);
}

Value BatchMatMul(Builder& b, Value x, Value y) { return BatchMatMul(b, x, false, y, false); }

namespace {

// A factor of nothing is not looked at in eager: of a product without terms, of a result without
// elements.
template <auto f>
at::Tensor RecordWithReadFactors(const at::Tensor& bias, const at::Tensor& x, const at::Tensor& y,
                                 const at::Scalar& beta, const at::Scalar& alpha) {
  const bool has_terms = x.numel() > 0 && y.numel() > 0;
  const bool has_elements = has_terms || (x.dim() > 0 && x.size(-1) == 0 && bias.numel() > 0);
  return Record<f>(bias, x, y, has_elements ? beta : at::Scalar(0),
                   has_terms ? alpha : at::Scalar(0));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Mm>(&RunMm);
  Register<&Mm>(m, "mm");
  Register<&Mv>(m, "mv");
  Register<&Dot>(m, "dot");
  Register<&Vdot>(m, "vdot");
  Register<&Bmm>(m, "bmm");
  RunBy<&Addmm>(&RunAddmm);
  Register<&Addmm>(m, "addmm", &RecordWithReadFactors<&Addmm>);
  Register<&Addmv>(m, "addmv", &RecordWithReadFactors<&Addmv>);
  Register<&Addr>(m, "addr");
  Register<&Addbmm>(m, "addbmm", &RecordWithReadFactors<&Addbmm>);
  Register<&Baddbmm>(m, "baddbmm", &RecordWithReadFactors<&Baddbmm>);
  Register<&Trilinear>(m, "_trilinear");
  RunBy<&Linear>(&RunLinear);
  RunBy<&MatMul>(&RunMatMul);
  RegisterProducts(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { RegisterProducts(m); }

TORCH_LIBRARY_IMPL(xla, XLA, m) {
  m.impl("quantized_matmul", &QuantizedMatMul);
  RunBy<&QuantizedLinear>(
      +[](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale) {
        return at::linear(x, weight.to(x.scalar_type())) * scale.to(x.scalar_type());
      });
}

}  // namespace torch_xla
