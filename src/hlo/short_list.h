// ShortList: a list of pointers and the like, of which there are thousands, most with three
// elements at the most: these lie in the list itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace hlo {

template <typename T>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortList() = default;
  ShortList(std::span<const T> values) {  // NOLINT: any list will do
    reserve(values.size());
    std::ranges::copy(values, data());
    size_ = static_cast<uint32_t>(values.size());
  }
  ShortList(const std::vector<T>& values)  // NOLINT
      : ShortList(std::span(values)) {}
  ShortList(std::initializer_list<T> values)
      : ShortList(std::span(values.begin(), values.size())) {}
  ShortList(const ShortList& other) : ShortList(std::span(other.data(), other.size())) {}
  ShortList(ShortList&& other) noexcept { swap(other); }
  ShortList& operator=(ShortList other) noexcept {
    swap(other);
    return *this;
  }
  ~ShortList() {
    if (!IsInside()) delete[] outside_;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return IsInside() ? inside_ : outside_; }
  const T* data() const { return IsInside() ? inside_ : outside_; }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T& front() const { return data()[0]; }
  const T& back() const { return data()[size_ - 1]; }

  // For whoever adds to it, or keeps it while it changes.
  operator std::vector<T>() const { return {begin(), end()}; }  // NOLINT

  void reserve(size_t count) {
    if (count <= capacity_) return;
    T* const larger = new T[count];
    std::ranges::copy(*this, larger);
    if (!IsInside()) delete[] outside_;
    outside_ = larger;
    capacity_ = static_cast<uint32_t>(count);
  }
  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * size_t{capacity_});
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  // Takes out those of which `is_gone` holds; the others keep their order.
  template <typename Predicate>
  void EraseIf(const Predicate& is_gone) {
    size_ = static_cast<uint32_t>(std::remove_if(begin(), end(), is_gone) - begin());
  }
  void swap(ShortList& other) noexcept {
    std::swap(inside_, other.inside_);  // all of what the two members share
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  bool operator==(const ShortList& other) const { return std::ranges::equal(*this, other); }

 private:
  static constexpr uint32_t kInside = 3;

  bool IsInside() const { return capacity_ == kInside; }

  union {
    T inside_[kInside] = {};
    T* outside_;
  };
  uint32_t size_ = 0, capacity_ = kInside;
};

}  // namespace hlo
