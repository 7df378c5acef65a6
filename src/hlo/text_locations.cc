// Locations and their aliases.
#include "hlo/text_attribute_parser.h"

namespace hlo::text {
namespace {

using bytecode::Attribute;
using bytecode::AttributeId;
using bytecode::AttributeKind;

}  // namespace

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

}  // namespace hlo::text
