// Scaled dot-product attention as composites, for engines that have kernels of their own; every
// other one takes the decomposition.
//
//   torch_xla.attention            query [b,h,q,d], key [b,g,k,d], value [b,g,k,v], mask?
//                                  → result [b,h,q,v], log_sum [b,h,q]
//   torch_xla.attention_backward   gradient [b,h,q,v], query, key, value, result, log_sum, mask?
//                                  → the gradients of query, key and value
//
// h / g neighbouring heads share one of the keys and values. The mask is added to the scaled
// scores; its dimensions, [q,k] or [b,h,q,k], are of the sizes that these letters stand for or 1.
// log_sum is the logarithm of the sum of a row's exponentials, minus infinity where all is masked;
// the result is 0 there. Of 16-bit floats it is f32. Attributes: scale (f64), is_causal (bool): a
// query sees the keys up to its own position.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlo {

inline constexpr char kAttention[] = "torch_xla.attention";
inline constexpr char kAttentionBackward[] = "torch_xla.attention_backward";

struct AttentionAttributes {
  double scale = 1;
  bool is_causal = false;
};

// Makes the composite; `decomposition` builds its body. The results in their order.
inline std::vector<Value> Attention(
    Builder& b, const char* name, const std::vector<Value>& operands,
    const AttentionAttributes& attributes,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& decomposition) {
  std::vector<Shape> parameters, shapes;
  for (const Value operand : operands) parameters.push_back(operand->shape());
  Computation* body = b.Region(name + std::string(".impl"), parameters, decomposition);
  for (const Instruction* result : body->results()) shapes.push_back(result->shape());
  CompositeAttributes composite;
  composite.name = name;
  composite.attributes["scale"] = {.value = attributes.scale, .element_type = ElementType::kF64};
  composite.attributes["is_causal"] = {.value = attributes.is_causal};
  const Value made =
      b.Create(Opcode::kComposite, operands, std::move(composite), {body}, Shape::Tuple(shapes));
  std::vector<Value> results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    results.push_back(b.GetTupleElement(made, static_cast<int64_t>(i)));
  }
  return results;
}

// True for both composites.
inline bool IsAttention(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kComposite) return false;
  const std::string& name = instruction.as<CompositeAttributes>().name;
  return name == kAttention || name == kAttentionBackward;
}

inline AttentionAttributes AttentionAttributesOf(const Instruction& attention) {
  const AttributeDictionary& attributes = attention.as<CompositeAttributes>().attributes;
  const auto* scale = std::get_if<double>(&attributes.at("scale").value);
  const auto* is_causal = std::get_if<bool>(&attributes.at("is_causal").value);
  if (scale == nullptr || is_causal == nullptr) {
    throw Error("an attention's scale is a number, is_causal true or false: " +
                attention.ToString());
  }
  return {.scale = *scale, .is_causal = *is_causal};
}

}  // namespace hlo
