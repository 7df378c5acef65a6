#include "hlo/bytecode_attributes.h"

#include "hlo/error.h"

namespace hlo::bytecode {
namespace {

// VHLO's type codes that name one element type.
struct ElementCode {
  uint64_t code;
  ElementType element;
};
constexpr ElementCode kElementCodes[] = {
    {0, ElementType::kPred},        {2, ElementType::kBF16},
    {3, ElementType::kF16},         {4, ElementType::kF32},
    {5, ElementType::kF64},         {6, ElementType::kF8E4M3FN},
    {7, ElementType::kF8E5M2},      {10, ElementType::kS4},
    {11, ElementType::kS8},         {12, ElementType::kS16},
    {13, ElementType::kS32},        {14, ElementType::kS64},
    {15, ElementType::kU4},         {16, ElementType::kU8},
    {17, ElementType::kU16},        {18, ElementType::kU32},
    {19, ElementType::kU64},        {27, ElementType::kF8E4M3FNUZ},
    {28, ElementType::kF8E5M2FNUZ}, {29, ElementType::kF8E4M3B11FNUZ},
    {31, ElementType::kS2},         {32, ElementType::kU2},
    {35, ElementType::kF8E4M3},     {36, ElementType::kF8E3M4},
    {37, ElementType::kF4E2M1FN},   {38, ElementType::kF6E2M3FN},
    {39, ElementType::kF6E3M2FN},   {40, ElementType::kF8E8M0FNU},
};

enum VhloTypeCode : uint64_t {
  kComplexCode = 1,
  kFunctionCode = 8,
  kIndexCode = 9,
  kTensorCode = 20,
  kTensorWithEncodingCode = 21,
  kTokenCode = 22,
  kTupleCode = 23,
  kNoneCode = 33,
};

// Codes that we only name: nothing can be done with values of these types.
std::string_view UnsupportedTypeName(uint64_t code) {
  switch (code) {
    case 24:
      return "quantized";
    case 25:
      return "unranked tensor";
    case 26:
      return "witness";
    case 30:
      return "per-axis quantized";
    case 34:
      return "tf32";
    case 41:
      return "buffer";
    case 42:
      return "future";
    default:
      return "unknown";
  }
}

Type ElementTypeNode(ElementType element) {
  Type type;
  type.kind = TypeKind::kElement;
  type.element = element;
  type.width = BitWidth(element);
  return type;
}

Dimensions ParseDimensions(ByteReader& reader) {
  Dimensions dimensions = reader.SignedVarints();
  for (int64_t& size : dimensions) {
    if (size == INT64_MIN) {
      size = kDynamic;
    } else if (size < 0) {
      reader.Fail("a dimension of size " + std::to_string(size));
    }
  }
  return dimensions;
}

template <typename Id>
std::vector<Id> ParseIndices(ByteReader& reader, size_t limit, const char* what) {
  size_t count = reader.Count(what);
  std::vector<Id> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.push_back(reader.Index(limit, what));
  return result;
}

Type ParseVhloType(ByteReader& reader, const References& references) {
  uint64_t code = reader.Varint();
  for (const ElementCode& entry : kElementCodes) {
    if (entry.code == code) return ElementTypeNode(entry.element);
  }
  auto type_index = [&] { return reader.Index(references.type_count, "type"); };
  Type type;
  switch (code) {
    case kComplexCode:
      type.kind = TypeKind::kComplex;
      type.parts = {type_index()};
      return type;
    case kFunctionCode: {
      type.kind = TypeKind::kFunction;
      type.parts = ParseIndices<TypeId>(reader, references.type_count, "types");
      type.input_count = type.parts.size();
      auto results = ParseIndices<TypeId>(reader, references.type_count, "types");
      type.parts.insert(type.parts.end(), results.begin(), results.end());
      return type;
    }
    case kIndexCode:
      type.kind = TypeKind::kIndex;
      type.width = 64;
      return type;
    case kTensorWithEncodingCode:
      reader.Index(references.attribute_count, "attribute");  // bounds of dynamic dimensions
      [[fallthrough]];
    case kTensorCode:
      type.kind = TypeKind::kTensor;
      type.dimensions = ParseDimensions(reader);
      type.parts = {type_index()};
      return type;
    case kTokenCode:
      type.kind = TypeKind::kToken;
      return type;
    case kTupleCode:
      type.kind = TypeKind::kTuple;
      type.parts = ParseIndices<TypeId>(reader, references.type_count, "types");
      return type;
    case kNoneCode:
      type.kind = TypeKind::kAbsent;
      return type;
    default:
      type.name = UnsupportedTypeName(code);
      return type;
  }
}

ElementType IntegerElement(uint64_t width, bool is_unsigned) {
  switch (width) {
    case 1:
      return ElementType::kPred;
    case 2:
      return is_unsigned ? ElementType::kU2 : ElementType::kS2;
    case 4:
      return is_unsigned ? ElementType::kU4 : ElementType::kS4;
    case 8:
      return is_unsigned ? ElementType::kU8 : ElementType::kS8;
    case 16:
      return is_unsigned ? ElementType::kU16 : ElementType::kS16;
    case 32:
      return is_unsigned ? ElementType::kU32 : ElementType::kS32;
    case 64:
      return is_unsigned ? ElementType::kU64 : ElementType::kS64;
    default:
      return ElementType::kInvalid;
  }
}

// Builtin types stand in module attributes and around sharding operations.
Type ParseBuiltinType(ByteReader& reader, const References& references) {
  Type type;
  type.name = "builtin";
  switch (reader.Varint()) {
    case 0: {
      uint64_t coded = reader.Varint();  // width, then two bits of signedness; 2 is unsigned
      ElementType element = IntegerElement(coded >> 2, (coded & 3) == 2);
      if (element != ElementType::kInvalid) return ElementTypeNode(element);
      return type;
    }
    case 1:
      type.kind = TypeKind::kIndex;
      type.width = 64;
      return type;
    case 3:
      return ElementTypeNode(ElementType::kBF16);
    case 4:
      return ElementTypeNode(ElementType::kF16);
    case 5:
      return ElementTypeNode(ElementType::kF32);
    case 6:
      return ElementTypeNode(ElementType::kF64);
    case 9:
      type.kind = TypeKind::kComplex;
      type.parts = {reader.Index(references.type_count, "type")};
      return type;
    case 13:
      type.kind = TypeKind::kTensor;
      type.dimensions = ParseDimensions(reader);
      type.parts = {reader.Index(references.type_count, "type")};
      return type;
    default:
      return type;
  }
}

// An integer of a known width: one raw byte, or a zigzag varint of the bits. Sign-extended for
// signed types.
int64_t ParseInteger(ByteReader& reader, const Type& type) {
  if (type.width == 0 || type.width > 64) reader.Fail("a number of a type that has no width");
  int64_t bits = type.width <= 8 ? reader.Byte() : reader.SignedVarint();
  if (type.width == 64) return bits;
  auto mask = (uint64_t{1} << type.width) - 1;
  auto value = static_cast<uint64_t>(bits) & mask;
  bool is_signed = type.kind == TypeKind::kElement && IsSignedInteger(type.element);
  if (is_signed && (value >> (type.width - 1)) != 0) value |= ~mask;
  return static_cast<int64_t>(value);
}

void WriteInteger(ByteWriter& out, int64_t value, const Type& type) {
  if (type.width <= 8) {
    auto mask = (1u << type.width) - 1;
    out.Byte(static_cast<uint8_t>(static_cast<uint64_t>(value) & mask));
  } else if (type.width == 64) {
    out.SignedVarint(value);
  } else {
    auto mask = (uint64_t{1} << type.width) - 1;
    out.SignedVarint(static_cast<int64_t>(static_cast<uint64_t>(value) & mask));
  }
}

class AttributeParser {
 public:
  AttributeParser(ByteReader& reader, const References& references)
      : reader_(reader), references_(references) {}

