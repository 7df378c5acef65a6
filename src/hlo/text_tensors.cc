// Dense data: tensors, arrays and resources.
#include "hlo/text_attribute_parser.h"

#include <algorithm>

#include "hlo/text_number.h"

namespace hlo::text {
namespace {

using bytecode::AttributeId;
using bytecode::AttributeKind;
using bytecode::FailAt;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;

constexpr std::string_view kElided = "__elided__";

// Little-endian, as all tensors are.
void AppendBits(uint64_t bits, size_t width, std::string& bytes) {
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(bits >> (8 * i));
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

}  // namespace

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
  constexpr int64_t kResource = 1;  // Attribute::is_resource
  AttributeId id = encoder_.Add(
      {.kind = AttributeKind::kTensor, .type = type, .number = kResource, .text = name});
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

}  // namespace hlo::text
