// Which bytes of a range nobody uses.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace process {

class FreeList {
 public:
  // The offset of `bytes` that are free no more; nothing if no free piece has as many.
  std::optional<size_t> Take(size_t bytes);
  void Give(size_t offset, size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  std::map<size_t, size_t> pieces_;  // offset and bytes, none adjacent
  size_t bytes_ = 0;
};

}  // namespace process
