// A sum of products of two tensors (torch.einsum) as one operation. torch composes it of views of
// both, a product, and views of that, half a dozen operations to record and as many derivatives.
//
// What differs from the plain case is left to torch: other numbers of operands, an ellipsis, labels
// that come twice in an operand or in one operand alone, sizes that broadcast, integers, autocast.
#include <ATen/autocast_mode.h>
#include <ATen/ops/einsum_native.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aten/function_transforms.h"
#include "aten/matmul.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// Of "ij,jk->ik".
struct Labels {
  std::string x, y, result;
};

bool IsIn(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }
int64_t PlaceIn(const std::string& labels, char label) {
  return static_cast<int64_t>(labels.find(label));
}

// Nothing for what has another form, or is none.
std::optional<Labels> LabelsOf(std::string_view equation) {
  std::array<std::string, 3> parts;
  size_t part = 0;
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == ',' && part == 0) {
      part = 1;
    } else if (part == 1 && equation.substr(i, 2) == "->") {
      part = 2;
      ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      parts[part] += c;
    } else {
      return std::nullopt;
    }
  }
  if (part != 2) return std::nullopt;
  return Labels{std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

bool AreDistinct(const std::string& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels.find(labels[i]) != i) return false;
  }
  return true;
}

// Whether each label is of two of the three, or of all.
bool IsContraction(const Labels& labels) {
  const auto& [x, y, result] = labels;
  const auto is_of_two = [&](char label) {
    return IsIn(x, label) + IsIn(y, label) + IsIn(result, label) >= 2;
  };
  return AreDistinct(x) && AreDistinct(y) && AreDistinct(result) &&
         std::ranges::all_of(x, is_of_two) && std::ranges::all_of(y, is_of_two) &&
         std::ranges::all_of(result, is_of_two);
}

// Whether the operands have these dimensions, and something is summed.
bool SizesFit(const Labels& labels, const at::Tensor& x, const at::Tensor& y) {
  if (x.dim() != static_cast<int64_t>(labels.x.size()) ||
      y.dim() != static_cast<int64_t>(labels.y.size())) {
    return false;
  }
  bool is_summed = false;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const char label = labels.x[d];
    if (IsIn(labels.y, label) && x.size(d) != y.size(PlaceIn(labels.y, label))) return false;
    is_summed = is_summed || (x.size(d) != 1 && !IsIn(labels.result, label));
  }
  return is_summed;
}

bool IsFactor(const at::Tensor& x, at::ScalarType type) {
  return IsPlainTensor(x) && x.scalar_type() == type && x.numel() > 0 &&
         (at::isFloatingType(type) || at::isComplexType(type));
}

bool IsPlainEinsum(const Labels& labels, const at::Tensor& x, const at::Tensor& y) {
  return IsFactor(x, y.scalar_type()) && IsFactor(y, y.scalar_type()) && IsContraction(labels) &&
         SizesFit(labels, x, y) && !at::autocast::is_autocast_enabled(c10::kXLA);
}

// The labels of the result: those of both operands, those of the one, those of the other.
struct ResultLabels {
  std::string both, one, other;

  std::string all() const { return both + one + other; }
  // Where all of the other's come before the one's in the result, a product of the other and the
  // one is what is wanted.
  bool are_swapped(const std::string& result) const {
    return !one.empty() && !other.empty() &&
           PlaceIn(result, other.back()) < PlaceIn(result, one.front());
  }
};

ResultLabels LabelsOfResult(const Labels& labels) {
  ResultLabels of;
  for (char label : labels.result) {
    (!IsIn(labels.x, label) ? of.other : IsIn(labels.y, label) ? of.both : of.one) += label;
  }
  return of;
}

// In the first operand's order.
std::string SummedLabels(const Labels& labels) {
  std::string summed;
  for (char label : labels.x) {
    if (!IsIn(labels.result, label)) summed += label;
  }
  return summed;
}

int64_t SizeOf(char label, const Labels& labels, const at::Tensor& x, const at::Tensor& y) {
  return IsIn(labels.x, label) ? x.size(PlaceIn(labels.x, label))
                               : y.size(PlaceIn(labels.y, label));
}

// In the order in which the result's dimensions lie in eager: as in torch's product, for which
// those of size 1, summed ones too, are the other operand's.
std::string LabelsInMemory(const Labels& labels, const at::Tensor& x, const at::Tensor& y) {
  ResultLabels of;
  for (char label : labels.result) {
    const bool is_others = SizeOf(label, labels, x, y) == 1 || !IsIn(labels.x, label);
    (is_others ? of.other : IsIn(labels.y, label) ? of.both : of.one) += label;
  }
  bool sums_one = false;
  for (int64_t d = 0; d < x.dim(); ++d) {
    sums_one = sums_one || (x.size(d) == 1 && !IsIn(labels.result, labels.x[d]));
  }
  if (!sums_one && of.are_swapped(labels.result)) std::swap(of.one, of.other);
  return of.all();
}

Dimensions PlacesIn(const std::string& labels, const std::string& of) {
  Dimensions places;
  for (char label : of) places.push_back(PlaceIn(labels, label));
  return places;
}

// Of operands with the same labels: a sum for each place of the result, which is a reduction of
// what lies there rather than so many products of a row and a column.
Value SumOfProducts(Builder& b, Value x, Value y, const Labels& labels) {
  Value aligned = b.Transpose(y, PlacesIn(labels.y, labels.x));
  Value products = b.Multiply(ToAccumulation(b, x), ToAccumulation(b, aligned));
  std::string rest;
  for (char label : labels.x) {
    if (IsIn(labels.result, label)) rest += label;
  }
  Value sums =
      b.Convert(Sum(b, products, PlacesIn(labels.x, SummedLabels(labels))), x->element_type());
  return b.Transpose(sums, PlacesIn(rest, labels.result));
}

