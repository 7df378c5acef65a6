#include "passes/generalize_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::kDynamic;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

constexpr ElementType kExtentType = ElementType::kS32;
// Of the elements of a constant that are computed one by one.
constexpr int64_t kMostComputedElements = 64;
constexpr int kMostFactors = 4;

// One instruction, and one number, in each sample.
using Alike = std::vector<const Instruction*>;
using Numbers = std::vector<int64_t>;

bool IsConstant(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; });
}

[[noreturn]] void Refuse(const Instruction& instruction, const std::string& why) {
  const hlo::Metadata& metadata = instruction.metadata();
  std::string text = "A program for any size: ";
  text +=
      metadata.op_name.empty() ? std::string(hlo::Name(instruction.opcode())) : metadata.op_name;
  if (!metadata.source_file.empty()) {
    text += " (" + metadata.source_file + ":" + std::to_string(metadata.source_line) + ")";
  }
  throw hlo::Error(hlo::ErrorCode::kUnimplemented, text + " " + why);
}

std::string ToString(const Numbers& numbers) { return hlo::ToString(std::span(numbers)); }

// The slope and the offset of the line through the points (x[i], y[i]), if there is one.
std::optional<std::pair<int64_t, int64_t>> LineThrough(const Numbers& x, const Numbers& y) {
  if (x.size() < 2 || x[0] == x[1] || (y[1] - y[0]) % (x[1] - x[0]) != 0) return std::nullopt;
  const int64_t slope = (y[1] - y[0]) / (x[1] - x[0]);
  const int64_t offset = y[0] - slope * x[0];
  for (size_t i = 2; i < x.size(); ++i) {
    if (y[i] != slope * x[i] + offset) return std::nullopt;
  }
  return std::pair(slope, offset);
}

// x / y in each sample, if it has no remainder.
std::optional<Numbers> Quotients(const Numbers& x, const Numbers& y) {
  Numbers quotients;
  for (size_t i = 0; i < x.size(); ++i) {
    if (y[i] == 0 || x[i] % y[i] != 0) return std::nullopt;
    quotients.push_back(x[i] / y[i]);
  }
  return quotients;
}

// Computes sizes in one computation, from those of its values.
class Sizes {
 public:
  explicit Sizes(hlo::Builder& builder) : builder_(builder) {}

  // That dimension `d` of the value has these sizes.
  void Note(Value value, int64_t d, Numbers numbers) {
    if (IsConstant(numbers)) return;
    if (places_.try_emplace(numbers, value, d).second) known_.push_back(std::move(numbers));
  }

  // A scalar that is these numbers; null if there is no formula.
  Value Scalar(const Numbers& numbers) {
    if (IsConstant(numbers)) return builder_.ConstantScalar(kExtentType, numbers[0]);
    if (const auto made = scalars_.find(numbers); made != scalars_.end()) return made->second;
    Value scalar = FromPlace(numbers);
    if (!scalar) scalar = FromLine(numbers, /*with_offset=*/false);
    if (!scalar) scalar = FromProduct(numbers, kMostFactors);
    if (!scalar) scalar = FromLine(numbers, /*with_offset=*/true);
    if (!scalar) scalar = FromCorrectedProduct(numbers);
    if (scalar) scalars_.emplace(numbers, scalar);
    return scalar;
  }

 private:
  Value FromPlace(const Numbers& numbers) {
    const auto place = places_.find(numbers);
    if (place == places_.end()) return nullptr;
    const auto& [value, d] = place->second;
    return builder_.Create(Opcode::kGetDimensionSize, {value}, hlo::DimensionAttributes{d});
  }

  // A multiple or a part of a size, plus a constant.
  Value FromLine(const Numbers& numbers, bool with_offset) {
    for (const Numbers& size : known_) {
      if (const auto line = LineThrough(size, numbers)) {
        const auto [slope, offset] = *line;
        if ((offset != 0) == with_offset) return Line(Opcode::kMultiply, size, slope, offset);
      }
      if (with_offset) continue;
      const auto part = Quotients(size, numbers);
      if (part && IsConstant(*part)) return Line(Opcode::kDivide, size, part->front(), 0);
    }
    return nullptr;
  }

