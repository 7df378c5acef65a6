// Protobuf's wire format: each field is a key (number << 3 | wire type) and a value. The messages
// that cross the C interface are few and small, so they are written and read field by field.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "hlo/error.h"

namespace pjrt {

class ProtoWriter {
 public:
  void Varint(int field, int64_t value) {
    Raw(static_cast<uint64_t>(field) << 3 | 0);
    Raw(static_cast<uint64_t>(value));
  }
  void Double(int field, double value) {
    Raw(static_cast<uint64_t>(field) << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
  }
  void Bytes(int field, std::string_view value) {
    Raw(static_cast<uint64_t>(field) << 3 | 2);
    Raw(value.size());
    bytes_ += value;
  }
  void Message(int field, const ProtoWriter& message) { Bytes(field, message.bytes_); }
  // An element of a packed field.
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws hlo::Error for bytes that are no message; `what` names the message in it.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const char* what) : rest_(bytes), what_(what) {}

  // Moves to the next field; false at the end. `value()`, `bytes()` or `real()` is what it holds,
  // by its wire type; asking for another throws.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    field_ = static_cast<int>(key >> 3);
    wire_type_ = static_cast<int>(key & 7);
    switch (wire_type_) {
      case 0:
        value_ = Varint();
        return true;
      case 1:
        bytes_ = Take(8);
        return true;
      case 2:
        bytes_ = Take(Varint());
        return true;
      case 5:
        bytes_ = Take(4);
        return true;
      default:
        Malformed();
    }
  }
  int field() const { return field_; }
  bool is_varint() const { return wire_type_ == 0; }
  int64_t value() const {
    if (wire_type_ != 0) Malformed();
    return static_cast<int64_t>(value_);
  }
  std::string_view bytes() const {
    if (wire_type_ != 2) Malformed();
    return bytes_;
  }
  double real() const {
    if (wire_type_ != 1) Malformed();
    uint64_t bits = 0;
    for (int i = 7; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>(bytes_[i]);
    return std::bit_cast<double>(bits);
  }
  // The field as a message.
  ProtoReader message() const { return {bytes(), what_}; }
  bool at_end() const { return rest_.empty(); }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Malformed();
  }

 private:
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) Malformed();
    std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  [[noreturn]] void Malformed() const {
    throw hlo::Error(std::string("these bytes are no valid ") + what_);
  }

  std::string_view rest_;
  const char* what_;
  int field_ = 0, wire_type_ = 0;
  uint64_t value_ = 0;
  std::string_view bytes_;
};

}  // namespace pjrt
