// What the fuzzers do with an input.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/text_writer.h"

namespace hlo {

// Reads `bytes`. If they are a program after all, writes it in every form and reads it again.
// Returns false if they are refused with an Error; any other exception, or a difference, is a
// defect.
inline bool Exercise(std::span<const std::byte> bytes) {
  std::unique_ptr<Module> module;
  try {
    module = ReadBytecode(bytes);
  } catch (const Error&) {
    return false;
  }
  WriteStablehloText(*module);
  std::string written = WriteBytecode(*module);
  auto again = ReadBytecode(std::as_bytes(std::span(written.data(), written.size())));
  // Operands of branches and constants find their places in the first reading after a writing.
  written = WriteBytecode(*again);
  auto third = ReadBytecode(std::as_bytes(std::span(written.data(), written.size())));
  if (again->Hash() != third->Hash()) {
    throw std::logic_error("written and read again, the module differs:\n" + again->ToString() +
                           "\n" + third->ToString());
  }
  return true;
}

}  // namespace hlo