  Attribute Parse(AttributeKind kind) {
    attribute_.kind = kind;
    switch (kind) {
      case AttributeKind::kArray:
      case AttributeKind::kBuiltinArray:
      case AttributeKind::kFusedLocation:
      case AttributeKind::kFusedLocationWithMetadata:
        attribute_.parts = Attributes(1);
        break;
      case AttributeKind::kDictionary:
      case AttributeKind::kBuiltinDictionary:
        attribute_.parts = Attributes(2);
        break;
      case AttributeKind::kBool:
      case AttributeKind::kComparisonDirection:
      case AttributeKind::kComparisonType:
      case AttributeKind::kCustomCallApiVersion:
      case AttributeKind::kFftType:
      case AttributeKind::kPrecision:
      case AttributeKind::kRngAlgorithm:
      case AttributeKind::kRngDistribution:
      case AttributeKind::kTranspose:
        attribute_.number = static_cast<int64_t>(reader_.Varint());
        break;
      case AttributeKind::kFloat:
      case AttributeKind::kInteger:
      case AttributeKind::kBuiltinInteger:
        attribute_.type = TypeIndex();
        attribute_.number = ParseInteger(reader_, references_.types[attribute_.type]);
        break;
      case AttributeKind::kOutputOperandAlias:
        attribute_.indices = reader_.SignedVarints();
        attribute_.number = reader_.SignedVarint();
        attribute_.more_indices = reader_.SignedVarints();
        break;
      case AttributeKind::kString:
      case AttributeKind::kBuiltinString:
      case AttributeKind::kBuiltinTypedString:
        attribute_.text = references_.strings[reader_.Index(references_.strings.size(), "string")];
        break;
      case AttributeKind::kTensor:
        attribute_.type = TypeIndex();
        attribute_.text = Blob();
        break;
      case AttributeKind::kType:
      case AttributeKind::kBuiltinType:
        attribute_.type = TypeIndex();
        break;
      case AttributeKind::kBuiltinSymbol:
        attribute_.parts = {Index()};
        break;
      case AttributeKind::kCallSiteLocation:
      case AttributeKind::kNameLocation:
        attribute_.parts = {Index(), Index()};
        break;
      case AttributeKind::kFileLocation:
        attribute_.parts = {Index()};
        attribute_.indices = {Line(), Line()};
        break;
      case AttributeKind::kFileRangeLocation: {
        attribute_.parts = {Index()};
        size_t count = reader_.Count("line numbers");
        for (size_t i = 0; i < count; ++i) attribute_.indices.push_back(Line());
        break;
      }
      case AttributeKind::kBuiltinUnit:
      case AttributeKind::kUnknownLocation:
        break;
      default:
        attribute_.kind = AttributeKind::kOpaque;
    }
    return std::move(attribute_);
  }

