// Scaled dot-product attention as one operation, forward and backward. torch composes it of some
// twenty operators where a device has none of its own: recording them, and looking their graph up,
// costs more than a small attention takes.
//
// It is torch's fused operator for CPUs, under the conditions of eager's choice, so that the same
// programs run fused and what has no derivative there (a second one) has none here; beside them,
// heads that share keys and values. What it does not serve is composed by torch.
//
// In HLO it is a composite (hlo/attention_composite.h): engines may have a kernel of their own.
#include <ATen/NativeFunctions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "aten/matmul.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "hlo/attention_composite.h"

namespace torch_xla {
namespace {

// Of each query (dimension 2): keys up to its own position.
Value CausalMask(Builder& b, const Dimensions& scores) {
  return b.Ge(Iota(b, scores, 2, ElementType::kS32), Iota(b, scores, 3, ElementType::kS32));
}

// --- The decompositions

// Of 16-bit floats, whose products are exact in the sums' type: no operand is widened.
Value SummedProduct(Builder& b, Value x, bool transpose_x, Value y, bool transpose_y) {
  return BatchMatMul(b, x, transpose_x, y, transpose_y, AccumulationType(x->element_type()));
}

// Heads of keys or values as often as there are queries' heads for each.
Value RepeatHeads(Builder& b, Value x, int64_t heads) {
  Dimensions dimensions = x->dimensions();
  if (dimensions[1] == heads) return x;
  Dimensions repeated = dimensions;
  repeated.insert(repeated.begin() + 2, heads / dimensions[1]);
  dimensions[1] = heads;
  return b.Reshape(b.BroadcastInDim(x, repeated, {0, 1, 3, 4}), dimensions);
}

// The transpose of RepeatHeads.
Value SumHeads(Builder& b, Value x, int64_t heads) {
  Dimensions dimensions = x->dimensions();
  if (dimensions[1] == heads) return x;
  dimensions.insert(dimensions.begin() + 2, dimensions[1] / heads);
  dimensions[1] = heads;
  return Sum(b, b.Reshape(x, dimensions), {2});
}

// What the backward pass computes anew is the same instructions, which a program that has both
// computes once.
struct Probabilities {
  Value weights;  // [batch, heads, queries, keys]; zeros in a row that is wholly masked
  Value log_sum;  // [batch, heads, queries]: of the scores' exponentials

