#include "cpu/library/short_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/library/sort_key.h"
#include "cpu/library/vector_clones.h"
#include "cpu/library/with_type_of.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

constexpr int64_t kMost = ShortLines::kMost;
constexpr int64_t kMostElements = kMost * ShortLines::kMostOfLine;

#define SHORT_LINES_INLINE [[gnu::always_inline]] inline

// `keys` as in a ShortLineOrder, signed, as processors without AVX-512 compare no others. Of lanes
// beyond `lines` the order is not said.
template <typename Key>
SHORT_LINES_INLINE void OrderByKeys(const Key* keys, int64_t count, int64_t lines, uint8_t* order) {
  constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(Key));
  using Vector [[gnu::vector_size(64)]] = Key;
  const auto load = [&](Vector& vector, int64_t i, int64_t lane) __attribute__((always_inline)) {
    std::memcpy(&vector, keys + i * kMost + lane, sizeof(vector));
  };
  for (int64_t first = 0; first < lines; first += kLanes) {
    for (int64_t i = 0; i < count; ++i) {
      Vector own, other, place = {};
      load(own, i, first);
      // A comparison that holds gives -1.
      for (int64_t j = 0; j < i; ++j) {
        load(other, j, first);
        place -= other <= own;
      }
      for (int64_t j = i + 1; j < count; ++j) {
        load(other, j, first);
        place -= other < own;
      }
      for (int64_t l = 0; l < kLanes; ++l) {
        order[place[l] * kMost + first + l] = static_cast<uint8_t>(i);
      }
    }
  }
}

CPU_VECTOR_CLONES void OrderByNarrowKeys(const int32_t* keys, int64_t count, int64_t lines,
                                         uint8_t* order) {
  OrderByKeys(keys, count, lines, order);
}
CPU_VECTOR_CLONES void OrderByWideKeys(const int64_t* keys, int64_t count, int64_t lines,
                                       uint8_t* order) {
  OrderByKeys(keys, count, lines, order);
}

// Calls piece(from, size, to) for what lies in one piece: where it does, and where in an array of
// these lines alone.
void ForEachPiece(const ShortLines& lines, const auto& piece) {
  if (lines.lines == lines.stride) {
    piece(lines.At(0, 0, 0), lines.groups * lines.count * lines.lines, int64_t{0});
    return;
  }
  for (int64_t i = 0; i < lines.count; ++i) {
    piece(lines.At(0, i, 0), lines.lines, i * lines.lines);
  }
}

// The order of unsigned keys is that of their lowest bits as signed ones, the sign bit flipped.
template <typename Key>
void TakeKeys(const ShortLines& lines, const uint64_t* from, Key* keys) {
  constexpr uint64_t kSign = uint64_t{1} << (sizeof(Key) * 8 - 1);
  for (int64_t g = 0; g < lines.groups; ++g) {
    for (int64_t i = 0; i < lines.count; ++i) {
      Key* lanes = keys + i * kMost + g * lines.lines;
      for (int64_t l = 0; l < lines.lines; ++l) lanes[l] = static_cast<Key>(*from++ ^ kSign);
    }
  }
}

// Writes, for each of the places, what element(group, i, line) gives for the i-th element.
template <typename T>
void WriteAt(SortedPlaces places, const ShortLines& lines, const ShortLineOrder& order,
             const auto& element, void* to) {
  ShortLines written = lines;
  written.count = places.end - places.begin;
  for (int64_t g = 0; g < lines.groups; ++g) {
    for (int64_t p = places.begin; p < places.end; ++p) {
      const uint8_t* chosen = order.data() + p * kMost + g * lines.lines;
      T* row = static_cast<T*>(to) + written.At(g, p - places.begin, 0);
      for (int64_t l = 0; l < lines.lines; ++l) row[l] = element(g, chosen[l], l);
    }
  }
}

