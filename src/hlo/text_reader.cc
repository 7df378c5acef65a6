#include "hlo/text_reader.h"

#include <algorithm>

#include "hlo/bytecode.h"
#include "hlo/bytecode_module.h"
#include "hlo/text_program_parser.h"

namespace hlo {
namespace text {
namespace {

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