  Value Line(Opcode scale, const Numbers& size, int64_t factor, int64_t offset) {
    Value value = Scalar(size);
    if (factor != 1) {
      value = builder_.Binary(scale, value, builder_.ConstantScalar(kExtentType, factor));
    }
    if (offset == 0) return value;
    return builder_.Add(value, builder_.ConstantScalar(kExtentType, offset));
  }

  // A product of sizes, and a constant.
  Value FromProduct(const Numbers& numbers, int most_factors) {
    if (IsConstant(numbers)) return builder_.ConstantScalar(kExtentType, numbers[0]);
    if (Value value = FromPlace(numbers)) return value;
    if (most_factors == 1) return nullptr;
    for (const Numbers& size : known_) {
      const auto rest = Quotients(numbers, size);
      if (!rest) continue;
      if (Value other = FromProduct(*rest, most_factors - 1)) {
        return builder_.Multiply(Scalar(size), other);
      }
    }
    return nullptr;
  }

  // One less than a product, by which a variance is divided.
  Value FromCorrectedProduct(Numbers numbers) {
    for (int64_t& number : numbers) ++number;
    Value product = FromProduct(numbers, kMostFactors);
    return product ? builder_.Subtract(product, builder_.ConstantScalar(kExtentType, int64_t{1}))
                   : nullptr;
  }

  hlo::Builder& builder_;
  std::map<Numbers, std::pair<Value, int64_t>> places_;
  std::vector<Numbers> known_;  // in the order of the values
  std::map<Numbers, Value> scalars_;
};

using ComputationMap = std::unordered_map<const Computation*, Computation*>;

// One computation of all samples.
class Generalizer {
 public:
  // `made` holds what became of the computations that these call.
  Generalizer(std::vector<const Computation*> samples, const ComputationMap& made,
              Computation& target)
      : samples_(std::move(samples)),
        made_(made),
        builder_(&target),
        sizes_(builder_),
        values_(samples_.size()) {}

  void Run() {
    const auto& instructions = samples_[0]->instructions();
    for (const Computation* sample : samples_) {
      if (sample->instructions().size() != instructions.size()) RefuseStructure();
    }
    for (size_t place = 0; place < instructions.size(); ++place) {
      Alike alike;
      for (const Computation* sample : samples_) {
        alike.push_back(sample->instructions()[place].get());
      }
      builder_.set_metadata(alike[0]->shared_metadata());
      CheckAlike(alike);
      const Value value = Generalized(alike);
      for (size_t i = 0; i < alike.size(); ++i) values_[i].emplace(alike[i], value);
      NoteSizes(value, alike);
    }
    std::vector<Value> results;
    for (size_t i = 0; i < samples_[0]->results().size(); ++i) results.push_back(Result(i));
    builder_.computation()->set_results(std::move(results));
  }

 private:
  [[noreturn]] void RefuseStructure() const {
    Refuse(*samples_[0]->instructions().back(),
           "and what is before it is recorded as other operations for other sizes");
  }

  Value Result(size_t i) const {
    const Value value = values_[0].at(samples_[0]->result(i));
    for (size_t s = 1; s < samples_.size(); ++s) {
      const auto& results = samples_[s]->results();
      if (i >= results.size() || values_[s].at(results[i]) != value) RefuseStructure();
    }
    return value;
  }

  // That the instructions are one operation with the same operands and called computations.
  void CheckAlike(const Alike& alike) const {
    for (size_t s = 1; s < alike.size(); ++s) {
      const Instruction &a = *alike[0], &b = *alike[s];
      bool is_alike = a.opcode() == b.opcode() && a.operand_count() == b.operand_count() &&
                      a.called_computations().size() == b.called_computations().size();
      for (size_t i = 0; is_alike && i < a.operand_count(); ++i) {
        is_alike = values_[0].at(a.operand(i)) == values_[s].at(b.operand(i));
      }
      for (size_t i = 0; is_alike && i < a.called_computations().size(); ++i) {
        is_alike = made_.at(a.called_computations()[i]) == made_.at(b.called_computations()[i]);
      }
      if (!is_alike) Refuse(a, "is recorded as other operations for other sizes");
    }
  }

  std::vector<Value> Operands(const Alike& alike) const {
    std::vector<Value> operands;
    for (const Instruction* operand : alike[0]->operands()) {
      operands.push_back(values_[0].at(operand));
    }
    return operands;
  }

