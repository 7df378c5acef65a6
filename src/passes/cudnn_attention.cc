// The calls' names, operands, results and configuration are XLA's (`CudnnfMHABackendConfig` of
// xla/service/gpu/backend_configs.proto, and what JAX's dot_product_attention hands over).
#include "passes/cudnn_attention.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "hlo/attention_composite.h"
#include "hlo/builder.h"
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

// Batch, heads and rows change places: XLA finds the transpositions that models make around their
// attention, and none is left.
const Dimensions kHeadsInside = {0, 2, 1, 3};

bool IsServed(const Instruction& attention) {
  const bool is_backward = attention.as<hlo::CompositeAttributes>().name == hlo::kAttentionBackward;
  const size_t first = is_backward ? 1 : 0, without_mask = is_backward ? 6 : 3;
  const Shape& query = attention.operand(first)->shape();
  const Shape& key = attention.operand(first + 1)->shape();
  const Shape& value = attention.operand(first + 2)->shape();
  const ElementType type = query.element_type();
  if (type != ElementType::kF16 && type != ElementType::kBF16) return false;
  if (attention.operand_count() > without_mask) return false;
  const int64_t width = query.dimension(3), queries = query.dimension(2), keys = key.dimension(2);
  if (width != value.dimension(3) || width % kWidthStep != 0 || width > kWidest) return false;
  if (queries < kFewest || keys < kFewest || query.num_elements() == 0) return false;
  const hlo::AttentionAttributes attributes = hlo::AttentionAttributesOf(attention);
  return std::isfinite(attributes.scale) && (!attributes.is_causal || queries == keys);
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

std::string Configuration(const hlo::AttentionAttributes& attributes, const Shape& query,
                          const Shape& key, bool is_backward) {
  const Dimensions scores = {query.dimension(0), query.dimension(1), query.dimension(2),
                             key.dimension(2)};
  std::string fields =
      R"("algorithm":{"algo_id":"0","math_type":"TENSOR_OP_MATH",)"
      R"("tuning_knobs":{"17":"1","24":"0"},"is_cudnn_frontend":true,"workspace_size":"0"},)"
      R"("fmha_scale":)" +
      Number(attributes.scale) + R"(,"intermediate_tensor_shape":{"element_type":)" +
      (query.element_type() == ElementType::kBF16 ? R"("BF16")" : R"("F16")") +
      R"(,"dimensions":)" + List({scores.begin(), scores.end()}) +
      R"(,"tuple_shapes":[],"layout":{"dim_level_types":[],"dim_unique":[],"dim_ordered":[],)"
      R"("minor_to_major":["3","2","1","0"],"tiles":[],"element_size_in_bits":"0",)"
      R"("memory_space":"0","index_primitive_type":"PRIMITIVE_TYPE_INVALID",)"
      R"("pointer_primitive_type":"PRIMITIVE_TYPE_INVALID",)"
      R"("dynamic_shape_metadata_prefix_bytes":"0"},)"
      R"("is_dynamic_dimension":[false,false,false,false]},)"
      R"("is_flash_attention":true,"mask_type":)" +
      (attributes.is_causal ? R"("CAUSAL")" : R"("NO_MASK")");
  for (const Product& product : Products(is_backward)) fields += "," + ToJson(product);
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

Value Forward(Builder& b, const Instruction& attention) {
  const auto rows = [&](size_t i) { return b.Transpose(attention.operand(i), kHeadsInside); };
  const std::vector<Shape>& results = attention.shape().tuple_shapes();
  return Call(b, "__cudnn$fmhaSoftmax", {rows(0), rows(1), rows(2)}, {results[0], results[1]}, 1,
              Configuration(hlo::AttentionAttributesOf(attention), attention.operand(0)->shape(),
                            attention.operand(1)->shape(), false));
}

Value Backward(Builder& b, const Instruction& attention) {
  const auto rows = [&](size_t i) { return b.Transpose(attention.operand(i), kHeadsInside); };
  return Call(b, "__cudnn$fmhaSoftmaxBackward",
              {rows(1), rows(2), rows(3), attention.operand(5), rows(0), rows(4)},
              attention.shape().tuple_shapes(), 3,
              Configuration(hlo::AttentionAttributesOf(attention), attention.operand(1)->shape(),
                            attention.operand(2)->shape(), true));
}

bool Replace(Instruction* attention) {
  Builder b(attention->parent());
  b.set_metadata(attention->shared_metadata());
  const bool is_backward =
      attention->as<hlo::CompositeAttributes>().name == hlo::kAttentionBackward;
  const Value call = is_backward ? Backward(b, *attention) : Forward(b, *attention);
  const std::vector<Instruction*> picks = attention->users();
  for (Instruction* pick : picks) {
    pick->ReplaceAllUsesWith(b.GetTupleElement(call, pick->tuple_index()));
  }
  return true;
}

bool UseInComputation(hlo::Computation& computation) {
  return RewriteEach(
      computation, [](const Instruction& i) { return hlo::IsAttention(i) && IsServed(i); },
      Replace);
}

}  // namespace

bool UseCudnnAttention(hlo::Module& module) {
  if (!ForEachComputation(module, UseInComputation)) return false;
  module.RemoveUnreachableComputations();
  return true;
}

}  // namespace passes
