// A line is sorted as a permutation of indices: by keys with the position in one number where the
// order is known, else by insertion in runs and merging. Then every operand is gathered through the
// permutation. Many short lines are sorted together (short_lines.h).
#include "cpu/library/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/library/short_lines.h"
#include "cpu/library/sort_key.h"
#include "cpu/library/with_type_of.h"
#include "cpu/memory.h"
#include "hlo/error.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kParallelLine = 1 << 17;  // a shorter line is sorted by one thread

// 32 bits of a key above the position where it stood.
using SortItem = uint64_t;
constexpr int kKeyBits = 32;

uint64_t KeyOf(SortItem item) { return item >> kKeyBits; }
bool HasLessKey(SortItem a, SortItem b) { return KeyOf(a) < KeyOf(b); }
uint32_t PositionIn(SortItem item) { return static_cast<uint32_t>(item); }

constexpr int kDigits = 4;
constexpr int64_t kRadixes = 256;

// Where the items of each digit begin.
using Places = std::array<uint32_t, kRadixes>;
void BeginAfterEachOther(Places& counts) {
  uint32_t sum = 0;
  for (uint32_t& count : counts) sum += std::exchange(count, sum);
}

// A stable least-significant-digit radix sort; digits that are the same everywhere are skipped.
// Returns which of the two has the sorted items.
SortItem* RadixSort(SortItem* items, SortItem* buffer, int64_t count) {
  const auto digit = [](const SortItem& item, int d) { return KeyOf(item) >> (8 * d) & 255; };
  std::array<Places, kDigits> places{};
  for (int64_t i = 0; i < count; ++i) {
    for (int d = 0; d < kDigits; ++d) ++places[d][digit(items[i], d)];
  }
  SortItem *from = items, *to = buffer;
  for (int d = 0; d < kDigits; ++d) {
    if (places[d][digit(from[0], d)] == count) continue;
    BeginAfterEachOther(places[d]);
    for (int64_t i = 0; i < count; ++i) to[places[d][digit(from[i], d)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

// Stable; `before` is any strict weak order, and for others (a comparator that contradicts itself)
// the result is some permutation: nothing is read out of bounds.
template <typename T, typename Before>
void MergeSort(T* items, T* buffer, int64_t count, const Before& before) {
  constexpr int64_t kRun = 16;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    int64_t end = std::min(count, begin + kRun);
    for (int64_t i = begin + 1; i < end; ++i) {
      T item = items[i];
      int64_t j = i;
      for (; j > begin && before(item, items[j - 1]); --j) items[j] = items[j - 1];
      items[j] = item;
    }
  }
  T *from = items, *to = buffer;
  for (int64_t width = kRun; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      int64_t middle = std::min(count, begin + width), end = std::min(count, begin + 2 * width);
      int64_t i = begin, j = middle, k = begin;
      if (middle < end && !before(from[middle], from[middle - 1])) {
        std::copy(from + begin, from + end, to + begin);
        continue;
      }
      while (i < middle && j < end) to[k++] = before(from[j], from[i]) ? from[j++] : from[i++];
      while (i < middle) to[k++] = from[i++];
      while (j < end) to[k++] = from[j++];
    }
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + count, items);
}

// Items that the caches hold with their buffer (parts of fewer would be merged, which takes longer
// than four passes), and so few that merging them is quicker.
constexpr int64_t kCachedItems = 1 << 17;
constexpr int64_t kFewItems = 256;

bool HasOneKey(const SortItem* items, int64_t count) {
  return std::all_of(items, items + count,
                     [&](const SortItem& item) { return KeyOf(item) == KeyOf(items[0]); });
}

// Stable. Many items are parted by their highest bits first, so that each part is sorted in the
// cache. Returns which of the two has the sorted items.
SortItem* SortByKeys(SortItem* items, SortItem* buffer, int64_t count) {
  if (count <= kFewItems) {
    MergeSort(items, buffer, count, HasLessKey);
    return items;
  }
  if (count <= kCachedItems) return RadixSort(items, buffer, count);
  uint64_t differing = 0;
  for (int64_t i = 1; i < count; ++i) differing |= KeyOf(items[i]) ^ KeyOf(items[0]);
  if (differing == 0) return items;
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - 8);
  const auto part_of = [shift](const SortItem& item) { return KeyOf(item) >> shift & 255; };
  Places places{};
  for (int64_t i = 0; i < count; ++i) ++places[part_of(items[i])];
  BeginAfterEachOther(places);
  for (int64_t i = 0; i < count; ++i) buffer[places[part_of(items[i])]++] = items[i];
  if (shift == 0) return buffer;  // each part has one key
  int64_t begin = 0;
  for (const int64_t end : places) {  // where the next part begins, by now
    const SortItem* sorted = HasOneKey(buffer + begin, end - begin)
                                 ? buffer + begin
                                 : SortByKeys(buffer + begin, items + begin, end - begin);
    if (sorted != items + begin) std::copy(sorted, sorted + (end - begin), items + begin);
    begin = end;
  }
  return items;
}

// Sorts with several threads: equal parts, then pairs of parts merged.
template <typename T, typename Before>
void ParallelSort(ThreadPool& threads, T* items, T* buffer, int64_t count, const Before& before,
                  const auto& sort_part) {
  int64_t parts = std::bit_ceil(static_cast<uint64_t>(threads.num_threads()));
  if (count < kParallelLine || parts == 1) return sort_part(items, buffer, count);
  int64_t size = hlo::CeilDivide(count, parts);
  auto begin = [&](int64_t part) { return std::min(count, part * size); };
  threads.ParallelFor(parts, [&](int64_t i) {
    if (begin(i + 1) > begin(i))
      sort_part(items + begin(i), buffer + begin(i), begin(i + 1) - begin(i));
  });
  for (int64_t width = 1; width < parts; width *= 2) {
    threads.ParallelFor(parts / (2 * width), [&](int64_t pair) {
      int64_t b = begin(2 * pair * width), m = begin((2 * pair + 1) * width);
      int64_t e = begin((2 * pair + 2) * width);
      int64_t i = b, j = m, k = b;
      while (i < m && j < e) buffer[k++] = before(items[j], items[i]) ? items[j++] : items[i++];
      while (i < m) buffer[k++] = items[i++];
      while (j < e) buffer[k++] = items[j++];
      std::copy(buffer + b, buffer + e, items + b);
    });
  }
}

void GatherElements(const std::byte* source, int64_t stride, int64_t width, const uint32_t* order,
                    int64_t count, std::byte* destination) {
  WithTypeOf(width, [&]<typename T>() {
    auto* from = reinterpret_cast<const T*>(source);
    auto* to = reinterpret_cast<T*>(destination);
    for (int64_t i = 0; i < count; ++i) to[i] = from[order[i] * stride];
  });
}

// Whether a line of integers is 0, 1, 2, …: what stands beside keys whose order is asked for.
bool IsOfPositions(const std::byte* source, int64_t stride, int64_t width, int64_t count) {
  const auto is_sequence = [&]<typename T>() {
    auto* from = reinterpret_cast<const T*>(source);
    constexpr int64_t kBlock = 64;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      T differing{0};
      for (int64_t i = begin; i < std::min(count, begin + kBlock); ++i) {
        differing |= from[i * stride] ^ static_cast<T>(i);
      }
      if (differing != 0) return false;
    }
    return true;
  };
  if (width == 4) return is_sequence.template operator()<uint32_t>();
  return width == 8 && is_sequence.template operator()<uint64_t>();
}

