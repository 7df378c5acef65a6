// A sequence of bytes that lies in memory in pieces: several arrays one after another, or slices of
// arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

namespace cpu {

class FlatArray {
 public:
  // `bytes` bytes in blocks of `block` bytes, each starting `stride` bytes after the one before.
  // The data is written to by CopyFrom alone.
  void Append(const void* data, int64_t bytes, int64_t block, int64_t stride) {
    if (bytes == 0) return;
    auto* start = static_cast<std::byte*>(const_cast<void*>(data));
    pieces_.push_back({start, bytes_, bytes, block, stride});
    bytes_ += bytes;
  }
  void Append(const void* data, int64_t bytes) { Append(data, bytes, bytes, bytes); }
  int64_t bytes() const { return bytes_; }

  // Calls f(data, bytes) for the contiguous parts of [begin, end), in order.
  template <typename F>
  void ForEachRun(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    for (const Piece* piece = PieceAt(begin); begin < end; ++piece) {
      while (begin < end && begin < piece->begin + piece->bytes) {
        const int64_t offset = begin - piece->begin;
        const int64_t within = offset % piece->block;
        const int64_t size = std::min({piece->block - within, end - begin, piece->bytes - offset});
        f(piece->data + offset / piece->block * piece->stride + within, size);
        begin += size;
      }
    }
  }
  // The contiguous memory from byte `begin` on.
  struct Run {
    std::byte* data;
    int64_t bytes;
  };
  Run RunAt(int64_t begin) const {
    Run run{nullptr, 0};
    if (begin >= bytes_) return run;
    const Piece& piece = *PieceAt(begin);
    const int64_t offset = begin - piece.begin, within = offset % piece.block;
    return {piece.data + offset / piece.block * piece.stride + within,
            std::min(piece.block - within, piece.bytes - offset)};
  }
  // Between [begin, end) of the sequence and contiguous memory.
  void CopyTo(std::byte* target, int64_t begin, int64_t end) const {
    ForEachRun(begin, end, [&](const std::byte* data, int64_t bytes) {
      std::memcpy(target, data, bytes);
      target += bytes;
    });
  }
  void CopyFrom(const std::byte* source, int64_t begin, int64_t end) const {
    ForEachRun(begin, end, [&](std::byte* data, int64_t bytes) {
      std::memcpy(data, source, bytes);
      source += bytes;
    });
  }
  // All of `source`, which has as many bytes, and of which parts may be the same memory.
  void CopyFrom(const FlatArray& source) const {
    int64_t begin = 0;
    source.ForEachRun(0, source.bytes(), [&](const std::byte* data, int64_t bytes) {
      ForEachRun(begin, begin + bytes, [&](std::byte* target, int64_t size) {
        if (target != data) std::memcpy(target, data, size);
        data += size;
      });
      begin += bytes;
    });
  }
  void FillZero() const {
    ForEachRun(0, bytes_, [](std::byte* data, int64_t bytes) { std::memset(data, 0, bytes); });
  }

 private:
  struct Piece {
    std::byte* data;
    int64_t begin;  // in the sequence
    int64_t bytes, block, stride;
  };
  const Piece* PieceAt(int64_t begin) const {
    auto next = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                 [](int64_t at, const Piece& p) { return at < p.begin; });
    return &*std::prev(next);
  }

  std::vector<Piece> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace cpu
