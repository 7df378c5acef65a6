// Makes a Program of text: operations, regions and functions. Types and attributes are
// text_attribute_parser.h's.
#include "hlo/text_reader.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "hlo/bytecode.h"
#include "hlo/bytecode_module.h"
#include "hlo/bytecode_operations.h"
#include "hlo/text_attribute_parser.h"
#include "hlo/text_lexer.h"
#include "hlo/text_syntax.h"

namespace hlo {
namespace text {
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

// The name by which a Program knows an operation.
std::string ProgramName(std::string_view name) {
  constexpr std::string_view kDialect = "stablehlo.";
  if (name == "func.return") return "vhlo.return_v1";
  if (name == "func.call") return "vhlo.call_v1";
  if (name == "func.func") return "vhlo.func_v1";
  if (!name.starts_with(kDialect)) return std::string(name);
  std::string known = bytecode::OperationName(name.substr(kDialect.size()));
  return bytecode::FindOperation(known) ? known : std::string(name);
}

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text)
      : text_size_(text.size()), lexer_(text), attributes_(lexer_, program_) {}

  Program Parse() {
    while (lexer_.token().kind != TokenKind::kEnd) ParseTop();
    if (!loose_functions_.empty()) AddModule("", {}, std::move(loose_functions_));
    attributes_.Finish();
    return std::move(program_);
  }

 private:
  struct Value {
    ValueId id;
    TypeId type;
  };
  // A region that is being read, and the names that it defines.
  struct Scope {
    ValueId first = 0;  // smaller numbers belong to regions around it
    std::unordered_map<std::string_view, std::vector<Value>> names = {};
    std::set<ValueId> captures = {};
  };
  struct Argument {
    Token name = {};
    TypeId type = kNone;
    AttributeId location = kNone;
    AttributeId attributes = kNone;
  };
  struct Results {
    struct Group {
      Token name;
      size_t count;
    };
    std::vector<Group> groups;
    size_t count = 0;
  };

  bytecode::Encoder& encoder() { return attributes_.encoder(); }

  // --- Modules and functions ---

  void ParseTop() {
    TokenKind kind = lexer_.token().kind;
    if (kind == TokenKind::kHash || kind == TokenKind::kBang) return attributes_.ParseAlias();
    if (lexer_.Is("{-#")) return attributes_.ParseResources();
    if (lexer_.Is("module") || lexer_.Is("builtin.module")) return ParseModule();
    if (lexer_.token().text == "\"builtin.module\"") return ParseGenericModule();
    ParseModuleOperation(loose_functions_);
  }

