#include "cpu/library/attention_call.h"

#include <algorithm>
#include <string>
#include <variant>

#include "cpu/library/attention.h"
#include "cpu/library/attention_tiles.h"
#include "cpu/library/bind.h"
#include "hlo/attention_composite.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

bool IsBackward(const Instruction& attention) {
  return attention.as<hlo::CompositeAttributes>().name == hlo::kAttentionBackward;
}

// Where operands of both kinds stand.
struct OperandIndices {
  int query, key, value, mask;
  int gradient, result, log_sum;  // backward

  explicit OperandIndices(bool backward)
      : query(backward ? 1 : 0),
        key(query + 1),
        value(query + 2),
        mask(backward ? 6 : 3),
        gradient(0),
        result(4),
        log_sum(5) {}
};

bool HasMask(const Instruction& attention) {
  const OperandIndices at(IsBackward(attention));
  return static_cast<int>(attention.operand_count()) > at.mask;
}

// A value of the inner composite, and where it is outside: a parameter or result, whose dimensions
// are transposed on the way.
struct Placed {
  int64_t number = -1;
  const hlo::Shape* shape = nullptr;  // outside
  Dimensions permutation;             // of the dimensions outside, to those of an operand inside

  // In elements, for each dimension inside; of size 1 they count nothing.
  Dimensions Strides() const {
    const Dimensions& outside = shape->dimensions();
    Dimensions dense(outside.size(), 1);
    for (size_t d = outside.size(); d-- > 1;) dense[d - 1] = dense[d] * outside[d];
    Dimensions strides;
    for (const int64_t d : permutation) strides.push_back(outside[d] == 1 ? 0 : dense[d]);
    return strides;
  }
};

Dimensions Identity(const hlo::Shape& shape) {
  Dimensions identity;
  for (int64_t d = 0; d < shape.rank(); ++d) identity.push_back(d);
  return identity;
}

Dimensions Inverse(const Dimensions& permutation) {
  Dimensions inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d) {
    inverse[permutation[d]] = static_cast<int64_t>(d);
  }
  return inverse;
}

const Dimensions& PermutationOf(const Instruction& transpose) {
  return transpose.as<hlo::DimensionsAttributes>().dimensions;
}

Placed PlaceOperand(const Instruction* operand) {
  Placed placed;
  placed.permutation = Identity(operand->shape());
  if (operand->opcode() == Opcode::kTranspose) {
    placed.permutation = PermutationOf(*operand);
    operand = operand->operand(0);
  }
  placed.number = operand->parameter_number();
  placed.shape = &operand->shape();
  return placed;
}

// Result `index` of the inner composite among the body's.
Placed PlaceResult(const hlo::Computation& body, int64_t index) {
  for (size_t i = 0; i < body.results().size(); ++i) {
    const Instruction* result = body.results()[i];
    Placed placed;
    placed.number = static_cast<int64_t>(i);
    placed.shape = &result->shape();
    placed.permutation = Identity(result->shape());
    if (result->opcode() == Opcode::kTranspose) {
      placed.permutation = Inverse(PermutationOf(*result));
      result = result->operand(0);
    }
    if (result->tuple_index() == index) return placed;
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "a result of an attention is missing");
}

AttentionArray ArrayOf(const Placed& placed) {
  const Dimensions strides = placed.Strides();
  return {placed.shape->element_type(), strides[0], strides[1], strides[2], 1};
}

AttentionArray LogSumOf(const Placed& placed) {
  const Dimensions strides = placed.Strides();
  return {placed.shape->element_type(), strides[0], strides[1], strides[2], 1};
}

AttentionArray MaskOf(const Placed& placed) {
  Dimensions strides = placed.Strides();
  if (strides.size() == 2) strides.insert(strides.begin(), 2, 0);
  return {placed.shape->element_type(), strides[0], strides[1], strides[2], strides[3]};
}

class AttentionCall : public LibraryCall {
 public:
  explicit AttentionCall(const Instruction& inner, const hlo::Computation& body)
      : backward_(IsBackward(inner)), at_(backward_) {
    for (const Instruction* operand : inner.operands()) operands_.push_back(PlaceOperand(operand));
    const int64_t count = backward_ ? 3 : 2;
    for (int64_t i = 0; i < count; ++i) results_.push_back(PlaceResult(body, i));
    const Dimensions& query = inner.operand(at_.query)->dimensions();
    const Dimensions& key = inner.operand(at_.key)->dimensions();
    const hlo::AttentionAttributes attributes = hlo::AttentionAttributesOf(inner);
    problem_ = {.batch = query[0],
                .heads = query[1],
                .key_heads = key[1],
                .queries = query[2],
                .keys = key[2],
                .width = query[3],
                .value_width = inner.operand(at_.value)->dimensions()[3],
                .scale = attributes.scale,
                .is_causal = attributes.is_causal,
                .query = ArrayOf(operands_[at_.query]),
                .key = ArrayOf(operands_[at_.key]),
                .value = ArrayOf(operands_[at_.value]),
                .result = ArrayOf(backward_ ? operands_[at_.result] : results_[0]),
                .log_sum = LogSumOf(backward_ ? operands_[at_.log_sum] : results_[1]),
                .mask = std::nullopt};
    if (HasMask(inner)) problem_.mask = MaskOf(operands_[at_.mask]);
    if (backward_) {
      gradients_ = {.result = ArrayOf(operands_[at_.gradient]),
                    .query = ArrayOf(results_[0]),
                    .key = ArrayOf(results_[1]),
                    .value = ArrayOf(results_[2])};
    }
    num_threads_ = ThreadPool::Default().num_threads();
  }

