#include "hlo/text_lexer.h"

#include <algorithm>
#include <charconv>

#include "hlo/shape.h"

namespace hlo::text {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsHexadecimal(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsWordPart(char c) { return IsLetter(c) || IsDigit(c) || c == '$' || c == '.'; }

int Digit(char c) { return IsDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

bool IsOpening(std::string_view text) {
  return text == "(" || text == "[" || text == "{" || text == "<" || text == "{-#";
}
bool IsClosing(std::string_view text) {
  return text == ")" || text == "]" || text == "}" || text == ">" || text == "#-}";
}

}  // namespace

void Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    char c = text_[position_];
    if (c == '/' && At(position_ + 1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

void Lexer::Finish(TokenKind kind, size_t end) {
  token_.kind = kind;
  token_.text = text_.substr(position_, end - position_);
  position_ = end;
}

void Lexer::Advance() {
  SkipBlanks();
  token_ = {TokenKind::kEnd, {}, position_};
  if (position_ >= text_.size()) return;
  char c = text_[position_];
  if (IsDigit(c)) return LexNumber();
  if (IsLetter(c)) {
    size_t end = position_;
    while (IsWordPart(At(end))) ++end;
    return Finish(TokenKind::kWord, end);
  }
  switch (c) {
    case '"':
      return LexString();
    case '%':
      return LexSigil(TokenKind::kValue);
    case '@':
      return LexSigil(TokenKind::kSymbol);
    case '!':
      return LexSigil(TokenKind::kBang);
    case '^':
      return LexSigil(TokenKind::kBlock);
    case '#':
      if (At(position_ + 1) != '-') return LexSigil(TokenKind::kHash);
      [[fallthrough]];
    default:
      return LexPunctuation();
  }
}

void Lexer::LexNumber() {
  size_t end = position_;
  if (text_[end] == '0' && At(end + 1) == 'x' && IsHexadecimal(At(end + 2))) {
    for (end += 2; IsHexadecimal(At(end));) ++end;
    return Finish(TokenKind::kInteger, end);
  }
  while (IsDigit(At(end))) ++end;
  if (At(end) != '.') return Finish(TokenKind::kInteger, end);
  for (++end; IsDigit(At(end));) ++end;
  if (At(end) == 'e' || At(end) == 'E') {
    size_t digits = end + 1;
    if (At(digits) == '+' || At(digits) == '-') ++digits;
    if (IsDigit(At(digits))) {
      for (end = digits; IsDigit(At(end));) ++end;
    }
  }
  Finish(TokenKind::kFloat, end);
}

void Lexer::LexString() {
  size_t end = position_ + 1;
  while (At(end) != '"') {
    if (end >= text_.size() || text_[end] == '\n') Fail("the string does not end on its line");
    end += text_[end] == '\\' ? 2 : 1;
  }
  Finish(TokenKind::kString, end + 1);
}

void Lexer::LexSigil(TokenKind kind) {
  size_t end = position_ + 1;
  if (kind == TokenKind::kSymbol && At(end) == '"') {
    size_t start = position_++;
    LexString();
    token_.kind = kind;
    token_.text = text_.substr(start, position_ - start);
    return;
  }
  if (IsDigit(At(end))) {
    while (IsDigit(At(end))) ++end;
  } else {
    while (IsWordPart(At(end)) || (At(end) == '-' && At(end + 1) != '>')) ++end;
  }
  if (end == position_ + 1) Fail(std::string("a name is missing after ") + text_[position_]);
  Finish(kind, end);
}

void Lexer::LexPunctuation() {
  std::string_view rest = text_.substr(position_);
  for (std::string_view word : {"->", "{-#", "#-}"}) {
    if (rest.starts_with(word)) return Finish(TokenKind::kPunctuation, position_ + word.size());
  }
  if (std::string_view("()[]{}<>,:=-+?*/|").find(rest[0]) == std::string_view::npos) {
    Fail("this character has no meaning here");
  }
  Finish(TokenKind::kPunctuation, position_ + 1);
}

void Lexer::Seek(size_t offset) {
  position_ = offset;
  Advance();
}

Token Lexer::Next() const {
  Lexer ahead = *this;
  ahead.Advance();
  return ahead.token_;
}

bool Lexer::Accept(std::string_view text) {
  if (!Is(text)) return false;
  Advance();
  return true;
}

void Lexer::Expect(std::string_view text) {
  if (!Accept(text)) FailExpected("'" + std::string(text) + "'");
}

void Lexer::FailExpected(const std::string& what) const {
  constexpr size_t kMaxShown = 40;
  std::string found = token_.kind == TokenKind::kEnd
                          ? "the text ends"
                          : "found '" + std::string(token_.text.substr(0, kMaxShown)) + "'";
  Fail("expected " + what + ", but " + found);
}

Token Lexer::Take(TokenKind kind, const char* what) {
  if (token_.kind != kind) FailExpected(what);
  Token taken = token_;
  Advance();
  return taken;
}

int64_t Lexer::TakeInteger() {
  bool negative = Accept("-");
  Token token = Take(TokenKind::kInteger, "an integer");
  int64_t value = 0;
  std::string digits = (negative ? "-" : "") + std::string(token.text);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    bytecode::FailAt(token.offset, "the number does not fit in 64 bits");
  }
  return value;
}

std::string Lexer::TakeString() { return Unquote(Take(TokenKind::kString, "a string")); }

std::string Lexer::TakeSymbol() {
  Token token = Take(TokenKind::kSymbol, "a symbol like @name");
  token.text.remove_prefix(1);
  return token.text.starts_with('"') ? Unquote(token) : std::string(token.text);
}

void Lexer::SkipUntil(std::string_view close) {
  size_t depth = 0;
  while (depth > 0 || !Is(close)) {
    if (token_.kind == TokenKind::kEnd) FailExpected("'" + std::string(close) + "'");
    if (token_.kind == TokenKind::kPunctuation) {
      if (IsOpening(token_.text)) ++depth;
      if (IsClosing(token_.text)) {
        if (depth == 0) FailExpected("'" + std::string(close) + "'");
        --depth;
      }
    }
    Advance();
  }
}

void Lexer::TakeSizes(std::vector<int64_t>& sizes) {
  // "2x3xf32" is a number and a word to the lexer, and "0x4xf32" a hexadecimal number.
  size_t position = offset();
  while (IsDigit(At(position)) || At(position) == '?') {
    int64_t size = kDynamic;
    size_t end = position + 1;
    if (At(position) != '?') {
      auto [rest, error] =
          std::from_chars(text_.data() + position, text_.data() + text_.size(), size);
      if (error != std::errc()) bytecode::FailAt(position, "the size does not fit in 64 bits");
      end = static_cast<size_t>(rest - text_.data());
    }
    if (At(end) != 'x') bytecode::FailAt(end, "expected 'x' after a dimension's size");
    sizes.push_back(size);
    position = end + 1;
  }
  Seek(position);
}

std::string Unquote(const Token& token) {
  std::string_view text = token.text.substr(1, token.text.size() - 2);
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    char c = i + 1 < text.size() ? text[++i] : '\0';
    if (c == '"' || c == '\\') {
      result += c;
    } else if (c == 'n' || c == 't') {
      result += c == 'n' ? '\n' : '\t';
    } else if (IsHexadecimal(c) && i + 1 < text.size() && IsHexadecimal(text[i + 1])) {
      result += static_cast<char>(Digit(c) << 4 | Digit(text[++i]));
    } else {
      bytecode::FailAt(token.offset, "the string has an escape that is not known");
    }
  }
  return result;
}

}  // namespace hlo::text