void WritePositions(const uint32_t* order, int64_t count, int64_t width, std::byte* destination,
                    int64_t stride) {
  const auto run = [&]<typename T>() {
    auto* to = reinterpret_cast<T*>(destination);
    for (int64_t i = 0; i < count; ++i) to[i * stride] = order[i];
  };
  width == 4 ? run.template operator()<uint32_t>() : run.template operator()<uint64_t>();
}

void ScatterElements(const std::byte* source, int64_t count, int64_t width, std::byte* destination,
                     int64_t stride) {
  if (stride == 1) {
    std::memcpy(destination, source, count * width);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * stride * width, source + i * width, width);
  }
}

class LineSorter {
 public:
  LineSorter(ThreadPool& threads, std::span<const SortOperand> operands, int64_t length,
             int64_t stride, const SortComparator& comparator,
             const std::optional<SortOrder>& order)
      : threads_(threads),
        operands_(operands),
        length_(length),
        stride_(stride),
        comparator_(comparator),
        order_(order) {}

  // `start`: the line's first element in each operand.
  void Sort(int64_t start) {
    Block indices(length_ * sizeof(uint32_t));
    auto* sorted = static_cast<uint32_t*>(indices.data());
    if (order_) {
      SortByKey(start, sorted);
    } else {
      SortByComparator(start, sorted);
    }
    for (const SortOperand& operand : operands_) {
      if (operand.output == nullptr) continue;
      const auto* from = static_cast<const std::byte*>(operand.input) + start * operand.width;
      auto* to = static_cast<std::byte*>(operand.output) + start * operand.width;
      if (IsOfPositions(from, stride_, operand.width, length_)) {
        WritePositions(sorted, length_, operand.width, to, stride_);
        continue;
      }
      Block line(length_ * operand.width);
      auto* buffer = static_cast<std::byte*>(line.data());
      GatherElements(from, stride_, operand.width, sorted, length_, buffer);
      ScatterElements(buffer, length_, operand.width, to, stride_);
    }
  }