template <typename T>
void SortElements(const ShortLines& lines, const ShortLineOrder& order,
                  const SortOperand& operand) {
  // What is sorted may lie where it is written.
  T copy[kMostElements];
  const auto* elements = static_cast<const T*>(operand.input);
  ForEachPiece(lines, [&](int64_t from, int64_t size, int64_t to) {
    std::memcpy(copy + to, elements + from, size * sizeof(T));
  });
  WriteAt<T>(
      {0, lines.count}, lines, order,
      [&](int64_t g, int64_t i, int64_t l) {
        return copy[(g * lines.count + i) * lines.lines + l];
      },
      operand.output);
}

}  // namespace

bool AreShortLines(int64_t count, int64_t lines) {
  constexpr int64_t kLeastLines = 8;
  return count <= ShortLines::kMostOfLine && lines >= kLeastLines;
}

void FindOrder(const SortOrder& order, const void* elements, const ShortLines& lines,
               ShortLineOrder& found) {
  const auto width = static_cast<int64_t>(hlo::ByteWidth(order.type));
  const auto* bytes = static_cast<const std::byte*>(elements);
  uint64_t all[kMostElements];
  ForEachPiece(lines, [&](int64_t from, int64_t size, int64_t to) {
    MakeSortKeys(order, {bytes + from * width, size}, all + to);
  });
  const int64_t count = lines.groups * lines.lines;
  if (width <= 4) {
    int32_t keys[kMostElements] = {};
    TakeKeys(lines, all, keys);
    OrderByNarrowKeys(keys, lines.count, count, found.data());
  } else {
    int64_t keys[kMostElements] = {};
    TakeKeys(lines, all, keys);
    OrderByWideKeys(keys, lines.count, count, found.data());
  }
}

void WriteElementsAt(SortedPlaces places, const ShortLines& lines, const ShortLineOrder& order,
                     const void* from, int64_t width, void* to) {
  WithTypeOf(width, [&]<typename T>() {
    const auto* elements = static_cast<const T*>(from);
    WriteAt<T>(
        places, lines, order,
        [&](int64_t g, int64_t i, int64_t l) { return elements[lines.At(g, i, l)]; }, to);
  });
}

void WritePositionsAt(SortedPlaces places, const ShortLines& lines, const ShortLineOrder& order,
                      int64_t width, void* to) {
  const auto position = [](int64_t, int64_t i, int64_t) { return i; };
  if (width == 4) return WriteAt<uint32_t>(places, lines, order, position, to);
  WriteAt<uint64_t>(places, lines, order, position, to);
}

void ForAllShortLines(ThreadPool& threads, int64_t outer, int64_t count, int64_t inner,
                      const std::function<void(const ShortLines&)>& run) {
  constexpr int64_t kElementsOfTask = 4096;
  const int64_t groups = std::max<int64_t>(1, kMost / inner);
  const int64_t lines = std::min(inner, kMost), parts = hlo::CeilDivide(inner, lines);
  const int64_t blocks = hlo::CeilDivide(outer, groups) * parts;
  const int64_t of_task = std::max<int64_t>(1, kElementsOfTask / (groups * lines * count));
  threads.ParallelFor(hlo::CeilDivide(blocks, of_task), [&](int64_t task) {
    for (int64_t b = task * of_task; b < std::min(blocks, (task + 1) * of_task); ++b) {
      const int64_t group = b / parts * groups, line = b % parts * lines;
      run({.count = count,
           .stride = inner,
           .first_group = group,
           .groups = std::min(groups, outer - group),
           .first_line = line,
           .lines = std::min(lines, inner - line)});
    }
  });
}

void SortShortLines(ThreadPool& threads, int64_t outer, int64_t count, int64_t inner,
                    std::span<const SortOperand> operands, const SortOrder& order) {
  ForAllShortLines(threads, outer, count, inner, [&](const ShortLines& lines) {
    ShortLineOrder found;
    FindOrder(order, operands[order.operand].input, lines, found);
    for (const SortOperand& operand : operands) {
      if (operand.output == nullptr) continue;
      WithTypeOf(operand.width, [&]<typename T>() { SortElements<T>(lines, found, operand); });
    }
  });
}

}  // namespace cpu
