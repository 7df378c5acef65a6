// Data: a buffer on a device, shared by the graph's leaves that stand for it.
#pragma once

#include <atomic>
#include <memory>

#include "hlo/error.h"
#include "lazy/live_data.h"
#include "lazy/operation.h"
#include "lazy/reference.h"
#include "pjrt/client/buffer.h"
#include "process/small_memory.h"

namespace lazy {

class Device;

// Contents in the host's memory as the framework holds them: small results of its own kernels, and
// its views of buffers.
class HostContents {
 public:
  virtual ~HostContents() = default;
  virtual const void* bytes() const = 0;  // dense, row-major; never change
};

// Somebody reads data that nobody has computed, nor will: a placeholder's, as while a program is
// recorded from its arguments, or those of recorded work that was forgotten.
class MissingValue : public hlo::Error {
 public:
  explicit MissingValue(const hlo::Shape& shape);
};

// Its contents may still be in the making (PJRT's buffers wait by themselves); the error of the
// work that makes them appears where they are read.
class Data : public Counted<Data>, public process::SmallObject {
 public:
  Data(Device* device, ShapeRef shape, std::unique_ptr<pjrt::Buffer> buffer);
  ~Data();

  Device* device() const { return device_; }
  ShapeRef shape() const { return shape_.get(); }
  // Throws MissingValue where nothing was ever computed, hlo::Error(kFailedPrecondition) after the
  // buffer was given up. Under SyncMutex, under which alone that happens.
  const pjrt::Buffer& buffer() const;
  // The same for a thread that does not hold it, beside which another may give up the buffer.
  std::shared_ptr<const pjrt::Buffer> SharedBuffer() const;
  // Gives up the device memory: its contents were donated or are no longer wanted. Under SyncMutex.
  void Drop();
  // When the device has moved to another client since: copies the contents there. Under SyncMutex.
  void MoveToCurrentClient();
  // False after it was given up, and of what stands for data that never were: placeholders.
  bool has_buffer() const;
  // Null if the framework does not hold it. Under SyncMutex.
  const HostContents* host_contents() const { return host_contents_.get(); }
  // The same for a thread that does not hold it.
  std::shared_ptr<const HostContents> SharedHostContents() const;
  // Keeps the framework's view of the buffer, for the next that asks for it. Under SyncMutex.
  void ShowOnHost(std::shared_ptr<const HostContents> view);
  // Lets go of what the framework holds, of which there is a buffer then: a program is to write
  // into its memory. Under SyncMutex.
  void KeepBufferOnly();
  // The user's wish that the next program that takes it gets its memory, whoever else refers to it.
  bool may_be_donated() const { return may_be_donated_; }
  void set_may_be_donated(bool wish) { may_be_donated_ = wish; }
  // Whether exports take any size of this dimension (programs_of_any_size.h).
  bool has_any_size(int64_t dimension) const { return ((any_size_ >> dimension) & 1) != 0; }
  bool has_any_size() const { return any_size_ != 0; }
  void set_any_size(int64_t dimension) { any_size_ |= uint64_t{1} << dimension; }
  // The storage whose value it was first; 0 if it was none's.
  int64_t holder() const { return holder_.load(std::memory_order_relaxed); }
  void NoteHolder(int64_t storage) {
    if (holder() == 0) holder_.store(storage, std::memory_order_relaxed);
  }
  // Process-wide, never used twice.
  int64_t id() const { return id_; }
  // The last run (CheckQueue) that it may come from; 0: it comes from none whose values are
  // checked.
  int64_t last_checked_run() const { return last_checked_run_; }
  void set_last_checked_run(int64_t run) { last_checked_run_ = run; }  // before others see it
  // For who has read it, and hands it to the user: throws the error of a wrong value that it may
  // come from (value_check.h).
  void RaiseFailedChecks() const;
  LiveEntry& live_entry() const { return live_entry_; }  // for live_data.cc

  // Comes to the device when it is asked for as a buffer.
  static Reference<Data> OnHost(Device* device, ShapeRef shape,
                                std::shared_ptr<const HostContents> contents);
  // Is a view of memory that another library holds: no program gets it to write its results to.
  static Reference<Data> Borrowed(Device* device, const hlo::Shape& shape,
                                  std::unique_ptr<pjrt::Buffer> view);
  bool is_borrowed() const { return is_borrowed_; }
  // Whether another library reads its memory: no program gets that, whatever the user wishes.
  bool is_lent() const { return loans_ > 0; }
  // Copies `bytes` (dense, row-major, of shape's type) to the device.
  static Reference<Data> FromHost(Device* device, const hlo::Shape& shape, const void* bytes);
  // Copies the contents to `destination`, waiting for them.
  void ToHost(void* destination, size_t bytes) const;
  // Where the contents lie, waiting for them.
  uintptr_t Address();
  // Whether PartToHost can be asked: whether the bytes lie on the device as they do on the host.
  bool HasRowMajorBytes() const;
  // The same of `bytes` of them, which begin at `offset`.
  void PartToHost(void* destination, size_t offset, size_t bytes) const;

  void Destroy() { delete this; }

 private:
  friend class Loan;
  [[noreturn]] void ThrowGivenUp() const;
  // Whether there is a buffer, and of the client that the device has now. With the lock taken.
  bool HoldsCurrentBuffer() const;
  // SharedBuffer for who reads it now, waiting: if the user may interrupt that (interrupt.h), until
  // its contents are there.
  std::shared_ptr<const pjrt::Buffer> BufferToRead() const;

  Device* device_;
  SharedShape shape_;
  // They change under SyncMutex and a lock of their own, so that readers hold either. The buffer of
  // host contents is made under the second alone.
  std::shared_ptr<const HostContents> host_contents_;
  mutable std::shared_ptr<const pjrt::Buffer> buffer_;
  int64_t id_;
  int64_t maker_;  // the thread (thread_number.h) that started the work that makes it
  int64_t last_checked_run_ = 0;
  mutable LiveEntry live_entry_;
  std::atomic<bool> may_be_donated_{false};
  mutable std::atomic<int> loans_{0};
  bool is_borrowed_ = false;
  std::atomic<uint64_t> any_size_{0};  // a bit for each dimension
  std::atomic<int64_t> holder_{0};
};

// While it lives another library, or a read that waits, may read the memory. Begins under
// SyncMutex, when no program is about to take it.
class Loan {
 public:
  explicit Loan(const Data& data) : data_(&data) { ++data_->loans_; }
  ~Loan() { --data_->loans_; }
  Loan(const Loan&) = delete;
  const Data& data() const { return *data_; }

 private:
  Reference<const Data> data_;
};

}  // namespace lazy
