#include "aten/value_check.h"

#include <algorithm>
#include <optional>

#include "aten/dimension.h"

namespace torch_xla {
namespace {

// Constants with more elements are not looked through.
constexpr int64_t kMostInConstant = 64;
// Sums of numbers up to here are exact.
constexpr int64_t kExact = int64_t{1} << 40;

bool IsWithin(const Bounds& inner, const Bounds& outer) {
  return inner.least >= outer.least && inner.past <= outer.past;
}

// What a value's elements are bound to be, from the operations that make it.
class KnownBounds {
 public:
  std::optional<Bounds> Of(Value x) {
    if (visits_ == 0 || !IsIntegral(x)) return std::nullopt;
    --visits_;
    const auto bounds = BeforeWrapping(x);
    if (!bounds || !IsWithin(*bounds, Range(x->element_type()))) return std::nullopt;
    return bounds;
  }

 private:
  // What the type holds, as far as it is counted with.
  static Bounds Range(ElementType type) {
    const bool is_signed = hlo::IsSignedInteger(type);
    const int64_t past = int64_t{1} << std::min(hlo::BitWidth(type) - (is_signed ? 1 : 0), 40);
    return {is_signed ? -past : 0, past};
  }

  static std::optional<Bounds> OfConstant(const hlo::Literal& literal) {
    const int64_t count = literal.IsSplat() ? 1 : literal.shape().num_elements();
    if (count == 0 || count > kMostInConstant) return std::nullopt;
    Bounds bounds{kExact, -kExact};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t element = literal.AsInt(i);
      if (element <= -kExact || element >= kExact) return std::nullopt;
      bounds = {std::min(bounds.least, element), std::max(bounds.past, element + 1)};
    }
    return bounds;
  }

  // Of all operands from the first on.
  std::optional<Bounds> OfAll(Value x, size_t first) {
    std::optional<Bounds> all;
    for (size_t i = first; i < x->operand_count(); ++i) {
      const auto bounds = Of(x->operand(i));
      if (!bounds) return std::nullopt;
      all = all ? Bounds{std::min(all->least, bounds->least), std::max(all->past, bounds->past)}
                : *bounds;
    }
    return all;
  }

  std::optional<Bounds> OfBinary(Value x) {
    const auto a = Of(x->operand(0)), c = Of(x->operand(1));
    if (!a || !c) return std::nullopt;
    switch (x->opcode()) {
      case Opcode::kAdd:
        return Bounds{a->least + c->least, a->past + c->past - 1};
      case Opcode::kSubtract:
        return Bounds{a->least - c->past + 1, a->past - c->least};
      case Opcode::kMinimum:
        return Bounds{std::min(a->least, c->least), std::min(a->past, c->past)};
      case Opcode::kMaximum:
        return Bounds{std::max(a->least, c->least), std::max(a->past, c->past)};
      default:
        break;
    }
    if (a->least < 0 || c->least <= 0) return std::nullopt;
    const bool is_remainder = x->opcode() == Opcode::kRemainder;
    return Bounds{0, is_remainder ? std::min(a->past, c->past - 1) : a->past};
  }

  // Every element of a sort's result is one of that operand's.
  std::optional<Bounds> OfPart(Value x) {
    const Value whole = x->operand(0);
    if (whole->opcode() != Opcode::kSort) return std::nullopt;
    return Of(whole->operand(static_cast<size_t>(x->tuple_index())));
  }

  std::optional<Bounds> BeforeWrapping(Value x) {
    switch (x->opcode()) {
      case Opcode::kConstant:
        return OfConstant(x->literal());
      case Opcode::kIota:
        return Positions(x->shape().dimension(x->as<hlo::DimensionAttributes>().dimension));
      case Opcode::kConvert:
      case Opcode::kReshape:
      case Opcode::kBroadcastInDim:
      case Opcode::kTranspose:
      case Opcode::kReverse:
      case Opcode::kSlice:
      case Opcode::kDynamicSlice:
      case Opcode::kGather:
        return Of(x->operand(0));
      case Opcode::kSelect:
        return OfAll(x, 1);
      case Opcode::kConcatenate:
        return OfAll(x, 0);
      case Opcode::kGetTupleElement:
        return OfPart(x);
      case Opcode::kAdd:
      case Opcode::kSubtract:
      case Opcode::kMinimum:
      case Opcode::kMaximum:
      case Opcode::kRemainder:
      case Opcode::kDivide:
        return OfBinary(x);
      default:
        return IsPred(x) ? std::optional(Bounds{0, 2}) : std::nullopt;
    }
  }

