#include "aten/collective.h"

#include <algorithm>
#include <map>

#include "aten/op.h"
#include "aten/promotion.h"
#include "lazy/device.h"
#include "lazy/eager.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"

namespace torch_xla {
namespace {

hlo::CollectiveAttributes Among(const RankGroups& groups) {
  hlo::CollectiveAttributes attributes;
  attributes.replica_groups = groups;
  return attributes;
}

Opcode Combiner(const std::string& reduction, bool is_pred) {
  static const std::map<std::string, std::pair<Opcode, Opcode>> combiners = {
      // For numbers, and for truth values.
      {"sum", {Opcode::kAdd, Opcode::kOr}},      {"mul", {Opcode::kMultiply, Opcode::kAnd}},
      {"min", {Opcode::kMinimum, Opcode::kAnd}}, {"max", {Opcode::kMaximum, Opcode::kOr}},
      {"and", {Opcode::kAnd, Opcode::kAnd}},     {"or", {Opcode::kOr, Opcode::kOr}},
  };
  auto found = combiners.find(reduction);
  if (found == combiners.end()) {
    throw hlo::Error("the reduction is sum, mul, min, max, and or or, not '" + reduction + "'");
  }
  return is_pred ? found->second.second : found->second.first;
}

bool IsLogical(const std::string& reduction) { return reduction == "and" || reduction == "or"; }

// The operand in the type in which it is reduced.
Value ToReduced(Builder& b, Value x, const std::string& reduction) {
  return IsLogical(reduction) && !IsIntegral(x) ? ToPred(b, x) : x;
}

// The reduced value times `scale`, in the operand's type.
Value Finish(Builder& b, Value reduced, const std::optional<Scalar>& scale, ElementType type) {
  Value x = b.Convert(reduced, type);
  if (!scale) return x;
  ElementType wide = IsIntegral(x) ? ElementType::kF64 : AccumulationType(type);
  Value factor = b.Convert(scale->value, wide);
  return b.Convert(b.Multiply(b.Convert(x, wide), Splat(b, factor, x->dimensions())), type);
}

// All of one type.
Values AllReduceLike(Builder& b, Values xs, std::optional<Scalar> scale, std::string reduction,
                     RankGroups groups) {
  ElementType type = xs[0]->element_type();
  for (Value& x : xs) x = ToReduced(b, x, reduction);
  ElementType reduced_type = xs[0]->element_type();
  hlo::Computation* body = b.ScalarCombiner(Combiner(reduction, IsPred(xs[0])), reduced_type);
  Value reduced = b.Create(Opcode::kAllReduce, xs, Among(groups), {body});
  Values results = ResultsOf(b, reduced, 0, xs.size());
  for (Value& result : results) result = Finish(b, result, scale, type);
  return results;
}

Value ReduceScatterLike(Builder& b, Value x, std::optional<Scalar> scale, std::string reduction,
                        int64_t dimension, RankGroups groups) {
  ElementType type = x->element_type();
  x = ToReduced(b, x, reduction);
  hlo::CollectiveAttributes attributes = Among(groups);
  attributes.dimension = dimension;
  hlo::Computation* body = b.ScalarCombiner(Combiner(reduction, IsPred(x)), x->element_type());
  return Finish(b, b.Create(Opcode::kReduceScatter, {x}, attributes, {body}), scale, type);
}

Values AllGatherLike(Builder& b, Values xs, int64_t dimension, RankGroups groups) {
  hlo::CollectiveAttributes attributes = Among(groups);
  attributes.dimension = dimension;
  return ResultsOf(b, b.Create(Opcode::kAllGather, xs, attributes), 0, xs.size());
}

Value AllToAllLike(Builder& b, Value x, int64_t split_dimension, int64_t concat_dimension,
                   int64_t split_count, RankGroups groups) {
  hlo::CollectiveAttributes attributes = Among(groups);
  attributes.split_dimension = split_dimension;
  attributes.concat_dimension = concat_dimension;
  attributes.split_count = split_count;
  return b.Create(Opcode::kAllToAll, {x}, attributes);
}

Value PermuteLike(Builder& b, Value x, RankGroups pairs) {
  hlo::CollectiveAttributes attributes;
  attributes.source_target_pairs = pairs;
  return b.Create(Opcode::kCollectivePermute, {x}, attributes);
}

Value BroadcastLike(Builder& b, Value x, RankGroups groups) {
  return b.Create(Opcode::kCollectiveBroadcast, {x}, Among(groups));
}

std::optional<Number> Factor(double scale, const at::Tensor& tensor) {
  if (scale == 1.0) return std::nullopt;
  at::ScalarType type = at::toRealValueType(tensor.scalar_type());
  bool is_wide = type == at::kDouble || at::isIntegralType(type, true);
  return Number{scale, is_wide ? ElementType::kF64 : ElementType::kF32};
}

void CheckOperand(const at::Tensor& tensor, const char* operation) {
  TORCH_CHECK(IsXla(tensor), operation, " works on xla tensors, not on one on ", tensor.device());
}

// Held from recording a collective to storing its results. A sync of another thread that came in
// between would run the collective without knowing of its results, and the next one run it again.
// In eager mode it runs then.
template <typename F>
auto RecordCollective(F record) {
  const std::lock_guard lock(lazy::SyncMutex());
  const bool runs_as_called = lazy::RunsAsCalled();
  auto results = [&] {
    const lazy::RecordOnly together;
    return record();
  }();
  const at::TensorList recorded(results);
  if (runs_as_called && !recorded.empty()) lazy::SyncEagerly(Impl(recorded[0])->xla_device());
  return results;
}

// What names processes that are not there is recorded to be looked at: nobody waits for it.
bool IsPlanned(const RankGroups& groups) {
  const int64_t size = lazy::Runtime::Get().world_size();
  return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    return std::any_of(group.begin(), group.end(), [&](int64_t rank) { return rank >= size; });
  });
}