  // The shape of all, `?` where they differ.
  static Shape MergedShape(const Instruction& instruction,
                           const std::vector<const Shape*>& shapes) {
    const Shape& first = *shapes[0];
    for (const Shape* shape : shapes) {
      if (shape->element_type() != first.element_type() || shape->rank() != first.rank() ||
          shape->tuple_shapes().size() != first.tuple_shapes().size()) {
        Refuse(instruction, "has another type for other sizes");
      }
    }
    if (first.is_tuple()) {
      std::vector<Shape> elements;
      for (size_t e = 0; e < first.tuple_shapes().size(); ++e) {
        std::vector<const Shape*> parts;
        for (const Shape* shape : shapes) parts.push_back(&shape->tuple_shapes()[e]);
        elements.push_back(MergedShape(instruction, parts));
      }
      return Shape::Tuple(std::move(elements));
    }
    Dimensions dimensions = first.dimensions();
    for (const Shape* shape : shapes) {
      for (int64_t d = 0; d < shape->rank(); ++d) {
        if (shape->dimension(d) != first.dimension(d)) dimensions[d] = kDynamic;
      }
    }
    return first.is_token() ? first : first.WithDimensions(std::move(dimensions));
  }

  static Shape MergedShape(const Alike& alike) {
    std::vector<const Shape*> shapes;
    for (const Instruction* instruction : alike) shapes.push_back(&instruction->shape());
    return MergedShape(*alike[0], shapes);
  }

  static Numbers SizesOf(const Alike& alike, int64_t d) {
    Numbers numbers;
    for (const Instruction* instruction : alike) {
      numbers.push_back(instruction->shape().dimension(d));
    }
    return numbers;
  }

  void NoteSizes(Value value, const Alike& alike) {
    if (!alike[0]->shape().is_array()) return;
    for (int64_t d = 0; d < alike[0]->shape().rank(); ++d) {
      sizes_.Note(value, d, SizesOf(alike, d));
    }
  }

  // A number of an attribute, list or result of these instructions.
  Value Scalar(const Alike& alike, const Numbers& numbers) {
    if (Value scalar = sizes_.Scalar(numbers)) return scalar;
    Refuse(*alike[0], "has sizes " + ToString(numbers) +
                          " that are no multiple, part, sum with a constant or product of others");
  }

  Value Vector(const Alike& alike, const std::vector<Numbers>& elements) {
    if (elements.empty()) return builder_.Constant(Literal(Shape(kExtentType, {0})));
    std::vector<Value> parts;
    for (const Numbers& numbers : elements) {
      parts.push_back(builder_.Reshape(Scalar(alike, numbers), {1}));
    }
    return parts.size() == 1 ? parts[0] : builder_.Concatenate(std::move(parts), 0);
  }

  // One list of each instruction's attributes.
  template <typename Member>
  Value Vector(const Alike& alike, const Member& list) {
    std::vector<Numbers> elements(list(*alike[0]).size());
    for (const Instruction* instruction : alike) {
      const Dimensions& numbers = list(*instruction);
      for (size_t i = 0; i < elements.size(); ++i) elements[i].push_back(numbers[i]);
    }
    return Vector(alike, elements);
  }

  Value ShapeVector(const Alike& alike) {
    return Vector(alike, [](const Instruction& i) -> const Dimensions& { return i.dimensions(); });
  }

  static bool HaveSameAttributes(const Alike& alike) {
    return std::all_of(alike.begin(), alike.end(), [&](const Instruction* instruction) {
      return instruction->attributes() == alike[0]->attributes();
    });
  }

  Value Create(const Alike& alike, Opcode opcode, std::vector<Value> operands,
               hlo::Attributes attributes) {
    return builder_.Create(opcode, std::move(operands), std::move(attributes), {},
                           MergedShape(alike));
  }

  Value Generalized(const Alike& alike) {
    const Instruction& first = *alike[0];
    const Shape shape = MergedShape(alike);
    if (shape.is_array() && shape.is_dynamic()) {
      if (Value value = WithRunTimeShape(alike)) return value;
    }
    if (!HaveSameAttributes(alike)) return WithRunTimeAttributes(alike);
    std::vector<Computation*> called;
    for (const Computation* computation : first.called_computations()) {
      called.push_back(made_.at(computation));
    }
    Value value = builder_.computation()->Add(first.opcode(), shape, Operands(alike),
                                              first.attributes(), std::move(called));
    value->set_metadata(first.shared_metadata());
    return value;
  }

