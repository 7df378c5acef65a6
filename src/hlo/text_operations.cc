// Operations: results, the generic form, attributes and types.
#include "hlo/text_program_parser.h"

#include <algorithm>
#include <set>

#include "hlo/bytecode_operations.h"

namespace hlo::text {
namespace {

using bytecode::AttributeId;
using bytecode::AttributeKind;
using bytecode::FailAt;
using bytecode::kNone;
using bytecode::NamedAttribute;
using bytecode::Operation;
using bytecode::Type;
using bytecode::TypeId;
using bytecode::TypeKind;
using bytecode::ValueId;

}  // namespace

Operation ProgramParser::ParseOperation() {
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
ProgramParser::Results ProgramParser::ParseResults() {
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

void ProgramParser::DefineResults(const Results& results, Operation& operation) {
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

void ProgramParser::RefuseRepeated(const Operation& operation) const {
  std::set<std::string_view> names;
  for (const NamedAttribute& property : operation.properties) {
    if (!names.insert(property.name).second) {
      FailAt(operation.offset, "the attribute " + std::string(property.name) + " is given twice");
    }
  }
}

std::string ProgramParser::ProgramName(std::string_view name) {
  constexpr std::string_view kDialect = "stablehlo.";
  if (name == "func.return") return "vhlo.return_v1";
  if (name == "func.call") return "vhlo.call_v1";
  if (name == "func.func") return "vhlo.func_v1";
  if (!name.starts_with(kDialect)) return std::string(name);
  std::string known = bytecode::OperationName(name.substr(kDialect.size()));
  return bytecode::FindOperation(known) ? known : std::string(name);
}

void ProgramParser::SetName(Draft& draft, std::string_view name) {
  draft.operation.name = encoder().OperationNumber(ProgramName(name));
}

// "stablehlo.add"(%0, %1) <{…}> ({…}) {…} : (…) -> …
void ProgramParser::ParseGeneric(Draft& draft) {
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
void ProgramParser::CheckRequired(const Draft& draft) const {
  std::string_view name = program_.operation_names[draft.operation.name];
  const bytecode::OperationSpec* spec = bytecode::FindOperation(name);
  if (!spec) return;
  for (const Required& required : RequiredAttributes(spec->mnemonic)) {
    if (FindProperty(draft, required.attribute)) continue;
    FailAt(draft.operation.offset,
           "the operation needs the attribute " + std::string(required.written));
  }
}

void ProgramParser::AddOperands(Draft& draft, const std::vector<Value>& values) {
  for (const Value& value : values) {
    draft.operation.operands.push_back(value.id);
    draft.operand_types.push_back(value.type);
  }
}

std::vector<NamedAttribute> ProgramParser::ParseProperties() {
  if (!lexer_.Accept("<")) return {};
  std::vector<NamedAttribute> properties = attributes_.ParseEntries();
  lexer_.Expect(">");
  return properties;
}

void ProgramParser::ParseDictionary(Draft& draft) {
  if (lexer_.Is("{")) AddProperties(draft, attributes_.ParseEntries(), false);
}

void ProgramParser::Append(std::vector<NamedAttribute>& to, std::vector<NamedAttribute> from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Entries between <{ }> are the operation's own; those between braces may be anything.
void ProgramParser::AddProperties(Draft& draft, std::vector<NamedAttribute> entries, bool own) {
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
AttributeId ProgramParser::PropertyValue(const NamedAttribute& entry,
                                         const bytecode::Attribute& value) {
  if (value.kind == AttributeKind::kBuiltinUnit) return encoder().Bool(true);
  if (entry.name == "api_version" && value.kind == AttributeKind::kInteger) {
    return encoder().Enumeration(AttributeKind::kCustomCallApiVersion, value.number);
  }
  return entry.value;
}

void ProgramParser::AddProperty(Draft& draft, std::string_view name, AttributeId value) {
  draft.operation.properties.push_back({name, value});
}

const NamedAttribute* ProgramParser::FindProperty(const Draft& draft, std::string_view name) {
  const auto& properties = draft.operation.properties;
  auto found = std::ranges::find(properties, name, &NamedAttribute::name);
  return found == properties.end() ? nullptr : &*found;
}

void ProgramParser::AddDefaults(Draft& draft) {
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

AttributeId ProgramParser::DefaultLike(Default::Value value, AttributeId like) {
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
int64_t ProgramParser::ListSize(const bytecode::Attribute& list) const {
  if (list.kind != AttributeKind::kTensor) return 0;
  const Dimensions& sizes = program_.types[list.type].dimensions;
  constexpr int64_t kMaxRank = 256;
  if (sizes.size() != 1 || sizes[0] < 0) return 0;
  if (sizes[0] > kMaxRank) lexer_.Fail("a list of " + std::to_string(sizes[0]) + " dimensions");
  return sizes[0];
}

// --- Types of operations ---

void ProgramParser::CheckOperands(const Draft& draft, const std::vector<TypeId>& types,
                                  size_t offset) const {
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

std::vector<TypeId> ProgramParser::ParseTypesWithoutBrackets() {
  std::vector<TypeId> types;
  do {
    types.push_back(attributes_.ParseType());
  } while (lexer_.Accept(","));
  return types;
}

// ": (a, b) -> c", or ": a" where all are the same.
void ProgramParser::ParseTypes(Draft& draft) {
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

void ProgramParser::ParseResultType(Draft& draft) {
  if (lexer_.Next().text == "(") return ParseTypes(draft);
  lexer_.Expect(":");
  draft.operation.result_types = {attributes_.ParseType()};
}

void ProgramParser::ParseOperandTypes(Draft& draft, bool are_results) {
  if (draft.operand_types.empty() && !lexer_.Is(":")) return;
  lexer_.Expect(":");
  size_t offset = lexer_.offset();
  std::vector<TypeId> types = ParseTypesWithoutBrackets();
  CheckOperands(draft, types, offset);
  if (are_results) draft.operation.result_types = std::move(types);
}

void ProgramParser::ParseSelectTypes(Draft& draft) {
  if (lexer_.Next().text == "(") return ParseTypes(draft);
  lexer_.Expect(":");
  size_t offset = lexer_.offset();
  std::vector<TypeId> types = ParseTypesWithoutBrackets();
  types.push_back(types.back());
  CheckOperands(draft, types, offset);
  draft.operation.result_types = {types.back()};
}

}  // namespace hlo::text
