// How one type or attribute of the vhlo and builtin dialects is spelled in MLIR bytecode.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "hlo/bytecode_program.h"
#include "hlo/bytecode_stream.h"

namespace hlo::bytecode {

enum class Dialect : uint8_t { kBuiltin, kVhlo, kOther };
Dialect DialectFromName(std::string_view name);

// What a type or attribute may refer to.
struct References {
  std::span<const std::string_view> strings;
  size_t type_count = 0;
  size_t attribute_count = 0;
  std::span<const Type> types;  // all of them, when attributes are read
};

// A reader over exactly one entry. Codes that we do not know give kUnsupported and kOpaque, so that
// only a program that uses them fails.
Type ParseType(ByteReader reader, Dialect dialect, const References& references);
Attribute ParseAttribute(ByteReader reader, Dialect dialect, const References& references);

// Where the things that an entry refers to stand in the file that is written.
struct Numbering {
  std::function<uint32_t(std::string_view)> string;
  std::span<const AttributeId> attribute;  // from Program's number to the file's
};
void WriteType(ByteWriter& out, const Type& type);
void WriteAttribute(ByteWriter& out, const Attribute& attribute, const Program& program,
                    const Numbering& numbering);

}  // namespace hlo::bytecode
