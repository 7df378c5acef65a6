// The short forms of operations.
#include "hlo/text_program_parser.h"

#include <algorithm>

namespace hlo::text {
namespace {

using bytecode::AttributeId;
using bytecode::AttributeKind;
using bytecode::FailAt;
using bytecode::kNone;
using bytecode::Operation;
using bytecode::Region;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;

}  // namespace

void ProgramParser::ParseShort(Draft& draft) {
  std::string_view name = lexer_.Take(TokenKind::kWord, "an operation").text;
  if (name == "return") name = "func.return";
  if (name == "call") name = "func.call";
  SetName(draft, name);
  if (name == "stablehlo.while") return ParseWhile(draft);
  if (name == "stablehlo.reduce") return ParseReduce(draft);
  std::string_view form = ShortForm(name);
  if (form.empty()) {
    const char* hint = name.starts_with("chlo.") ? ": chlo-legalize-to-stablehlo replaces it" : "";
    FailAt(draft.operation.offset,
           "the short form of " + std::string(name) + " is not known" + hint,
           ErrorCode::kUnimplemented);
  }
  ParseForm(draft, form);
}

std::string_view ProgramParser::TakeWord(std::string_view& form) {
  size_t end = std::min(form.find(' '), form.size());
  std::string_view word = form.substr(0, end);
  form.remove_prefix(std::min(end + 1, form.size()));
  return word;
}

bool ProgramParser::IsLiteral(std::string_view word) {
  return word.find(':') == std::string_view::npos && word != "$" && word != "(?" && word != "?)";
}

// text_syntax.h says what the words mean.
void ProgramParser::ParseForm(Draft& draft, std::string_view form) {
  while (!form.empty()) {
    std::string_view word = TakeWord(form);
    if (word == "(?") {
      std::string_view rest = form;
      std::string_view first = TakeWord(rest), second = TakeWord(rest);
      bool present = lexer_.Is(first) && (!IsLiteral(second) || lexer_.Next().text == second);
      if (!present) form.remove_prefix(form.find("?)") + 2);
      if (!form.empty() && form[0] == ' ') form.remove_prefix(1);
    } else if (word != "?)") {
      ParseWord(draft, word);
    }
  }
}

void ProgramParser::ParseWord(Draft& draft, std::string_view word) {
  if (word == "$") return AddOperands(draft, ParseValues());
  if (word == "{}") return ParseDictionary(draft);
  if (word == "<constant>") return ParseConstant(draft);
  if (word == "<ranges>") return ParseRanges(draft);
  if (word == "<window>") return ParseWindow(draft);
  if (word == "<format>") return ParseFormat(draft);
  if (word == "<convolution>") {
    return Append(draft.operation.properties, attributes_.ParseConvolution());
  }
  if (word == "<skip>") {
    lexer_.Expect("<");
    lexer_.SkipUntil(">");
    return lexer_.Expect(">");
  }
  if (word == ":") return ParseTypes(draft);
  if (word == ":result") return ParseResultType(draft);
  if (word == ":each" || word == ":uses") return ParseOperandTypes(draft, word == ":each");
  if (word == ":select") return ParseSelectTypes(draft);
  size_t colon = word.find(':');
  if (colon == std::string_view::npos) return lexer_.Expect(word);
  std::string_view name = word.substr(colon + 1);
  AddProperty(draft, name, ParseField(word.substr(0, colon), name));
}

AttributeId ProgramParser::ParseField(std::string_view kind, std::string_view name) {
  if (kind == "list") return attributes_.ParseIntegerList();
  if (kind == "int") return encoder().Integer(lexer_.TakeInteger(), ElementType::kS64);
  if (kind == "int32") return encoder().Integer(lexer_.TakeInteger(), ElementType::kS32);
  if (kind == "string") return encoder().String(lexer_.TakeString());
  if (kind == "symbol") return encoder().String(lexer_.TakeSymbol());
  if (kind == "enum") return attributes_.ParseEnumerator(name);
  if (kind == "enums") return attributes_.ParseEnumerators(name);
  bool value = lexer_.Is("true");
  if (!value && !lexer_.Is("false")) lexer_.FailExpected("true or false");
  lexer_.Advance();
  return encoder().Bool(value);
}

void ProgramParser::ParseConstant(Draft& draft) {
  AttributeId value = attributes_.Parse().id;
  if (value == kNone || program_.attributes[value].kind != AttributeKind::kTensor) {
    FailAt(draft.operation.offset, "the constant's value is not a tensor");
  }
  AddProperty(draft, "value", value);
  draft.operation.result_types = {program_.attributes[value].type};
}

// "[0:4:2, 1:3]": start, limit and stride.
void ProgramParser::ParseRanges(Draft& draft) {
  std::vector<int64_t> starts, limits, strides;
  lexer_.Expect("[");
  while (!lexer_.Is("]")) {
    starts.push_back(lexer_.TakeInteger());
    lexer_.Expect(":");
    limits.push_back(lexer_.TakeInteger());
    strides.push_back(lexer_.Accept(":") ? lexer_.TakeInteger() : 1);
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect("]");
  auto rank = static_cast<int64_t>(starts.size());
  AddProperty(draft, "start_indices", encoder().Integers(starts, {rank}));
  AddProperty(draft, "limit_indices", encoder().Integers(limits, {rank}));
  AddProperty(draft, "strides", encoder().Integers(strides, {rank}));
}

void ProgramParser::ParseWindow(Draft& draft) {
  while (!lexer_.Is("}")) {
    Token field = lexer_.Take(TokenKind::kWord, "a field of the window");
    lexer_.Expect("=");
    if (field.text == "stride") {
      AddProperty(draft, "window_strides", attributes_.ParseIntegerList());
    } else if (field.text == "pad") {
      AddProperty(draft, "padding", attributes_.ParsePairs());
    } else if (field.text == "lhs_dilate") {
      AddProperty(draft, "lhs_dilation", attributes_.ParseIntegerList());
    } else if (field.text == "rhs_dilate") {
      AddProperty(draft, "rhs_dilation", attributes_.ParseIntegerList());
    } else if (field.text == "reverse") {
      AddProperty(draft, "window_reversal", attributes_.ParseBoolList());
    } else {
      FailAt(field.offset, "a window has no " + std::string(field.text));
    }
    if (!lexer_.Accept(",")) break;
  }
}

// "e5m2".
void ProgramParser::ParseFormat(Draft& draft) {
  Token word = lexer_.Take(TokenKind::kWord, "a format like e5m2");
  size_t middle = word.text.find('m');
  auto number = [&](std::string_view digits) {
    int64_t value = 0;
    constexpr size_t kMaxDigits = 4;
    bool is_number = !digits.empty() && digits.size() <= kMaxDigits;
    for (char digit : digits) {
      is_number = is_number && digit >= '0' && digit <= '9';
      value = value * 10 + (digit - '0');
    }
    if (!is_number) FailAt(word.offset, "expected a format like e5m2");
    return encoder().Integer(value, ElementType::kS32);
  };
  if (word.text[0] != 'e' || middle == std::string_view::npos) {
    FailAt(word.offset, "expected a format like e5m2");
  }
  AddProperty(draft, "exponent_bits", number(word.text.substr(1, middle - 1)));
  AddProperty(draft, "mantissa_bits", number(word.text.substr(middle + 1)));
}

// --- Operations with regions ---

// stablehlo.while(%a = %0, %b = %1) : t, t cond {…} do {…}
void ProgramParser::ParseWhile(Draft& draft) {
  std::vector<Argument> arguments;
  lexer_.Expect("(");
  while (!lexer_.Is(")")) {
    arguments.push_back({.name = lexer_.Take(TokenKind::kValue, "an argument like %a")});
    lexer_.Expect("=");
    AddOperands(draft, {ParseValue()});
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect(")");
  ParseOperandTypes(draft, true);
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i].type = draft.operand_types[i];
  if (lexer_.Accept("attributes")) ParseDictionary(draft);
  for (std::string_view word : {"cond", "do"}) {
    lexer_.Expect(word);
    lexer_.Expect("{");
    ParseBody(draft.operation.regions.emplace_back(), arguments);
    lexer_.Expect("}");
  }
}

// stablehlo.reduce(%0 init: %1), (%2 init: %3) applies stablehlo.add across dimensions = [0] : …
// or, without "applies", with a body "reducer(%a: t, %b: t) (%c: t, %d: t) {…}" at its end.
void ProgramParser::ParseReduce(Draft& draft) {
  std::vector<Value> initial;
  do {
    lexer_.Expect("(");
    AddOperands(draft, {ParseValue()});
    lexer_.Expect("init");
    lexer_.Expect(":");
    initial.push_back(ParseValue());
    lexer_.Expect(")");
  } while (lexer_.Accept(","));
  AddOperands(draft, initial);
  Token applied;
  if (lexer_.Accept("applies")) applied = lexer_.Take(TokenKind::kWord, "an operation");
  lexer_.Expect("across");
  lexer_.Expect("dimensions");
  lexer_.Expect("=");
  AddProperty(draft, "dimensions", attributes_.ParseIntegerList());
  ParseDictionary(draft);
  ParseTypes(draft);
  Region& body = draft.operation.regions.emplace_back();
  if (applied.text.empty()) return ParseReducer(body, initial.size());
  Apply(draft, applied, body);
}

void ProgramParser::ParseReducer(Region& body, size_t count) {
  lexer_.Expect("reducer");
  std::vector<Argument> first, second;
  for (size_t i = 0; i < count; ++i) {
    size_t offset = lexer_.offset();
    std::vector<Argument> pair = ParseArguments("(", ")");
    if (pair.size() != 2) FailAt(offset, "expected two arguments for each input");
    first.push_back(pair[0]);
    second.push_back(pair[1]);
  }
  first.insert(first.end(), second.begin(), second.end());
  lexer_.Expect("{");
  ParseBody(body, first);
  lexer_.Expect("}");
}

// A body that is one operation on its two arguments.
void ProgramParser::Apply(Draft& draft, const Token& applied, Region& body) {
  const Type& input = program_.types[draft.operand_types[0]];
  if (input.kind != TypeKind::kTensor) FailAt(applied.offset, "the input is not a tensor");
  TypeId scalar = encoder().Intern({.kind = TypeKind::kTensor, .parts = {input.parts[0]}});
  BeginRegion(body, {});
  Operation made;
  made.offset = applied.offset;
  made.name = encoder().OperationNumber(ProgramName(applied.text));
  made.operands = {next_value_, next_value_ + 1};
  made.first_result = next_value_ + 2;
  made.result_types = {scalar};
  Operation finish;
  finish.offset = applied.offset;
  finish.name = encoder().OperationNumber("vhlo.return_v1");
  finish.operands = {made.first_result};
  body.argument_types = {scalar, scalar};
  body.argument_locations = {kNone, kNone};
  body.operations.push_back(std::move(made));
  body.operations.push_back(std::move(finish));
  next_value_ += 3;
  EndRegion(body);
}

}  // namespace hlo::text
