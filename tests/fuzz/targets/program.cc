// Any bytes are a well-typed program (random_program.h): every pass keeps its results, and the
// engine agrees with the evaluator.
#include <cstdio>
#include <cstdlib>

#include "differential.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::RandomProgram program = fuzz::MakeRandomProgram({data, size});
  for (bool engine : {false, true}) {
    const fuzz::Outcome outcome = engine ? fuzz::CheckEngine(program) : fuzz::CheckPasses(program);
    if (outcome.failure.empty()) continue;
    std::fprintf(stderr, "%s\n", outcome.failure.c_str());
    std::abort();
  }
  return 0;
}
