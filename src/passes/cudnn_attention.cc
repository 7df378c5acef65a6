// The calls' names, operands, results and configuration are XLA's (`CudnnfMHABackendConfig` of
// xla/service/gpu/backend_configs.proto, and what JAX's dot_product_attention hands over).
#include "passes/cudnn_attention.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hlo/attention_composite.h"
#include "hlo/builder.h"
#include "passes/cudnn_mask.h"
#include "passes/for_each_computation.h"

namespace passes {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Shape;
using hlo::Value;

constexpr int64_t kFewest = 64;  // queries and keys: below, XLA's own kernels are as good
constexpr int64_t kWidest = 128, kWidthStep = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Batch, heads and rows change places: XLA finds the transpositions that models make around their
// attention, and none is left.
const Dimensions kHeadsInside = {0, 2, 1, 3};

// A composite's operands by their names.
struct Attention {
  explicit Attention(const Instruction& composite)
      : is_backward(composite.as<hlo::CompositeAttributes>().name == hlo::kAttentionBackward),
        attributes(hlo::AttentionAttributesOf(composite)) {
    size_t i = 0;
    if (is_backward) gradient = composite.operand(i++);
    for (Value* operand : {&query, &key, &value}) *operand = composite.operand(i++);
    if (is_backward) {
      for (Value* operand : {&result, &log_sum}) *operand = composite.operand(i++);
    }
    if (i < composite.operand_count()) mask = composite.operand(i);
  }
  int64_t batch() const { return query->shape().dimension(0); }
  int64_t heads() const { return query->shape().dimension(1); }
  int64_t queries() const { return query->shape().dimension(2); }
  int64_t keys() const { return key->shape().dimension(2); }
  int64_t width() const { return query->shape().dimension(3); }
  ElementType type() const { return query->element_type(); }

  bool is_backward;
  hlo::AttentionAttributes attributes;
  Value query, key, value, mask = nullptr;
  Value gradient = nullptr, result = nullptr, log_sum = nullptr;  // of the backward pass
};

bool IsServed(const Attention& a) {
  if (a.type() != ElementType::kF16 && a.type() != ElementType::kBF16) return false;
  if (a.mask != nullptr && a.mask->element_type() != a.type()) return false;
  if (a.width() != a.value->shape().dimension(3)) return false;
  if (a.width() % kWidthStep != 0 || a.width() > kWidest) return false;
  if (a.queries() < kFewest || a.keys() < kFewest || a.query->shape().num_elements() == 0) {
    return false;
  }
  return std::isfinite(a.attributes.scale) && (!a.attributes.is_causal || a.queries() == a.keys());
}

// Of a number of rows, what kernels may ask of it: by which power of two it can be divided.
std::string Divisor(int64_t rows) { return std::to_string(std::gcd(rows, kFewest)); }

// All that cuDNN may refuse an attention for but how large it is.
std::string KindOf(const Attention& a) {
  std::string kind = a.is_backward ? "backward" : "forward";
  kind += a.type() == ElementType::kBF16 ? " bf16" : " f16";
  kind += " of width " + std::to_string(a.width()) + ", " + Divisor(a.queries()) + " and " +
          Divisor(a.keys()) + " rows";
  if (a.heads() != a.key->shape().dimension(1)) kind += ", grouped";
  if (a.attributes.is_causal) kind += ", causal";
  if (a.mask != nullptr) kind += ", masked";
  return kind;
}

// --- The configuration, in protocol buffers' JSON

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string List(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t n : numbers) text += (text.empty() ? "" : ",") + Quoted(std::to_string(n));
  return "[" + text + "]";
}

