#include "hlo/bytecode_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hlo/bytecode_stream.h"
#include "hlo/error.h"

namespace hlo::bytecode {
namespace {

// Limits that no sensible program meets; they keep hostile ones from exhausting memory or stack.
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxRank = 256;  // torch makes tensors of more than 64
constexpr int64_t kMaxElements = int64_t{1} << 56;
// Of one dimension or index, and of what may multiply one: their product is far from overflowing.
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kMaxFactor = int64_t{1} << 20;
constexpr int kMaxLocationDepth = 32;
constexpr size_t kMaxList = 1024;
constexpr size_t kMaxGroups = size_t{1} << 20;
// Splat constants up to this size are written out, as long as all of them together stay small.
constexpr size_t kMaxSplatBytes = size_t{16} << 20;
constexpr size_t kSplatBudget = size_t{64} << 20;
constexpr size_t kMinimumBudget = size_t{1} << 20;
constexpr size_t kBudgetFactor = 64;

std::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kArray:
      return "an array";
    case AttributeKind::kBool:
      return "a bool";
    case AttributeKind::kDictionary:
      return "a dictionary";
    case AttributeKind::kFloat:
      return "a float";
    case AttributeKind::kInteger:
      return "an integer";
    case AttributeKind::kString:
      return "a string";
    case AttributeKind::kTensor:
      return "a tensor";
    case AttributeKind::kType:
      return "a type";
    default:
      return "another kind of attribute";
  }
}

void Expect(const Attribute& attribute, AttributeKind kind, size_t offset) {
  if (attribute.kind == kind) return;
  FailAt(offset, "an operation's attribute is " + std::string(KindName(attribute.kind)) +
                     " and should be " + std::string(KindName(kind)));
}

double FloatValue(int64_t bits, ElementType type, size_t offset) {
  switch (type) {
    case ElementType::kF64:
      return std::bit_cast<double>(bits);
    case ElementType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case ElementType::kF16: {
      Float16 value;
      value.bits = static_cast<uint16_t>(bits);
      return value;
    }
    case ElementType::kBF16: {
      BFloat16 value;
      value.bits = static_cast<uint16_t>(bits);
      return value;
    }
    default:
      FailAt(offset, "a number of type " + std::string(ShortName(type)) + " in an attribute");
  }
}

// MLIR keeps what is narrower than a byte in the low bits of one, and says nothing of the others;
// we keep signed integers sign-extended, and zeros above all else.
void NormalizeNarrow(Literal& literal) {
  ElementType type = literal.shape().element_type();
  const int width = BitWidth(type);
  if (type == ElementType::kPred || width == 0 || width >= 8) return;
  std::byte* data = literal.mutable_bytes();
  int shift = 8 - width;
  for (size_t i = 0; i < literal.byte_size(); ++i) {
    auto bits = static_cast<uint8_t>(static_cast<uint8_t>(data[i]) << shift);
    data[i] = IsSignedInteger(type) ? static_cast<std::byte>(static_cast<int8_t>(bits) >> shift)
                                    : static_cast<std::byte>(bits >> shift);
  }
}

// Data may be one element for all, and predicates a bit each. A resource's are whole.
bool IsSplat(const Attribute& tensor, size_t element_bytes) {
  return !tensor.is_resource() && tensor.text.size() == element_bytes;
}

// Packed to bits, the lowest first, or a byte each.
void UnpackPredicates(std::string_view data, bool packed, Literal& literal) {
  std::byte* out = literal.mutable_bytes();
  size_t count = literal.byte_size();
  for (size_t i = 0; i < count; ++i) {
    bool value = packed ? (static_cast<uint8_t>(data[i / 8]) >> (i % 8) & 1) != 0 : data[i] != 0;
    out[i] = std::byte{value};
  }
}

}  // namespace

Decoder::Decoder(const Program& program, size_t input_size)
    : program_(program),
      shapes_(program.types.size()),
      budget_(kMinimumBudget + kBudgetFactor * input_size),
      splat_budget_(kSplatBudget) {}

void Decoder::Spend(size_t bytes, size_t offset) {
  if (bytes > budget_) {
    FailAt(offset, "the program would take far more memory than the size of its file suggests",
           ErrorCode::kResourceExhausted);
  }
  budget_ -= bytes;
}