  static hlo::DynamicBroadcastAttributes BroadcastAttributes(Dimensions dimensions) {
    hlo::DynamicBroadcastAttributes attributes;
    attributes.broadcast_dimensions = std::move(dimensions);
    return attributes;
  }

  // Of operations whose operands do not say the result's sizes; null for others.
  Value WithRunTimeShape(const Alike& alike) {
    const Instruction& first = *alike[0];
    std::vector<Value> operands = Operands(alike);
    switch (first.opcode()) {
      case Opcode::kBroadcastInDim:
        if (!HaveSameAttributes(alike)) return nullptr;
        operands.push_back(ShapeVector(alike));
        return Create(alike, Opcode::kDynamicBroadcastInDim, std::move(operands),
                      BroadcastAttributes(first.as<hlo::DimensionsAttributes>().dimensions));
      case Opcode::kReshape:
        operands.push_back(ShapeVector(alike));
        return Create(alike, Opcode::kDynamicReshape, std::move(operands), {});
      case Opcode::kIota:
        return Create(alike, Opcode::kDynamicIota, {ShapeVector(alike)}, first.attributes());
      case Opcode::kConstant:
        return Create(alike, Opcode::kDynamicBroadcastInDim,
                      {SplatElement(alike), ShapeVector(alike)}, BroadcastAttributes({}));
      case Opcode::kDynamicSlice:
      case Opcode::kRng:
      case Opcode::kRngBitGenerator:
      case Opcode::kCustomCall:
        Refuse(first, "gives sizes that are part of the operation");
      default:
        return nullptr;
    }
  }

  Value WithRunTimeAttributes(const Alike& alike) {
    const Instruction& first = *alike[0];
    switch (first.opcode()) {
      case Opcode::kConstant:
        return RunTimeConstant(alike);
      case Opcode::kSlice:
        return RunTimeSlice(alike);
      case Opcode::kPad:
        return RunTimePad(alike);
      case Opcode::kGather:
        return RunTimeGather(alike);
      default:
        Refuse(first, "holds sizes that are part of the operation");
    }
  }

  Value RunTimeSlice(const Alike& alike) {
    const bool is_whole = std::all_of(alike.begin(), alike.end(), [](const Instruction* slice) {
      return slice->shape() == slice->operand(0)->shape();
    });
    std::vector<Value> operands = Operands(alike);
    if (is_whole) return operands[0];
    using Slice = hlo::SliceAttributes;
    for (const auto member : {&Slice::start_indices, &Slice::limit_indices, &Slice::strides}) {
      operands.push_back(Vector(alike, [member](const Instruction& i) -> const Dimensions& {
        return i.as<Slice>().*member;
      }));
    }
    return Create(alike, Opcode::kRealDynamicSlice, std::move(operands), {});
  }

  Value RunTimePad(const Alike& alike) {
    std::vector<Value> operands = Operands(alike);
    using Pad = hlo::PadAttributes;
    for (const auto member :
         {&Pad::edge_padding_low, &Pad::edge_padding_high, &Pad::interior_padding}) {
      operands.push_back(Vector(alike, [member](const Instruction& i) -> const Dimensions& {
        return i.as<Pad>().*member;
      }));
    }
    return Create(alike, Opcode::kDynamicPad, std::move(operands), {});
  }

  Value RunTimeGather(const Alike& alike) {
    auto attributes = alike[0]->as<hlo::GatherAttributes>();
    for (const Instruction* gather : alike) {
      auto others = gather->as<hlo::GatherAttributes>();
      others.slice_sizes = attributes.slice_sizes;
      if (others != attributes) Refuse(*gather, "gathers otherwise for other sizes");
    }
    std::vector<Value> operands = Operands(alike);
    operands.push_back(Vector(alike, [](const Instruction& i) -> const Dimensions& {
      return i.as<hlo::GatherAttributes>().slice_sizes;
    }));
    attributes.slice_sizes.clear();
    return Create(alike, Opcode::kDynamicGather, std::move(operands), std::move(attributes));
  }

