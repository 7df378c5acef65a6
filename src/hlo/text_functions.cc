// Modules, functions, regions and the values that they define.
#include "hlo/text_program_parser.h"

#include <algorithm>
#include <utility>

namespace hlo::text {
namespace {

using bytecode::AttributeId;
using bytecode::AttributeKind;
using bytecode::FailAt;
using bytecode::kNone;
using bytecode::NamedAttribute;
using bytecode::Operation;
using bytecode::Program;
using bytecode::Region;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;
using bytecode::ValueId;

constexpr size_t kMaxRegionDepth = 100;

}  // namespace

Program ProgramParser::Parse() {
  while (lexer_.token().kind != TokenKind::kEnd) ParseTop();
  if (!loose_functions_.empty()) AddModule("", {}, std::move(loose_functions_));
  attributes_.Finish();
  return std::move(program_);
}

// --- Modules and functions ---

void ProgramParser::ParseTop() {
  TokenKind kind = lexer_.token().kind;
  if (kind == TokenKind::kHash || kind == TokenKind::kBang) return attributes_.ParseAlias();
  if (lexer_.Is("{-#")) return attributes_.ParseResources();
  if (lexer_.Is("module") || lexer_.Is("builtin.module")) return ParseModule();
  if (lexer_.token().text == "\"builtin.module\"") return ParseGenericModule();
  ParseModuleOperation(loose_functions_);
}

void ProgramParser::ParseModule() {
  lexer_.Advance();
  std::string name = lexer_.token().kind == TokenKind::kSymbol ? lexer_.TakeSymbol() : "";
  std::vector<NamedAttribute> attributes;
  if (lexer_.Accept("attributes")) attributes = attributes_.ParseEntries();
  lexer_.Expect("{");
  std::vector<Operation> functions = ParseFunctions();
  lexer_.Expect("}");
  ParseTrailingLocation();
  AddModule(name, std::move(attributes), std::move(functions));
}

void ProgramParser::ParseGenericModule() {
  lexer_.Advance();
  lexer_.Expect("(");
  lexer_.Expect(")");
  std::vector<NamedAttribute> attributes = ParseProperties();
  lexer_.Expect("(");
  lexer_.Expect("{");
  if (lexer_.token().kind == TokenKind::kBlock) {
    lexer_.Advance();
    lexer_.Expect(":");
  }
  std::vector<Operation> functions = ParseFunctions();
  lexer_.Expect("}");
  lexer_.Expect(")");
  if (lexer_.Is("{")) Append(attributes, attributes_.ParseEntries());
  lexer_.Expect(":");
  attributes_.ParseType();
  ParseTrailingLocation();
  AddModule("", std::move(attributes), std::move(functions));
}

void ProgramParser::AddModule(const std::string& name, std::vector<NamedAttribute> attributes,
                              std::vector<Operation> functions) {
  if (!program_.top.operations.empty()) lexer_.Fail("there is more than one module");
  Operation module;
  module.name = encoder().OperationNumber("builtin.module");
  module.properties = std::move(attributes);
  if (!name.empty()) module.properties.push_back({"sym_name", encoder().String(name)});
  module.isolated = true;
  module.regions.emplace_back().operations = std::move(functions);
  program_.top.operations.push_back(std::move(module));
}

std::vector<Operation> ProgramParser::ParseFunctions() {
  std::vector<Operation> functions;
  while (!lexer_.Is("}")) ParseModuleOperation(functions);
  return functions;
}

void ProgramParser::ParseModuleOperation(std::vector<Operation>& functions) {
  Token name = lexer_.token();
  if (lexer_.Is("func.func") || lexer_.Is("func")) return functions.push_back(ParseFunction());
  if (name.text == "\"func.func\"") return functions.push_back(ParseGenericFunction());
  if (lexer_.Is("sdy.mesh")) return SkipMesh();
  lexer_.FailExpected("a function");
}

// "sdy.mesh @mesh = <[…]>" is for several devices.
void ProgramParser::SkipMesh() {
  lexer_.Advance();
  lexer_.TakeSymbol();
  lexer_.Expect("=");
  lexer_.Expect("<");
  lexer_.SkipUntil(">");
  lexer_.Expect(">");
  ParseTrailingLocation();
}

Operation ProgramParser::BeginFunction() {
  Operation function;
  function.name = encoder().OperationNumber("vhlo.func_v1");
  function.offset = lexer_.offset();
  function.isolated = true;
  next_value_ = 0;
  lexer_.Advance();
  return function;
}

Operation ProgramParser::ParseFunction() {
  Operation function = BeginFunction();
  std::string_view visibility = "public";
  for (std::string_view word : {"public", "private", "nested"}) {
    if (lexer_.Accept(word)) visibility = word;
  }
  AttributeId name = encoder().String(lexer_.TakeSymbol());
  std::vector<Argument> arguments = ParseArguments("(", ")");
  std::vector<TypeId> results;
  if (lexer_.Accept("->")) results = ParseFunctionResults();
  if (lexer_.Accept("attributes")) attributes_.ParseEntries();
  if (!lexer_.Is("{")) FailAt(function.offset, "the function has no body");
  std::vector<AttributeId> dictionaries;
  for (const Argument& argument : arguments) {
    dictionaries.push_back(argument.attributes == kNone
                               ? encoder().Dictionary(std::vector<AttributeId>())
                               : argument.attributes);
  }
  function.properties = {{"arg_attrs", encoder().Array(std::move(dictionaries))},
                         {"sym_name", name},
                         {"sym_visibility", encoder().String(visibility)}};
  lexer_.Expect("{");
  ParseBody(function.regions.emplace_back(), arguments);
  CheckReturn(function.regions[0], results);
  lexer_.Expect("}");
  function.location = ParseTrailingLocation();
  return function;
}

// "-> (tensor<f32> {jax.result_info = ""})".
std::vector<TypeId> ProgramParser::ParseFunctionResults() {
  std::vector<TypeId> types;
  if (!lexer_.Accept("(")) return {attributes_.ParseType()};
  while (!lexer_.Is(")")) {
    types.push_back(attributes_.ParseType());
    if (lexer_.Is("{")) attributes_.ParseEntries();
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect(")");
  return types;
}

Operation ProgramParser::ParseGenericFunction() {
  Operation function = BeginFunction();
  lexer_.Expect("(");
  lexer_.Expect(")");
  function.properties = ParseProperties();
  lexer_.Expect("(");
  ParseRegion(function.regions.emplace_back());
  lexer_.Expect(")");
  if (lexer_.Is("{")) Append(function.properties, attributes_.ParseEntries());
  lexer_.Expect(":");
  attributes_.ParseType();
  function.location = ParseTrailingLocation();
  auto find = [&](std::string_view name) {
    return std::ranges::find(function.properties, name, &NamedAttribute::name);
  };
  if (find("sym_visibility") == function.properties.end()) {
    function.properties.push_back({"sym_visibility", encoder().String("public")});
  }
  auto type = find("function_type");
  if (type != function.properties.end()) CheckFunctionType(function, type->value);
  return function;
}

void ProgramParser::CheckFunctionType(const Operation& function, AttributeId attribute) const {
  const bytecode::Attribute& found = program_.attributes[attribute];
  if (found.kind != AttributeKind::kType ||
      program_.types[found.type].kind != TypeKind::kFunction) {
    FailAt(function.offset, "function_type is not the type of a function");
  }
  const Type& type = program_.types[found.type];
  auto results = type.parts.begin() + static_cast<int64_t>(type.input_count);
  if (std::vector<TypeId>(type.parts.begin(), results) != function.regions[0].argument_types) {
    FailAt(function.offset, "function_type does not have the types of the arguments");
  }
  CheckReturn(function.regions[0], {results, type.parts.end()});
}

void ProgramParser::CheckReturn(const Region& body, const std::vector<TypeId>& results) const {
  if (returned_types_ == results) return;
  FailAt(body.operations.back().offset, "the function does not return what its type says");
}

// --- Regions ---

// "%a: tensor<f32> {…} loc(…), …" between brackets.
std::vector<ProgramParser::Argument> ProgramParser::ParseArguments(std::string_view open,
                                                                   std::string_view close) {
  std::vector<Argument> arguments;
  lexer_.Expect(open);
  while (!lexer_.Is(close)) {
    Argument& argument = arguments.emplace_back();
    argument.name = lexer_.Take(TokenKind::kValue, "an argument like %a");
    lexer_.Expect(":");
    argument.type = attributes_.ParseType();
    if (lexer_.Is("{")) argument.attributes = attributes_.ParseDictionary();
    argument.location = ParseTrailingLocation();
    if (!lexer_.Accept(",")) break;
  }
  lexer_.Expect(close);
  return arguments;
}

// "{ ^bb0(%a: tensor<f32>): … }".
void ProgramParser::ParseRegion(Region& region) {
  lexer_.Expect("{");
  std::vector<Argument> arguments;
  if (lexer_.token().kind == TokenKind::kBlock) {
    lexer_.Advance();
    if (lexer_.Is("(")) arguments = ParseArguments("(", ")");
    lexer_.Expect(":");
  }
  ParseBody(region, arguments);
  lexer_.Expect("}");
}

// Operations up to a closing brace.
void ProgramParser::ParseBody(Region& region, const std::vector<Argument>& arguments) {
  if (scopes_.size() >= kMaxRegionDepth) lexer_.Fail("regions are nested too deep");
  BeginRegion(region, arguments);
  bool returned = false;
  while (!lexer_.Is("}")) {
    if (returned) lexer_.FailExpected("'}' after the return");
    region.operations.push_back(ParseOperation());
    returned = program_.operation_names[region.operations.back().name] == "vhlo.return_v1";
  }
  if (!returned) lexer_.FailExpected("a return at the end of the body");
  EndRegion(region);
}

void ProgramParser::BeginRegion(Region& region, const std::vector<Argument>& arguments) {
  scopes_.push_back({.first = next_value_});
  region.first_argument = next_value_;
  for (const Argument& argument : arguments) {
    region.argument_types.push_back(argument.type);
    region.argument_locations.push_back(argument.location);
    Define(argument.name, {{next_value_++, argument.type}});
  }
}

void ProgramParser::EndRegion(Region& region) {
  const std::set<ValueId>& captures = scopes_.back().captures;
  region.captures.assign(captures.begin(), captures.end());
  scopes_.pop_back();
}

AttributeId ProgramParser::ParseTrailingLocation() {
  return attributes_.AtLocation() ? attributes_.ParseLocation() : kNone;
}

// --- Values ---

void ProgramParser::Define(const Token& name, std::vector<Value> values) {
  for (const Scope& scope : scopes_) {
    if (scope.names.contains(name.text)) {
      FailAt(name.offset, std::string(name.text) + " is defined twice");
    }
  }
  scopes_.back().names.emplace(name.text, std::move(values));
}

const std::vector<ProgramParser::Value>& ProgramParser::Find(const Token& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->names.find(name.text);
    if (found != scope->names.end()) return found->second;
  }
  FailAt(name.offset, std::string(name.text) + " is not defined before its use");
}

// "%0" or "%0#1".
ProgramParser::Value ProgramParser::ParseValue() {
  Token name = lexer_.Take(TokenKind::kValue, "a value like %0");
  const std::vector<Value>& values = Find(name);
  size_t index = 0;
  const Token& next = lexer_.token();
  bool has_number = next.kind == TokenKind::kHash && next.text.size() > 1 && next.text[1] >= '0' &&
                    next.text[1] <= '9' && next.offset == name.offset + name.text.size();
  if (has_number) {
    for (char digit : next.text.substr(1)) {
      index = std::min<size_t>(index * 10 + static_cast<size_t>(digit - '0'), values.size());
    }
    lexer_.Advance();
  } else if (values.size() > 1) {
    FailAt(name.offset, std::string(name.text) + " has several values: write which, as in " +
                            std::string(name.text) + "#0");
  }
  if (index >= values.size()) {
    FailAt(name.offset,
           std::string(name.text) + " has " + std::to_string(values.size()) + " values");
  }
  Use(values[index].id);
  return values[index];
}

void ProgramParser::Use(ValueId value) {
  for (Scope& scope : scopes_) {
    if (value < scope.first) scope.captures.insert(value);
  }
}

// "%0, %1", possibly nothing: a comma that no value follows belongs to what comes next.
std::vector<ProgramParser::Value> ProgramParser::ParseValues() {
  std::vector<Value> values;
  if (lexer_.token().kind != TokenKind::kValue) return values;
  values.push_back(ParseValue());
  while (lexer_.Is(",") && lexer_.Next().kind == TokenKind::kValue) {
    lexer_.Advance();
    values.push_back(ParseValue());
  }
  return values;
}

}  // namespace hlo::text