ElementType Decoder::Element(TypeId id, size_t offset) {
  const Type& type = program_.types[id];
  if (type.kind == TypeKind::kElement) return type.element;
  if (type.kind == TypeKind::kIndex) return ElementType::kS64;
  if (type.kind == TypeKind::kComplex) {
    const Type& part = program_.types[type.parts[0]];
    if (part.kind == TypeKind::kElement && part.element == ElementType::kF32) {
      return ElementType::kC64;
    }
    if (part.kind == TypeKind::kElement && part.element == ElementType::kF64) {
      return ElementType::kC128;
    }
    FailAt(offset, "a complex type of neither f32 nor f64");
  }
  if (type.kind == TypeKind::kUnsupported) {
    FailAt(
        offset,
        "the element type is of the kind '" + std::string(type.name) + "', which is not supported",
        ErrorCode::kUnimplemented);
  }
  FailAt(offset, "a tensor's element type is not a number");
}

Shape Decoder::MakeShape(TypeId id, size_t offset, int depth) {
  if (depth > kMaxDepth) FailAt(offset, "types are nested too deep");
  const Type& type = program_.types[id];
  switch (type.kind) {
    case TypeKind::kTensor: {
      if (static_cast<int64_t>(type.dimensions.size()) > kMaxRank) {
        FailAt(offset, "a tensor of rank " + std::to_string(type.dimensions.size()));
      }
      int64_t elements = 1;
      for (int64_t size : type.dimensions) {
        if (size > kMaxSize) FailAt(offset, "a dimension of size " + std::to_string(size));
        if (size > 0 && elements > kMaxElements / size) FailAt(offset, "a tensor is too large");
        if (size > 0) elements *= size;
      }
      return Shape(Element(type.parts[0], offset), type.dimensions);
    }
    case TypeKind::kToken:
      return Shape::Token();
    case TypeKind::kTuple: {
      Spend(64 * (type.parts.size() + 1), offset);
      std::vector<Shape> elements;
      for (TypeId part : type.parts) elements.push_back(MakeShape(part, offset, depth + 1));
      return Shape::Tuple(std::move(elements));
    }
    case TypeKind::kUnsupported:
      FailAt(offset,
             "a value is of the kind '" + std::string(type.name) + "', which is not supported",
             ErrorCode::kUnimplemented);
    default:
      FailAt(offset, "a value's type is neither a tensor nor a token nor a tuple");
  }
}

const Shape& Decoder::TensorShape(TypeId type, size_t offset) {
  if (!shapes_[type]) shapes_[type] = MakeShape(type, offset, 0);
  if (shapes_[type]->is_tuple()) Spend(64 * shapes_[type]->tuple_shapes().size(), offset);
  return *shapes_[type];
}

const Attribute* Decoder::Find(const Operation& operation, std::string_view name) const {
  auto present = [this](AttributeId id) -> const Attribute* {
    const Attribute& found = program_.attributes[id];
    bool absent =
        found.kind == AttributeKind::kType && program_.types[found.type].kind == TypeKind::kAbsent;
    return absent ? nullptr : &found;
  };
  for (const NamedAttribute& property : operation.properties) {
    if (property.name == name) return present(property.value);
  }
  if (operation.dictionary == kNone) return nullptr;
  const Attribute& dictionary = program_.attributes[operation.dictionary];
  if (dictionary.kind != AttributeKind::kBuiltinDictionary) return nullptr;
  for (size_t i = 0; i + 1 < dictionary.parts.size(); i += 2) {
    if (program_.attributes[dictionary.parts[i]].text == name) {
      return present(dictionary.parts[i + 1]);
    }
  }
  return nullptr;
}

std::string_view Decoder::Text(const Attribute& attribute, size_t offset) const {
  if (attribute.kind == AttributeKind::kBuiltinSymbol) {
    return Text(program_.attributes[attribute.parts[0]].kind == AttributeKind::kBuiltinString
                    ? program_.attributes[attribute.parts[0]]
                    : Attribute{},
                offset);
  }
  if (attribute.kind == AttributeKind::kBuiltinString) return attribute.text;
  Expect(attribute, AttributeKind::kString, offset);
  return attribute.text;
}

