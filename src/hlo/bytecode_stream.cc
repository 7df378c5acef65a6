#include "hlo/bytecode_stream.h"

#include <bit>

namespace hlo::bytecode {

void FailAt(size_t offset, const std::string& message, ErrorCode code) {
  throw PositionError(code, offset, message);
}

void ByteReader::Fail(const std::string& message) const { FailAt(offset(), message); }

void ByteReader::ExpectEnd(const char* what) const {
  if (!AtEnd()) Fail(std::to_string(remaining()) + " bytes are left over after " + what);
}

uint8_t ByteReader::Byte() {
  if (AtEnd()) Fail("the data ends too early");
  return static_cast<uint8_t>(bytes_[position_++]);
}

uint64_t ByteReader::Varint() {
  uint8_t first = Byte();
  int extra = first == 0 ? 8 : std::countr_zero(first);
  std::span<const std::byte> rest = Bytes(static_cast<uint64_t>(extra));
  uint64_t value = 0;
  for (int i = extra; i-- > 0;) value = value << 8 | static_cast<uint8_t>(rest[i]);
  if (extra == 8) return value;
  // The bits above the length marker of the first byte are the lowest of the value.
  int low_bits = 7 - extra;
  return value << low_bits | static_cast<uint64_t>(first >> (extra + 1));
}

int64_t ByteReader::SignedVarint() {
  uint64_t value = Varint();
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

uint32_t ByteReader::Index(size_t limit, const char* what) {
  size_t start = offset();
  uint64_t value = Varint();
  if (value >= limit) {
    FailAt(start, std::string(what) + " " + std::to_string(value) + " is out of range, there are " +
                      std::to_string(limit));
  }
  return static_cast<uint32_t>(value);
}

size_t ByteReader::Count(const char* what) {
  size_t start = offset();
  uint64_t value = Varint();
  if (value > remaining()) {
    FailAt(start, "a count of " + std::to_string(value) + " " + what + " with only " +
                      std::to_string(remaining()) + " bytes left");
  }
  return static_cast<size_t>(value);
}

std::vector<int64_t> ByteReader::SignedVarints() {
  size_t count = Count("integers");
  std::vector<int64_t> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) values.push_back(SignedVarint());
  return values;
}

std::span<const std::byte> ByteReader::Bytes(uint64_t size) {
  if (size > remaining()) {
    Fail(std::to_string(size) + " bytes are needed, " + std::to_string(remaining()) + " are left");
  }
  auto result = bytes_.subspan(position_, static_cast<size_t>(size));
  position_ += static_cast<size_t>(size);
  return result;
}

std::string_view ByteReader::NullTerminated() {
  size_t end = position_;
  while (end < bytes_.size() && bytes_[end] != std::byte{0}) ++end;
  if (end == bytes_.size()) Fail("a string has no terminator");
  std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, end - position_);
  position_ = end + 1;
  return text;
}

ByteReader ByteReader::Sub(uint64_t size) {
  size_t start = offset();
  return ByteReader(Bytes(size), start);
}

void ByteWriter::Varint(uint64_t value) {
  int bytes = 1;
  while (bytes < 9 && value >> (7 * bytes) != 0) ++bytes;
  if (bytes == 9) {
    Byte(0);
    for (int i = 0; i < 8; ++i) Byte(static_cast<uint8_t>(value >> (8 * i)));
    return;
  }
  uint64_t coded = (value << 1 | 1) << (bytes - 1);
  for (int i = 0; i < bytes; ++i) Byte(static_cast<uint8_t>(coded >> (8 * i)));
}

void ByteWriter::SignedVarint(int64_t value) {
  Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void ByteWriter::SignedVarints(std::span<const int64_t> values) {
  Varint(values.size());
  for (int64_t value : values) SignedVarint(value);
}

void ByteWriter::Indices(std::span<const uint32_t> values) {
  Varint(values.size());
  for (uint32_t value : values) Varint(value);
}

}  // namespace hlo::bytecode
