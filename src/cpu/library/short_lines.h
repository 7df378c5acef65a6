// Sorting many lines of a few elements. Each element is compared with all others of its line, a
// line in each lane of a vector: no branch depends on the elements.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "cpu/library/sort.h"
#include "cpu/thread_pool.h"

namespace cpu {

// Lines that are sorted together: of some groups, in each of which they lie side by side, `stride`
// of them; several groups are taken with all their lines.
struct ShortLines {
  static constexpr int64_t kMost = 64;        // lines in all groups together
  static constexpr int64_t kMostOfLine = 32;  // elements of a line

  int64_t count = 0;  // elements of a line
  int64_t stride = 1;
  int64_t first_group = 0, groups = 1;
  int64_t first_line = 0, lines = 1;

  // Where element i of a line of a group stands in an array.
  int64_t At(int64_t group, int64_t i, int64_t line) const {
    return ((first_group + group) * count + i) * stride + first_line + line;
  }
};

// Which element stands at place p of the sorted line l of group g: [p * kMost + g * lines + l].
using ShortLineOrder = std::array<uint8_t, ShortLines::kMost * ShortLines::kMostOfLine>;

// What results hold of sorted lines.
struct SortedPlaces {
  int64_t begin, end;
};

// Whether `lines` lines of `count` elements are sorted sooner so than one by one.
bool AreShortLines(int64_t count, int64_t lines);

// The order of each line, equal elements as they come; `elements` are of the type of `order`.
void FindOrder(const SortOrder& order, const void* elements, const ShortLines& lines,
               ShortLineOrder& found);

// Writes elements of `width` bytes, or their positions, of 4 or 8 bytes, to an array that has these
// places of each line alone.
void WriteElementsAt(SortedPlaces places, const ShortLines& lines, const ShortLineOrder& order,
                     const void* from, int64_t width, void* to);
void WritePositionsAt(SortedPlaces places, const ShortLines& lines, const ShortLineOrder& order,
                      int64_t width, void* to);

// Calls `run` for all lines of an array of outer x count x inner elements; from several threads.
void ForAllShortLines(ThreadPool& threads, int64_t outer, int64_t count, int64_t inner,
                      const std::function<void(const ShortLines&)>& run);

// As SortRows, where the order is known.
void SortShortLines(ThreadPool& threads, int64_t outer, int64_t count, int64_t inner,
                    std::span<const SortOperand> operands, const SortOrder& order);

}  // namespace cpu