std::string Decoder::CopyText(const Attribute& attribute, size_t offset) {
  std::string_view text = Text(attribute, offset);
  Spend(text.size(), offset);
  return std::string(text);
}

int64_t Decoder::Integer(const Attribute& attribute, size_t offset) const {
  if (attribute.kind != AttributeKind::kBuiltinInteger) {
    Expect(attribute, AttributeKind::kInteger, offset);
  }
  return attribute.number;
}

bool Decoder::Bool(const Attribute& attribute, size_t offset) const {
  if (attribute.kind == AttributeKind::kBuiltinUnit) return true;  // it is there
  Expect(attribute, AttributeKind::kBool, offset);
  return attribute.number != 0;
}

std::vector<int64_t> Decoder::Integers(const Attribute& attribute, size_t limit, size_t offset) {
  Expect(attribute, AttributeKind::kTensor, offset);
  const Type& type = program_.types[attribute.type];
  if (type.kind != TypeKind::kTensor || Element(type.parts[0], offset) != ElementType::kS64) {
    FailAt(offset, "a list of numbers is not a tensor of 64-bit integers");
  }
  auto count = static_cast<size_t>(TensorShape(attribute.type, offset).num_elements());
  if (count > limit) FailAt(offset, "a list of " + std::to_string(count) + " numbers");
  bool splat = IsSplat(attribute, sizeof(int64_t));
  if (!splat && attribute.text.size() != count * sizeof(int64_t)) {
    FailAt(offset, std::to_string(attribute.text.size()) + " bytes for " + std::to_string(count) +
                       " 64-bit integers");
  }
  Spend(count * sizeof(int64_t), offset);
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&values[i], attribute.text.data() + (splat ? 0 : i * sizeof(int64_t)),
                sizeof(int64_t));
  }
  return values;
}

const Shape& Decoder::StaticShape(const Attribute& tensor, size_t offset) {
  Expect(tensor, AttributeKind::kTensor, offset);
  const Shape& shape = TensorShape(tensor.type, offset);
  if (!shape.is_array() || shape.is_dynamic()) FailAt(offset, "a constant of unknown shape");
  return shape;
}

bool Decoder::IsLargeSplat(const Attribute& attribute, size_t offset) {
  const Shape& shape = StaticShape(attribute, offset);
  auto bytes = static_cast<size_t>(shape.byte_size());
  size_t width = ByteWidth(shape.element_type());
  if (bytes <= width || !IsSplat(attribute, width)) return false;
  // Predicates that fit a byte are no splat but packed.
  if (shape.element_type() == ElementType::kPred && bytes <= 8) return false;
  if (bytes > kMaxSplatBytes || bytes > splat_budget_) return true;
  splat_budget_ -= bytes;
  return false;
}

Literal Decoder::SplatElement(const Attribute& attribute, size_t offset) {
  ElementType type = TensorShape(attribute.type, offset).element_type();
  return TensorOf(attribute, Shape::Scalar(type), offset);
}

Literal Decoder::TensorOf(const Attribute& attribute, const Shape& shape, size_t offset) {
  std::string_view data = attribute.text;
  size_t width = ByteWidth(shape.element_type());
  auto bytes = static_cast<size_t>(shape.byte_size());
  bool is_predicate = shape.element_type() == ElementType::kPred;
  bool is_packed = is_predicate && !attribute.is_resource() && data.size() == (bytes + 7) / 8;
  bool fits = data.size() == bytes || is_packed;
  if (!fits && IsSplat(attribute, width)) {
    return Literal::Splat(shape, TensorOf(attribute, Shape::Scalar(shape.element_type()), offset));
  }
  if (!fits) {
    FailAt(offset, "a constant of shape " + shape.ToString() + " has " +
                       std::to_string(data.size()) + " bytes of data");
  }
  if (is_predicate) {
    Spend(bytes, offset);
    Literal literal(shape);
    UnpackPredicates(data, is_packed, literal);
    return literal;
  }
  Spend(bytes, offset);
  Literal literal(shape, data.data());
  NormalizeNarrow(literal);
  return literal;
}

Literal Decoder::ConstantTensor(const Attribute& attribute, size_t offset) {
  return TensorOf(attribute, StaticShape(attribute, offset), offset);
}

