// Bytes as the header of another rank's message.
#include "cpu/collective/message.h"

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cpu::MessageHeader header;
  if (size < sizeof header) return 0;
  std::memcpy(&header, data, sizeof header);
  const std::string text = header.DescriptionText();
  if (text.size() > sizeof header.description) __builtin_trap();
  // What is sent on is what came.
  header.set_description(text);
  if (text.size() < sizeof header.description && header.DescriptionText() != text) __builtin_trap();
  return 0;
}
