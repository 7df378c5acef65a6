// Memory for machine code. Pages of large slabs, so that thousands of kernels are a few mappings of
// the process, of which the system allows some 65,000: neighbours that are executable are one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpu {

// Whole pages, zero, and writable until MakeExecutable. They go back when it is destroyed. Movable,
// thread-safe among each other.
class CodeBlock {
 public:
  CodeBlock() = default;
  // Throws std::bad_alloc if the system has no more memory or mappings, and beyond 2 GB.
  explicit CodeBlock(size_t bytes);
  CodeBlock(CodeBlock&& other) noexcept;
  CodeBlock& operator=(CodeBlock&& other) noexcept;
  ~CodeBlock();

  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // And not writable any more. False if the system refuses.
  bool MakeExecutable();

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// The slabs, of which some part may be free.
size_t CodeSlabs();

}  // namespace cpu
