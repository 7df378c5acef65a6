#include "cpu/collective/shared_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <string_view>

#include "hlo/error.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

constexpr size_t kPage = 4096;
constexpr char kSegmentName[] = "torch_xla collectives";

[[noreturn]] void ThrowSystemError(const std::string& what) {
  throw hlo::Error(hlo::ErrorCode::kUnavailable,
                   "shared memory for collectives: " + what + ": " + std::strerror(errno) +
                       " (TORCH_XLA_SHARED_MEMORY=0 does without it)");
}

[[noreturn]] void CloseAndThrow(int file, const std::string& what) {
  const int error = errno;
  close(file);
  errno = error;
  ThrowSystemError(what);
}

// Whether the open file is a segment of this size, rather than another file of this user's: its
// name came from the store, which strangers may have written to.
bool IsSegment(int file, size_t bytes) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const std::string expected = std::string("/memfd:") + kSegmentName + " (deleted)";
  char target[PATH_MAX];
  const ssize_t size = readlink(link.c_str(), target, sizeof target);
  struct stat status = {};
  return size >= 0 && std::string_view(target, size) == expected && fstat(file, &status) == 0 &&
         status.st_uid == geteuid() && status.st_size == static_cast<off_t>(bytes);
}

struct flock LockOf(int64_t process) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = process;
  lock.l_len = 1;
  return lock;
}

}  // namespace

SharedSegment::SharedSegment(int64_t index, int64_t count)
    : index_(index), count_(count), process_id_(getpid()), bytes_(NeededBytes()) {
  file_ = memfd_create(kSegmentName, MFD_CLOEXEC);
  if (file_ < 0) ThrowSystemError("memfd_create");
  // Only what is touched takes memory.
  if (ftruncate(file_, static_cast<off_t>(bytes_)) != 0) CloseAndThrow(file_, "ftruncate");
  Map();
  Join();
}

SharedSegment::SharedSegment(int64_t index, int64_t count, const std::string& address)
    : index_(index), count_(count), process_id_(getpid()), bytes_(NeededBytes()) {
  file_ = open(address.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_ < 0) ThrowSystemError("opening " + address);
  if (!IsSegment(file_, bytes_)) {
    errno = EINVAL;
    CloseAndThrow(file_, "'" + address + "' is not what a process of this job has made");
  }
  Map();
  Join();
}

SharedSegment::~SharedSegment() {
  if (memory_ != nullptr) {
    if (!InForkedChild()) {
      State joined = State::kJoined;
      control(index_).state.compare_exchange_strong(joined, State::kLeft);
      for (int64_t process = 0; process < count_; ++process) Wake(process);
    }
    munmap(memory_, bytes_);
  }
  if (file_ >= 0) close(file_);
}

std::string SharedSegment::address() const {
  return "/proc/" + std::to_string(process_id_) + "/fd/" + std::to_string(file_);
}

bool SharedSegment::InForkedChild() const { return getpid() != process_id_; }

size_t SharedSegment::SlotsOffset() const {
  return hlo::RoundUp(count_ * sizeof(Control) + count_ * count_ * sizeof(Channel), kPage);
}

size_t SharedSegment::NeededBytes() const {
  return hlo::RoundUp(SlotsOffset() + 2 * count_ * sizeof(Slot), kPage);
}

void SharedSegment::Map() {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) {
    CloseAndThrow(file_, "mmap of " + std::to_string(bytes_) + " bytes");
  }
  memory_ = static_cast<std::byte*>(memory);
}

void SharedSegment::Join() {
  struct flock lock = LockOf(index_);
  if (fcntl(file_, F_SETLK, &lock) != 0) {
    const int error = errno;
    munmap(memory_, bytes_);
    errno = error;
    CloseAndThrow(file_, "rank " + std::to_string(index_) + " of this host is there already");
  }
  control(index_).state = State::kJoined;
}

SharedSegment::Control& SharedSegment::control(int64_t process) const {
  return reinterpret_cast<Control*>(memory_)[process];
}

SharedSegment::Channel& SharedSegment::channel(int64_t from, int64_t to) const {
  auto* channels = reinterpret_cast<Channel*>(memory_ + count_ * sizeof(Control));
  return channels[from * count_ + to];
}

SharedSegment::Slot& SharedSegment::slot(int64_t process, int64_t number) const {
  return reinterpret_cast<Slot*>(memory_ + SlotsOffset())[2 * process + number];
}

bool SharedSegment::HasDied(int64_t process) const {
  if (process == index_ || control(process).state == State::kAbsent) return false;
  struct flock lock = LockOf(process);
  return fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK &&
         control(process).state != State::kLeft;
}

void SharedSegment::WaitOn(std::atomic<uint32_t>& word, std::chrono::milliseconds timeout) {
  timespec time{};
  time.tv_sec = timeout.count() / 1000;
  time.tv_nsec = timeout.count() % 1000 * 1'000'000;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, 1, &time, nullptr, 0);
}

void SharedSegment::Wake(int64_t process) {
  std::atomic<uint32_t>& asleep = control(process).asleep;
  if (asleep.load() == 0 || asleep.exchange(0) == 0) return;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&asleep), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

}  // namespace cpu
