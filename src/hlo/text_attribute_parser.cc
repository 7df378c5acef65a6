#include "hlo/text_attribute_parser.h"

#include <algorithm>

#include "hlo/text_number.h"
#include "hlo/text_syntax.h"

namespace hlo::text {
namespace {

using bytecode::Attribute;
using bytecode::AttributeId;
using bytecode::AttributeKind;
using bytecode::FailAt;
using bytecode::kNone;
using bytecode::NamedAttribute;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;

// Limits that no sensible program meets; they keep hostile ones from exhausting the memory.
constexpr size_t kMaxEntries = 1024;  // of a dictionary
constexpr size_t kMaxFields = 16;     // of dimension numbers

bool HasField(const ParsedAttribute& parsed, std::string_view name) {
  return std::ranges::find(parsed.fields, name, &NamedAttribute::name) != parsed.fields.end();
}

}  // namespace

AttributeId AttributeParser::Opaque() { return encoder_.Add({.kind = AttributeKind::kOpaque}); }

AttributeId AttributeParser::ParseId() {
  ParsedAttribute parsed = Parse();
  return parsed.id == kNone ? Opaque() : parsed.id;
}

ParsedAttribute AttributeParser::Parse() {
  Depth depth(*this);
  const Token& token = lexer_.token();
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return {ParseNumber()};
    case TokenKind::kString: {
      AttributeId text = encoder_.String(lexer_.TakeString());
      if (lexer_.Accept(":")) ParseType();
      return {text};
    }
    case TokenKind::kSymbol: {
      AttributeId symbol = encoder_.String(lexer_.TakeSymbol());
      while (lexer_.Accept(":")) {  // "::@nested"
        lexer_.Expect(":");
        symbol = encoder_.String(lexer_.TakeSymbol());
      }
      return {symbol};
    }
    case TokenKind::kHash:
      return ParseHash();
    default:
      break;
  }
  if (lexer_.Is("-")) return {ParseNumber()};
  if (lexer_.Is("[")) return {ParseArray()};
  if (lexer_.Is("{")) return {ParseDictionary()};
  if (AtLocation()) return {ParseLocation()};
  if (lexer_.Accept("true")) return {encoder_.Bool(true)};
  if (lexer_.Accept("false")) return {encoder_.Bool(false)};
  if (lexer_.Accept("unit")) return {encoder_.Add({.kind = AttributeKind::kBuiltinUnit})};
  if (lexer_.Is("dense")) return {ParseDense()};
  if (lexer_.Is("array")) return {ParseDenseArray()};
  if (lexer_.Is("dense_resource")) return {ParseDenseResource()};
  if (AtType()) return {encoder_.TypeAttribute(ParseType())};
  if (token.kind != TokenKind::kWord || lexer_.Next().text != "<") {
    lexer_.FailExpected("an attribute");
  }
  lexer_.Advance();  // affine_map, strided, …
  lexer_.Expect("<");
  lexer_.SkipUntil(">");
  lexer_.Expect(">");
  return {Opaque()};
}

AttributeId AttributeParser::ParseNumber() {
  Number number = TakeNumber(lexer_);
  bool is_real = number.token.kind == TokenKind::kFloat;
  TypeId type = Element(is_real ? ElementType::kF64 : ElementType::kS64);
  if (lexer_.Accept(":")) type = ParseType();
  const Type& known = program_.types[type];
  if (known.kind == TypeKind::kIndex ||
      (known.kind == TypeKind::kElement && !is_real && !IsFloat(known.element))) {
    if (known.element == ElementType::kPred) return encoder_.Bool(Magnitude(number) != 0);
    bool is_signed = known.kind == TypeKind::kIndex || IsSignedInteger(known.element);
    int64_t value = IntegerBits(number, known.width, is_signed);
    return encoder_.Add({.kind = AttributeKind::kInteger, .type = type, .number = value});
  }
  if (known.kind != TypeKind::kElement || !IsFloat(known.element)) {
    FailAt(number.token.offset, "a number cannot have this type");
  }
  auto bits = static_cast<int64_t>(RealBits(number, known.element));
  return encoder_.Add({.kind = AttributeKind::kFloat, .type = type, .number = bits});
}

