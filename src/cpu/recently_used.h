// A table that forgets what was not used for longest.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace cpu {

// Values by name, of a bounded number of bytes in total. Not thread-safe.
template <typename Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(int64_t capacity) : capacity_(capacity) {}

  // Null if it is not there. Valid until the next Insert.
  Value* Find(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  // Replaces what has the name. `bytes` is what the value takes; what exceeds the capacity by
  // itself is not kept.
  void Insert(std::string name, Value value, int64_t bytes) {
    if (const auto found = by_name_.find(name); found != by_name_.end()) Erase(found->second);
    bytes += static_cast<int64_t>(name.size()) + kBytesOfEntry;
    if (bytes > capacity_) return;
    entries_.push_front({std::move(name), std::move(value), bytes});
    try {
      by_name_.emplace(entries_.front().name, entries_.begin());
    } catch (...) {
      entries_.pop_front();
      throw;
    }
    bytes_ += bytes;
    while (bytes_ > capacity_) Erase(std::prev(entries_.end()));
  }

  int64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string name;
    Value value;
    int64_t bytes;
  };
  using Iterator = typename std::list<Entry>::iterator;
  static constexpr int64_t kBytesOfEntry = sizeof(Entry) + 96;  // the two tables' nodes

  void Erase(Iterator entry) {
    bytes_ -= entry->bytes;
    by_name_.erase(entry->name);
    entries_.erase(entry);
  }

  const int64_t capacity_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;                                // the last one used first
  std::unordered_map<std::string_view, Iterator> by_name_;  // names of the entries
};

}  // namespace cpu
