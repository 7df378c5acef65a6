// From the parts of a bytecode Program to shapes, literals and attributes of instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/bytecode_program.h"
#include "hlo/instruction.h"

namespace hlo::bytecode {

class Decoder {
 public:
  // `input_size` in bytes: what the result may occupy is a multiple of it.
  Decoder(const Program& program, size_t input_size);

  // `offset` is where the operation that asks begins, for errors.
  const Shape& TensorShape(TypeId type, size_t offset);
  ElementType Element(TypeId type, size_t offset);

  // The attribute called `name`, a property or not; null if it is not there or is VHLO's none.
  const Attribute* Find(const Operation& operation, std::string_view name) const;
  const Attribute& attribute(AttributeId id) const { return program_.attributes[id]; }

  std::string_view Text(const Attribute& attribute, size_t offset) const;
  std::string CopyText(const Attribute& attribute, size_t offset);
  int64_t Integer(const Attribute& attribute, size_t offset) const;
  bool Bool(const Attribute& attribute, size_t offset) const;
  // A tensor's data. Data may be stated as one element for all.
  Literal Tensor(const Attribute& attribute, size_t offset);
  // True if the tensor is one element repeated so often that it should not be written out. If not,
  // ConstantTensor() may write it out: constants have an allowance of their own for that.
  bool IsLargeSplat(const Attribute& attribute, size_t offset);
  Literal ConstantTensor(const Attribute& attribute, size_t offset);
  Literal SplatElement(const Attribute& attribute, size_t offset);
  // A tensor of 64-bit integers (or index).
  std::vector<int64_t> Integers(const Attribute& attribute, size_t limit, size_t offset);
  AttributeDictionary Dictionary(const Attribute& attribute, size_t offset, int depth = 0);
  const SharedMetadata& Location(AttributeId location);

  // Accounts for `bytes` of memory that the input does not itself occupy; throws
  // Error(kResourceExhausted) when that is more than a multiple of the input's size.
  void Spend(size_t bytes, size_t offset);

 private:
  const Shape& StaticShape(const Attribute& tensor, size_t offset);
  Literal TensorOf(const Attribute& attribute, const Shape& shape, size_t offset);
  AttributeValue Value(const Attribute& attribute, size_t offset, int depth);
  AttributeValue ArrayValue(const Attribute& attribute, size_t offset, int depth);
  AttributeValue TensorValue(const Attribute& attribute, size_t offset);
  void CollectLocation(AttributeId location, Metadata& metadata, int depth);

  Shape MakeShape(TypeId type, size_t offset, int depth);

  const Program& program_;
  std::vector<std::optional<Shape>> shapes_;
  std::unordered_map<AttributeId, SharedMetadata> locations_;
  size_t budget_;
  size_t splat_budget_;
};

// VisitFields with this archive fills the attributes of one operation's instruction. A field
// without attribute keeps its default: older versions of operations have fewer.
class FieldDecoder {
 public:
  FieldDecoder(Decoder& decoder, const Operation& operation)
      : decoder_(decoder), operation_(operation) {}

  void Integer(const char* name, int64_t& field);
  void ShortInteger(const char* name, int64_t& field) { Integer(name, field); }
  void Integers(const char* name, Dimensions& field);
  // Integers that sizes are multiplied by: bounded, so that no size overflows.
  void Factor(const char* name, int64_t& field);
  void Factors(const char* name, Dimensions& field);
  void OptionalIntegers(const char* name, std::optional<Dimensions>& field);
  void Bool(const char* name, bool& field);
  void Bools(const char* name, std::vector<bool>& field);
  void Float(const char* name, float& field);
  void String(const char* name, std::string& field);
  void Precisions(const char* name, std::vector<Precision>& field);
  void Padding(const char* name, Dimensions& low, Dimensions& high);
  // A matrix of integers, `columns` wide (0: any).
  void Rows(const char* name, std::vector<std::vector<int64_t>>& field, int64_t columns);
  void Constant(const char* name, Literal& field);
  void Dictionary(const char* name, AttributeDictionary& field);
  void OptionalDictionary(const char* name, AttributeDictionary& field) { Dictionary(name, field); }
  void Layouts(const char* name, std::vector<Dimensions>& field);
  void Aliases(const char* name, std::vector<OutputOperandAlias>& field);
  // What JAX writes for consumers that know no dictionaries in backend_config (StableHLO
  // before 1.3): an attribute outside the operation's own, "mhlo.backend_config".
  void TypedCustomCall(CustomCallAttributes& a);
  void Absent(const char* name) {}
  void NoLayout(const char* name) {}
  // `offset` is the number that VHLO gives the first enumerator.
  template <typename T>
  void Enumeration(const char* name, AttributeKind kind, T& field, int64_t last,
                   int64_t offset = 0) {
    if (const Attribute* attribute = decoder_.Find(operation_, name)) {
      field = static_cast<T>(EnumerationValue(name, *attribute, kind, last, offset));
    }
  }

 private:
  int64_t EnumerationValue(const char* name, const Attribute& attribute, AttributeKind kind,
                           int64_t last, int64_t offset) const;
  const Attribute* Find(const char* name, AttributeKind kind) const;
  void CheckBound(const char* name, int64_t value, int64_t bound) const;
  [[noreturn]] void Fail(const char* name, const std::string& what) const;

  Decoder& decoder_;
  const Operation& operation_;
};

}  // namespace hlo::bytecode