AttributeId AttributeParser::ParseArray() {
  lexer_.Expect("[");
  std::vector<AttributeId> parts;
  while (!lexer_.Is("]")) {
    parts.push_back(ParseId());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return encoder_.Array(std::move(parts));
}

std::vector<NamedAttribute> AttributeParser::ParseEntries() {
  lexer_.Expect("{");
  std::vector<NamedAttribute> entries;
  while (!lexer_.Is("}")) {
    Token name = lexer_.token();
    std::string_view key = name.text;
    if (name.kind == TokenKind::kString) {
      key = Own(Unquote(name));
    } else if (name.kind != TokenKind::kWord) {
      lexer_.FailExpected("an attribute's name");
    }
    lexer_.Advance();
    ParsedAttribute value;
    if (lexer_.Accept("=")) {
      value = Parse();
    } else {
      value.id = encoder_.Add({.kind = AttributeKind::kBuiltinUnit});
    }
    if (value.id != kNone) value.fields = {{key, value.id}};
    for (const NamedAttribute& entry : value.fields) {
      bool repeated =
          std::ranges::find(entries, entry.name, &NamedAttribute::name) != entries.end();
      if (repeated) FailAt(name.offset, "'" + std::string(entry.name) + "' is given twice");
      if (entries.size() >= kMaxEntries) FailAt(name.offset, "the dictionary is too long");
      entries.push_back(entry);
    }
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("}");
  return entries;
}

AttributeId AttributeParser::ParseDictionary() {
  std::vector<AttributeId> parts;
  for (const NamedAttribute& entry : ParseEntries()) {
    parts.push_back(encoder_.String(entry.name));
    parts.push_back(entry.value);
  }
  return encoder_.Dictionary(std::move(parts));
}

// --- Attributes of dialects ---

ParsedAttribute AttributeParser::ParseHash() {
  Token name = lexer_.Take(TokenKind::kHash, "an attribute");
  auto alias = attribute_aliases_.find(name.text);
  if (alias != attribute_aliases_.end()) return alias->second;
  constexpr std::string_view kStablehlo = "#stablehlo.";
  if (name.text == "#stablehlo") return {ParseEnumeration()};
  if (name.text.starts_with(kStablehlo)) {
    return ParseStablehlo(name.text.substr(kStablehlo.size()));
  }
  if (!lexer_.Is("<")) {
    if (name.text.find('.') == std::string_view::npos) {
      FailAt(name.offset, std::string(name.text) + " is not defined");
    }
    return {Opaque()};
  }
  lexer_.Expect("<");
  lexer_.SkipUntil(">");
  lexer_.Expect(">");
  return {Opaque()};
}

// "<precision HIGHEST>" after "#stablehlo".
AttributeId AttributeParser::ParseEnumeration() {
  lexer_.Expect("<");
  Token name = lexer_.Take(TokenKind::kWord, "the name of an enumeration");
  AttributeId id = kNone;
  if (FindEnumeration(name.text)) {
    id = ParseEnumerator(name.text);
  } else {
    lexer_.SkipUntil(">");
    id = Opaque();
  }
  lexer_.Expect(">");
  return id;
}

ParsedAttribute AttributeParser::ParseStablehlo(std::string_view name) {
  if (name == "output_operand_alias") return {ParseOutputAlias()};
  constexpr std::string_view kWithFields[] = {"gather", "scatter", "dot", "channel_handle"};
  if (std::ranges::find(kWithFields, name) != std::end(kWithFields)) return ParseFields(name);
  if (name == "conv") {
    if (lexer_.Next().text == "raw") {
      lexer_.Expect("<");
      return ParseFields("raw");
    }
    lexer_.Expect("<");
    ParsedAttribute parsed = {.fields = ParseConvolution()};
    lexer_.Expect(">");
    return parsed;
  }
  if (lexer_.Accept("<")) {
    lexer_.SkipUntil(">");
    lexer_.Expect(">");
  }
  return {Opaque()};
}

AttributeId AttributeParser::ParseFieldValue() {
  if (lexer_.Is("[")) return ParseIntegerList();
  return encoder_.Integer(lexer_.TakeInteger(), ElementType::kS64);
}

// Dimension numbers may say nothing at all. What then holds is stated, as VHLO does, so that it
// differs from no dimension numbers.
void AttributeParser::AddFieldDefault(std::string_view name, ParsedAttribute& parsed) {
  constexpr std::string_view kVectorDimension = "index_vector_dim";
  constexpr std::string_view kContracting = "lhs_contracting_dimensions";
  if (name == "dot" && !HasField(parsed, kContracting)) {
    parsed.fields.push_back({kContracting, encoder_.Integers({}, {0})});
  } else if ((name == "gather" || name == "scatter") && !HasField(parsed, kVectorDimension)) {
    parsed.fields.push_back({kVectorDimension, encoder_.Integer(0, ElementType::kS64)});
  }
}

// "<offset_dims = [0], index_vector_dim = 1>"; "raw" stands for the "<" of a convolution's.
ParsedAttribute AttributeParser::ParseFields(std::string_view name) {
  lexer_.Expect(name == "raw" ? "raw" : "<");
  ParsedAttribute parsed;
  while (!lexer_.Is(">")) {
    Token field = lexer_.Take(TokenKind::kWord, "a field");
    lexer_.Expect("=");
    std::string_view attribute = field.text;
    if (name == "channel_handle")
      attribute = field.text == "handle" ? "channel_id" : "channel_type";
    if (HasField(parsed, attribute)) FailAt(field.offset, "the field is given twice");
    if (parsed.fields.size() >= kMaxFields) FailAt(field.offset, "there are too many fields");
    parsed.fields.push_back({attribute, ParseFieldValue()});
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect(">");
  AddFieldDefault(name, parsed);
  return parsed;
}

AttributeId AttributeParser::ParseOutputAlias() {
  Attribute alias = {.kind = AttributeKind::kOutputOperandAlias};
  lexer_.Expect("<");
  lexer_.Expect("output_tuple_indices");
  lexer_.Expect("=");
  alias.indices = ParseIntegers();
  lexer_.Expect(",");
  lexer_.Expect("operand_index");
  lexer_.Expect("=");
  alias.number = lexer_.TakeInteger();
  lexer_.Expect(",");
  lexer_.Expect("operand_tuple_indices");
  lexer_.Expect("=");
  alias.more_indices = ParseIntegers();
  lexer_.Expect(">");
  return encoder_.Add(std::move(alias));
}

// --- Aliases ---

void AttributeParser::ParseAlias() {
  Token name = lexer_.token();
  lexer_.Advance();
  lexer_.Expect("=");
  if (name.kind == TokenKind::kBang) {
    TypeId type = ParseType();
    if (!type_aliases_.emplace(name.text, type).second) {
      FailAt(name.offset, std::string(name.text) + " is defined twice");
    }
    return;
  }
  if (!AtLocation()) {
    if (!attribute_aliases_.emplace(name.text, Parse()).second) {
      FailAt(name.offset, std::string(name.text) + " is defined twice");
    }
    return;
  }
  AttributeId place = LocationAlias(name);
  Pending& pending = locations_.at(name.text);
  if (pending.defined) FailAt(name.offset, std::string(name.text) + " is defined twice");
  pending.defined = true;
  AttributeId location = ParseLocation();
  // It may be long, or an alias that is yet to be defined: it is referred to.
  program_.attributes[place] = {.kind = AttributeKind::kFusedLocation, .parts = {location}};
}

void AttributeParser::Finish() {
  for (const auto& [name, location] : locations_) {
    if (!location.defined) FailAt(location.offset, std::string(name) + " is not defined");
  }
  constexpr size_t kAlignment = 4;  // bytes that say how the data were aligned
  for (const Resource& wanted : wanted_resources_) {
    auto found = resources_.find(wanted.key);
    if (found == resources_.end() || found->second.size() < kAlignment) {
      FailAt(wanted.offset, "the text does not carry the data of this resource");
    }
    program_.attributes[wanted.id].text = found->second.substr(kAlignment);
  }
}

}  // namespace hlo::text