void Note(const at::Tensor& result, const RankGroups& groups) {
  if (IsPlanned(groups)) return;
  lazy::NoteCollective(Impl(result)->xla_device(), ReadValue(result).node);
}

at::Tensor Noted(at::Tensor result, const RankGroups& groups) {
  Note(result, groups);
  return result;
}

int64_t Wrapped(int64_t dimension, const at::Tensor& tensor) {
  return c10::maybe_wrap_dim(dimension, tensor.dim());
}

// What `record` gives for the tensors, which it gets in lists of one kind: one operation for each
// kind, in an order that all processes share.
template <typename KindOf, typename Record>
std::vector<at::Tensor> RecordEachKind(const std::vector<at::Tensor>& tensors,
                                       const RankGroups& groups, KindOf kind_of, Record record) {
  std::map<decltype(kind_of(tensors[0])), std::vector<size_t>> of_kind;
  for (size_t i = 0; i < tensors.size(); ++i) of_kind[kind_of(tensors[i])].push_back(i);
  std::vector<at::Tensor> results(tensors.size());
  for (const auto& [kind, places] : of_kind) {
    std::vector<at::Tensor> operands;
    for (size_t i : places) operands.push_back(tensors[i]);
    const std::vector<at::Tensor> recorded = record(kind, operands);
    Note(recorded[0], groups);
    for (size_t i = 0; i < places.size(); ++i) results[places[i]] = recorded[i];
  }
  return results;
}

}  // namespace

std::vector<at::Tensor> AllReduce(const std::vector<at::Tensor>& tensors,
                                  const std::string& reduction, double scale,
                                  const RankGroups& groups) {
  return RecordCollective([&] {
    auto type_of = [](const at::Tensor& tensor) {
      CheckOperand(tensor, "all_reduce");
      return tensor.scalar_type();
    };
    return RecordEachKind(tensors, groups, type_of, [&](auto, const auto& operands) {
      return Record<&AllReduceLike>(operands, Factor(scale, operands[0]), reduction, groups);
    });
  });
}

void AllReduceInPlace(const std::vector<at::Tensor>& tensors, const std::string& reduction,
                      double scale, const RankGroups& groups) {
  RecordCollective([&] {
    std::vector<at::Tensor> reduced = AllReduce(tensors, reduction, scale, groups);
    for (size_t i = 0; i < tensors.size(); ++i) WriteInto(tensors[i], reduced[i]);
    return reduced;
  });
}

std::vector<at::Tensor> AllGather(const std::vector<at::Tensor>& tensors, int64_t dimension,
                                  const RankGroups& groups) {
  return RecordCollective([&] {
    auto kind_of = [&](const at::Tensor& tensor) {
      CheckOperand(tensor, "all_gather");
      return std::pair(tensor.scalar_type(), tensor.dim() == 0 ? 0 : Wrapped(dimension, tensor));
    };
    return RecordEachKind(tensors, groups, kind_of, [&](auto kind, auto operands) {
      for (at::Tensor& tensor : operands) {
        if (tensor.dim() == 0) tensor = tensor.reshape({1});
      }
      return Record<&AllGatherLike>(operands, kind.second, groups);
    });
  });
}

at::Tensor ReduceScatter(const at::Tensor& tensor, const std::string& reduction, double scale,
                         int64_t dimension, const RankGroups& groups) {
  return RecordCollective([&] {
    CheckOperand(tensor, "reduce_scatter");
    return Noted(Record<&ReduceScatterLike>(tensor, Factor(scale, tensor), reduction,
                                            Wrapped(dimension, tensor), groups),
                 groups);
  });
}

at::Tensor AllToAll(const at::Tensor& tensor, int64_t split_dimension, int64_t concat_dimension,
                    int64_t split_count, const RankGroups& groups) {
  return RecordCollective([&] {
    CheckOperand(tensor, "all_to_all");
    return Noted(Record<&AllToAllLike>(tensor, Wrapped(split_dimension, tensor),
                                       Wrapped(concat_dimension, tensor), split_count, groups),
                 groups);
  });
}

at::Tensor CollectivePermute(const at::Tensor& tensor, const RankGroups& pairs) {
  return RecordCollective([&] {
    CheckOperand(tensor, "collective_permute");
    return Noted(Record<&PermuteLike>(tensor, pairs), pairs);
  });
}

at::Tensor CollectiveBroadcast(const at::Tensor& tensor, const RankGroups& groups) {
  return RecordCollective([&] {
    CheckOperand(tensor, "collective_broadcast");
    return Noted(Record<&BroadcastLike>(tensor, groups), groups);
  });
}

}  // namespace torch_xla