  // Constants of equal shapes.
  Value RunTimeConstant(const Alike& alike) {
    const Shape& shape = alike[0]->shape();
    const bool is_splat = std::all_of(alike.begin(), alike.end(), [](const Instruction* constant) {
      return constant->literal().IsSplat();
    });
    if (is_splat) return builder_.BroadcastInDim(SplatElement(alike), shape.dimensions(), {});
    if (shape.rank() != 1 || shape.dimension(0) > kMostComputedElements ||
        !hlo::IsInteger(shape.element_type())) {
      Refuse(*alike[0], "is a constant of other values for other sizes");
    }
    std::vector<Numbers> elements(static_cast<size_t>(shape.dimension(0)));
    for (const Instruction* constant : alike) {
      for (size_t i = 0; i < elements.size(); ++i) {
        elements[i].push_back(constant->literal().AsInt(static_cast<int64_t>(i)));
      }
    }
    return builder_.Convert(Vector(alike, elements), shape.element_type());
  }

  // The number that the constants are filled with, as a scalar.
  Value SplatElement(const Alike& alike) {
    const ElementType type = alike[0]->element_type();
    std::vector<double> values;
    for (const Instruction* constant : alike) {
      if (!constant->literal().IsSplat()) {
        Refuse(*constant, "is a constant of as many values as a size says");
      }
      values.push_back(constant->literal().AsDouble());
    }
    const auto is_first = [&](double value) {
      return value == values[0] || (std::isnan(value) && std::isnan(values[0]));
    };
    if (std::all_of(values.begin(), values.end(), is_first)) {
      return builder_.Constant(Literal(Shape::Scalar(type), alike[0]->literal().bytes()));
    }
    const auto sizes = Rounded(values);
    if (sizes && AreExactly(alike, *sizes, [](double size) { return size; })) {
      return builder_.Convert(Scalar(alike, *sizes), type);
    }
    for (double& value : values) value = 1 / value;
    const auto divisors = Rounded(values);
    if (!hlo::IsFloat(type) || !divisors ||
        !AreExactly(alike, *divisors, [](double divisor) { return 1 / divisor; })) {
      Refuse(*alike[0], "is a number that is neither a size nor its reciprocal");
    }
    return builder_.Divide(builder_.ConstantScalar(type, 1.0),
                           builder_.Convert(Scalar(alike, *divisors), type));
  }

  // The integers next to the values; none if one is too large for a size.
  static std::optional<Numbers> Rounded(const std::vector<double>& values) {
    Numbers numbers;
    for (const double value : values) {
      if (!(std::abs(value) <= std::numeric_limits<int32_t>::max())) return std::nullopt;
      numbers.push_back(std::llround(value));
    }
    return numbers;
  }

  // Whether the constants are, to the last bit, what the function gives for these numbers.
  static bool AreExactly(const Alike& alike, const Numbers& numbers, double (*function)(double)) {
    for (size_t i = 0; i < alike.size(); ++i) {
      const Literal expected =
          Literal::FromDouble(alike[i]->element_type(), function(static_cast<double>(numbers[i])));
      if (expected.AsDouble() != alike[i]->literal().AsDouble()) return false;
    }
    return true;
  }

  std::vector<const Computation*> samples_;
  const ComputationMap& made_;
  hlo::Builder builder_;
  Sizes sizes_;
  std::vector<std::unordered_map<const Instruction*, Value>> values_;  // by sample
};

}  // namespace

std::unique_ptr<hlo::Module> GeneralizeSizes(std::span<const hlo::Module* const> samples) {
  auto module = std::make_unique<hlo::Module>(samples[0]->name());
  ComputationMap made;
  for (size_t c = 0; c < samples[0]->computations().size(); ++c) {
    std::vector<const Computation*> computations;
    for (const hlo::Module* sample : samples) {
      if (c >= sample->computations().size()) {
        Refuse(*sample->entry()->result(), "calls other functions for other sizes");
      }
      computations.push_back(sample->computations()[c].get());
    }
    Computation* target = module->AddComputation(computations[0]->name());
    for (const Computation* computation : computations) made.emplace(computation, target);
    Generalizer(computations, made, *target).Run();
    if (computations[0] == samples[0]->entry()) module->set_entry(target);
  }
  module->num_replicas = samples[0]->num_replicas;
  module->num_partitions = samples[0]->num_partitions;
  return module;
}

}  // namespace passes
