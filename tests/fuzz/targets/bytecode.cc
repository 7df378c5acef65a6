// Bytes, bytecode or text, as a program that a client sends: read or refused; and what is read,
// written in every form, taken through every pass and, if the evaluator and the engine run it, run
// by both.
#include <cstdio>
#include <cstdlib>

#include "../../hlo/fuzz/exercise.h"
#include "cpu/executable.h"
#include "differential.h"

namespace {

bool IsNative(const hlo::Module& module) {
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    try {
      if (parameter->shape().is_dynamic() || !parameter->shape().is_array()) return false;
      hlo::DispatchNative(parameter->element_type(), []<typename T>() {});
    } catch (const hlo::Error&) {
      return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (!hlo::Exercise(bytes)) return 0;
  fuzz::RandomProgram program;
  program.module = hlo::ReadStablehlo(bytes);
  if (!fuzz::IsSmall(*program.module)) return 0;
  try {
    cpu::Compile(*program.module);
  } catch (const hlo::Error&) {
    return 0;  // not for this engine
  }
  if (!IsNative(*program.module)) return 0;
  program.arguments = fuzz::MakeArguments(*program.module, 1);
  try {
    const fuzz::Outcome outcome = fuzz::CheckEngine(program);
    if (outcome.failure.empty()) return 0;
    std::fprintf(stderr, "%s\n", outcome.failure.c_str());
    std::abort();
  } catch (const hlo::Error& error) {
    // What the evaluator refuses has no expected results.
    if (error.code() == hlo::ErrorCode::kUnimplemented) return 0;
    throw;
  }
}