std::string Number(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

struct Product {
  const char* name;
  int64_t lhs_contracting, rhs_contracting;
  std::vector<int64_t> lhs_batch, rhs_batch;
};

std::string ToJson(const Product& p) {
  return Quoted(p.name + std::string("_dot_dimension_numbers")) +
         ":{\"lhs_contracting_dimensions\":" + List({p.lhs_contracting}) +
         ",\"rhs_contracting_dimensions\":" + List({p.rhs_contracting}) +
         ",\"lhs_batch_dimensions\":" + List(p.lhs_batch) +
         ",\"rhs_batch_dimensions\":" + List(p.rhs_batch) + "}";
}

// Scores are [batch, heads, queries, keys], all else [batch, rows, heads, width].
std::vector<Product> Products(bool is_backward) {
  const std::vector<int64_t> of_scores = {0, 1}, of_rows = {0, 2};
  if (!is_backward) {
    return {{"bmm1", 3, 3, of_rows, of_rows}, {"bmm2", 3, 1, of_scores, of_rows}};
  }
  return {{"bmm1_grad_gemm1", 2, 1, of_scores, of_rows},
          {"bmm1_grad_gemm2", 3, 1, of_scores, of_rows},
          {"bmm2_grad_gemm1", 2, 1, of_scores, of_rows},
          {"bmm2_grad_gemm2", 3, 3, of_rows, of_rows}};
}

std::string Configuration(const Attention& a, const Dimensions& scores) {
  std::string fields =
      R"("algorithm":{"algo_id":"0","math_type":"TENSOR_OP_MATH",)"
      R"("tuning_knobs":{"17":"1","24":"0"},"is_cudnn_frontend":true,"workspace_size":"0"},)"
      R"("fmha_scale":)" +
      Number(a.attributes.scale) + R"(,"intermediate_tensor_shape":{"element_type":)" +
      (a.type() == ElementType::kBF16 ? R"("BF16")" : R"("F16")") + R"(,"dimensions":)" +
      List({scores.begin(), scores.end()}) +
      R"(,"tuple_shapes":[],"layout":{"dim_level_types":[],"dim_unique":[],"dim_ordered":[],)"
      R"("minor_to_major":["3","2","1","0"],"tiles":[],"element_size_in_bits":"0",)"
      R"("memory_space":"0","index_primitive_type":"PRIMITIVE_TYPE_INVALID",)"
      R"("pointer_primitive_type":"PRIMITIVE_TYPE_INVALID",)"
      R"("dynamic_shape_metadata_prefix_bytes":"0"},)"
      R"("is_dynamic_dimension":[false,false,false,false]},)"
      R"("is_flash_attention":true,"mask_type":)" +
      (a.attributes.is_causal ? R"("CAUSAL")" : R"("NO_MASK")");
  for (const Product& product : Products(a.is_backward)) fields += "," + ToJson(product);
  fields += R"(,"dropout_rate":0.0,"seed":42,"sliding_window_length":0,"max_seg_per_batch":1,)"
            R"("is_paged_attention":false)";
  return R"({"operation_queue_id":"0","cudnn_fmha_backend_config":{)" + fields + "}}";
}

// --- The calls

Dimensions RowMajor(int64_t rank) {
  Dimensions layout;
  for (int64_t d = rank - 1; d >= 0; --d) layout.push_back(d);
  return layout;
}

// A call whose first `rows` results have heads outside in their shape and inside in memory; behind
// the others comes the workspace, whose size XLA finds out.
Value Call(Builder& b, const char* target, const std::vector<Value>& operands,
           std::vector<Shape> results, size_t rows, std::string configuration) {
  hlo::CustomCallAttributes attributes;
  attributes.target = target;
  attributes.api_version = 2;
  attributes.backend_config = std::move(configuration);
  results.emplace_back(ElementType::kU8, Dimensions{0});
  for (const Value operand : operands) {
    attributes.operand_layouts.push_back(RowMajor(operand->shape().rank()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    attributes.result_layouts.push_back(i < rows ? Dimensions{3, 1, 2, 0}
                                                 : RowMajor(results[i].rank()));
  }
  return b.Create(hlo::Opcode::kCustomCall, operands, std::move(attributes), {},
                  Shape::Tuple(std::move(results)));
}

Value PadTo(Builder& b, Value x, int64_t dimension, int64_t size, double value) {
  const int64_t own = x->shape().dimension(dimension);
  if (own == size) return x;
  const Dimensions none(x->shape().rank(), 0);
  Dimensions high = none;
  high[dimension] = size - own;
  return b.Pad(x, b.ConstantScalar(x->element_type(), value), none, high, none);
}

Value CutTo(Builder& b, Value x, int64_t dimension, int64_t size) {
  return x->shape().dimension(dimension) == size ? x : b.SliceInDim(x, dimension, 0, size);
}

// Kernels that add a mask read pairs of its elements. An odd number of rows is continued to where
// each row of the mask begins as kernels like it best.
int64_t RowsForMask(int64_t rows) { return rows % 2 == 0 ? rows : (rows + 7) / 8 * 8; }

// One attention as a call: the composite's results from the call's.
class CudnnCall {
 public:
  CudnnCall(Builder& b, const Attention& a)
      : b_(b),
        a_(a),
        queries_(a.mask != nullptr ? RowsForMask(a.queries()) : a.queries()),
        keys_(a.mask != nullptr ? RowsForMask(a.keys()) : a.keys()) {
    if (a.mask == nullptr) return;
    mask_.emplace(b, a.mask, Dimensions{a.batch(), a.heads(), a.queries(), a.keys()},
                  a.attributes.is_causal);
  }

  std::vector<Value> Results() { return a_.is_backward ? Backward() : Forward(); }

 private:
  std::vector<Value> Forward() {
    std::vector<Value> operands = {Rows(a_.query, queries_), Rows(a_.key, keys_),
                                   Rows(a_.value, keys_)};
    if (mask_) operands.push_back(PadBias(mask_->Bias()));
    const Value call = Call(
        b_, mask_ ? "__cudnn$fmhaScaleBiasSoftmax" : "__cudnn$fmhaSoftmax", operands,
        {Padded(a_.query, queries_), Shape(ElementType::kF32, {a_.batch(), a_.heads(), queries_})},
        1, Configuration(a_, Scores()));
    const Value result = CutTo(b_, b_.GetTupleElement(call, 0), 2, a_.queries());
    const Value log_sum = CutTo(b_, b_.GetTupleElement(call, 1), 2, a_.queries());
    if (!mask_) return {result, log_sum};
    const Value is_hidden = mask_->IsHidden();
    return {SelectRows(is_hidden, b_.Zeros(result->shape()), result),
            b_.Select(is_hidden, b_.Full(log_sum->shape(), -kInfinity), log_sum)};
  }

  std::vector<Value> Backward() {
    std::vector<Value> operands = {Rows(a_.query, queries_), Rows(a_.key, keys_),
                                   Rows(a_.value, keys_), PadTo(b_, LogSum(), 2, queries_, 0),
                                   Rows(Gradient(), queries_)};
    if (mask_) operands.push_back(PadBias(mask_->RaisedBias()));
    operands.push_back(Rows(a_.result, queries_));
    const Value call =
        Call(b_, mask_ ? "__cudnn$fmhaScaleBiasSoftmaxBackward" : "__cudnn$fmhaSoftmaxBackward",
             operands, {Padded(a_.query, queries_), Padded(a_.key, keys_), Padded(a_.value, keys_)},
             3, Configuration(a_, Scores()));
    return {CutTo(b_, b_.GetTupleElement(call, 0), 2, a_.queries()),
            CutTo(b_, b_.GetTupleElement(call, 1), 2, a_.keys()),
            CutTo(b_, b_.GetTupleElement(call, 2), 2, a_.keys())};
  }

  // What the kernel makes the weights of anew: exp(score - log_sum), both raised. 0 makes nothing
  // of a hidden row, whose own makes no number; a flat row gets ones.
  Value LogSum() {
    if (!mask_) return a_.log_sum;
    Value log_sum = a_.log_sum;
    const auto like = [&](double value) { return b_.Full(log_sum->shape(), value); };
    log_sum = b_.Select(b_.Eq(log_sum, like(-kInfinity)), like(0), log_sum);
    if (mask_->has_flat_rows()) {
      log_sum = b_.Select(mask_->IsFlat(), like(mask_->lowest()), log_sum);
    }
    return b_.Add(log_sum, mask_->Raise());
  }

  // A flat row's weights are not 1 but a share, and all gradients are linear in weight times
  // gradient.
  Value Gradient() {
    if (!mask_ || !mask_->has_flat_rows()) return a_.gradient;
    const Value count = mask_->CountLowest(), one = b_.Full(count->shape(), 1.0);
    const Value share = b_.Select(mask_->IsFlat(), b_.Divide(one, count), one);
    const Value scaled =
        b_.Multiply(b_.Convert(a_.gradient, ElementType::kF32), AlongRows(share, a_.gradient));
    return b_.Convert(scaled, a_.type());
  }

  Value PadBias(Value bias) {
    bias = PadTo(b_, bias, 2, queries_, mask_->hidden());
    return PadTo(b_, bias, 3, keys_, mask_->hidden());
  }
  Value Rows(Value x, int64_t rows) { return b_.Transpose(PadTo(b_, x, 2, rows, 0), kHeadsInside); }
  Dimensions Scores() const { return {a_.batch(), a_.heads(), queries_, keys_}; }
  static Shape Padded(Value like, int64_t rows) {
    Dimensions dimensions = like->dimensions();
    dimensions[2] = rows;
    return like->shape().WithDimensions(std::move(dimensions));
  }
  Value AlongRows(Value x, Value like) {
    return b_.BroadcastInDim(x, like->dimensions(), {0, 1, 2});
  }
  Value SelectRows(Value is_so, Value x, Value y) { return b_.Select(AlongRows(is_so, x), x, y); }

  Builder& b_;
  const Attention& a_;
  int64_t queries_, keys_;  // as the kernel gets them
  std::optional<CudnnMask> mask_;
};

bool Replace(Instruction* composite) {
  Builder b(composite->parent());
  b.set_metadata(composite->shared_metadata());
  const std::vector<Value> results = CudnnCall(b, Attention(*composite)).Results();
  const std::vector<Instruction*> picks = composite->users();
  for (Instruction* pick : picks) {
    pick->ReplaceAllUsesWith(results[static_cast<size_t>(pick->tuple_index())]);
  }
  return true;
}

}  // namespace

bool UseCudnnAttention(hlo::Module& module,
                       const std::function<bool(const std::string& kind)>& is_wanted) {
  const auto is_found = [&](const Instruction& i) {
    if (!hlo::IsAttention(i)) return false;
    const Attention attention(i);
    return IsServed(attention) && (!is_wanted || is_wanted(KindOf(attention)));
  };
  const auto use = [&](hlo::Computation& computation) {
    return RewriteEach(computation, is_found, Replace);
  };
  if (!ForEachComputation(module, use)) return false;
  module.RemoveUnreachableComputations();
  return true;
}

}  // namespace passes
