// Reference: a pointer that shares ownership through a count inside the object; half of
// std::shared_ptr's size and one allocation per object, which is what recording allocates most.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace lazy {

// Base of counted objects. `Derived::Destroy()` is called when the last reference goes.
template <typename Derived>
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  void Retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      static_cast<Derived*>(const_cast<Counted*>(this))->Destroy();
    }
  }
  // Takes a reference unless the last one is gone and the object about to be destroyed.
  bool TryRetain() const {
    uint32_t count = count_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  Counted() = default;
  ~Counted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

template <typename T>
class Reference {
 public:
  Reference() = default;
  Reference(std::nullptr_t) {}  // NOLINT(runtime/explicit)
  explicit Reference(T* object) : object_(object) { Retain(); }
  Reference(const Reference& other) : object_(other.object_) { Retain(); }
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() {
    if (object_ != nullptr) object_->Release();
  }

  // Takes over a reference that the caller owns.
  static Reference Adopt(T* object) {
    Reference reference;
    reference.object_ = object;
    return reference;
  }

  T* get() const { return object_; }
  // Gives the reference up without releasing it; the caller owes a Release.
  T* Detach() { return std::exchange(object_, nullptr); }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Reference& other) const { return object_ == other.object_; }

 private:
  void Retain() const {
    if (object_ != nullptr) object_->Retain();
  }
  T* object_ = nullptr;
};

}  // namespace lazy
