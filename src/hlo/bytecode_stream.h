// Bytes of MLIR's bytecode, read and written: fixed bytes, variable-length integers, counted lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/error.h"

namespace hlo::bytecode {

// Reads a part of a file. Whatever would go past its end throws Error with the offset in the file.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, size_t file_offset)
      : bytes_(bytes), file_offset_(file_offset) {}

  uint8_t Byte();
  // The number of trailing zero bits of the first byte says how many bytes follow it.
  uint64_t Varint();
  int64_t SignedVarint();  // zigzag
  // A varint below `limit`; `what` names it in the error.
  uint32_t Index(size_t limit, const char* what);
  // A varint that counts things of at least one byte each, so that no count exceeds what is left.
  size_t Count(const char* what);
  std::vector<int64_t> SignedVarints();
  std::span<const std::byte> Bytes(uint64_t size);
  // Up to the next zero byte, which is skipped.
  std::string_view NullTerminated();
  // The next `size` bytes as a reader of their own.
  ByteReader Sub(uint64_t size);

  bool AtEnd() const { return position_ == bytes_.size(); }
  size_t remaining() const { return bytes_.size() - position_; }
  size_t offset() const { return file_offset_ + position_; }
  [[noreturn]] void Fail(const std::string& message) const;
  void ExpectEnd(const char* what) const;

 private:
  std::span<const std::byte> bytes_;
  size_t file_offset_;
  size_t position_ = 0;
};

// What is wrong at a byte of the file: "bytecode, byte 12: …". The reader of text says the line.
class PositionError : public Error {
 public:
  PositionError(ErrorCode code, size_t offset, const std::string& message)
      : Error(code, "bytecode, byte " + std::to_string(offset) + ": " + message),
        offset_(offset),
        message_(message) {}
  size_t offset() const { return offset_; }
  const std::string& message() const { return message_; }

 private:
  size_t offset_;
  std::string message_;
};
[[noreturn]] void FailAt(size_t offset, const std::string& message,
                         ErrorCode code = ErrorCode::kInvalidArgument);

class ByteWriter {
 public:
  void Byte(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void Varint(uint64_t value);
  void SignedVarint(int64_t value);
  void SignedVarints(std::span<const int64_t> values);
  void Indices(std::span<const uint32_t> values);  // counted varints
  void Bytes(std::string_view bytes) { out_.append(bytes); }

  const std::string& bytes() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace hlo::bytecode
