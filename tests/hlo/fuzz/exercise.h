// What the fuzzers do with an input.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"

namespace hlo {

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline void CheckSame(const Module& one, const Module& other) {
  if (one.Hash() == other.Hash()) return;
  throw std::logic_error("written and read again, the module differs:\n" + one.ToString() + "\n" +
                         other.ToString());
}

// Text says all that a module is: read again it is the same module, and the same text.
inline void ExerciseText(const Module& module) {
  const std::string text = WriteStablehloText(module, {.locations = true});
  std::unique_ptr<Module> again = ReadStablehloText(text);
  CheckSame(module, *again);
  if (WriteStablehloText(*again, {.locations = true}) != text) {
    throw std::logic_error("read and written again, the text differs:\n" + text);
  }
}

// Reads `bytes`, bytecode or text. If they are a program after all, writes it in every form and
// reads it again. Returns false if they are refused with an Error; any other exception, or a
// difference, is a defect.
inline bool Exercise(std::span<const std::byte> bytes) {
  std::unique_ptr<Module> module;
  try {
    module = ReadStablehlo(bytes);
  } catch (const Error&) {
    return false;
  }
  WriteStablehloText(*module);
  auto again = ReadBytecode(BytesOf(WriteBytecode(*module)));
  // Operands of branches and constants find their places in the first reading after a writing.
  CheckSame(*again, *ReadBytecode(BytesOf(WriteBytecode(*again))));
  ExerciseText(*again);
  return true;
}

}  // namespace hlo
