// From shapes, literals and attributes of instructions to the parts of a bytecode Program. Equal
// things are stated once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/bytecode_program.h"
#include "hlo/instruction.h"

namespace hlo::bytecode {

class Encoder {
 public:
  explicit Encoder(Program& program) : program_(program) {}

  TypeId TypeOf(const Shape& shape);
  TypeId ElementTypeOf(ElementType element);
  TypeId FunctionType(const std::vector<Shape>& inputs, const std::vector<Shape>& results);
  TypeId AbsentType();
  TypeId IndexTensorType(int64_t size);  // tensor<size x index>: a layout
  TypeId Intern(Type type);              // as it is

  AttributeId String(std::string_view text);
  AttributeId Bool(bool value);
  AttributeId Integer(int64_t value, ElementType type);
  AttributeId Float(double value, ElementType type);
  AttributeId Enumeration(AttributeKind kind, int64_t value);
  AttributeId Array(std::vector<AttributeId> parts);
  AttributeId Dictionary(std::vector<AttributeId> names_and_values);
  AttributeId Dictionary(const AttributeDictionary& dictionary);
  AttributeId TypeAttribute(TypeId type);
  AttributeId Integers(const std::vector<int64_t>& values, Dimensions dimensions);
  AttributeId Tensor(const Literal& literal);
  AttributeId Add(Attribute attribute);  // as it is

  AttributeId BuiltinString(std::string_view text);
  AttributeId BuiltinInteger(int64_t value, ElementType type);
  AttributeId BuiltinDictionary(std::vector<AttributeId> names_and_values);
  AttributeId Location(const Metadata& metadata);

  uint32_t OperationNumber(std::string_view name);

 private:
  TypeId NewTypeOf(const Shape& shape);
  AttributeId NewLocation(const Metadata& metadata);
  AttributeId Value(const AttributeValue& value);

  Program& program_;
  // By hash; the entries themselves are compared.
  std::unordered_multimap<size_t, TypeId> types_;
  std::unordered_multimap<size_t, AttributeId> attributes_;
  std::unordered_map<std::string, uint32_t> operations_;
  std::unordered_map<Shape, TypeId> shapes_;
  std::pair<Metadata, std::optional<AttributeId>> last_location_;
};

// VisitFields with this archive collects the attributes of an instruction.
class FieldEncoder {
 public:
  explicit FieldEncoder(Encoder& encoder) : encoder_(encoder) {}

  // Sorted by name, as bytecode wants them.
  std::vector<NamedAttribute> Take();
  void Add(const char* name, AttributeId value) { attributes_.push_back({name, value}); }

  void Integer(const char* name, int64_t value) {
    Add(name, encoder_.Integer(value, ElementType::kS64));
  }
  void ShortInteger(const char* name, int64_t value) {
    Add(name, encoder_.Integer(value, ElementType::kS32));
  }
  void Integers(const char* name, const Dimensions& values);
  void Factor(const char* name, int64_t value) { Integer(name, value); }
  void Factors(const char* name, const Dimensions& values) { Integers(name, values); }
  void OptionalIntegers(const char* name, const std::optional<Dimensions>& values) {
    Integers(name, values.value_or(Dimensions()));
  }
  void Bool(const char* name, bool value) { Add(name, encoder_.Bool(value)); }
  void Bools(const char* name, const std::vector<bool>& values);
  void Float(const char* name, float value) { Add(name, encoder_.Float(value, ElementType::kF32)); }
  void String(const char* name, const std::string& value) { Add(name, encoder_.String(value)); }
  void Precisions(const char* name, const std::vector<Precision>& values);
  void Padding(const char* name, const Dimensions& low, const Dimensions& high);
  void Rows(const char* name, const std::vector<std::vector<int64_t>>& rows, int64_t columns);
  void Constant(const char* name, const Literal& value) { Add(name, encoder_.Tensor(value)); }
  void Dictionary(const char* name, const AttributeDictionary& value) {
    Add(name, encoder_.Dictionary(value));
  }
  void OptionalDictionary(const char*, const AttributeDictionary&) {}  // outside the properties
  void Layouts(const char* name, const std::vector<Dimensions>& layouts);
  void Aliases(const char* name, const std::vector<OutputOperandAlias>& aliases);
  void TypedCustomCall(const CustomCallAttributes&) {}  // its dictionary is backend_config
  void Absent(const char* name) { Add(name, encoder_.TypeAttribute(encoder_.AbsentType())); }
  void NoLayout(const char* name) { Add(name, encoder_.Array({})); }
  template <typename T>
  void Enumeration(const char* name, AttributeKind kind, T value, int64_t last,
                   int64_t offset = 0) {
    Add(name, encoder_.Enumeration(kind, static_cast<int64_t>(value) + offset));
  }

 private:
  Encoder& encoder_;
  std::vector<NamedAttribute> attributes_;
};

}  // namespace hlo::bytecode