  int visits_ = 64;
};

Value Largest(Builder& b, Value x) {
  return b.Reduce(Opcode::kMaximum, x, AllDimensions(x->shape().rank()));
}

void AddCheck(Builder& b, Value number, uint64_t limit, int64_t zero, const Words& words) {
  lazy::CheckRecorder::For(b)->Add(b, number, {limit, zero, words.code, words.text, ""});
}

}  // namespace

bool ChecksValues(const Builder& b) { return lazy::CheckRecorder::For(b) != nullptr; }

void CheckBounds(Builder& b, Value x, Bounds bounds, const Words& words) {
  if (!ChecksValues(b) || x->shape().num_elements() == 0) return;
  const auto known = KnownBounds().Of(x);
  if (known && IsWithin(*known, bounds)) return;
  // What is below the bounds is far above them, as a number without a sign.
  Value wide = b.Convert(x, ElementType::kS64);
  if (bounds.least != 0) wide = b.Subtract(wide, b.Full(wide->shape(), bounds.least));
  Value largest = Largest(b, b.BitcastConvert(wide, ElementType::kU64));
  const auto limit = static_cast<uint64_t>(bounds.past) - static_cast<uint64_t>(bounds.least);
  AddCheck(b, largest, limit, bounds.least, words);
}

void CheckNone(Builder& b, Value wrong, const Words& words) {
  if (!ChecksValues(b) || wrong->shape().num_elements() == 0) return;
  Value any = b.Reduce(Opcode::kOr, wrong, AllDimensions(wrong->shape().rank()));
  AddCheck(b, b.Convert(any, ElementType::kU64), 1, 0, words);
}

Values RegionChecks::Start(Builder& b) const {
  if (!are_wanted_) return {};
  return Values(state_size(), b.ConstantScalar(ElementType::kU64, int64_t{0}));
}

Values RegionChecks::Lower(Builder& region, std::span<const Value> state,
                           const std::function<Values()>& lower) {
  if (!are_wanted_) return lower();
  lazy::ValueChecks checks;
  const lazy::CheckRecorder recorder(region.computation(), &checks);
  Values results = lower();
  const auto constant = [&](uint64_t x) {
    return region.ConstantScalar(ElementType::kU64, static_cast<int64_t>(x));
  };
  Value failed = state[0], number = state[1];
  for (size_t i = 0; i < checks.size(); ++i) {
    const Value checked = recorder.numbers()[i];
    Value is_first =
        region.And(region.Eq(failed, constant(0)), region.Ge(checked, constant(checks[i].limit)));
    checks_.push_back(checks[i]);
    failed = region.Select(is_first, constant(checks_.size()), failed);
    number = region.Select(is_first, checked, number);
  }
  results.push_back(failed);
  results.push_back(number);
  return results;
}

void RegionChecks::Report(Builder& b, std::span<const Value> state) const {
  for (size_t i = 0; i < checks_.size(); ++i) {
    Value is_this =
        b.Eq(state[0], b.ConstantScalar(ElementType::kU64, static_cast<int64_t>(i + 1)));
    Value zero = b.ConstantScalar(ElementType::kU64, int64_t{0});
    lazy::CheckRecorder::For(b)->Add(b, b.Select(is_this, state[1], zero), checks_[i]);
  }
}

Words OutOfBounds(hlo::ErrorCode code, int64_t dimension, int64_t size) {
  return {code, "index {} is out of bounds for dimension " + std::to_string(dimension) +
                    " with size " + std::to_string(size)};
}

}  // namespace torch_xla