Literal Decoder::Tensor(const Attribute& attribute, size_t offset) {
  const Shape& shape = StaticShape(attribute, offset);
  auto bytes = static_cast<size_t>(shape.byte_size());
  // What is not one element for all pays when it is copied.
  bool is_splat = IsSplat(attribute, ByteWidth(shape.element_type()));
  if (is_splat) Spend(bytes, offset);
  return TensorOf(attribute, shape, offset);
}

AttributeDictionary Decoder::Dictionary(const Attribute& attribute, size_t offset, int depth) {
  Expect(attribute, AttributeKind::kDictionary, offset);
  AttributeDictionary result;
  Spend(attribute.parts.size() * sizeof(AttributeValue), offset);
  for (size_t i = 0; i + 1 < attribute.parts.size(); i += 2) {
    std::string name = CopyText(program_.attributes[attribute.parts[i]], offset);
    result[std::move(name)] = Value(program_.attributes[attribute.parts[i + 1]], offset, depth + 1);
  }
  return result;
}

AttributeValue Decoder::Value(const Attribute& attribute, size_t offset, int depth) {
  if (depth > kMaxDepth) FailAt(offset, "attributes are nested too deep");
  Spend(sizeof(AttributeValue), offset);
  switch (attribute.kind) {
    case AttributeKind::kBool:
      return {attribute.number != 0, ElementType::kPred};
    case AttributeKind::kInteger:
      return {attribute.number, Element(attribute.type, offset)};
    case AttributeKind::kFloat: {
      ElementType type = Element(attribute.type, offset);
      return {FloatValue(attribute.number, type, offset), type};
    }
    case AttributeKind::kString:
      return {CopyText(attribute, offset)};
    case AttributeKind::kDictionary:
      return {Dictionary(attribute, offset, depth)};
    case AttributeKind::kArray:
      return ArrayValue(attribute, offset, depth);
    case AttributeKind::kTensor:
      return TensorValue(attribute, offset);
    case AttributeKind::kType:
      return {std::string(Name(Element(attribute.type, offset)))};
    case AttributeKind::kBuiltinUnit:
      return {true, ElementType::kPred};
    default:
      return {std::string()};
  }
}

AttributeValue Decoder::ArrayValue(const Attribute& attribute, size_t offset, int depth) {
  std::vector<AttributeValue> values;
  for (AttributeId part : attribute.parts) {
    values.push_back(Value(program_.attributes[part], offset, depth + 1));
  }
  return {std::move(values)};
}

