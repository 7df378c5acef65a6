// The words of MLIR's textual form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/bytecode_stream.h"

namespace hlo::text {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,         // stablehlo.add, tensor, x
  kValue,        // %0
  kSymbol,       // @main, @"a b"
  kHash,         // #loc1, #stablehlo.gather; #1 after a value
  kBang,         // !stablehlo.token
  kBlock,        // ^bb0
  kInteger,      // 12, 0x7F
  kFloat,        // 1.5e-3
  kString,       // with its quotes
  kPunctuation,  // "->", "{-#", "#-}", and single characters
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as it is written, with its sigil
  size_t offset = 0;      // in the file
};

// Reads one token ahead. Errors are bytecode::PositionError.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { Advance(); }

  const Token& token() const { return token_; }
  size_t offset() const { return token_.offset; }
  void Advance();
  // Goes on with what begins at an offset.
  void Seek(size_t offset);
  Token Next() const;  // the token after this one

  bool Is(std::string_view text) const {
    return token_.text == text && token_.kind != TokenKind::kString;
  }
  // True, and past it, if this is the token.
  bool Accept(std::string_view text);
  void Expect(std::string_view text);
  // The token, which must be of a kind; `what` names it in the error: "a symbol".
  Token Take(TokenKind kind, const char* what);
  int64_t TakeInteger();  // with a sign
  std::string TakeString();
  std::string TakeSymbol();  // without the @

  // Past everything up to `close`, where brackets are closed in the order in which they open.
  void SkipUntil(std::string_view close);

  // The sizes of a tensor type, "2x?x", which are words of no other kind; kDynamic for "?".
  void TakeSizes(std::vector<int64_t>& sizes);

  [[noreturn]] void Fail(const std::string& what) const { bytecode::FailAt(offset(), what); }
  [[noreturn]] void FailExpected(const std::string& what) const;

 private:
  char At(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  void SkipBlanks();
  void Finish(TokenKind kind, size_t end);
  void LexNumber();
  void LexString();
  void LexSigil(TokenKind kind);
  void LexPunctuation();

  std::string_view text_;
  size_t position_ = 0;  // behind the token
  Token token_;
};

// A string token's contents; escapes are \" \\ \n \t and two hexadecimal digits.
std::string Unquote(const Token& token);

}  // namespace hlo::text