  // In the sums' type.
  Probabilities(Builder& b, Value query, Value key, OptionalValue mask,
                const hlo::AttentionAttributes& attributes) {
    Value scores = SummedProduct(b, query, false, key, true);
    const Dimensions full = scores->dimensions();
    scores = b.Multiply(scores, Like(b, scores, attributes.scale));
    if (mask) scores = b.Add(scores, b.BroadcastTo(ToAccumulation(b, *mask), full));
    if (attributes.is_causal) {
      scores = b.Select(CausalMask(b, full), scores, Like(b, scores, -kInfinity));
    }
    const Dimensions row = {3};
    Value largest = Max(b, scores, row);
    Value exponential = b.Exp(b.Subtract(scores, BroadcastReduced(b, largest, row, full)));
    Value sum = Sum(b, exponential, row);
    Value is_masked = b.Eq(largest, Like(b, largest, -kInfinity));
    weights = b.Select(BroadcastReduced(b, is_masked, row, full), Like(b, scores, 0),
                       b.Divide(exponential, BroadcastReduced(b, sum, row, full)));
    log_sum = b.Select(is_masked, largest, b.Add(largest, b.Log(sum)));
  }
};

OptionalValue Optional(const Values& operands, size_t index) {
  return index < operands.size() ? OptionalValue(operands[index]) : std::nullopt;
}

Values DecomposeAttention(Builder& b, const Values& operands,
                          const hlo::AttentionAttributes& attributes) {
  const ElementType type = operands[0]->element_type();
  Value query = operands[0];
  const int64_t heads = query->shape().dimension(1);
  Value key = RepeatHeads(b, operands[1], heads), value = RepeatHeads(b, operands[2], heads);
  const Probabilities probabilities(b, query, key, Optional(operands, 3), attributes);
  Value weights = b.Convert(probabilities.weights, type);
  return {b.Convert(SummedProduct(b, weights, false, value, false), type), probabilities.log_sum};
}

// With P the weights: dV = P^T dO, dS = P (dP - rowsum(dO O)) where dP = dO V^T (Dao et al.,
// FlashAttention).
Values DecomposeBackward(Builder& b, const Values& operands,
                         const hlo::AttentionAttributes& attributes) {
  const ElementType type = operands[1]->element_type();
  Value gradient = operands[0], query = operands[1];
  const int64_t heads = query->shape().dimension(1), key_heads = operands[2]->shape().dimension(1);
  Value key = RepeatHeads(b, operands[2], heads), value = RepeatHeads(b, operands[3], heads);
  Value weights = Probabilities(b, query, key, Optional(operands, 6), attributes).weights;
  const Dimensions full = weights->dimensions(), row = {3};
  Value of_value = SummedProduct(b, b.Convert(weights, type), true, gradient, false);
  Value of_weights = SummedProduct(b, gradient, false, value, true);
  Value drop = Sum(b, b.Multiply(ToAccumulation(b, gradient), ToAccumulation(b, operands[4])), row);
  Value of_scores =
      b.Multiply(weights, b.Subtract(of_weights, BroadcastReduced(b, drop, row, full)));
  of_scores = b.Convert(b.Multiply(of_scores, Like(b, of_scores, attributes.scale)), type);
  Value of_key = SummedProduct(b, of_scores, true, query, false);
  return {b.Convert(SummedProduct(b, of_scores, false, key, false), type),
          b.Convert(SumHeads(b, of_key, key_heads), type),
          b.Convert(SumHeads(b, of_value, key_heads), type)};
}

// --- What is recorded

using Decomposition = Values (*)(Builder& b, const Values& operands,
                                 const hlo::AttentionAttributes& attributes);

Values Composite(Builder& b, const char* name, Values operands, OptionalValue mask,
                 const hlo::AttentionAttributes& attributes, Decomposition decompose) {
  if (mask) operands.push_back(*mask);
  return hlo::Attention(b, name, operands, attributes, [&](Builder& body, const Values& inner) {
    return decompose(body, inner, attributes);
  });
}

// The result's dimensions are in `order`, the logarithms' as eager's lie: [batch, queries, heads].
std::array<Value, 2> ScaledDotProductAttention(Builder& b, Value query, Value key, Value value,
                                               OptionalValue mask, bool is_causal, double scale,
                                               Dimensions order) {
  const Values results = Composite(b, hlo::kAttention, {query, key, value}, mask,
                                   {scale, is_causal}, &DecomposeAttention);
  return {b.Transpose(results[0], order), b.Transpose(results[1], {0, 2, 1})};
}

// `result` and `log_sum`: [batch, heads, queries, …]. The gradients of query, key and value.
std::array<Value, 3> ScaledDotProductAttentionBackward(Builder& b, Value gradient, Value query,
                                                       Value key, Value value, Value result,
                                                       Value log_sum, OptionalValue mask,
                                                       bool is_causal, double scale) {
  const Values results =
      Composite(b, hlo::kAttentionBackward, {gradient, query, key, value, result, log_sum}, mask,
                {scale, is_causal}, &DecomposeBackward);
  return {results[0], results[1], results[2]};
}

// --- As torch's kernels for the CPU compute it

at::Tensor WithDenseRows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

// Those kernels know no heads that share keys and values.
at::Tensor WithHeads(const at::Tensor& x, int64_t heads) {
  if (x.size(1) == heads) return WithDenseRows(x);
  return x.repeat_interleave(heads / x.size(1), 1);
}

at::Tensor WithoutHeads(const at::Tensor& gradient, int64_t heads) {
  if (gradient.size(1) == heads) return gradient;
  return gradient.unflatten(1, {heads, -1}).sum(2);
}

// They multiply what a causal mask leaves out, minus infinity, by the scale. Where that has to be
// positive, the queries are scaled before.
bool ScalesBefore(bool is_causal, double scale) { return is_causal && scale <= 0; }

std::tuple<at::Tensor, at::Tensor> RunAttention(const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value,
                                                const std::optional<at::Tensor>& mask,
                                                bool is_causal, double scale,
                                                at::IntArrayRef order) {
  if (ScalesBefore(is_causal, scale)) {
    return RunAttention(query * scale, key, value, mask, is_causal, 1, order);
  }
  auto [result, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      WithDenseRows(query), WithHeads(key, query.size(1)), WithHeads(value, query.size(1)), 0.0,
      is_causal, mask, scale);
  return {result.permute(order), log_sum.transpose(1, 2)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> RunAttentionBackward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& result, const at::Tensor& log_sum,
    const std::optional<at::Tensor>& mask, bool is_causal, double scale) {
  if (ScalesBefore(is_causal, scale)) {
    auto [of_scaled, of_key, of_value] = RunAttentionBackward(gradient, query * scale, key, value,
                                                              result, log_sum, mask, is_causal, 1);
    return {of_scaled * scale, of_key, of_value};
  }
  const int64_t heads = query.size(1), key_heads = key.size(1);
  auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      WithDenseRows(gradient), WithDenseRows(query), WithHeads(key, heads), WithHeads(value, heads),
      WithDenseRows(result), log_sum, 0.0, is_causal, mask, scale);
  return {of_query, WithoutHeads(of_key, key_heads), WithoutHeads(of_value, key_heads)};
}

// --- The operators

using DimensionOrder = std::array<int64_t, 4>;

// Eager's result lies as the query does: its dimensions from the farthest apart to the nearest.
DimensionOrder OrderOf(const at::Tensor& query) {
  DimensionOrder order = {0, 1, 2, 3};
  std::ranges::stable_sort(order, std::greater(), [&](int64_t d) { return query.stride(d); });
  return order;
}

DimensionOrder InverseOf(const DimensionOrder& order) {
  DimensionOrder inverse;
  for (int64_t i = 0; i < 4; ++i) inverse[order[i]] = i;
  return inverse;
}

double ScaleOf(const at::Tensor& query, std::optional<double> scale) {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1)));
}