  void ParseModule() {
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

  void ParseGenericModule() {
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

  void AddModule(const std::string& name, std::vector<NamedAttribute> attributes,
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

  std::vector<Operation> ParseFunctions() {
    std::vector<Operation> functions;
    while (!lexer_.Is("}")) ParseModuleOperation(functions);
    return functions;
  }

  void ParseModuleOperation(std::vector<Operation>& functions) {
    Token name = lexer_.token();
    if (lexer_.Is("func.func") || lexer_.Is("func")) return functions.push_back(ParseFunction());
    if (name.text == "\"func.func\"") return functions.push_back(ParseGenericFunction());
    if (lexer_.Is("sdy.mesh")) return SkipMesh();
    lexer_.FailExpected("a function");
  }

  // "sdy.mesh @mesh = <[…]>" is for several devices.
  void SkipMesh() {
    lexer_.Advance();
    lexer_.TakeSymbol();
    lexer_.Expect("=");
    lexer_.Expect("<");
    lexer_.SkipUntil(">");
    lexer_.Expect(">");
    ParseTrailingLocation();
  }

  Operation BeginFunction() {
    Operation function;
    function.name = encoder().OperationNumber("vhlo.func_v1");
    function.offset = lexer_.offset();
    function.isolated = true;
    next_value_ = 0;
    lexer_.Advance();
    return function;
  }

  Operation ParseFunction() {
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
  std::vector<TypeId> ParseFunctionResults() {
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

  Operation ParseGenericFunction() {
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

  void CheckFunctionType(const Operation& function, AttributeId attribute) const {
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

  void CheckReturn(const Region& body, const std::vector<TypeId>& results) const {
    if (returned_types_ == results) return;
    FailAt(body.operations.back().offset, "the function does not return what its type says");
  }

  // --- Regions ---

  // "%a: tensor<f32> {…} loc(…), …" between brackets.
  std::vector<Argument> ParseArguments(std::string_view open, std::string_view close) {
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
  void ParseRegion(Region& region) {
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
  void ParseBody(Region& region, const std::vector<Argument>& arguments) {
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

  void BeginRegion(Region& region, const std::vector<Argument>& arguments) {
    scopes_.push_back({.first = next_value_});
    region.first_argument = next_value_;
    for (const Argument& argument : arguments) {
      region.argument_types.push_back(argument.type);
      region.argument_locations.push_back(argument.location);
      Define(argument.name, {{next_value_++, argument.type}});
    }
  }

  void EndRegion(Region& region) {
    const std::set<ValueId>& captures = scopes_.back().captures;
    region.captures.assign(captures.begin(), captures.end());
    scopes_.pop_back();
  }

  // --- Values ---

  void Define(const Token& name, std::vector<Value> values) {
    for (const Scope& scope : scopes_) {
      if (scope.names.contains(name.text)) {
        FailAt(name.offset, std::string(name.text) + " is defined twice");
      }
    }
    scopes_.back().names.emplace(name.text, std::move(values));
  }

  const std::vector<Value>& Find(const Token& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      auto found = scope->names.find(name.text);
      if (found != scope->names.end()) return found->second;
    }
    FailAt(name.offset, std::string(name.text) + " is not defined before its use");
  }

  // "%0" or "%0#1".
  Value ParseValue() {
    Token name = lexer_.Take(TokenKind::kValue, "a value like %0");
    const std::vector<Value>& values = Find(name);
    size_t index = 0;
    const Token& next = lexer_.token();
    bool has_number = next.kind == TokenKind::kHash && next.text.size() > 1 &&
                      next.text[1] >= '0' && next.text[1] <= '9' &&
                      next.offset == name.offset + name.text.size();
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

  void Use(ValueId value) {
    for (Scope& scope : scopes_) {
      if (value < scope.first) scope.captures.insert(value);
    }
  }

  // "%0, %1", possibly nothing: a comma that no value follows belongs to what comes next.
  std::vector<Value> ParseValues() {
    std::vector<Value> values;
    if (lexer_.token().kind != TokenKind::kValue) return values;
    values.push_back(ParseValue());
    while (lexer_.Is(",") && lexer_.Next().kind == TokenKind::kValue) {
      lexer_.Advance();
      values.push_back(ParseValue());
    }
    return values;
  }

  // --- Operations ---

  // What is known of the operation that is being read.
  struct Draft {
    Token name;
    Operation operation;
    std::vector<TypeId> operand_types;
  };

  Operation ParseOperation() {
    Results results = ParseResults();
    Draft draft;
    draft.name = lexer_.token();
    draft.operation.offset = lexer_.offset();
    if (draft.name.kind == TokenKind::kString) {
      ParseGeneric(draft);
    } else {
      ParseShort(draft);
    }
    AddDefaults(draft);
    Operation& operation = draft.operation;
    AttributeId location = ParseTrailingLocation();
    if (location != kNone) operation.location = location;
    RefuseRepeated(operation);
    DefineResults(results, operation);
    returned_types_ = std::move(draft.operand_types);  // if it is a return
    return std::move(operation);
  }

  // "%0:2, %1 = ".
  Results ParseResults() {
    Results results;
    if (lexer_.token().kind != TokenKind::kValue) return results;
    do {
      Token name = lexer_.Take(TokenKind::kValue, "a result like %0");
      int64_t count = lexer_.Accept(":") ? lexer_.TakeInteger() : 1;
      constexpr int64_t kMaxResults = 1 << 20;
      if (count < 1 || count > kMaxResults) FailAt(name.offset, "this number of results");
      results.groups.push_back({name, static_cast<size_t>(count)});
      results.count += static_cast<size_t>(count);
    } while (lexer_.Accept(","));
    lexer_.Expect("=");
    return results;
  }

  void DefineResults(const Results& results, Operation& operation) {
    const std::vector<TypeId>& types = operation.result_types;
    if (!results.groups.empty() && results.count != types.size()) {
      FailAt(results.groups[0].name.offset, "the operation has " + std::to_string(types.size()) +
                                                " results, not " + std::to_string(results.count));
    }
    // An alias of a function's type is short however many results it has.
    result_count_ += types.size();
    if (result_count_ > text_size_) {
      FailAt(operation.offset, "there are more results than the text has characters",
             ErrorCode::kResourceExhausted);
    }
    operation.first_result = next_value_;
    size_t index = 0;
    for (const Results::Group& group : results.groups) {
      std::vector<Value> values;
      for (size_t i = 0; i < group.count; ++i, ++index) {
        values.push_back({operation.first_result + static_cast<ValueId>(index), types[index]});
      }
      Define(group.name, std::move(values));
    }
    next_value_ += static_cast<ValueId>(types.size());
  }

  void RefuseRepeated(const Operation& operation) const {
    std::set<std::string_view> names;
    for (const NamedAttribute& property : operation.properties) {
      if (!names.insert(property.name).second) {
        FailAt(operation.offset, "the attribute " + std::string(property.name) + " is given twice");
      }
    }
  }

  void SetName(Draft& draft, std::string_view name) {
    draft.operation.name = encoder().OperationNumber(ProgramName(name));
  }

  // "stablehlo.add"(%0, %1) <{…}> ({…}) {…} : (…) -> …
  void ParseGeneric(Draft& draft) {
    SetName(draft, lexer_.TakeString());
    lexer_.Expect("(");
    AddOperands(draft, ParseValues());
    lexer_.Expect(")");
    AddProperties(draft, ParseProperties(), true);
    if (lexer_.Accept("(")) {
      do {
        ParseRegion(draft.operation.regions.emplace_back());
      } while (lexer_.Accept(","));
      lexer_.Expect(")");
    }
    ParseDictionary(draft);
    CheckRequired(draft);
    ParseTypes(draft);
  }

  // The generic form alone can leave anything out.
  void CheckRequired(const Draft& draft) const {
    std::string_view name = program_.operation_names[draft.operation.name];
    const bytecode::OperationSpec* spec = bytecode::FindOperation(name);
    if (!spec) return;
    for (const Required& required : RequiredAttributes(spec->mnemonic)) {
      if (FindProperty(draft, required.attribute)) continue;
      FailAt(draft.operation.offset,
             "the operation needs the attribute " + std::string(required.written));
    }
  }

  void AddOperands(Draft& draft, const std::vector<Value>& values) {
    for (const Value& value : values) {
      draft.operation.operands.push_back(value.id);
      draft.operand_types.push_back(value.type);
    }
  }

  std::vector<NamedAttribute> ParseProperties() {
    if (!lexer_.Accept("<")) return {};
    std::vector<NamedAttribute> properties = attributes_.ParseEntries();
    lexer_.Expect(">");
    return properties;
  }

  void ParseDictionary(Draft& draft) {
    if (lexer_.Is("{")) AddProperties(draft, attributes_.ParseEntries(), false);
  }

  static void Append(std::vector<NamedAttribute>& to, std::vector<NamedAttribute> from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  // Entries between <{ }> are the operation's own; those between braces may be anything.
  void AddProperties(Draft& draft, std::vector<NamedAttribute> entries, bool own) {
    std::string_view name = program_.operation_names[draft.operation.name];
    const bytecode::OperationSpec* spec = bytecode::FindOperation(name);
    for (NamedAttribute& entry : entries) {
      const bytecode::Attribute& value = program_.attributes[entry.value];
      // Of a channel VHLO may keep the number alone.
      std::string_view known_as = entry.name == "channel_type" ? "channel_id" : entry.name;
      bool is_known =
          !spec || std::ranges::find(spec->attributes, known_as) != spec->attributes.end();
      if (own && !is_known && value.kind != AttributeKind::kOpaque) {
        FailAt(draft.operation.offset, "the operation has no attribute " + std::string(entry.name));
      }
      entry.value = PropertyValue(entry, value);
    }
    Append(draft.operation.properties, std::move(entries));
  }

  // VHLO spells a few attributes differently.
  AttributeId PropertyValue(const NamedAttribute& entry, const bytecode::Attribute& value) {
    if (value.kind == AttributeKind::kBuiltinUnit) return encoder().Bool(true);
    if (entry.name == "api_version" && value.kind == AttributeKind::kInteger) {
      return encoder().Enumeration(AttributeKind::kCustomCallApiVersion, value.number);
    }
    return entry.value;
  }

  void AddProperty(Draft& draft, std::string_view name, AttributeId value) {
    draft.operation.properties.push_back({name, value});
  }

  static const NamedAttribute* FindProperty(const Draft& draft, std::string_view name) {
    const auto& properties = draft.operation.properties;
    auto found = std::ranges::find(properties, name, &NamedAttribute::name);
    return found == properties.end() ? nullptr : &*found;
  }

  void AddDefaults(Draft& draft) {
    std::string_view name = draft.name.text;
    if (draft.name.kind == TokenKind::kString) name = name.substr(1, name.size() - 2);
    for (const Default& known : Defaults()) {
      if (known.operation != name || FindProperty(draft, known.attribute)) continue;
      if (known.value == Default::Value::kMinusOne) {
        AddProperty(draft, known.attribute, encoder().Integer(-1, ElementType::kS64));
      } else if (const NamedAttribute* like = FindProperty(draft, known.like)) {
        AddProperty(draft, known.attribute, DefaultLike(known.value, like->value));
      }
    }
  }

  AttributeId DefaultLike(Default::Value value, AttributeId like) {
    int64_t count = ListSize(program_.attributes[like]);
    if (value == Default::Value::kFalse) {
      return encoder().Tensor(Literal(Shape(ElementType::kPred, {count})));
    }
    if (value == Default::Value::kOnes) {
      return encoder().Integers(std::vector<int64_t>(static_cast<size_t>(count), 1), {count});
    }
    return encoder().Integers(std::vector<int64_t>(static_cast<size_t>(2 * count), 0), {count, 2});
  }

  // Of the type: the data may be one element for all. What is no list is refused by who reads it.
  int64_t ListSize(const bytecode::Attribute& list) const {
    if (list.kind != AttributeKind::kTensor) return 0;
    const Dimensions& sizes = program_.types[list.type].dimensions;
    constexpr int64_t kMaxRank = 256;
    if (sizes.size() != 1 || sizes[0] < 0) return 0;
    if (sizes[0] > kMaxRank) lexer_.Fail("a list of " + std::to_string(sizes[0]) + " dimensions");
    return sizes[0];
  }

  void ParseShort(Draft& draft) {
    std::string_view name = lexer_.Take(TokenKind::kWord, "an operation").text;
    if (name == "return") name = "func.return";
    if (name == "call") name = "func.call";
    SetName(draft, name);
    if (name == "stablehlo.while") return ParseWhile(draft);
    if (name == "stablehlo.reduce") return ParseReduce(draft);
    std::string_view form = ShortForm(name);
    if (form.empty()) {
      const char* hint =
          name.starts_with("chlo.") ? ": chlo-legalize-to-stablehlo replaces it" : "";
      FailAt(draft.operation.offset,
             "the short form of " + std::string(name) + " is not known" + hint,
             ErrorCode::kUnimplemented);
    }
    ParseForm(draft, form);
  }

  static std::string_view TakeWord(std::string_view& form) {
    size_t end = std::min(form.find(' '), form.size());
    std::string_view word = form.substr(0, end);
    form.remove_prefix(std::min(end + 1, form.size()));
    return word;
  }

  static bool IsLiteral(std::string_view word) {
    return word.find(':') == std::string_view::npos && word != "$" && word != "(?" && word != "?)";
  }

  // text_syntax.h says what the words mean.
  void ParseForm(Draft& draft, std::string_view form) {
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

  void ParseWord(Draft& draft, std::string_view word) {
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

  AttributeId ParseField(std::string_view kind, std::string_view name) {
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

  void ParseConstant(Draft& draft) {
    AttributeId value = attributes_.Parse().id;
    if (value == kNone || program_.attributes[value].kind != AttributeKind::kTensor) {
      FailAt(draft.operation.offset, "the constant's value is not a tensor");
    }
    AddProperty(draft, "value", value);
    draft.operation.result_types = {program_.attributes[value].type};
  }

  // "[0:4:2, 1:3]": start, limit and stride.
  void ParseRanges(Draft& draft) {
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

  void ParseWindow(Draft& draft) {
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
  void ParseFormat(Draft& draft) {
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

  // --- Types of operations ---

  void CheckOperands(const Draft& draft, const std::vector<TypeId>& types, size_t offset) const {
    const std::vector<TypeId>& actual = draft.operand_types;
    if (types.size() != actual.size()) {
      FailAt(offset, "there are " + std::to_string(actual.size()) + " operands and " +
                         std::to_string(types.size()) + " types");
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == actual[i]) continue;
      FailAt(offset, "operand " + std::to_string(i) + " does not have the type that is written");
    }
  }

  std::vector<TypeId> ParseTypesWithoutBrackets() {
    std::vector<TypeId> types;
    do {
      types.push_back(attributes_.ParseType());
    } while (lexer_.Accept(","));
    return types;
  }

  // ": (a, b) -> c", or ": a" where all are the same.
  void ParseTypes(Draft& draft) {
    lexer_.Expect(":");
    size_t offset = lexer_.offset();
    TypeId type = attributes_.ParseType();
    const Type& function = program_.types[type];
    if (function.kind != TypeKind::kFunction) {
      CheckOperands(draft, std::vector<TypeId>(draft.operand_types.size(), type), offset);
      draft.operation.result_types = {type};
      return;
    }
    auto middle = function.parts.begin() + static_cast<int64_t>(function.input_count);
    CheckOperands(draft, {function.parts.begin(), middle}, offset);
    draft.operation.result_types.assign(middle, function.parts.end());
  }

  void ParseResultType(Draft& draft) {
    if (lexer_.Next().text == "(") return ParseTypes(draft);
    lexer_.Expect(":");
    draft.operation.result_types = {attributes_.ParseType()};
  }

  void ParseOperandTypes(Draft& draft, bool are_results) {
    if (draft.operand_types.empty() && !lexer_.Is(":")) return;
    lexer_.Expect(":");
    size_t offset = lexer_.offset();
    std::vector<TypeId> types = ParseTypesWithoutBrackets();
    CheckOperands(draft, types, offset);
    if (are_results) draft.operation.result_types = std::move(types);
  }

  void ParseSelectTypes(Draft& draft) {
    if (lexer_.Next().text == "(") return ParseTypes(draft);
    lexer_.Expect(":");
    size_t offset = lexer_.offset();
    std::vector<TypeId> types = ParseTypesWithoutBrackets();
    types.push_back(types.back());
    CheckOperands(draft, types, offset);
    draft.operation.result_types = {types.back()};
  }

  // --- Operations with regions ---

  // stablehlo.while(%a = %0, %b = %1) : t, t cond {…} do {…}
  void ParseWhile(Draft& draft) {
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
  void ParseReduce(Draft& draft) {
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

  void ParseReducer(Region& body, size_t count) {
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
  void Apply(Draft& draft, const Token& applied, Region& body) {
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

  AttributeId ParseTrailingLocation() {
    return attributes_.AtLocation() ? attributes_.ParseLocation() : kNone;
  }

  const size_t text_size_;
  size_t result_count_ = 0;  // of all operations
  Program program_;
  Lexer lexer_;
  AttributeParser attributes_;
  std::vector<Operation> loose_functions_;  // outside of a module
  std::vector<Scope> scopes_;               // outermost first
  ValueId next_value_ = 0;
  std::vector<TypeId> returned_types_;  // of the last return
};

// "line 3, column 8: …", the line, and a caret below the column.
std::string Describe(std::string_view text, const bytecode::PositionError& error) {
  size_t offset = std::min(error.offset(), text.size());
  size_t start = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
  size_t line = static_cast<size_t>(std::ranges::count(text.substr(0, start), '\n')) + 1;
  size_t column = offset - start;
  // A window of a long line.
  constexpr size_t kShown = 100;
  size_t skipped = column > kShown / 2 ? column - kShown / 2 : 0;
  std::string_view rest = text.substr(start + skipped);
  std::string shown(rest.substr(0, std::min({rest.find('\n'), rest.size(), kShown})));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = c == '\t' ? ' ' : '?';
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column + 1) + ": " +
         error.message() + "\n  " + shown + "\n  " + std::string(column - skipped, ' ') + "^";
}

}  // namespace
}  // namespace text

std::unique_ptr<Module> ReadStablehloText(std::string_view text) {
  try {
    bytecode::Program program = text::ProgramParser(text).Parse();
    return bytecode::MakeModule(program, text.size());
  } catch (const bytecode::PositionError& error) {
    throw Error(error.code(), text::Describe(text, error));
  }
}

std::unique_ptr<Module> ReadStablehlo(std::span<const std::byte> program) {
  if (IsBytecode(program)) return ReadBytecode(program);
  return ReadStablehloText({reinterpret_cast<const char*>(program.data()), program.size()});
}

}  // namespace hlo