 private:
  void SortByKey(int64_t start, uint32_t* sorted) {
    const SortOperand& operand = operands_[order_->operand];
    auto* line = static_cast<const std::byte*>(operand.input) + start * operand.width;
    Block key_memory(length_ * sizeof(uint64_t));
    auto* keys = static_cast<uint64_t*>(key_memory.data());
    MakeSortKeys(*order_, {line, length_, stride_}, keys);
    Block items(2 * length_ * sizeof(SortItem));
    auto* memory = static_cast<SortItem*>(items.data());
    SortPositions(keys, InOrder{}, sorted, length_, memory, memory + length_);
  }

  // Which positions are sorted: all, or some that stand in a list.
  struct InOrder {
    uint32_t operator()(int64_t i) const { return static_cast<uint32_t>(i); }
  };
  struct Listed {
    const uint32_t* positions;
    uint32_t operator()(int64_t i) const { return positions[i]; }
  };

  // Stable. Writes the positions position_of(0), …, of which they may be the source, sorted by
  // their keys; `items` and `buffer` have room for as many.
  void SortPositions(const uint64_t* keys, const auto& position_of, uint32_t* positions,
                     int64_t count, SortItem* items, SortItem* buffer) {
    uint64_t differing = 0;
    for (int64_t i = 1; i < count; ++i) differing |= keys[position_of(i)] ^ keys[position_of(0)];
    if (differing == 0) {
      for (int64_t i = 0; i < count; ++i) positions[i] = position_of(i);
      return;
    }
    // The highest bits that differ, and then, of the few that are equal in these, the others.
    const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - kKeyBits);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t position = position_of(i);
      items[i] = keys[position] >> shift << kKeyBits | position;
    }
    ParallelSort(threads_, items, buffer, count, HasLessKey,
                 [](SortItem* part, SortItem* space, int64_t size) {
                   const SortItem* ordered = SortByKeys(part, space, size);
                   if (ordered != part) std::copy(ordered, ordered + size, part);
                 });
    for (int64_t i = 0; i < count; ++i) positions[i] = PositionIn(items[i]);
    if (shift == 0) return;
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      while (end < count && KeyOf(items[end]) == KeyOf(items[begin])) ++end;
      if (end - begin == 1) continue;
      SortPositions(keys, Listed{positions + begin}, positions + begin, end - begin, items + begin,
                    buffer);
    }
  }

  void SortByComparator(int64_t start, uint32_t* sorted) {
    Block buffer(length_ * sizeof(uint32_t));
    for (int64_t i = 0; i < length_; ++i) sorted[i] = static_cast<uint32_t>(i);
    auto before = [&](uint32_t a, uint32_t b) {
      constexpr size_t kInline = 16;
      const void* few[kInline];
      std::vector<const void*> many;
      const void** scalars = few;
      if (2 * operands_.size() > kInline) {
        many.resize(2 * operands_.size());
        scalars = many.data();
      }
      for (size_t i = 0; i < operands_.size(); ++i) {
        auto* line = static_cast<const std::byte*>(operands_[i].input);
        scalars[2 * i] = line + (start + a * stride_) * operands_[i].width;
        scalars[2 * i + 1] = line + (start + b * stride_) * operands_[i].width;
      }
      return comparator_(scalars);
    };
    ParallelSort(threads_, sorted, static_cast<uint32_t*>(buffer.data()), length_, before,
                 [&](uint32_t* part, uint32_t* space, int64_t count) {
                   MergeSort(part, space, count, before);
                 });
  }

  ThreadPool& threads_;
  std::span<const SortOperand> operands_;
  int64_t length_, stride_;
  const SortComparator& comparator_;
  const std::optional<SortOrder>& order_;
};

