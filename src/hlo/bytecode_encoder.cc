#include "hlo/bytecode_encoder.h"

#include <algorithm>
#include <bit>

#include "hlo/error.h"
#include "hlo/hash.h"

namespace hlo::bytecode {
namespace {

size_t HashOf(const Type& type) {
  size_t hash = CombineHash(static_cast<size_t>(type.kind), static_cast<size_t>(type.element));
  for (int64_t size : type.dimensions) hash = CombineHash(hash, static_cast<size_t>(size));
  for (TypeId part : type.parts) hash = CombineHash(hash, part);
  return CombineHash(hash, HashText(type.name));
}

size_t HashOf(const Attribute& attribute) {
  size_t hash = CombineHash(static_cast<size_t>(attribute.kind), attribute.type);
  hash = CombineHash(hash, static_cast<size_t>(attribute.number));
  hash = CombineHash(hash, HashText(attribute.text));
  for (AttributeId part : attribute.parts) hash = CombineHash(hash, part);
  for (int64_t index : attribute.indices) hash = CombineHash(hash, static_cast<size_t>(index));
  for (int64_t index : attribute.more_indices) hash = CombineHash(hash, static_cast<size_t>(index));
  return hash;
}

std::string_view BytesOf(const Literal& literal) {
  return {reinterpret_cast<const char*>(literal.bytes()), literal.byte_size()};
}

// Predicates become bits, the lowest first; a splat is one byte of them.
std::string PackPredicates(const Literal& literal, bool splat) {
  size_t count = literal.byte_size();
  auto bit = [&](size_t i) { return literal.bytes()[i] != std::byte{0}; };
  if (splat) return std::string(1, bit(0) ? '\xff' : '\0');
  std::string packed((count + 7) / 8, '\0');
  for (size_t i = 0; i < count; ++i) {
    if (bit(i)) packed[i / 8] = static_cast<char>(packed[i / 8] | 1 << (i % 8));
  }
  return packed;
}

// MLIR's bytes of a tensor: only the significant bits of narrow integers, one element for a splat.
std::string TensorBytes(const Literal& literal) {
  ElementType type = literal.shape().element_type();
  bool splat = literal.IsSplat();
  if (type == ElementType::kPred) return PackPredicates(literal, splat);
  std::string data(BytesOf(literal).substr(0, splat ? ByteWidth(type) : literal.byte_size()));
  if (IsInteger(type) && BitWidth(type) < 8) {
    for (char& byte : data) byte = static_cast<char>(byte & ((1 << BitWidth(type)) - 1));
  }
  return data;
}

}  // namespace

TypeId Encoder::Intern(Type type) {
  size_t hash = HashOf(type);
  auto [begin, end] = types_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (program_.types[it->second] == type) return it->second;
  }
  auto id = static_cast<TypeId>(program_.types.size());
  program_.types.push_back(std::move(type));
  types_.emplace(hash, id);
  return id;
}

TypeId Encoder::ElementTypeOf(ElementType element) {
  Type type;
  if (IsComplex(element)) {
    type.kind = TypeKind::kComplex;
    type.parts = {ElementTypeOf(RealType(element))};
  } else {
    type.kind = TypeKind::kElement;
    type.element = element;
    type.width = BitWidth(element);
  }
  return Intern(std::move(type));
}

TypeId Encoder::TypeOf(const Shape& shape) {
  const auto known = shapes_.find(shape);
  if (known != shapes_.end()) return known->second;
  const TypeId type = NewTypeOf(shape);
  shapes_.emplace(shape, type);
  return type;
}

TypeId Encoder::NewTypeOf(const Shape& shape) {
  Type type;
  if (shape.is_token()) {
    type.kind = TypeKind::kToken;
  } else if (shape.is_tuple()) {
    type.kind = TypeKind::kTuple;
    for (const Shape& element : shape.tuple_shapes()) type.parts.push_back(TypeOf(element));
  } else {
    type.kind = TypeKind::kTensor;
    type.dimensions = shape.dimensions();
    type.parts = {ElementTypeOf(shape.element_type())};
  }
  return Intern(std::move(type));
}

TypeId Encoder::FunctionType(const std::vector<Shape>& inputs, const std::vector<Shape>& results) {
  Type type;
  type.kind = TypeKind::kFunction;
  type.input_count = inputs.size();
  for (const Shape& shape : inputs) type.parts.push_back(TypeOf(shape));
  for (const Shape& shape : results) type.parts.push_back(TypeOf(shape));
  return Intern(std::move(type));
}

TypeId Encoder::AbsentType() {
  Type type;
  type.kind = TypeKind::kAbsent;
  return Intern(std::move(type));
}

TypeId Encoder::IndexTensorType(int64_t size) {
  Type index;
  index.kind = TypeKind::kIndex;
  index.width = 64;
  Type tensor;
  tensor.kind = TypeKind::kTensor;
  tensor.dimensions = {size};
  tensor.parts = {Intern(std::move(index))};
  return Intern(std::move(tensor));
}

