#include "passes/padded_box.h"

#include <cstring>

namespace passes {
namespace {

using hlo::Dimensions;

// Calls copy(offset in the box, offset in the padded array, elements) for each run of the box.
template <typename Copy>
void ForEachRun(const PaddedBox& box, const Copy& copy) {
  const size_t rank = box.sizes.size();
  // The dimensions from `tail` on are one run.
  size_t tail = rank;
  int64_t run = 1;
  while (tail > 0) {
    --tail;
    run *= box.sizes[tail];
    if (box.sizes[tail] != box.padded[tail]) break;
  }
  const Dimensions strides = hlo::RowMajorStrides(box.padded);
  Dimensions index(tail, 0);
  int64_t total = 1;
  for (const int64_t size : box.sizes) total *= size;
  for (int64_t at = 0; at < total; at += run) {
    int64_t offset = 0;
    for (size_t d = 0; d < tail; ++d) offset += index[d] * strides[d];
    copy(at, offset, run);
    for (size_t d = tail; d-- > 0;) {
      if (++index[d] < box.sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

void CopyIntoPadded(const PaddedBox& box, int64_t width, const std::byte* from, std::byte* padded) {
  ForEachRun(box, [&](int64_t at, int64_t offset, int64_t count) {
    std::memcpy(padded + offset * width, from + at * width, static_cast<size_t>(count * width));
  });
}

void CopyFromPadded(const PaddedBox& box, int64_t width, const std::byte* padded, std::byte* to) {
  ForEachRun(box, [&](int64_t at, int64_t offset, int64_t count) {
    std::memcpy(to + at * width, padded + offset * width, static_cast<size_t>(count * width));
  });
}

}  // namespace passes
