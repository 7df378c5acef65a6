#include "lazy/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string_view>

#include "hlo/error.h"
#include "lazy/warning.h"

namespace lazy {
namespace {

using process::Sha256Digest;
using process::Sha256Of;
using process::ToHex;

// An entry: this, the key, the checksum of the bytes, their number, the bytes.
constexpr std::string_view kMagic = "torch_xla compiled program 1\n";
constexpr size_t kHeaderSize = kMagic.size() + 2 * sizeof(Sha256Digest) + sizeof(uint64_t);
constexpr std::string_view kSuffix = ".program", kPartial = ".partial";
constexpr time_t kAbandonedAfterSeconds = 3600;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

std::string Reason() { return std::strerror(errno); }

bool IsTrusted(uid_t owner) {
  if (owner == geteuid() || owner == 0) return true;
  const char* trusted = std::getenv("TORCH_XLA_CACHE_TRUSTED_USERS");
  std::stringstream text(trusted != nullptr ? trusted : "");
  for (std::string user; std::getline(text, user, ',');) {
    if (user == std::to_string(owner)) return true;
  }
  return false;
}

// Why what is there may be another user's doing; empty if it cannot be.
std::string WhyUntrusted(const struct stat& status) {
  if (!IsTrusted(status.st_uid)) {
    return "it belongs to user " + std::to_string(status.st_uid) +
           ", who is neither this user nor root nor named in TORCH_XLA_CACHE_TRUSTED_USERS";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return "";
}

// With all folders above it; the mode is the last one's, the others get the usual one.
void MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != path.npos; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0777);
  }
  mkdir(path.c_str(), 0700);
}

std::string Absolute(const std::string& path) {
  if (char* resolved = realpath(path.c_str(), nullptr)) {
    std::string text = resolved;
    std::free(resolved);
    return text;
  }
  return path;
}

bool ReadAll(int file, char* out, size_t size) {
  while (size > 0) {
    ssize_t count = read(file, out, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string_view AsText(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string Header(const Sha256Digest& key, const std::string& bytes) {
  const uint64_t size = bytes.size();
  std::string header(kMagic);
  header += AsText(key);
  header += AsText(Sha256Of(bytes));
  header.append(reinterpret_cast<const char*>(&size), sizeof size);
  return header;
}

std::string RandomName() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint64_t>(getpid());
  return std::to_string(number);
}

// Why an entry's content is not what was written under the key; empty if it is.
std::string WhyDamaged(std::string_view content, const Sha256Digest& key) {
  if (!content.starts_with(kMagic)) return "it is no compiled program of this version";
  std::string_view rest = content.substr(kMagic.size());
  if (rest.substr(0, key.size()) != AsText(key)) return "it is another program's";
  rest.remove_prefix(key.size());
  std::string_view checksum = rest.substr(0, key.size());
  uint64_t size = 0;
  std::memcpy(&size, rest.data() + key.size(), sizeof size);
  rest.remove_prefix(key.size() + sizeof size);
  if (rest.size() != size) return "it is cut off";
  if (checksum != AsText(Sha256Of(rest))) return "its checksum is wrong";
  return "";
}

}  // namespace

CacheFolder::CacheFolder(const std::string& path, bool readonly)
    : path_(path), readonly_(readonly) {
  const auto refuse = [&](hlo::ErrorCode code, const std::string& reason) {
    throw hlo::Error(code,
                     "the folder of the compilation cache cannot be used: " + path + ": " + reason);
  };
  if (path.empty()) refuse(hlo::ErrorCode::kNotFound, "its name is empty");
  if (!readonly) MakeFolders(path);
  path_ = Absolute(path);
  folder_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder_ < 0) refuse(hlo::ErrorCode::kNotFound, Reason());
  struct stat status;
  std::string reason = fstat(folder_, &status) != 0 ? Reason() : WhyUntrusted(status);
  if (!reason.empty()) {
    close(folder_);
    refuse(hlo::ErrorCode::kPermissionDenied,
           reason +
               ". Programs from it would be run; use a folder of your own (a new one is made "
               "private), or take the others' permission away (chmod go-w)");
  }
  if (!readonly) RemoveAbandoned();
}

CacheFolder::~CacheFolder() { close(folder_); }

std::string CacheFolder::EntryPath(const Sha256Digest& key) const {
  return path_ + "/" + ToHex(key) + std::string(kSuffix);
}

std::optional<std::string> CacheFolder::Read(const Sha256Digest& key) const {
  const std::string name = ToHex(key) + std::string(kSuffix);
  const auto skip = [&](const std::string& reason) {
    Warn("the compiled program " + EntryPath(key) + " is not used: " + reason +
         ". The program is compiled anew.");
    return std::nullopt;
  };
  // A pipe must not be waited for.
  Descriptor file(openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return errno == ENOENT ? std::nullopt : skip(Reason());
  struct stat status;
  if (fstat(file.get(), &status) != 0) return skip(Reason());
  if (!S_ISREG(status.st_mode)) return skip("it is no file");
  if (std::string reason = WhyUntrusted(status); !reason.empty()) return skip(reason);
  const auto size = static_cast<size_t>(status.st_size);
  if (size < kHeaderSize) return skip("it is cut off");
  std::string content(size, '\0');
  if (!ReadAll(file.get(), content.data(), size)) return skip("it cannot be read");
  if (std::string reason = WhyDamaged(content, key); !reason.empty()) return skip(reason);
  content.erase(0, kHeaderSize);
  return content;
}

void CacheFolder::Write(const Sha256Digest& key, const std::string& bytes) {
  if (readonly_) return;
  const std::string name = ToHex(key) + std::string(kSuffix);
  const std::string partial = "." + ToHex(key) + "." + RandomName() + std::string(kPartial);
  Descriptor file(
      openat(folder_, partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return WarnOfWriting(Reason());
  // Not forced to the disk: a file that a power failure cuts off fails its checksum.
  if (WriteAll(file.get(), Header(key, bytes)) && WriteAll(file.get(), bytes) &&
      renameat(folder_, partial.c_str(), folder_, name.c_str()) == 0) {
    return;
  }
  const std::string reason = Reason();
  unlinkat(folder_, partial.c_str(), 0);
  WarnOfWriting(reason);
}

void CacheFolder::WarnOfWriting(const std::string& reason) {
  if (warned_.exchange(true)) return;
  Warn("compiled programs cannot be kept in " + path_ + ": " + reason);
}

// What killed processes have left.
void CacheFolder::RemoveAbandoned() const {
  DIR* listing = opendir(path_.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing)) {
    std::string_view name = entry->d_name;
    struct stat status;
    if (!name.starts_with('.') || !name.ends_with(kPartial)) continue;
    if (fstatat(folder_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (time(nullptr) - status.st_mtime < kAbandonedAfterSeconds) continue;
    unlinkat(folder_, entry->d_name, 0);
  }
  closedir(listing);
}

}  // namespace lazy
