#include "hlo/text_attribute_parser.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "hlo/error.h"
#include "hlo/minifloat.h"
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

// Limits that no sensible program meets; they keep hostile ones from exhausting the stack.
constexpr int kMaxDepth = 64;
constexpr size_t kMaxRank = 256;
constexpr size_t kMaxEntries = 1024;  // of a dictionary
constexpr size_t kMaxFields = 16;     // of dimension numbers
constexpr std::string_view kElided = "__elided__";

// A number as it is written: what it is worth depends on its type.
struct Number {
  bool negative = false;
  Token token;
};

Number TakeNumber(Lexer& lexer) {
  Number number;
  number.negative = lexer.Accept("-");
  number.token = lexer.token();
  if (number.token.kind != TokenKind::kInteger && number.token.kind != TokenKind::kFloat) {
    lexer.FailExpected("a number");
  }
  lexer.Advance();
  return number;
}

bool IsHexadecimal(const Number& number) { return number.token.text.starts_with("0x"); }

uint64_t Magnitude(const Number& number) {
  std::string_view digits = number.token.text;
  int base = IsHexadecimal(number) ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    FailAt(number.token.offset, "this is not an integer of at most 64 bits");
  }
  return value;
}

// The bits of an integer, sign-extended if the type has a sign.
int64_t IntegerBits(const Number& number, int width, bool is_signed) {
  uint64_t value = Magnitude(number);
  uint64_t limit = number.negative ? uint64_t{1} << (width - 1)
                   : width == 64   ? UINT64_MAX
                                   : (uint64_t{1} << width) - 1;
  if (value > limit) {
    FailAt(number.token.offset, "the number does not fit in " + std::to_string(width) + " bits");
  }
  if (number.negative) value = ~value + 1;
  if (width == 64) return static_cast<int64_t>(value);
  uint64_t mask = (uint64_t{1} << width) - 1;
  value &= mask;
  if (is_signed && (value >> (width - 1)) != 0) value |= ~mask;
  return static_cast<int64_t>(value);
}

double Real(const Number& number) {
  std::string_view digits = number.token.text;
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    FailAt(number.token.offset, "this is not a number that a double can hold");
  }
  return number.negative ? -value : value;
}

// Of the two floats around a double the one with an odd last bit: rounding that to far fewer bits
// is rounding the double, where rounding the nearest float could turn almost a tie into one.
float RoundToOdd(double value) {
  auto nearest = static_cast<float>(value);
  bool is_odd = (std::bit_cast<uint32_t>(nearest) & 1) != 0;
  if (nearest == value || is_odd || std::isinf(nearest)) return nearest;
  float infinity = std::numeric_limits<float>::infinity();
  return std::nextafter(nearest, value > nearest ? infinity : -infinity);
}

// The bits of a real number. Hexadecimal digits are the bits themselves.
uint64_t RealBits(const Number& number, ElementType type) {
  if (IsHexadecimal(number)) {
    if (number.negative) FailAt(number.token.offset, "bits have no sign");
    return static_cast<uint64_t>(IntegerBits(number, BitWidth(type), false));
  }
  double value = Real(number);
  auto check = [&](double rounded) {
    if (!std::isfinite(rounded)) FailAt(number.token.offset, "the number is too large");
  };
  switch (type) {
    case ElementType::kF64:
      return std::bit_cast<uint64_t>(value);
    case ElementType::kF32: {
      auto rounded = static_cast<float>(value);
      check(rounded);
      return std::bit_cast<uint32_t>(rounded);
    }
    case ElementType::kF16: {
      Float16 rounded(RoundToOdd(value));
      check(static_cast<float>(rounded));
      return rounded.bits;
    }
    case ElementType::kBF16: {
      BFloat16 rounded(RoundToOdd(value));
      check(static_cast<float>(rounded));
      return rounded.bits;
    }
    default: {
      std::optional<uint8_t> bits = MinifloatFromDouble(type, value);
      if (!bits) FailAt(number.token.offset, "the number is out of its type's range");
      return *bits;
    }
  }
}

