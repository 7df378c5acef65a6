#include "remote/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hlo/error.h"
#include "remote/handshake.h"
#include "remote/local_socket.h"

namespace remote {
namespace {

constexpr char kName[] = "torch_xla_remote";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void Refuse(size_t bytes) {
  throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                   "there are no " + std::to_string(bytes) +
                       " bytes of memory to share: " + std::strerror(errno));
}

char* Map(int descriptor, size_t bytes, bool writable) {
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, bytes, access, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

// The kernel gives the lowest number that is free: a high one says how many are not. The last ones
// are for those who have yet to connect.
bool IsScarce(int descriptor) {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(descriptor) >= limit.rlim_cur / 4 * 3;
}

}  // namespace

std::shared_ptr<Segment> Segment::Create(size_t bytes) {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) Refuse(bytes);
  Descriptor own(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!own) Refuse(bytes);
  if (IsScarce(own.get())) {
    errno = EMFILE;
    Refuse(bytes);
  }
  std::shared_ptr<Segment> segment(new Segment(-1, nullptr, bytes, std::move(nonce)));
  if (ftruncate(own.get(), static_cast<off_t>(bytes)) == 0 &&
      fcntl(own.get(), F_ADD_SEALS, kSeals) == 0) {
    segment->data_ = Map(own.get(), bytes, /*writable=*/true);
  }
  if (segment->data_ == nullptr) Refuse(bytes);
  segment->descriptor_ = own.release();
  std::memcpy(segment->data_, segment->nonce_.data(), segment->nonce_.size());
  return segment;
}

std::shared_ptr<Segment> Segment::Open(uint64_t process, uint64_t descriptor,
                                       const std::string& nonce, bool writable) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  // Looked at before it is opened: opening another host's number could block on a pipe.
  char target[64] = {};
  if (nonce.size() != kNonceBytes || readlink(path.c_str(), target, sizeof target - 1) < 0 ||
      std::string_view(target).find(kName) == std::string_view::npos) {
    return nullptr;
  }
  const Descriptor own(open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!own || fstat(own.get(), &status) != 0 || status.st_size < static_cast<off_t>(kHeader) ||
      fcntl(own.get(), F_GET_SEALS) != kSeals) {
    return nullptr;
  }
  std::shared_ptr<Segment> segment(new Segment(-1, nullptr, status.st_size, nonce));
  segment->data_ = Map(own.get(), status.st_size, writable);
  const bool same =
      segment->data_ != nullptr && std::memcmp(segment->data_, nonce.data(), nonce.size()) == 0;
  return same ? segment : nullptr;
}

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace remote
