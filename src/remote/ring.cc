#include "remote/ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

#include "hlo/error.h"

namespace remote {
namespace {

constexpr size_t kHeaderBytes = Ring::kBytes - Ring::kCapacity;
// How long somebody sleeps who has missed that its end was closed.
constexpr timespec kLongestSleep = {0, 200'000'000};

uint32_t Rounded(uint32_t bytes) { return (bytes + 3) / 4 * 4; }

void Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void Ring::Clear(char* memory) { new (memory) Header{}; }

Ring::Ring(std::shared_ptr<char> memory)
    : memory_(std::move(memory)),
      header_(*std::launder(reinterpret_cast<Header*>(memory_.get()))),
      data_(memory_.get() + kHeaderBytes) {}

// The flag is raised before the position is looked at again, and the other side moves the position
// before it looks at the flag.
void Ring::SleepUntilChanged(std::atomic<uint32_t>& position, uint32_t from,
                             std::atomic<uint32_t>& sleeps) {
  sleeps = 1;
  if (position == from) Futex(position, FUTEX_WAIT, from, &kLongestSleep);
}

void Ring::Move(std::atomic<uint32_t>& position, uint32_t to, std::atomic<uint32_t>& sleeps) {
  position = to;
  if (sleeps.exchange(0) != 0) Futex(position, FUTEX_WAKE, 1, nullptr);
}

void Ring::CopyIn(uint32_t position, const void* source, size_t bytes) {
  const size_t at = position % kCapacity, first = std::min(bytes, kCapacity - at);
  std::memcpy(data_ + at, source, first);
  std::memcpy(data_, static_cast<const char*>(source) + first, bytes - first);
}

void Ring::CopyOut(uint32_t position, void* target, size_t bytes) const {
  const size_t at = position % kCapacity, first = std::min(bytes, kCapacity - at);
  std::memcpy(target, data_ + at, first);
  std::memcpy(static_cast<char*>(target) + first, data_, bytes - first);
}

bool Ring::Write(std::string_view message) {
  if (message.size() > kCapacity / 2) return false;
  const auto size = static_cast<uint32_t>(message.size());
  const uint32_t needed = sizeof size + Rounded(size);
  while (true) {
    if (closed_) return false;
    const uint32_t read = header_.read;
    const uint32_t used = position_ - read;
    if (used > kCapacity) return false;
    if (needed <= kCapacity - used) break;
    SleepUntilChanged(header_.read, read, header_.writer_sleeps);
  }
  CopyIn(position_, &size, sizeof size);
  CopyIn(position_ + sizeof size, message.data(), size);
  position_ += needed;
  Move(header_.written, position_, header_.reader_sleeps);
  return true;
}

bool Ring::Read(std::string* message, size_t most) {
  uint32_t available = 0;
  while (true) {
    if (closed_) return false;
    const uint32_t written = header_.written;
    available = written - position_;
    if (available != 0) break;
    SleepUntilChanged(header_.written, written, header_.reader_sleeps);
  }
  // A message is there as a whole or not at all.
  uint32_t size = 0;
  if (available >= sizeof size) CopyOut(position_, &size, sizeof size);
  if (available < sizeof size || available > kCapacity || size > most ||
      size > available - sizeof size) {
    throw hlo::Error(
        "the messages in the shared memory are not as a client of this project writes them");
  }
  message->resize(size);
  CopyOut(position_ + sizeof size, message->data(), size);
  position_ += sizeof size + Rounded(size);
  Move(header_.read, position_, header_.writer_sleeps);
  return true;
}

void Ring::Close() {
  closed_ = true;
  Futex(header_.written, FUTEX_WAKE, 1, nullptr);
  Futex(header_.read, FUTEX_WAKE, 1, nullptr);
}

void Rings::Clear(char* memory) {
  Ring::Clear(memory);
  Ring::Clear(memory + Ring::kBytes);
}

Rings::Rings(const std::shared_ptr<char>& memory)
    : requests(memory), replies(std::shared_ptr<char>(memory, memory.get() + Ring::kBytes)) {}

void Rings::Close() {
  requests.Close();
  replies.Close();
}

}  // namespace remote
