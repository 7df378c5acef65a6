// Storage: the value that one or more tensors share, as eager's tensors share memory. Its value is
// a graph value: data on the device, or recorded work that the next sync will compute.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lazy/node.h"
#include "lazy/view.h"
#include "process/fork.h"

namespace lazy {

class CaptureScope;
class Device;
class View;

// A lock held for a few instructions: cheaper than a mutex to take, and dearer to wait for.
class SpinLock {
 public:
  void lock() {
    process::BeginNoFork();
    for (int tries = 1; is_locked_.exchange(true, std::memory_order_acquire); ++tries) Pause(tries);
  }
  // Nobody is woken: to look whether somebody sleeps costs as much as the lock.
  void unlock() {
    is_locked_.store(false, std::memory_order_release);
    process::EndNoFork();
  }

 private:
  static void Pause(int tries);

  std::atomic<bool> is_locked_{false};
};

// Thread-safe: a sync may replace the value while another thread reads it.
class Storage : public Counted<Storage> {
 public:
  static Reference<Storage> Make(Device* device, Value value);

  Device* device() const { return device_; }
  // Process-wide, never used twice; those that are made later have larger ones.
  int64_t id() const { return id_; }
  static int64_t next_id();
  // How the framework lays the value out in memory, where it asks for places there: the value's
  // dimensions from the farthest apart to the nearest; empty: as they are. The value itself is
  // row-major.
  const hlo::Dimensions& memory_order() const { return memory_order_; }
  // Before others see the storage.
  void set_memory_order(hlo::Dimensions order) { memory_order_ = std::move(order); }
  Value value() const;
  // In-place update: everything that shares the storage sees it. Throws hlo::Error where this
  // thread captures, and the storage is not the capture's own (capture.h).
  void set_value(Value value) { Replace(nullptr, std::move(value)); }
  // The same if the value is still `*expected`, or that is null; otherwise false.
  bool Replace(const Value* expected, Value value);
  // Replaces recorded work by its result, unless the value has changed since.
  void Materialize(const Value& expected, const Value& data);
  // The Data that the value was before it became recorded work; 0 if none.
  int64_t replaced_data() const;
  // Recorded work that is to be computed, and whose place its result takes.
  struct Pending {
    Value value;  // none: the value is not recorded work
    int64_t replaced_data = 0;
  };
  // Forgets also what views have read, so that nothing but the storage refers to the value's graph.
  Pending TakePending();
  // Recorded work that could not run: until the storage has another value, no sync computes it for
  // its own sake.
  void GiveUp(const Value& expected);
  bool is_given_up() const;
  // What the layer above keeps with the storage: made when it is asked for first.
  void* Attachment(std::shared_ptr<void> (*make)(Storage&));

  void Destroy();

 private:
  friend class View;
  friend std::vector<Reference<Storage>> PendingStorages(Device* device);
  Storage(Device* device, Value value);
  ~Storage() = default;
  // Where the storage is found by those who compute recorded work: nowhere, by whoever holds it
  // (what a capture made), or in the device's list.
  enum class Place : uint8_t { kNowhere, kAlone, kListed };
  // Under lock_, as the value is now, for a thread with that capture or none.
  Place ProperPlace(const CaptureScope* capture) const;
  // To where it is proper by then: other threads may have replaced the value since. Whoever finds
  // or makes the storage misplaced calls it.
  void Move(const CaptureScope* capture);
  // Under the device's pending_mutex.
  void Link(Place place);
  void Unlink();
  // Under lock_: moves the memoised values of views to `dropped`, to be destroyed after unlocking.
  void TakeViewValues(std::vector<Value>* dropped);

  Device* device_;
  int64_t id_;
  hlo::Dimensions memory_order_;
  mutable SpinLock lock_;
  Value value_;
  int64_t replaced_data_ = 0;
  std::vector<View*> views_with_value_;
  std::shared_ptr<void> attachment_;  // under lock_
  bool is_given_up_ = false;          // the value

  // Written under the device's pending_mutex and then lock_, so that either is enough to read it.
  Place place_ = Place::kNowhere;
  // The device's list of pending storages, under its pending_mutex.
  Storage* previous_ = nullptr;
  Storage* next_ = nullptr;
};

// Those whose value is recorded work, oldest first.
std::vector<Reference<Storage>> PendingStorages(Device* device);

// A part of a storage, seen through a chain of steps. Reading is recorded once per value of the
// storage.
class View : public Counted<View> {
 public:
  View(Reference<Storage> storage, ViewChain chain)
      : storage_(std::move(storage)), attributes_(std::move(chain)) {}
  ~View();

  const ViewChain& chain() const { return std::get<0>(attributes_); }
  Value Read();
  // The part's new value, of the view's type, and of its shape unless `is_stretched`: then of one
  // that torch broadcasts to it.
  void Write(const Value& part, bool is_stretched);
  // The same through another chain that shows the same elements.
  void WriteThrough(const ViewChain& chain, const Value& part, bool is_stretched);

  void Destroy() { delete this; }

 private:
  friend class Storage;
  Reference<Node> RecordRead(const Value& base) const;

  Reference<Storage> storage_;
  // The chain, as it is recorded where no step has a start.
  const std::tuple<ViewChain> attributes_;
  Value memo_;  // under the storage's lock
};

}  // namespace lazy