// Little-endian, as all tensors are.
void AppendBits(uint64_t bits, size_t width, std::string& bytes) {
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(bits >> (8 * i));
}

std::optional<ElementType> ElementFromName(std::string_view name) {
  for (auto i = static_cast<int>(ElementType::kPred); i <= static_cast<int>(ElementType::kF64);
       ++i) {
    auto type = static_cast<ElementType>(i);
    if (Name(type) == name) return type;
  }
  return {};
}

int Nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The bytes that the string "0x00FF" stands for.
std::string BytesOf(const Token& token) {
  std::string_view digits = token.text.substr(1, token.text.size() - 2);
  if (!digits.starts_with("0x") || digits.size() % 2 != 0) {
    FailAt(token.offset, "expected hexadecimal digits of whole bytes, \"0x…\"");
  }
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 2; i < digits.size(); i += 2) {
    int high = Nibble(digits[i]), low = Nibble(digits[i + 1]);
    if (high < 0 || low < 0) FailAt(token.offset + 1 + i, "this is no hexadecimal digit");
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

bool HasField(const ParsedAttribute& parsed, std::string_view name) {
  return std::ranges::find(parsed.fields, name, &NamedAttribute::name) != parsed.fields.end();
}

}  // namespace

class AttributeParser::Depth {
 public:
  explicit Depth(AttributeParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxDepth) parser_.lexer_.Fail("this is nested too deep");
  }
  ~Depth() { --parser_.depth_; }

 private:
  AttributeParser& parser_;
};

// --- Types ---

TypeId AttributeParser::Unsupported(std::string_view name) {
  return encoder_.Intern({.kind = TypeKind::kUnsupported, .name = name});
}

TypeId AttributeParser::ParseType() {
  Depth depth(*this);
  switch (lexer_.token().kind) {
    case TokenKind::kWord:
      return ParseWordType();
    case TokenKind::kBang:
      return ParseBangType();
    default:
      if (lexer_.Is("(")) return ParseFunctionType();
      lexer_.FailExpected("a type");
  }
}

std::vector<TypeId> AttributeParser::ParseTypeList() {
  std::vector<TypeId> types;
  if (!lexer_.Accept("(")) return {ParseType()};
  if (lexer_.Accept(")")) return types;
  do {
    types.push_back(ParseType());
  } while (lexer_.Accept(","));
  lexer_.Expect(")");
  return types;
}

TypeId AttributeParser::ParseWordType() {
  if (lexer_.Is("tensor")) return ParseTensorType();
  if (lexer_.Is("tuple")) return ParseTuple();
  Token name = lexer_.token();
  std::optional<ElementType> element = ElementFromName(name.text);
  lexer_.Advance();
  if (element) return Element(*element);
  if (name.text == "index") return encoder_.Intern({.kind = TypeKind::kIndex, .width = 64});
  if (name.text == "none") return encoder_.AbsentType();
  if (name.text == "complex") {
    lexer_.Expect("<");
    TypeId part = ParseType();
    lexer_.Expect(">");
    return encoder_.Intern({.kind = TypeKind::kComplex, .parts = {part}});
  }
  if (lexer_.Accept("<")) {  // vector, memref, …
    lexer_.SkipUntil(">");
    lexer_.Expect(">");
    return Unsupported(name.text);
  }
  bool is_number = name.text.size() > 1 &&
                   std::string_view("iusf").find(name.text[0]) != std::string_view::npos &&
                   std::string_view("0123456789if").find(name.text[1]) != std::string_view::npos;
  if (is_number) return Unsupported(name.text);
  FailAt(name.offset, "'" + std::string(name.text) + "' is not a type");
}

TypeId AttributeParser::ParseTensorType() {
  lexer_.Expect("tensor");
  if (!lexer_.Is("<")) lexer_.FailExpected("'<'");
  lexer_.Advance();
  if (lexer_.Is("*")) {
    lexer_.SkipUntil(">");
    lexer_.Expect(">");
    return Unsupported("unranked tensor");
  }
  size_t start = lexer_.offset();
  Type type = {.kind = TypeKind::kTensor};
  lexer_.TakeSizes(type.dimensions);
  if (type.dimensions.size() > kMaxRank) {
    FailAt(start, "a tensor of rank " + std::to_string(type.dimensions.size()));
  }
  type.parts = {ParseType()};
  if (lexer_.Accept(",")) lexer_.SkipUntil(">");  // bounds of dynamic dimensions
  lexer_.Expect(">");
  return encoder_.Intern(std::move(type));
}