// VHLO writes dense arrays and tensors alike: what has one dimension of plain numbers is an array
// here.
AttributeValue Decoder::TensorValue(const Attribute& attribute, size_t offset) {
  Literal literal = Tensor(attribute, offset);
  ElementType type = literal.shape().element_type();
  bool is_float = type == ElementType::kF32 || type == ElementType::kF64;
  bool is_integer = IsInteger(type) && BitWidth(type) >= 8;
  if (literal.shape().rank() != 1 || !(is_float || is_integer)) return {std::move(literal)};
  int64_t count = literal.shape().num_elements();
  Spend(static_cast<size_t>(count) * 8, offset);
  if (is_float) {
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(literal.AsDouble(i));
    return {std::move(values), type};
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(literal.AsInt(i));
  return {std::move(values), type};
}

const SharedMetadata& Decoder::Location(AttributeId location) {
  const auto [found, is_new] = locations_.try_emplace(location);
  if (is_new) {
    Metadata metadata;
    CollectLocation(location, metadata, 0);
    found->second = std::move(metadata);
  }
  return found->second;
}

// The outermost name and the innermost file: loc("op"(callsite("function"("file":1:2) at …))).
void Decoder::CollectLocation(AttributeId id, Metadata& metadata, int depth) {
  const Attribute& location = program_.attributes[id];
  // Text that many locations share is copied for each: enough is enough, and it is only for
  // people.
  auto copy = [this](AttributeId text, std::string& out) {
    std::string_view value = program_.attributes[text].text;
    if (value.size() > budget_ / 2) return;
    budget_ -= value.size();
    out = value;
  };
  if (depth > kMaxLocationDepth || location.parts.empty()) return;
  switch (location.kind) {
    case AttributeKind::kNameLocation:
      if (metadata.op_name.empty()) copy(location.parts[0], metadata.op_name);
      return CollectLocation(location.parts[1], metadata, depth + 1);
    case AttributeKind::kCallSiteLocation:
    case AttributeKind::kFusedLocation:
    case AttributeKind::kFusedLocationWithMetadata:
      return CollectLocation(location.parts[0], metadata, depth + 1);
    case AttributeKind::kFileLocation:
    case AttributeKind::kFileRangeLocation:
      copy(location.parts[0], metadata.source_file);
      if (!location.indices.empty()) {
        metadata.source_line = static_cast<int32_t>(location.indices[0]);
      }
      return;
    default:
      return;
  }
}

void FieldDecoder::Fail(const char* name, const std::string& what) const {
  FailAt(operation_.offset, "attribute " + std::string(name) + " " + what);
}

const Attribute* FieldDecoder::Find(const char* name, AttributeKind kind) const {
  const Attribute* attribute = decoder_.Find(operation_, name);
  if (attribute && attribute->kind != kind) {
    Fail(name, "is " + std::string(KindName(attribute->kind)) + " and should be " +
                   std::string(KindName(kind)));
  }
  return attribute;
}

int64_t FieldDecoder::EnumerationValue(const char* name, const Attribute& attribute,
                                       AttributeKind kind, int64_t last, int64_t offset) const {
  if (attribute.kind != kind) Fail(name, "is not the enumeration that it should be");
  int64_t value = attribute.number - offset;
  if (value < 0 || value > last) Fail(name, "is " + std::to_string(attribute.number));
  return value;
}

void FieldDecoder::CheckBound(const char* name, int64_t value, int64_t bound) const {
  if (value > bound || value < -bound) Fail(name, "has the value " + std::to_string(value));
}

void FieldDecoder::Integer(const char* name, int64_t& field) {
  const Attribute* attribute = Find(name, AttributeKind::kInteger);
  if (!attribute) return;
  CheckBound(name, attribute->number, kMaxSize);
  field = attribute->number;
}

void FieldDecoder::Factor(const char* name, int64_t& field) {
  Integer(name, field);
  CheckBound(name, field, kMaxFactor);
}

void FieldDecoder::Integers(const char* name, Dimensions& field) {
  const Attribute* attribute = Find(name, AttributeKind::kTensor);
  if (!attribute) return;
  field = decoder_.Integers(*attribute, kMaxList, operation_.offset);
  for (int64_t value : field) CheckBound(name, value, kMaxSize);
}

void FieldDecoder::Factors(const char* name, Dimensions& field) {
  Integers(name, field);
  for (int64_t value : field) CheckBound(name, value, kMaxFactor);
}

void FieldDecoder::OptionalIntegers(const char* name, std::optional<Dimensions>& field) {
  Dimensions values;
  Integers(name, values);
  if (!values.empty()) field = std::move(values);
}

void FieldDecoder::Bool(const char* name, bool& field) {
  if (const Attribute* attribute = Find(name, AttributeKind::kBool)) field = attribute->number != 0;
}

void FieldDecoder::Bools(const char* name, std::vector<bool>& field) {
  const Attribute* attribute = Find(name, AttributeKind::kTensor);
  if (!attribute) return;
  const Shape& shape = decoder_.TensorShape(attribute->type, operation_.offset);
  if (shape.element_type() != ElementType::kPred || shape.is_dynamic() ||
      shape.num_elements() > static_cast<int64_t>(kMaxList)) {
    Fail(name, "is not a short list of predicates");
  }
  Literal literal = decoder_.Tensor(*attribute, operation_.offset);
  for (size_t i = 0; i < literal.byte_size(); ++i) {
    field.push_back(literal.bytes()[i] != std::byte{0});
  }
}

void FieldDecoder::Float(const char* name, float& field) {
  if (const Attribute* attribute = Find(name, AttributeKind::kFloat)) {
    ElementType type = decoder_.Element(attribute->type, operation_.offset);
    field = static_cast<float>(FloatValue(attribute->number, type, operation_.offset));
  }
}

void FieldDecoder::String(const char* name, std::string& field) {
  if (const Attribute* attribute = Find(name, AttributeKind::kString)) {
    field = decoder_.CopyText(*attribute, operation_.offset);
  }
}

void FieldDecoder::Precisions(const char* name, std::vector<Precision>& field) {
  const Attribute* attribute = Find(name, AttributeKind::kArray);
  if (!attribute) return;
  if (attribute->parts.size() > 2) Fail(name, "has more than two entries");
  for (AttributeId part : attribute->parts) {
    field.push_back(static_cast<Precision>(
        EnumerationValue(name, decoder_.attribute(part), AttributeKind::kPrecision, 2, 0)));
  }
  // All default is what no precision means: equal programs are equal.
  if (std::ranges::count(field, Precision::kDefault) == std::ssize(field)) field.clear();
}

void FieldDecoder::Rows(const char* name, std::vector<std::vector<int64_t>>& field,
                        int64_t columns) {
  const Attribute* attribute = Find(name, AttributeKind::kTensor);
  if (!attribute) return;
  const Shape& shape = decoder_.TensorShape(attribute->type, operation_.offset);
  if (shape.rank() != 2 || shape.is_dynamic()) Fail(name, "is not a matrix");
  if (shape.num_elements() == 0) return;
  int64_t width = shape.dimension(1);
  if (columns != 0 && width != columns) {
    Fail(name, "has " + std::to_string(width) + " columns, not " + std::to_string(columns));
  }
  std::vector<int64_t> values = decoder_.Integers(*attribute, kMaxGroups, operation_.offset);
  decoder_.Spend(static_cast<size_t>(shape.dimension(0)) * sizeof(field[0]), operation_.offset);
  for (auto row = values.begin(); row != values.end(); row += width) {
    field.emplace_back(row, row + width);
  }
}

void FieldDecoder::Padding(const char* name, Dimensions& low, Dimensions& high) {
  std::vector<std::vector<int64_t>> rows;
  Rows(name, rows, 2);
  if (rows.size() > kMaxList) Fail(name, "has too many rows");
  for (const std::vector<int64_t>& row : rows) {
    for (int64_t value : row) CheckBound(name, value, kMaxSize);
    low.push_back(row[0]);
    high.push_back(row[1]);
  }
}

void FieldDecoder::Constant(const char* name, Literal& field) {
  const Attribute* attribute = Find(name, AttributeKind::kTensor);
  if (!attribute) Fail(name, "is missing");
  field = decoder_.Tensor(*attribute, operation_.offset);
}

void FieldDecoder::Dictionary(const char* name, AttributeDictionary& field) {
  const Attribute* attribute = decoder_.Find(operation_, name);
  if (!attribute) return;
  // A typed custom call without configuration has an empty string.
  if (attribute->kind == AttributeKind::kString && attribute->text.empty()) return;
  field = decoder_.Dictionary(*attribute, operation_.offset);
}

void FieldDecoder::TypedCustomCall(CustomCallAttributes& a) {
  const Attribute* attribute = decoder_.Find(operation_, "mhlo.backend_config");
  if (!attribute) return;
  constexpr int64_t kTypedFfi = 4;
  a.api_version = kTypedFfi;
  a.backend_config.clear();
  a.dictionary = decoder_.Dictionary(*attribute, operation_.offset);
}

void FieldDecoder::Layouts(const char* name, std::vector<Dimensions>& field) {
  const Attribute* attribute = Find(name, AttributeKind::kArray);
  if (!attribute) return;
  for (AttributeId part : attribute->parts) {
    decoder_.Spend(sizeof(Dimensions), operation_.offset);
    field.push_back(decoder_.Integers(decoder_.attribute(part), kMaxList, operation_.offset));
  }
}

void FieldDecoder::Aliases(const char* name, std::vector<OutputOperandAlias>& field) {
  const Attribute* attribute = Find(name, AttributeKind::kArray);
  if (!attribute) return;
  for (AttributeId part : attribute->parts) {
    const Attribute& alias = decoder_.attribute(part);
    if (alias.kind != AttributeKind::kOutputOperandAlias) Fail(name, "has a wrong entry");
    decoder_.Spend(
        sizeof(OutputOperandAlias) + 8 * (alias.indices.size() + alias.more_indices.size()),
        operation_.offset);
    field.push_back({alias.indices, alias.number, alias.more_indices});
  }
}

}  // namespace hlo::bytecode