void RequireNoDropout(double probability) {
  TORCH_CHECK(probability == 0,
              "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
}

std::tuple<at::Tensor, at::Tensor> FlashAttention(const at::Tensor& query, const at::Tensor& key,
                                                  const at::Tensor& value, double dropout,
                                                  bool is_causal,
                                                  const std::optional<at::Tensor>& mask,
                                                  std::optional<double> scale) {
  RequireNoDropout(dropout);
  const DimensionOrder order = OrderOf(query);
  auto [result, log_sum] = Record<&ScaledDotProductAttention>(
      query, key, value, mask, is_causal, ScaleOf(query, scale), at::IntArrayRef(order));
  return {result.permute(InverseOf(order)), log_sum.transpose(1, 2)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> FlashAttentionBackward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& result, const at::Tensor& log_sum, double dropout,
    bool is_causal, const std::optional<at::Tensor>& mask, std::optional<double> scale) {
  RequireNoDropout(dropout);
  return Record<&ScaledDotProductAttentionBackward>(gradient, query, key, value, result, log_sum,
                                                    mask, is_causal, ScaleOf(query, scale));
}

// --- The choice

// Whether a mask's last dimensions stretch over [batch, heads, queries, keys].
bool MaskFits(const at::Tensor& mask, at::IntArrayRef scores) {
  if (mask.dim() != 2 && mask.dim() != 4) return false;
  const at::IntArrayRef wanted = scores.slice(4 - mask.dim());
  for (int64_t i = 0; i < mask.dim(); ++i) {
    if (mask.size(i) != 1 && mask.size(i) != wanted[i]) return false;
  }
  return true;
}

// Queries may have more heads than keys and values, if groups of them share those.
bool ShapesFit(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               bool enable_gqa) {
  if (query.dim() != 4 || key.sizes() != value.sizes() || key.dim() != 4) return false;
  if (query.numel() == 0 || key.numel() == 0) return false;
  const bool heads_fit =
      enable_gqa ? query.size(1) % key.size(1) == 0 : query.size(1) == key.size(1);
  return heads_fit && query.size(0) == key.size(0) && query.size(3) == key.size(3);
}

bool IsFused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
             const std::optional<at::Tensor>& mask, double dropout, bool enable_gqa) {
  const bool is_plain = IsPlainTensor(query) && IsPlainTensor(key) && IsPlainTensor(value) &&
                        dropout == 0 && at::isFloatingType(query.scalar_type()) &&
                        query.scalar_type() == key.scalar_type() &&
                        query.scalar_type() == value.scalar_type();
  if (!is_plain || !at::globalContext().userEnabledFlashSDP()) return false;
  if (!ShapesFit(query, key, value, enable_gqa)) return false;
  if (!mask) return true;
  const std::array<int64_t, 4> scores = {query.size(0), query.size(1), query.size(2), key.size(2)};
  const bool has_type =
      mask->scalar_type() == at::kBool || mask->scalar_type() == query.scalar_type();
  return has_type && IsPlainTensor(*mask) && !mask->requires_grad() && MaskFits(*mask, scores);
}

// As torch reads a mask of truth values: where it is true, the key takes part.
at::Tensor AdditiveMask(const at::Tensor& mask, const at::Tensor& query) {
  if (mask.scalar_type() != at::kBool) return mask;
  const auto number = [&](double value) { return at::full({}, value, query.options()); };
  return at::where(mask, number(0), number(-kInfinity));
}

at::Tensor ComposedOrFusedAttention(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const std::optional<at::Tensor>& mask,
                                    double dropout, bool is_causal, std::optional<double> scale,
                                    bool enable_gqa) {
  if (!IsFused(query, key, value, mask, dropout, enable_gqa)) {
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, is_causal,
                                                    scale, enable_gqa);
  }
  std::optional<at::Tensor> added;
  if (mask) added = AdditiveMask(*mask, query);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0,
                                                                     is_causal, added, scale));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_scaled_dot_product_flash_attention_for_cpu", &FlashAttention);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", &FlashAttentionBackward);
  RunBy<&ScaledDotProductAttention>(&RunAttention);
  RunBy<&ScaledDotProductAttentionBackward>(&RunAttentionBackward);
  m.impl("scaled_dot_product_attention", &ComposedOrFusedAttention);
}

// Above autograd, where the choice is made; below, where it is off.
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  m.impl("scaled_dot_product_attention", &ComposedOrFusedAttention);
}

}  // namespace torch_xla