 private:
  AttributeId Index() { return reader_.Index(references_.attribute_count, "attribute"); }
  TypeId TypeIndex() { return reader_.Index(references_.type_count, "type"); }
  int64_t Line() { return static_cast<int64_t>(reader_.Varint() & INT32_MAX); }

  // `group` references for each counted thing.
  std::vector<AttributeId> Attributes(size_t group) {
    size_t count = reader_.Count("attributes");
    std::vector<AttributeId> result;
    result.reserve(count * group);
    for (size_t i = 0; i < count * group; ++i) result.push_back(Index());
    return result;
  }

  std::string_view Blob() {
    auto bytes = reader_.Bytes(reader_.Varint());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ByteReader& reader_;
  const References& references_;
  Attribute attribute_;
};

AttributeKind KindFromCode(uint64_t code, Dialect dialect) {
  if (dialect == Dialect::kVhlo && code >= 1 && code <= 17) return static_cast<AttributeKind>(code);
  if (dialect == Dialect::kBuiltin && code < 64) return static_cast<AttributeKind>(64 + code);
  return AttributeKind::kOpaque;
}

}  // namespace

Dialect DialectFromName(std::string_view name) {
  if (name == "builtin") return Dialect::kBuiltin;
  if (name == "vhlo") return Dialect::kVhlo;
  return Dialect::kOther;
}

Type ParseType(ByteReader reader, Dialect dialect, const References& references) {
  if (dialect == Dialect::kVhlo) return ParseVhloType(reader, references);
  if (dialect == Dialect::kBuiltin) return ParseBuiltinType(reader, references);
  Type type;
  type.name = "foreign";
  return type;
}

Attribute ParseAttribute(ByteReader reader, Dialect dialect, const References& references) {
  if (dialect == Dialect::kOther) return {};
  AttributeKind kind = KindFromCode(reader.Varint(), dialect);
  return AttributeParser(reader, references).Parse(kind);
}

void WriteType(ByteWriter& out, const Type& type) {
  if (type.builtin) {
    constexpr uint64_t kIntegerType = 0;
    out.Varint(kIntegerType);
    return out.Varint(static_cast<uint64_t>(type.width) << 2);  // signless
  }
  switch (type.kind) {
    case TypeKind::kElement:
      for (const ElementCode& entry : kElementCodes) {
        if (entry.element == type.element) return out.Varint(entry.code);
      }
      break;
    case TypeKind::kComplex:
      out.Varint(kComplexCode);
      return out.Varint(type.parts[0]);
    case TypeKind::kIndex:
      return out.Varint(kIndexCode);
    case TypeKind::kTensor: {
      out.Varint(kTensorCode);
      Dimensions dimensions = type.dimensions;
      for (int64_t& size : dimensions) size = size == kDynamic ? INT64_MIN : size;
      out.SignedVarints(dimensions);
      return out.Varint(type.parts[0]);
    }
    case TypeKind::kToken:
      return out.Varint(kTokenCode);
    case TypeKind::kTuple:
      out.Varint(kTupleCode);
      return out.Indices(type.parts);
    case TypeKind::kFunction: {
      out.Varint(kFunctionCode);
      std::span<const TypeId> parts = type.parts;
      out.Indices(parts.first(type.input_count));
      return out.Indices(parts.subspan(type.input_count));
    }
    case TypeKind::kAbsent:
      return out.Varint(kNoneCode);
    case TypeKind::kUnsupported:
      break;
  }
  throw Error(ErrorCode::kInternal, "a type that VHLO bytecode cannot write");
}

void WriteAttribute(ByteWriter& out, const Attribute& attribute, const Program& program,
                    const Numbering& numbering) {
  auto code = static_cast<uint64_t>(attribute.kind);
  out.Varint(IsBuiltin(attribute.kind) ? code - 64 : code);
  auto parts = [&] {
    for (AttributeId part : attribute.parts) out.Varint(numbering.attribute[part]);
  };
  switch (attribute.kind) {
    case AttributeKind::kArray:
    case AttributeKind::kBuiltinArray:
    case AttributeKind::kFusedLocation:
      out.Varint(attribute.parts.size());
      return parts();
    case AttributeKind::kDictionary:
    case AttributeKind::kBuiltinDictionary:
      out.Varint(attribute.parts.size() / 2);
      return parts();
    case AttributeKind::kBuiltinSymbol:
    case AttributeKind::kCallSiteLocation:
    case AttributeKind::kNameLocation:
      return parts();
    case AttributeKind::kFileLocation:
      parts();
      for (int64_t number : attribute.indices) out.Varint(static_cast<uint64_t>(number));
      return;
    case AttributeKind::kFloat:
    case AttributeKind::kInteger:
    case AttributeKind::kBuiltinInteger:
      out.Varint(attribute.type);
      return WriteInteger(out, attribute.number, program.types[attribute.type]);
    case AttributeKind::kOutputOperandAlias:
      out.SignedVarints(attribute.indices);
      out.SignedVarint(attribute.number);
      return out.SignedVarints(attribute.more_indices);
    case AttributeKind::kString:
    case AttributeKind::kBuiltinString:
      return out.Varint(numbering.string(attribute.text));
    case AttributeKind::kTensor:
      out.Varint(attribute.type);
      out.Varint(attribute.text.size());
      return out.Bytes(attribute.text);
    case AttributeKind::kType:
    case AttributeKind::kBuiltinType:
      return out.Varint(attribute.type);
    case AttributeKind::kBuiltinUnit:
    case AttributeKind::kUnknownLocation:
      return;
    case AttributeKind::kBool:
    case AttributeKind::kComparisonDirection:
    case AttributeKind::kComparisonType:
    case AttributeKind::kCustomCallApiVersion:
    case AttributeKind::kFftType:
    case AttributeKind::kPrecision:
    case AttributeKind::kRngAlgorithm:
    case AttributeKind::kRngDistribution:
    case AttributeKind::kTranspose:
      return out.Varint(static_cast<uint64_t>(attribute.number));
    default:
      throw Error(ErrorCode::kInternal, "an attribute that VHLO bytecode cannot write");
  }
}

}  // namespace hlo::bytecode
