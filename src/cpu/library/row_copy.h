// Copies of many short rows, for which a call each would take longer than the bytes do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cpu {

// Copies `rows` rows of `bytes` bytes, which are so far apart on the two sides. Source and
// destination do not overlap, nor do the destination's rows.
using RowCopy = void (*)(const std::byte* from, int64_t from_stride, std::byte* to,
                         int64_t to_stride, int64_t bytes, int64_t rows);

// By words of `kWord` bytes, of which a row has one at least. The last one of a row may lie over
// the one before, so that rows of any size are made of words of one.
template <int64_t kWord>
void CopyRowsByWords(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
                     int64_t bytes, int64_t rows) {
  const auto copy = [](std::byte* there, const std::byte* here) {
    std::byte word[kWord];
    std::memcpy(word, here, kWord);
    std::memcpy(there, word, kWord);
  };
  const int64_t last = bytes - kWord;
  if (last == 0) {
    for (int64_t r = 0; r < rows; ++r) copy(to + r * to_stride, from + r * from_stride);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    for (int64_t i = 0; i < last; i += kWord) copy(to + i, from + i);
    copy(to + last, from + last);
  }
}

inline void CopyLongRows(const std::byte* from, int64_t from_stride, std::byte* to,
                         int64_t to_stride, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_stride, from + r * from_stride, bytes);
}

inline RowCopy RowCopyOf(int64_t bytes) {
  constexpr int64_t kLongRow = 192;  // beside which a call costs nothing
  if (bytes == 0 || bytes > kLongRow) return CopyLongRows;
  if (bytes >= 16) return CopyRowsByWords<16>;
  if (bytes >= 8) return CopyRowsByWords<8>;
  if (bytes >= 4) return CopyRowsByWords<4>;
  return bytes >= 2 ? CopyRowsByWords<2> : CopyRowsByWords<1>;
}

}  // namespace cpu
