// Memory that the processes of one host share for their collectives.
//
// It is an anonymous file (memfd) that one of them makes and the others open through /proc, so that
// there is no name to be left behind: the system frees it with the last process, however that ends.
// Each process locks the byte of its number in the file; the system gives the lock up when the
// process ends, even if nobody has waited for it yet, and so the others see who is alive.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cpu {

class SharedSegment {
 public:
  // Bytes of data in a slot. Each process has two slots, which it alone writes.
  static constexpr int64_t kSlotBytes = 512 << 10;

  enum class State : uint32_t { kAbsent, kJoined, kLeft, kFailed };

  // What one process tells all.
  struct alignas(4096) Control {
    static constexpr size_t kDescriptions = 4;
    std::atomic<State> state;
    // 1 while the process sleeps until another calls Wake.
    std::atomic<uint32_t> asleep;
    std::atomic<uint32_t> collectives;  // begun so far
    std::atomic<uint32_t> finished;
    std::atomic<uint32_t> beats;  // signs of life
    // Of its last collectives, by number.
    char descriptions[kDescriptions][512];
    char reason[1536];  // once failed
  };
  // What one process tells one other: how many messages it has posted to it, and how many of the
  // other's messages it has consumed.
  struct alignas(64) Channel {
    std::atomic<uint32_t> posted;
    std::atomic<uint32_t> consumed;
    uint8_t slot[2];  // in which message number n lies, by n % 2
  };
  struct alignas(64) Slot {
    uint64_t signature;
    uint32_t collective;  // its number with the sender
    alignas(64) std::byte data[kSlotBytes];
  };

  // Makes the segment, for `count` processes of which this is number `index`; or opens the one that
  // another made and described with `address`. Throws hlo::Error(kUnavailable), also if what is
  // there is something else, which stays as it is.
  SharedSegment(int64_t index, int64_t count);
  SharedSegment(int64_t index, int64_t count, const std::string& address);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;

  // Where others find what this process made.
  std::string address() const;
  int64_t index() const { return index_; }
  int64_t count() const { return count_; }
  // True in a child of the process that joined: it is no part of the world.
  bool InForkedChild() const;

  Control& control(int64_t process) const;
  Channel& channel(int64_t from, int64_t to) const;
  Slot& slot(int64_t process, int64_t number) const;

  // True if the process has joined and ended without leaving.
  bool HasDied(int64_t process) const;
  // Sleeps until another process wakes this one, at most `timeout`, unless `ready()` is true by
  // then.
  template <typename Ready>
  void Sleep(std::chrono::milliseconds timeout, const Ready& ready) {
    std::atomic<uint32_t>& asleep = control(index_).asleep;
    asleep.store(1);
    if (!ready()) WaitOn(asleep, timeout);
    asleep.store(0);
  }
  void Wake(int64_t process);

 private:
  void Map();
  void Join();
  static void WaitOn(std::atomic<uint32_t>& word, std::chrono::milliseconds timeout);
  size_t SlotsOffset() const;
  size_t NeededBytes() const;

  int64_t index_, count_;
  int64_t process_id_;
  int file_ = -1;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cpu