// JAX's canonical key of a float parameter: select(x == 0, 0, x), then select(isnan, NaN, that);
// returns the parameter.
const Instruction* CanonicalParameter(const Instruction* value) {
  int selects = 0;
  while (value->opcode() == Opcode::kSelect && selects < 2) {
    const Instruction* condition = value->operand(0);
    const Instruction* replaced = value->operand(1);
    if (condition->opcode() != Opcode::kCompare || !replaced->IsConstant()) return nullptr;
    auto direction = condition->as<hlo::CompareAttributes>().direction;
    double constant = replaced->literal().AsDouble();
    bool zero = direction == hlo::ComparisonDirection::kEq && constant == 0 &&
                condition->operand(1)->IsConstant() &&
                condition->operand(1)->literal().AsDouble() == 0;
    bool nan = direction == hlo::ComparisonDirection::kNe && constant != constant &&
               condition->operand(0) == condition->operand(1);
    if (!zero && !nan) return nullptr;
    ++selects;
    value = value->operand(2);
  }
  return selects == 2 && value->opcode() == Opcode::kParameter ? value : nullptr;
}

}  // namespace

std::optional<SortOrder> RecognizeSortOrder(const hlo::Computation& comparator) {
  if (comparator.results().size() != 1) return std::nullopt;
  const Instruction* compare = comparator.result();
  if (compare->opcode() != Opcode::kCompare) return std::nullopt;
  const auto& attributes = compare->as<hlo::CompareAttributes>();
  bool less = attributes.direction == hlo::ComparisonDirection::kLt;
  if (!less && attributes.direction != hlo::ComparisonDirection::kGt) return std::nullopt;
  const Instruction *a = compare->operand(0), *b = compare->operand(1);
  SortOrder order;
  order.type = a->element_type();
  if (!HasSortKey(order.type)) return std::nullopt;
  order.total_order = attributes.type == hlo::ComparisonType::kTotalOrder;
  if (hlo::IsFloat(order.type)) {
    // Without total order NaN compares equal to everything, which is no order at all.
    if (!order.total_order) return std::nullopt;
    if (a->opcode() == Opcode::kSelect) {
      a = CanonicalParameter(a);
      b = CanonicalParameter(b);
      if (a == nullptr || b == nullptr) return std::nullopt;
      order.zeros_and_nans_equal = true;
    }
  }
  if (a->opcode() != Opcode::kParameter || b->opcode() != Opcode::kParameter) return std::nullopt;
  int64_t first = a->parameter_number(), second = b->parameter_number();
  if (first / 2 != second / 2 || first == second) return std::nullopt;
  order.operand = first / 2;
  // (b < a) is (a > b).
  order.descending = less == (first > second);
  return order;
}

void SortRows(ThreadPool& threads, const hlo::Dimensions& dimensions, int64_t dimension,
              std::span<const SortOperand> operands, const SortComparator& comparator,
              const std::optional<SortOrder>& order) {
  int64_t length = dimensions[dimension], inner = 1, lines = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (static_cast<int64_t>(i) != dimension) lines *= dimensions[i];
    if (static_cast<int64_t>(i) > dimension) inner *= dimensions[i];
  }
  if (length == 0 || lines == 0) return;
  if (length > int64_t{UINT32_MAX}) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "sort: a dimension of " + std::to_string(length) + " elements");
  }
  if (order && AreShortLines(length, lines)) {
    return SortShortLines(threads, lines / inner, length, inner, operands, *order);
  }
  auto sort_line = [&](int64_t line) {
    LineSorter(threads, operands, length, inner, comparator, order)
        .Sort(line / inner * inner * length + line % inner);
  };
  if (length >= kParallelLine) {
    for (int64_t line = 0; line < lines; ++line) sort_line(line);
    return;
  }
  int64_t per_chunk = std::max<int64_t>(1, 2048 / length);
  threads.ParallelFor(hlo::CeilDivide(lines, per_chunk), [&](int64_t chunk) {
    for (int64_t i = chunk * per_chunk; i < std::min(lines, (chunk + 1) * per_chunk); ++i) {
      sort_line(i);
    }
  });
}

}  // namespace cpu