TypeId AttributeParser::ParseTuple() {
  lexer_.Expect("tuple");
  lexer_.Expect("<");
  Type type = {.kind = TypeKind::kTuple};
  while (!lexer_.Is(">")) {
    type.parts.push_back(ParseType());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect(">");
  return encoder_.Intern(std::move(type));
}

TypeId AttributeParser::ParseFunctionType() {
  Type type = {.kind = TypeKind::kFunction};
  type.parts = ParseTypeList();
  type.input_count = type.parts.size();
  lexer_.Expect("->");
  std::vector<TypeId> results = ParseTypeList();
  type.parts.insert(type.parts.end(), results.begin(), results.end());
  return encoder_.Intern(std::move(type));
}

TypeId AttributeParser::ParseBangType() {
  Token name = lexer_.Take(TokenKind::kBang, "a type");
  auto alias = type_aliases_.find(name.text);
  if (alias != type_aliases_.end()) return alias->second;
  if (name.text == "!stablehlo.token") return encoder_.Intern({.kind = TypeKind::kToken});
  if (name.text.find('.') == std::string_view::npos && !lexer_.Is("<")) {
    FailAt(name.offset, "there is no type alias " + std::string(name.text));
  }
  if (lexer_.Accept("<")) {
    lexer_.SkipUntil(">");
    lexer_.Expect(">");
  }
  return Unsupported(name.text.starts_with("!quant") ? std::string_view("quantized") : name.text);
}

bool AttributeParser::AtType() const {
  const Token& token = lexer_.token();
  if (token.kind == TokenKind::kBang || lexer_.Is("(")) return true;
  constexpr std::string_view kTypes[] = {"tensor",  "tuple",  "index", "none",
                                         "complex", "vector", "memref"};
  return token.kind == TokenKind::kWord &&
         (ElementFromName(token.text) || std::ranges::find(kTypes, token.text) != std::end(kTypes));
}

// --- Attributes ---

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

// --- Tensors ---

AttributeId AttributeParser::TensorOf(TypeId type, std::string_view bytes) {
  return encoder_.Add({.kind = AttributeKind::kTensor, .type = type, .text = bytes});
}

const Dimensions& AttributeParser::StaticSizes(TypeId id) {
  const Type& type = program_.types[id];
  if (type.kind != TypeKind::kTensor) lexer_.Fail("dense data needs a tensor's type");
  if (std::ranges::find(type.dimensions, kDynamic) != type.dimensions.end()) {
    lexer_.Fail("dense data needs a tensor of known shape");
  }
  return type.dimensions;
}

// The type follows the data and says how to read it, so the data are passed over first.
AttributeId AttributeParser::ParseDense() {
  lexer_.Expect("dense");
  lexer_.Expect("<");
  size_t start = lexer_.offset();
  lexer_.SkipUntil(">");
  lexer_.Expect(">");
  lexer_.Expect(":");
  TypeId type = ParseType();
  const Dimensions& sizes = StaticSizes(type);
  bool is_empty = std::ranges::find(sizes, 0) != sizes.end();
  TypeId element = program_.types[type].parts[0];
  size_t end = lexer_.offset();
  lexer_.Seek(start);
  std::string bytes;
  if (lexer_.token().kind == TokenKind::kString) {
    bytes = BytesOf(lexer_.Take(TokenKind::kString, "data"));
  } else if (lexer_.Is("[")) {
    AppendNested(type, 0, bytes);
  } else if (!lexer_.Is(">")) {
    if (is_empty) lexer_.Fail("the tensor has no elements");
    AppendElement(element, bytes);
    bool is_predicate = program_.types[element].element == ElementType::kPred;
    if (is_predicate && bytes[0] != 0) bytes[0] = '\xff';  // all bits of a splat
  } else if (!is_empty) {
    lexer_.FailExpected("the tensor's elements");
  }
  if (!lexer_.Is(">")) lexer_.FailExpected("'>'");
  lexer_.Seek(end);
  return TensorOf(type, bytes);
}

void AttributeParser::AppendNested(TypeId type, size_t depth, std::string& bytes) {
  size_t rank = program_.types[type].dimensions.size();
  if (depth == rank) return AppendElement(program_.types[type].parts[0], bytes);
  int64_t size = program_.types[type].dimensions[depth];
  size_t start = lexer_.offset();
  lexer_.Expect("[");
  int64_t count = 0;
  while (!lexer_.Is("]")) {
    AppendNested(type, depth + 1, bytes);
    ++count;
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  if (count != size) {
    FailAt(start, "a list of " + std::to_string(count) + " where the tensor's type has " +
                      std::to_string(size));
  }
}

void AttributeParser::AppendElement(TypeId id, std::string& bytes) {
  const Type& type = program_.types[id];
  if (type.kind == TypeKind::kIndex) return AppendPart(ElementType::kS64, bytes);
  if (type.kind == TypeKind::kElement) return AppendPart(type.element, bytes);
  bool is_complex = type.kind == TypeKind::kComplex;
  const Type* part = is_complex ? &program_.types[type.parts[0]] : nullptr;
  if (!part || part->kind != TypeKind::kElement) lexer_.Fail("data of this type are not supported");
  lexer_.Expect("(");
  AppendPart(part->element, bytes);
  lexer_.Expect(",");
  AppendPart(part->element, bytes);
  lexer_.Expect(")");
}

void AttributeParser::AppendPart(ElementType type, std::string& bytes) {
  if (type == ElementType::kPred && (lexer_.Is("true") || lexer_.Is("false"))) {
    bytes += static_cast<char>(lexer_.Is("true"));
    return lexer_.Advance();
  }
  Number number = TakeNumber(lexer_);
  uint64_t bits = IsFloat(type) ? RealBits(number, type)
                                : static_cast<uint64_t>(IntegerBits(number, BitWidth(type), false));
  AppendBits(bits, ByteWidth(type), bytes);
}

// "array<i64: 1, 2>": a tensor of one dimension.
AttributeId AttributeParser::ParseDenseArray() {
  lexer_.Expect("array");
  lexer_.Expect("<");
  TypeId element = ParseType();
  std::string bytes;
  int64_t count = 0;
  if (lexer_.Accept(":")) {
    do {
      AppendElement(element, bytes);
      ++count;
    } while (lexer_.Accept(","));
  }
  lexer_.Expect(">");
  return TensorOf(
      encoder_.Intern({.kind = TypeKind::kTensor, .dimensions = {count}, .parts = {element}}),
      bytes);
}

AttributeId AttributeParser::ParseDenseResource() {
  lexer_.Expect("dense_resource");
  lexer_.Expect("<");
  Token key = lexer_.token();
  if (key.kind != TokenKind::kWord && key.kind != TokenKind::kString) {
    lexer_.FailExpected("the name of a resource");
  }
  lexer_.Advance();
  lexer_.Expect(">");
  lexer_.Expect(":");
  TypeId type = ParseType();
  if (key.text == kElided) {
    FailAt(key.offset, "the constant's data were left out when this text was written");
  }
  std::string name = key.kind == TokenKind::kString ? Unquote(key) : std::string(key.text);
  // Equal to no tensor whose data are known.
  AttributeId id =
      encoder_.Add({.kind = AttributeKind::kTensor, .type = type, .number = 1, .text = name});
  wanted_resources_.push_back({id, std::move(name), key.offset});
  return id;
}

void AttributeParser::ParseResources() {
  lexer_.Expect("{-#");
  while (!lexer_.Is("#-}")) {
    Token section = lexer_.Take(TokenKind::kWord, "a section of resources");
    lexer_.Expect(":");
    lexer_.Expect("{");
    while (section.text == "dialect_resources" && !lexer_.Is("}")) {
      lexer_.Take(TokenKind::kWord, "a dialect");
      lexer_.Expect(":");
      lexer_.Expect("{");
      while (!lexer_.Is("}")) {
        Token key = lexer_.token();
        lexer_.Advance();
        lexer_.Expect(":");
        Token data = lexer_.Take(TokenKind::kString, "a resource's data");
        std::string name = key.kind == TokenKind::kString ? Unquote(key) : std::string(key.text);
        if (!resources_.emplace(name, Own(BytesOf(data))).second) {
          FailAt(key.offset, "the resource " + name + " is given twice");
        }
        if (!lexer_.Accept(",")) break;
      }
      lexer_.Expect("}");
      if (!lexer_.Accept(",")) break;
    }
    lexer_.SkipUntil("}");
    lexer_.Expect("}");
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("#-}");
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

// --- Lists of short forms ---

std::vector<int64_t> AttributeParser::ParseIntegers() {
  std::vector<int64_t> values;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    values.push_back(lexer_.TakeInteger());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return values;
}

AttributeId AttributeParser::ParseIntegerList() {
  std::vector<int64_t> values = ParseIntegers();
  return encoder_.Integers(values, {static_cast<int64_t>(values.size())});
}

AttributeId AttributeParser::ParsePairs() {
  std::vector<int64_t> values;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    size_t start = lexer_.offset();
    std::vector<int64_t> pair = ParseIntegers();
    if (pair.size() != 2) FailAt(start, "expected two numbers");
    values.insert(values.end(), pair.begin(), pair.end());
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return encoder_.Integers(values, {static_cast<int64_t>(values.size() / 2), 2});
}

AttributeId AttributeParser::ParseBoolList() {
  std::string bytes;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    AppendPart(ElementType::kPred, bytes);
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  Type type = {.kind = TypeKind::kTensor,
               .dimensions = {static_cast<int64_t>(bytes.size())},
               .parts = {Element(ElementType::kPred)}};
  return TensorOf(encoder_.Intern(std::move(type)), bytes);
}

AttributeId AttributeParser::ParseEnumerator(std::string_view attribute) {
  const Enumeration& enumeration = EnumerationOfAttribute(attribute);
  Token token = lexer_.Take(TokenKind::kWord, "an enumerator");
  const auto* found = std::ranges::find(enumeration.enumerators, token.text).base();
  auto index = found - enumeration.enumerators.data();
  if (static_cast<size_t>(index) == enumeration.enumerators.size()) {
    FailAt(token.offset, "'" + std::string(token.text) + "' is not an enumerator of " +
                             std::string(enumeration.name));
  }
  return encoder_.Enumeration(enumeration.kind, enumeration.first + index);
}

AttributeId AttributeParser::ParseEnumerators(std::string_view attribute) {
  std::vector<AttributeId> parts;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    parts.push_back(ParseEnumerator(attribute));
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  return encoder_.Array(std::move(parts));
}

std::vector<NamedAttribute> AttributeParser::ConvolutionSide(std::string_view side,
                                                             std::string_view batch,
                                                             std::string_view feature,
                                                             char batch_letter,
                                                             char feature_letter) {
  size_t start = lexer_.offset();
  int64_t batch_dimension = -1, feature_dimension = -1, position = 0;
  std::vector<std::pair<int64_t, int64_t>> spatial;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    if (lexer_.Is(std::string_view(&batch_letter, 1))) {
      batch_dimension = position;
      lexer_.Advance();
    } else if (lexer_.Is(std::string_view(&feature_letter, 1))) {
      feature_dimension = position;
      lexer_.Advance();
    } else if (!lexer_.Accept("?")) {
      spatial.emplace_back(lexer_.TakeInteger(), position);
    }
    ++position;
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  if (batch_dimension < 0 || feature_dimension < 0) {
    FailAt(start, std::string("expected the dimensions ") + batch_letter + " and " +
                      feature_letter + " once each");
  }
  std::ranges::sort(spatial);
  std::vector<int64_t> dimensions;
  for (auto [number, dimension] : spatial) {
    if (number != static_cast<int64_t>(dimensions.size())) {
      FailAt(start, "the spatial dimensions are not numbered from 0");
    }
    dimensions.push_back(dimension);
  }
  auto name = [&](std::string_view of) {
    return Own(std::string(side) + "_" + std::string(of) + "_dimension");
  };
  auto count = static_cast<int64_t>(dimensions.size());
  return {{name(batch), encoder_.Integer(batch_dimension, ElementType::kS64)},
          {name(feature), encoder_.Integer(feature_dimension, ElementType::kS64)},
          {Own(std::string(side) + "_spatial_dimensions"), encoder_.Integers(dimensions, {count})}};
}

std::vector<NamedAttribute> AttributeParser::ParseConvolution() {
  std::vector<NamedAttribute> all = ConvolutionSide("input", "batch", "feature", 'b', 'f');
  auto append = [&all](const std::vector<NamedAttribute>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  lexer_.Expect("x");
  append(ConvolutionSide("kernel", "output_feature", "input_feature", 'o', 'i'));
  lexer_.Expect("->");
  append(ConvolutionSide("output", "batch", "feature", 'b', 'f'));
  return all;
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

// --- Locations and aliases ---

AttributeId AttributeParser::ParseLocation() {
  lexer_.Expect("loc");
  lexer_.Expect("(");
  AttributeId location = ParseLocationBody();
  lexer_.Expect(")");
  return location;
}

AttributeId AttributeParser::ParseLocationBody() {
  Depth depth(*this);
  if (lexer_.token().kind == TokenKind::kHash) {
    return LocationAlias(lexer_.Take(TokenKind::kHash, "a location"));
  }
  if (lexer_.Accept("unknown")) return encoder_.Add({.kind = AttributeKind::kUnknownLocation});
  if (lexer_.Accept("callsite")) {
    lexer_.Expect("(");
    AttributeId callee = ParseLocationBody();
    lexer_.Expect("at");
    AttributeId caller = ParseLocationBody();
    lexer_.Expect(")");
    return encoder_.Add({.kind = AttributeKind::kCallSiteLocation, .parts = {callee, caller}});
  }
  if (lexer_.Accept("fused")) {
    if (lexer_.Accept("<")) {
      lexer_.SkipUntil(">");
      lexer_.Expect(">");
    }
    Attribute fused = {.kind = AttributeKind::kFusedLocation};
    lexer_.Expect("[");
    do {
      fused.parts.push_back(ParseLocationBody());
    } while (lexer_.Accept(","));
    lexer_.Expect("]");
    return encoder_.Add(std::move(fused));
  }
  if (AtLocation()) return ParseLocation();
  AttributeId text = encoder_.BuiltinString(lexer_.TakeString());
  if (lexer_.Is(":")) return ParseFileLocation(text);
  AttributeId child = encoder_.Add({.kind = AttributeKind::kUnknownLocation});
  if (lexer_.Accept("(")) {
    child = ParseLocationBody();
    lexer_.Expect(")");
  }
  return encoder_.Add({.kind = AttributeKind::kNameLocation, .parts = {text, child}});
}

int64_t AttributeParser::TakeLine() { return lexer_.TakeInteger() & INT32_MAX; }

// ":1:2", ":1:2 to :5" or ":1:2 to 3:4" after the file's name.
AttributeId AttributeParser::ParseFileLocation(AttributeId file) {
  lexer_.Expect(":");
  int64_t line = TakeLine();
  lexer_.Expect(":");
  int64_t column = TakeLine();
  if (lexer_.Accept("to")) {
    if (!lexer_.Is(":")) TakeLine();
    lexer_.Expect(":");
    TakeLine();
  }
  return encoder_.Add(
      {.kind = AttributeKind::kFileLocation, .parts = {file}, .indices = {line, column}});
}

// What is defined later has a place that the definition fills.
AttributeId AttributeParser::LocationAlias(const Token& token) {
  auto id = static_cast<AttributeId>(program_.attributes.size());
  auto [found, inserted] = locations_.try_emplace(token.text, Pending{id, token.offset});
  if (inserted) program_.attributes.push_back({.kind = AttributeKind::kUnknownLocation});
  return found->second.id;
}

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

}  // namespace hlo::text
