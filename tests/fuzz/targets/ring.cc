// Bytes as what the other process has left in shared memory: how much is there, and the messages.
#include <algorithm>
#include <cstring>
#include <new>

#include "hlo/error.h"
#include "remote/ring.h"

namespace {

std::shared_ptr<char> NewRing() {
  auto* memory = static_cast<char*>(
      ::operator new(remote::Ring::kBytes, std::align_val_t{remote::Ring::kAlignment}));
  std::memset(memory, 0, remote::Ring::kBytes);
  return {memory,
          [](char* p) { ::operator delete(p, std::align_val_t{remote::Ring::kAlignment}); }};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMost = 4096, kContent = 1 << 16;
  static const std::shared_ptr<char> memory = NewRing();
  uint32_t written = 0;
  if (size < sizeof written) return 0;
  std::memcpy(&written, data, sizeof written);
  remote::Ring::Clear(memory.get());
  char* content = memory.get() + remote::Ring::kAlignment;
  std::memset(content, 0, kContent);
  std::memcpy(content, data + sizeof written, std::min(size - sizeof written, kContent));
  remote::Ring reader(memory);
  // The header's words: what was written, and what was read, each on a line of its own.
  auto* words = reinterpret_cast<volatile uint32_t*>(memory.get());
  words[0] = written;
  try {
    std::string message;
    for (int i = 0; i < 1000 && words[0] != words[16]; ++i) {
      if (!reader.Read(&message, kMost) || message.size() > kMost) __builtin_trap();
    }
  } catch (const hlo::Error&) {
  }
  return 0;
}
