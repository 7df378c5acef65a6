// OutputMap: something for each of a program's arrays. Compilation looks into it for every operand
// of every instruction, so entries lie in one array, and none has memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpu/outputs.h"
#include "hlo/error.h"
#include "hlo/hash.h"

namespace cpu {

// In no order that two runs of a program would share: to look into, not to walk through. Entries
// stay; what Find and [] give is valid until the next entry is added.
template <typename T>
class OutputMap {
 public:
  // Null if it has none.
  const T* Find(const Output& output) const {
    if (entries_.empty()) return nullptr;
    const Entry& entry = entries_[PlaceOf(output)];
    return entry.output.instruction == nullptr ? nullptr : &entry.value;
  }
  T* Find(const Output& output) { return const_cast<T*>(std::as_const(*this).Find(output)); }
  bool contains(const Output& output) const { return Find(output) != nullptr; }

  // Throws hlo::Error(kInternal) if it has none.
  const T& at(const Output& output) const {
    const T* value = Find(output);
    if (value != nullptr) return *value;
    throw hlo::Error(hlo::ErrorCode::kInternal, "nothing is known of result " +
                                                    std::to_string(output.index) + " of " +
                                                    output.instruction->ToString());
  }

  // A new entry is T().
  T& operator[](const Output& output) {
    if (T* value = Find(output)) return *value;
    // At most half of the places are taken.
    if (2 * ++count_ > entries_.size()) Grow();
    Entry& entry = entries_[PlaceOf(output)];
    entry.output = output;
    return entry.value;
  }

 private:
  struct Entry {
    Output output{nullptr, 0};  // of no instruction: a free place
    T value{};
  };

  // Where it is, or would be.
  size_t PlaceOf(const Output& output) const {
    const size_t mask = entries_.size() - 1;
    const size_t hash = hlo::CombineHash(reinterpret_cast<uintptr_t>(output.instruction),
                                         static_cast<size_t>(output.index));
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Output& other = entries_[i].output;
      if (other.instruction == nullptr || other == output) return i;
    }
  }

  void Grow() {
    constexpr size_t kLeast = 64;
    std::vector<Entry> old(entries_.empty() ? kLeast : 2 * entries_.size());
    old.swap(entries_);
    for (Entry& entry : old) {
      if (entry.output.instruction != nullptr) entries_[PlaceOf(entry.output)] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;  // as many as a power of two, or none
  size_t count_ = 0;
};

}  // namespace cpu
