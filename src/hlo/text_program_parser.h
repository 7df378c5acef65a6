// Makes a Program of text: operations, regions and functions. Types and attributes are
// text_attribute_parser.h's. One parser in several files: text_functions.cc, text_operations.cc and
// text_short_forms.cc.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/text_attribute_parser.h"
#include "hlo/text_lexer.h"
#include "hlo/text_syntax.h"

namespace hlo::text {

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text)
      : text_size_(text.size()), lexer_(text), attributes_(lexer_, program_) {}
  // The whole text. Throws bytecode::PositionError.
  bytecode::Program Parse();

 private:
  struct Value {
    bytecode::ValueId id;
    bytecode::TypeId type;
  };
  // A region that is being read, and the names that it defines.
  struct Scope {
    bytecode::ValueId first = 0;  // smaller numbers belong to regions around it
    std::unordered_map<std::string_view, std::vector<Value>> names = {};
    std::set<bytecode::ValueId> captures = {};
  };
  struct Argument {
    Token name = {};
    bytecode::TypeId type = bytecode::kNone;
    bytecode::AttributeId location = bytecode::kNone;
    bytecode::AttributeId attributes = bytecode::kNone;
  };
  // "%0:2, %1" before an operation.
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

  void ParseTop();
  void ParseModule();
  void ParseGenericModule();
  void AddModule(const std::string& name, std::vector<bytecode::NamedAttribute> attributes,
                 std::vector<bytecode::Operation> functions);
  std::vector<bytecode::Operation> ParseFunctions();
  void ParseModuleOperation(std::vector<bytecode::Operation>& functions);
  void SkipMesh();
  bytecode::Operation BeginFunction();
  bytecode::Operation ParseFunction();
  std::vector<bytecode::TypeId> ParseFunctionResults();
  bytecode::Operation ParseGenericFunction();
  void CheckFunctionType(const bytecode::Operation& function,
                         bytecode::AttributeId attribute) const;
  void CheckReturn(const bytecode::Region& body,
                   const std::vector<bytecode::TypeId>& results) const;

  // --- Regions ---

  std::vector<Argument> ParseArguments(std::string_view open, std::string_view close);
  void ParseRegion(bytecode::Region& region);
  void ParseBody(bytecode::Region& region, const std::vector<Argument>& arguments);
  void BeginRegion(bytecode::Region& region, const std::vector<Argument>& arguments);
  void EndRegion(bytecode::Region& region);

  // --- Values ---

  void Define(const Token& name, std::vector<Value> values);
  const std::vector<Value>& Find(const Token& name) const;
  Value ParseValue();
  void Use(bytecode::ValueId value);
  std::vector<Value> ParseValues();

  // --- Operations ---

  // What is known of the operation that is being read.
  struct Draft {
    Token name;
    bytecode::Operation operation;
    std::vector<bytecode::TypeId> operand_types;
  };
  bytecode::Operation ParseOperation();
  Results ParseResults();
  void DefineResults(const Results& results, bytecode::Operation& operation);
  void RefuseRepeated(const bytecode::Operation& operation) const;
  // The name by which a Program knows an operation.
  static std::string ProgramName(std::string_view name);
  void SetName(Draft& draft, std::string_view name);
  void ParseGeneric(Draft& draft);
  void CheckRequired(const Draft& draft) const;
  void AddOperands(Draft& draft, const std::vector<Value>& values);
  std::vector<bytecode::NamedAttribute> ParseProperties();
  void ParseDictionary(Draft& draft);
  static void Append(std::vector<bytecode::NamedAttribute>& to,
                     std::vector<bytecode::NamedAttribute> from);
  void AddProperties(Draft& draft, std::vector<bytecode::NamedAttribute> entries, bool own);
  bytecode::AttributeId PropertyValue(const bytecode::NamedAttribute& entry,
                                      const bytecode::Attribute& value);
  void AddProperty(Draft& draft, std::string_view name, bytecode::AttributeId value);
  static const bytecode::NamedAttribute* FindProperty(const Draft& draft, std::string_view name);
  void AddDefaults(Draft& draft);
  bytecode::AttributeId DefaultLike(Default::Value value, bytecode::AttributeId like);
  int64_t ListSize(const bytecode::Attribute& list) const;

  // --- Short forms ---

  void ParseShort(Draft& draft);
  static std::string_view TakeWord(std::string_view& form);
  static bool IsLiteral(std::string_view word);
  void ParseForm(Draft& draft, std::string_view form);
  void ParseWord(Draft& draft, std::string_view word);
  bytecode::AttributeId ParseField(std::string_view kind, std::string_view name);
  void ParseConstant(Draft& draft);
  void ParseRanges(Draft& draft);
  void ParseWindow(Draft& draft);
  void ParseFormat(Draft& draft);

  // --- Types of operations ---

  void CheckOperands(const Draft& draft, const std::vector<bytecode::TypeId>& types,
                     size_t offset) const;
  std::vector<bytecode::TypeId> ParseTypesWithoutBrackets();
  void ParseTypes(Draft& draft);
  void ParseResultType(Draft& draft);
  void ParseOperandTypes(Draft& draft, bool are_results);
  void ParseSelectTypes(Draft& draft);

  // --- Operations with regions ---

  void ParseWhile(Draft& draft);
  void ParseReduce(Draft& draft);
  void ParseReducer(bytecode::Region& body, size_t count);
  void Apply(Draft& draft, const Token& applied, bytecode::Region& body);

  bytecode::AttributeId ParseTrailingLocation();

  const size_t text_size_;
  size_t result_count_ = 0;  // of all operations
  bytecode::Program program_;
  Lexer lexer_;
  AttributeParser attributes_;
  std::vector<bytecode::Operation> loose_functions_;  // outside of a module
  std::vector<Scope> scopes_;                         // outermost first
  bytecode::ValueId next_value_ = 0;
  std::vector<bytecode::TypeId> returned_types_;  // of the last return
};

}  // namespace hlo::text
