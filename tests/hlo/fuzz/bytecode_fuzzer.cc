#include <cstdint>

#include "exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hlo::Exercise(std::as_bytes(std::span(data, size)));
  return 0;
}