// x's dimensions in this order, those of each group as one.
Value AsMatrices(Builder& b, Value x, const std::string& labels,
                 const std::array<std::string, 3>& groups) {
  Value ordered = b.Transpose(x, PlacesIn(labels, groups[0] + groups[1] + groups[2]));
  Dimensions sizes;
  for (const std::string& group : groups) {
    int64_t size = 1;
    for (char label : group) size *= x->shape().dimension(PlaceIn(labels, label));
    sizes.push_back(size);
  }
  return b.Reshape(ordered, sizes);
}

// As matrices, which a program computes quicker than products with dimensions in between.
Value Einsum(Builder& b, Value x, Value y, std::string equation) {
  Labels labels = *LabelsOf(equation);
  if (LabelsOfResult(labels).are_swapped(labels.result)) {
    std::swap(x, y);
    std::swap(labels.x, labels.y);
  }
  const auto [both, one, other] = LabelsOfResult(labels);
  if (!both.empty() && one.empty() && other.empty()) return SumOfProducts(b, x, y, labels);
  const std::string summed = SummedLabels(labels);
  Value product = BatchMatMul(b, AsMatrices(b, x, labels.x, {both, one, summed}),
                              AsMatrices(b, y, labels.y, {both, summed, other}));
  Dimensions sizes;
  for (char label : both + one) sizes.push_back(x->shape().dimension(PlaceIn(labels.x, label)));
  for (char label : other) sizes.push_back(y->shape().dimension(PlaceIn(labels.y, label)));
  return b.Transpose(b.Reshape(product, sizes), PlacesIn(both + one + other, labels.result));
}

// The result as it lies in memory, and a view of it, as in eager.
at::Tensor RecordEinsum(const Labels& labels, const at::Tensor& x, const at::Tensor& y) {
  const std::string order = LabelsInMemory(labels, x, y);
  at::Tensor result = Record<&Einsum>(x, y, labels.x + "," + labels.y + "->" + order);
  if (order == labels.result) return result;
  at::AutoDispatchBelowADInplaceOrView guard;  // to autograd it is no view
  return result.permute(PlacesIn(order, labels.result));
}

// The orders in which the operands' gradients lie in memory in eager: as those of the matrices that
// torch multiplies, the left one of rows and the right one of columns.
struct GradientOrders {
  std::string x, y;
};

GradientOrders OrdersOfGradients(const Labels& labels) {
  const ResultLabels of = LabelsOfResult(labels);
  std::string summed = SummedLabels(labels);
  std::ranges::sort(summed);
  if (of.are_swapped(labels.result))
    return {of.both + summed + of.one, of.both + of.other + summed};
  return {of.both + of.one + summed, of.both + summed + of.other};
}

class EinsumFunction : public torch::autograd::Function<EinsumFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using List = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, std::string equation, const at::Tensor& x,
                            const at::Tensor& y) {
    context->save_for_backward(
        {y.requires_grad() ? x : at::Tensor(), x.requires_grad() ? y : at::Tensor()});
    at::Tensor result = RecordEinsum(*LabelsOf(equation), x, y);
    context->saved_data["equation"] = std::move(equation);
    return result;
  }

  static List backward(Context* context, const List& gradients) {
    const Labels labels = *LabelsOf(context->saved_data["equation"].toStringRef());
    const GradientOrders orders = OrdersOfGradients(labels);
    const List saved = context->get_saved_variables();
    const auto product = [&](const std::string& other, const at::Tensor& factor,
                             const std::string& order, const std::string& wanted) {
      const at::Tensor result =
          Compose(labels.result + "," + other + "->" + order, gradients[0], factor.conj())
              .contiguous();
      return order == wanted ? result : result.permute(PlacesIn(order, wanted));
    };
    List results(3);  // the equation has none
    if (context->needs_input_grad(0)) {
      results[1] = product(labels.y, saved[1], orders.x, labels.x);
    }
    if (context->needs_input_grad(1)) {
      results[2] = product(labels.x, saved[0], orders.y, labels.y);
    }
    return results;
  }

 private:
  // Gradients of many at a time are no plain tensors, and have rules for what torch composes alone.
  static at::Tensor Compose(const std::string& equation, const at::Tensor& gradient,
                            const at::Tensor& factor) {
    return IsPlainTensor(gradient) && IsPlainTensor(factor)
               ? at::einsum(equation, {gradient, factor})
               : at::native::einsum(equation, {gradient, factor}, std::nullopt);
  }
};

bool NeedsDerivative(const at::Tensor& x, const at::Tensor& y) {
  return at::GradMode::is_enabled() && (x.requires_grad() || y.requires_grad());
}

template <bool differentiable>
at::Tensor EinsumOf(std::string_view equation, at::TensorList operands,
                    at::OptionalIntArrayRef path) {
  const auto labels = operands.size() == 2 && !path ? LabelsOf(equation) : std::optional<Labels>();
  if (!labels || !IsPlainEinsum(*labels, operands[0], operands[1])) {
    return at::native::einsum(equation, operands, path);
  }
  if (!differentiable || !NeedsDerivative(operands[0], operands[1])) {
    return RecordEinsum(*labels, operands[0], operands[1]);
  }
  if (!MayDifferentiateHere()) return at::native::einsum(equation, operands, path);
  return EinsumFunction::apply(std::string(equation), operands[0], operands[1]);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Einsum>(+[](const at::Tensor& x, const at::Tensor& y, std::string_view equation) {
    return at::einsum(equation, {x, y});
  });
  m.impl("einsum", &EinsumOf<false>);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("einsum", &EinsumOf<true>); }

}  // namespace torch_xla
