#include "process/free_list.h"

#include <algorithm>
#include <iterator>

namespace process {

std::optional<size_t> FreeList::Take(size_t bytes) {
  const auto found = std::find_if(pieces_.begin(), pieces_.end(),
                                  [bytes](const auto& piece) { return piece.second >= bytes; });
  if (found == pieces_.end()) return {};
  auto piece = pieces_.extract(found);
  const size_t offset = piece.key();
  bytes_ -= bytes;
  if (piece.mapped() > bytes) {
    piece.key() += bytes;
    piece.mapped() -= bytes;
    pieces_.insert(std::move(piece));
  }
  return offset;
}

void FreeList::Give(size_t offset, size_t bytes) {
  bytes_ += bytes;
  auto next = pieces_.lower_bound(offset);
  if (next != pieces_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = pieces_.erase(next);
  }
  if (next != pieces_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  pieces_[offset] = bytes;
}

}  // namespace process
