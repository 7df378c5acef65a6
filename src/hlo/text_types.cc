// The types of MLIR's textual form.
#include "hlo/text_attribute_parser.h"

#include <algorithm>
#include <optional>

namespace hlo::text {
namespace {

using bytecode::FailAt;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;

constexpr size_t kMaxRank = 256;  // no sensible program has as much

std::optional<ElementType> ElementFromName(std::string_view name) {
  for (auto i = static_cast<int>(ElementType::kPred); i <= static_cast<int>(ElementType::kF64);
       ++i) {
    auto type = static_cast<ElementType>(i);
    if (Name(type) == name) return type;
  }
  return {};
}

}  // namespace

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

}  // namespace hlo::text
