#include "remote/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hlo/error.h"

namespace remote {
namespace {

constexpr char kName[] = "torch_xla_remote";
constexpr size_t kNonceBytes = 32;
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

}  // namespace

std::shared_ptr<Segment> Segment::Create(size_t bytes) {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) Refuse(bytes);
  const int descriptor = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) Refuse(bytes);
  char* data = nullptr;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, kSeals) == 0) {
    data = Map(descriptor, bytes, /*writable=*/true);
  }
  if (data == nullptr) {
    close(descriptor);
    Refuse(bytes);
  }
  std::memcpy(data, nonce.data(), nonce.size());
  return std::shared_ptr<Segment>(new Segment(descriptor, data, bytes, std::move(nonce)));
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
  const int own = open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
  if (own < 0) return nullptr;
  struct stat status = {};
  char* data = nullptr;
  if (fstat(own, &status) == 0 && status.st_size >= static_cast<off_t>(kHeader) &&
      fcntl(own, F_GET_SEALS) == kSeals) {
    data = Map(own, status.st_size, writable);
  }
  close(own);
  if (data == nullptr) return nullptr;
  std::shared_ptr<Segment> segment(new Segment(-1, data, status.st_size, nonce));
  return std::memcmp(data, nonce.data(), nonce.size()) == 0 ? segment : nullptr;
}

Segment::~Segment() {
  munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace remote