  int64_t scratch_bytes() const override {
    return backward_ ? AttentionBackwardScratch(num_threads_, problem_, gradients_) : 0;
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    const auto operand = [&](int index) { return operands[operands_[index].number]; };
    const auto result = [&](int index) { return results[results_[index].number]; };
    const AttentionOperands inputs = {operand(at_.query), operand(at_.key), operand(at_.value),
                                      problem_.mask ? operand(at_.mask) : nullptr};
    if (!backward_) {
      AttentionForward(context.threads, num_threads_, problem_, inputs, result(0),
                       static_cast<float*>(result(1)));
      return;
    }
    AttentionBackward(context.threads, num_threads_, problem_, gradients_, inputs,
                      operand(at_.result), static_cast<const float*>(operand(at_.log_sum)),
                      operand(at_.gradient), result(0), result(1), result(2), context.scratch);
  }

  std::string Description() const override {
    std::string text = backward_ ? "attention's gradients" : "attention";
    text.append(" ").append(hlo::ShortName(problem_.query.type)).append(" ");
    text += std::to_string(problem_.batch * problem_.heads) + " x " +
            hlo::ToString(std::vector{problem_.queries, problem_.keys, problem_.width});
    if (problem_.is_causal) text += ", causal";
    if (problem_.mask) text += ", masked";
    return text;
  }

 private:
  const bool backward_;
  const OperandIndices at_;
  std::vector<Placed> operands_, results_;
  AttentionProblem problem_;
  AttentionGradients gradients_;
  int num_threads_;  // by which the work is cut, whatever pool runs it
};

// The attention in the body of a composite of ours; null if there is none.
const Instruction* InnerAttention(const hlo::Computation& body) {
  for (const auto& instruction : body.instructions()) {
    if (hlo::IsAttention(*instruction)) return instruction.get();
  }
  return nullptr;
}

bool IsMaskOf(const Dimensions& mask, const Dimensions& scores) {
  if (mask.size() != 2 && mask.size() != 4) return false;
  const size_t missing = 4 - mask.size();
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d] != 1 && mask[d] != scores[missing + d]) return false;
  }
  return true;
}

// Whether a composite of that name, which anybody may have made, is what its header says.
bool IsAsDefined(const Instruction& attention) {
  const bool backward = IsBackward(attention);
  const OperandIndices at(backward);
  const auto operands = static_cast<int>(attention.operand_count());
  if (operands != at.mask && operands != at.mask + 1) return false;
  const auto& attributes = attention.as<hlo::CompositeAttributes>().attributes;
  const auto scale = attributes.find("scale"), is_causal = attributes.find("is_causal");
  if (scale == attributes.end() || !std::holds_alternative<double>(scale->second.value) ||
      is_causal == attributes.end() || !std::holds_alternative<bool>(is_causal->second.value)) {
    return false;
  }
  const auto dimensions = [&](int index) { return attention.operand(index)->dimensions(); };
  for (int i = 0; i < at.mask; ++i) {
    const size_t rank = backward && i == at.log_sum ? 3 : 4;
    if (!attention.operand(i)->shape().is_array() || dimensions(i).size() != rank) return false;
  }
  const Dimensions query = dimensions(at.query), key = dimensions(at.key);
  const Dimensions value = dimensions(at.value);
  if (key[1] == 0 || query[1] % key[1] != 0 ||
      key != Dimensions({query[0], key[1], key[2], query[3]}) ||
      value != Dimensions({query[0], key[1], key[2], value[3]})) {
    return false;
  }
  const Dimensions result = {query[0], query[1], query[2], value[3]};
  const Dimensions rows = {query[0], query[1], query[2]};
  const std::vector<Dimensions> results =
      backward ? std::vector{query, key, value} : std::vector{result, rows};
  if (!attention.shape().is_tuple() || attention.shape().tuple_shapes().size() != results.size()) {
    return false;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const hlo::Shape& shape = attention.shape().tuple_shapes()[i];
    if (!shape.is_array() || shape.dimensions() != results[i]) return false;
  }
  if (backward && (dimensions(at.gradient) != result || dimensions(at.result) != result ||
                   dimensions(at.log_sum) != rows)) {
    return false;
  }
  return operands == at.mask ||
         IsMaskOf(dimensions(at.mask), {query[0], query[1], query[2], key[2]});
}

