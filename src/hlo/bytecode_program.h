// What an MLIR file holds, before anyone asks what its operations mean: types, attributes and
// operations that refer to each other by number, spelled as VHLO spells them. The readers make it
// from bytecode or text and then a Module from it; the writer of bytecode goes the other way.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/element_type.h"
#include "hlo/shape.h"

namespace hlo::bytecode {

using TypeId = uint32_t;
using AttributeId = uint32_t;
using ValueId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

enum class TypeKind : uint8_t {
  kElement,      // an integer or float: `element`
  kComplex,      // of parts[0]
  kIndex,        // MLIR's index
  kTensor,       // of parts[0], `dimensions`
  kToken,        //
  kTuple,        // of parts
  kFunction,     // from the first `input_count` parts to the others
  kAbsent,       // VHLO's none: the value of an attribute that is not there
  kUnsupported,  // known to VHLO or to another dialect, not to us: `name`
};

struct Type {
  TypeKind kind = TypeKind::kUnsupported;
  ElementType element = ElementType::kInvalid;
  int width = 0;  // bits of an integer or float attribute of this type; 0: none
  Dimensions dimensions = {};
  std::vector<TypeId> parts = {};
  size_t input_count = 0;
  bool builtin = false;  // written as the builtin dialect's type; only integers are
  std::string_view name = {};
  bool operator==(const Type&) const = default;
};

// Numbers are VHLO's codes; those of the builtin dialect are 64 higher.
enum class AttributeKind : uint8_t {
  kArray = 1,                       // parts
  kBool = 2,                        // number
  kComparisonDirection = 3,         // number, as all enumerations
  kComparisonType = 4,              //
  kCustomCallApiVersion = 5,        //
  kDictionary = 6,                  // parts: name, value, name, value, …
  kFftType = 7,                     //
  kFloat = 8,                       // type; number holds the bits
  kInteger = 9,                     // type, number
  kOutputOperandAlias = 10,         // indices, number, more_indices
  kPrecision = 11,                  //
  kRngAlgorithm = 12,               //
  kRngDistribution = 13,            //
  kString = 14,                     // text
  kTensor = 15,                     // type; text holds the bytes
  kTranspose = 16,                  //
  kType = 17,                       // type
  kBuiltinArray = 64,               // parts
  kBuiltinDictionary = 65,          // parts: name, value, …
  kBuiltinString = 66,              // text
  kBuiltinTypedString = 67,         // text, type
  kBuiltinSymbol = 68,              // parts[0]: its name
  kBuiltinType = 70,                // type
  kBuiltinUnit = 71,                //
  kBuiltinInteger = 72,             // type, number
  kCallSiteLocation = 74,           // parts: callee, caller
  kFileLocation = 75,               // parts[0]: file; indices: line, column
  kFusedLocation = 76,              // parts
  kFusedLocationWithMetadata = 77,  // parts, without the metadata
  kNameLocation = 78,               // parts: name, child
  kUnknownLocation = 79,            //
  kFileRangeLocation = 86,          // parts[0]: file; indices: line, …
  kOpaque = 255,                    // something that we need not understand
};

inline bool IsBuiltin(AttributeKind kind) {
  return kind >= AttributeKind::kBuiltinArray && kind != AttributeKind::kOpaque;
}

struct Attribute {
  AttributeKind kind = AttributeKind::kOpaque;
  TypeId type = kNone;
  int64_t number = 0;
  std::string_view text = {};
  std::vector<AttributeId> parts = {};
  std::vector<int64_t> indices = {}, more_indices = {};
  bool operator==(const Attribute&) const = default;
  // Of a tensor: its data stand elsewhere, an element each, and equal no other tensor's.
  bool is_resource() const { return kind == AttributeKind::kTensor && number != 0; }
};

struct Region;

struct NamedAttribute {
  std::string_view name = {};
  AttributeId value;
};

struct Operation {
  uint32_t name = 0;               // into Program::operation_names
  AttributeId location = kNone;    //
  AttributeId dictionary = kNone;  // attributes that are not properties (all of them in old files)
  std::vector<NamedAttribute> properties;
  std::vector<TypeId> result_types;
  ValueId first_result = 0;
  std::vector<ValueId> operands;
  bool isolated = false;  // its regions number their values from 0
  std::vector<Region> regions;
  size_t offset = 0;  // in the file, for errors
};

// One block: VHLO has no branches.
struct Region {
  std::vector<TypeId> argument_types;
  std::vector<AttributeId> argument_locations;
  ValueId first_argument = 0;
  std::vector<Operation> operations;
  // Values of enclosing regions that it or a region in it uses, ascending.
  std::vector<ValueId> captures;
};

struct Program {
  std::string producer;
  std::vector<Type> types;
  std::vector<Attribute> attributes;
  std::vector<std::string_view> operation_names;  // "vhlo.add_v1"
  Region top;                                     // holds builtin.module
  std::deque<std::string> text;  // owns what string_views here do not borrow from the input

  std::string_view Own(std::string value) { return text.emplace_back(std::move(value)); }
};

}  // namespace hlo::bytecode