AttributeId Encoder::Add(Attribute attribute) {
  size_t hash = HashOf(attribute);
  auto [begin, end] = attributes_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (program_.attributes[it->second] == attribute) return it->second;
  }
  attribute.text =
      attribute.text.empty() ? std::string_view() : program_.Own(std::string(attribute.text));
  auto id = static_cast<AttributeId>(program_.attributes.size());
  program_.attributes.push_back(std::move(attribute));
  attributes_.emplace(hash, id);
  return id;
}

AttributeId Encoder::String(std::string_view text) {
  return Add({.kind = AttributeKind::kString, .text = text});
}

AttributeId Encoder::Bool(bool value) {
  return Add({.kind = AttributeKind::kBool, .number = value});
}

AttributeId Encoder::Integer(int64_t value, ElementType type) {
  return Add({.kind = AttributeKind::kInteger, .type = ElementTypeOf(type), .number = value});
}

AttributeId Encoder::Float(double value, ElementType type) {
  auto narrow = static_cast<float>(value);
  int64_t bits;
  switch (type) {
    case ElementType::kF64:
      bits = std::bit_cast<int64_t>(value);
      break;
    case ElementType::kF32:
      bits = std::bit_cast<uint32_t>(narrow);
      break;
    case ElementType::kF16:
      bits = Float16(narrow).bits;
      break;
    case ElementType::kBF16:
      bits = BFloat16(narrow).bits;
      break;
    default:
      throw Error(ErrorCode::kUnimplemented,
                  "a number of type " + std::string(ShortName(type)) + " in an attribute");
  }
  return Add({.kind = AttributeKind::kFloat, .type = ElementTypeOf(type), .number = bits});
}

AttributeId Encoder::Enumeration(AttributeKind kind, int64_t value) {
  return Add({.kind = kind, .number = value});
}

AttributeId Encoder::Array(std::vector<AttributeId> parts) {
  return Add({.kind = AttributeKind::kArray, .parts = std::move(parts)});
}

AttributeId Encoder::Dictionary(std::vector<AttributeId> names_and_values) {
  return Add({.kind = AttributeKind::kDictionary, .parts = std::move(names_and_values)});
}

AttributeId Encoder::Dictionary(const AttributeDictionary& dictionary) {
  std::vector<AttributeId> parts;
  for (const auto& [name, value] : dictionary) {
    parts.push_back(String(name));
    parts.push_back(Value(value));
  }
  return Dictionary(std::move(parts));
}

AttributeId Encoder::TypeAttribute(TypeId type) {
  return Add({.kind = AttributeKind::kType, .type = type});
}

AttributeId Encoder::Integers(const std::vector<int64_t>& values, Dimensions dimensions) {
  Literal literal(Shape(ElementType::kS64, std::move(dimensions)));
  std::ranges::copy(values, literal.mutable_data<int64_t>().begin());
  return Tensor(literal);
}

AttributeId Encoder::Tensor(const Literal& literal) {
  std::string bytes = TensorBytes(literal);
  return Add({.kind = AttributeKind::kTensor, .type = TypeOf(literal.shape()), .text = bytes});
}

AttributeId Encoder::Value(const AttributeValue& value) {
  auto type = [&](ElementType fallback) {
    return value.element_type == ElementType::kInvalid ? fallback : value.element_type;
  };
  auto tensor = [&](const auto& numbers, ElementType element) {
    Literal literal(Shape(element, {static_cast<int64_t>(numbers.size())}));
    DispatchNative(element, [&]<typename T>() {
      if constexpr (!std::is_same_v<T, std::complex<float>> &&
                    !std::is_same_v<T, std::complex<double>>) {
        auto out = literal.mutable_data<T>();
        for (size_t i = 0; i < numbers.size(); ++i) out[i] = static_cast<T>(numbers[i]);
      }
    });
    return Tensor(literal);
  };
  struct Visitor {
    Encoder& encoder;
    decltype(type)& element;
    decltype(tensor)& list;
    AttributeId operator()(bool x) { return encoder.Bool(x); }
    AttributeId operator()(int64_t x) { return encoder.Integer(x, element(ElementType::kS64)); }
    AttributeId operator()(double x) { return encoder.Float(x, element(ElementType::kF64)); }
    AttributeId operator()(const std::string& x) { return encoder.String(x); }
    AttributeId operator()(const std::vector<int64_t>& x) {
      return list(x, element(ElementType::kS64));
    }
    AttributeId operator()(const std::vector<double>& x) {
      return list(x, element(ElementType::kF64));
    }
    AttributeId operator()(const Literal& x) { return encoder.Tensor(x); }
    AttributeId operator()(const AttributeDictionary& x) { return encoder.Dictionary(x); }
    AttributeId operator()(const std::vector<AttributeValue>& x) {
      std::vector<AttributeId> parts;
      for (const AttributeValue& part : x) parts.push_back(encoder.Value(part));
      return encoder.Array(std::move(parts));
    }
  };
  return std::visit(Visitor{*this, type, tensor}, value.value);
}

