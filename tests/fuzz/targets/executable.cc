// Bytes as a compiled program: whole ones, and the table of kernels behind the checks that tell
// whether a program is this engine's. Machine code is what it is: nothing is run.
#include <string_view>

#include "cpu/code_generation.h"
#include "cpu/executable.h"
#include "hlo/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      cpu::LoadExecutable(bytes);
    } else {
      cpu::GeneratedCode::ParseTable(std::string(bytes));
    }
  } catch (const hlo::Error&) {
  }
  return 0;
}