bool IsServedType(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBF16;
}

// The logarithms are f32, all others of any type that is read and written as f32.
bool HasServedTypes(const Instruction& attention) {
  const bool backward = IsBackward(attention);
  const OperandIndices at(backward);
  for (int i = 0; i < static_cast<int>(attention.operand_count()); ++i) {
    const ElementType type = attention.operand(i)->element_type();
    const bool is_log_sum = backward && i == at.log_sum;
    if (is_log_sum ? type != ElementType::kF32 : !IsServedType(type)) return false;
  }
  const auto& results = attention.shape().tuple_shapes();
  for (size_t i = 0; i < results.size(); ++i) {
    const bool is_log_sum = !backward && i == 1;
    const ElementType type = results[i].element_type();
    if (is_log_sum ? type != ElementType::kF32 : !IsServedType(type)) return false;
  }
  return true;
}

// Equal without a doubt: the same computation of the same, a few steps deep.
bool IsSameValue(const Instruction* x, const Instruction* y, int depth = 4) {
  if (x == y) return true;
  if (depth == 0 || x->opcode() != y->opcode() || x->operand_count() != y->operand_count() ||
      x->operand_count() == 0 || !(x->shape() == y->shape()) ||
      !(x->attributes() == y->attributes()) || !x->called_computations().empty()) {
    return false;
  }
  for (size_t i = 0; i < x->operand_count(); ++i) {
    if (!IsSameValue(x->operand(i), y->operand(i), depth - 1)) return false;
  }
  return true;
}

// Whether the program has the other pass over the same scores.
bool HasBothPasses(const Instruction& attention) {
  const bool backward = IsBackward(attention);
  const OperandIndices here(backward), there(!backward);
  for (const auto& other : attention.parent()->instructions()) {
    if (!hlo::IsAttention(*other) || IsBackward(*other) == backward || !IsAsDefined(*other)) {
      continue;
    }
    if (IsSameValue(attention.operand(here.query), other->operand(there.query)) &&
        IsSameValue(attention.operand(here.key), other->operand(there.key))) {
      return true;
    }
  }
  return false;
}

// Where a program has both passes, its decompositions compute the scores once, which takes less
// time than to compute them again as long as they stay in the cache, unless there are so few that
// starting several steps counts more, or half of them need not be computed. By measurement.
bool IsBetterDecomposed(const Instruction& attention) {
  const OperandIndices at(IsBackward(attention));
  const Dimensions& query = attention.operand(at.query)->dimensions();
  const Dimensions& key = attention.operand(at.key)->dimensions();
  return query[1] == key[1] && query[2] > 1 && key[2] >= 64 && key[2] <= 256 &&
         !hlo::AttentionAttributesOf(attention).is_causal && HasBothPasses(attention);
}

// Rows stay rows.
bool KeepsLast(const Dimensions& permutation) {
  return permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
}

}  // namespace

bool ServesAttention(const Instruction& attention) {
  const auto is_picked = [](const Instruction* user) {
    return user->opcode() == Opcode::kGetTupleElement;
  };
  const auto has_elements = [](const Instruction* operand) {
    return operand->shape().num_elements() > 0;
  };
  return FindAttentionTiles() != nullptr && IsAsDefined(attention) && HasServedTypes(attention) &&
         std::ranges::all_of(attention.operands(), has_elements) &&
         std::ranges::all_of(attention.users(), is_picked) && !IsBetterDecomposed(attention);
}

bool ReadsTransposed(const Instruction& attention, size_t index, const Dimensions& permutation) {
  const OperandIndices at(IsBackward(attention));
  if (static_cast<int>(index) == at.mask) return false;
  const bool is_log_sum = IsBackward(attention) && static_cast<int>(index) == at.log_sum;
  return is_log_sum || KeepsLast(permutation);
}

bool WritesTransposed(const Instruction& attention, size_t index, const Dimensions& permutation) {
  const bool is_log_sum = !IsBackward(attention) && index == 1;
  return is_log_sum || KeepsLast(permutation);
}

std::unique_ptr<LibraryCall> BindAttention(const Instruction& composite) {
  const hlo::Computation& body = *composite.called_computations().at(0);
  const Instruction* inner = InnerAttention(body);
  if (inner == nullptr) return nullptr;
  return std::make_unique<AttentionCall>(*inner, body);
}

}  // namespace cpu