AttributeId Encoder::BuiltinString(std::string_view text) {
  return Add({.kind = AttributeKind::kBuiltinString, .text = text});
}

AttributeId Encoder::BuiltinInteger(int64_t value, ElementType type) {
  Type integer;
  integer.kind = TypeKind::kElement;
  integer.element = type;
  integer.width = BitWidth(type);
  integer.builtin = true;
  return Add({.kind = AttributeKind::kBuiltinInteger,
              .type = Intern(std::move(integer)),
              .number = value});
}

AttributeId Encoder::BuiltinDictionary(std::vector<AttributeId> names_and_values) {
  return Add({.kind = AttributeKind::kBuiltinDictionary, .parts = std::move(names_and_values)});
}

AttributeId Encoder::Location(const Metadata& metadata) {
  // What was recorded together comes from the same line.
  const auto& [known, known_location] = last_location_;
  if (known_location && known.op_name == metadata.op_name &&
      known.source_file == metadata.source_file && known.source_line == metadata.source_line) {
    return *known_location;
  }
  const AttributeId location = NewLocation(metadata);
  last_location_ = {metadata, location};
  return location;
}

AttributeId Encoder::NewLocation(const Metadata& metadata) {
  AttributeId location = metadata.source_file.empty()
                             ? Add({.kind = AttributeKind::kUnknownLocation})
                             : Add({.kind = AttributeKind::kFileLocation,
                                    .parts = {BuiltinString(metadata.source_file)},
                                    .indices = {std::max(metadata.source_line, 0), 0}});
  if (metadata.op_name.empty()) return location;
  return Add(
      {.kind = AttributeKind::kNameLocation, .parts = {BuiltinString(metadata.op_name), location}});
}

uint32_t Encoder::OperationNumber(std::string_view name) {
  auto number = static_cast<uint32_t>(program_.operation_names.size());
  auto [found, inserted] = operations_.try_emplace(std::string(name), number);
  if (inserted) program_.operation_names.push_back(program_.Own(std::string(name)));
  return found->second;
}

std::vector<NamedAttribute> FieldEncoder::Take() {
  std::ranges::sort(attributes_, {}, &NamedAttribute::name);
  return std::move(attributes_);
}

void FieldEncoder::Integers(const char* name, const Dimensions& values) {
  Add(name, encoder_.Integers(values, {static_cast<int64_t>(values.size())}));
}

void FieldEncoder::Bools(const char* name, const std::vector<bool>& values) {
  Literal literal(Shape(ElementType::kPred, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) literal.mutable_bytes()[i] = std::byte{values[i]};
  Add(name, encoder_.Tensor(literal));
}

void FieldEncoder::Precisions(const char* name, const std::vector<Precision>& values) {
  std::vector<AttributeId> parts;
  for (Precision precision : values) {
    parts.push_back(
        encoder_.Enumeration(AttributeKind::kPrecision, static_cast<int64_t>(precision)));
  }
  Add(name, encoder_.Array(std::move(parts)));
}

void FieldEncoder::Padding(const char* name, const Dimensions& low, const Dimensions& high) {
  std::vector<std::vector<int64_t>> rows;
  for (size_t i = 0; i < low.size(); ++i) rows.push_back({low[i], high[i]});
  Rows(name, rows, 2);
}

void FieldEncoder::Rows(const char* name, const std::vector<std::vector<int64_t>>& rows,
                        int64_t columns) {
  size_t width = static_cast<size_t>(columns);
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<int64_t> values;
  for (const auto& row : rows) {
    values.insert(values.end(), row.begin(), row.end());
    values.resize(values.size() + width - row.size(), -1);  // -1 pads ragged groups
  }
  Add(name,
      encoder_.Integers(values, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}));
}

void FieldEncoder::Layouts(const char* name, const std::vector<Dimensions>& layouts) {
  std::vector<AttributeId> parts;
  for (const Dimensions& layout : layouts) {
    Attribute tensor = {.kind = AttributeKind::kTensor};
    Literal literal = layout.empty() ? Literal(Shape(ElementType::kS64, {0}))
                                     : Literal::FromVector<int64_t>(layout);
    std::string bytes = TensorBytes(literal);
    tensor.type = encoder_.IndexTensorType(static_cast<int64_t>(layout.size()));
    tensor.text = bytes;
    parts.push_back(encoder_.Add(std::move(tensor)));
  }
  Add(name, encoder_.Array(std::move(parts)));
}

void FieldEncoder::Aliases(const char* name, const std::vector<OutputOperandAlias>& aliases) {
  std::vector<AttributeId> parts;
  for (const OutputOperandAlias& alias : aliases) {
    parts.push_back(encoder_.Add({.kind = AttributeKind::kOutputOperandAlias,
                                  .number = alias.operand_index,
                                  .indices = alias.output_tuple_indices,
                                  .more_indices = alias.operand_tuple_indices}));
  }
  Add(name, encoder_.Array(std::move(parts)));
}

}  // namespace hlo::bytecode
