// What a session has under way on the plugin.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace remote {

// Bounds the operations that have begun and not ended, and the memory that they hold meanwhile: a
// session that asks for more waits, and nobody else does. Thread-safe.
class Underway : public std::enable_shared_from_this<Underway> {
 public:
  static constexpr size_t kMostOperations = 1024;
  static constexpr size_t kMostBytes = size_t{256} << 20;

  // As long as the result lives, one more is under way, with so many bytes; what is larger than all
  // goes alone. Waits for room, and calls `before_waiting` if it must.
  template <typename Function>
  std::shared_ptr<void> Begin(size_t bytes, const Function& before_waiting) {
    // Made first: afterwards nothing may be lost.
    std::shared_ptr<Operation> operation = std::make_shared<Operation>();
    if (!HasRoom(bytes)) before_waiting();
    WaitAndAdd(bytes);
    operation->bytes = bytes;
    operation->owner = shared_from_this();
    return operation;
  }

 private:
  struct Operation {
    Operation() = default;
    Operation(const Operation&) = delete;
    ~Operation() {
      if (owner != nullptr) owner->Remove(bytes);
    }
    std::shared_ptr<Underway> owner;
    size_t bytes = 0;
  };

  bool HasRoomLocked(size_t bytes) const;
  bool HasRoom(size_t bytes) const;
  void WaitAndAdd(size_t bytes);
  void Remove(size_t bytes);

  mutable std::mutex mutex_;
  std::condition_variable removed_;
  size_t operations_ = 0, bytes_ = 0;
};

}  // namespace remote
