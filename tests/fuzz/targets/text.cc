// StableHLO text, as a client or a user's file has it: read or refused; and what is read, written
// in every form.
#include <cstdint>

#include "../../hlo/fuzz/exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hlo::Exercise(std::as_bytes(std::span(data, size)));
  return 0;
}
