// Folders that tests of several processes share.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace test {

// A new folder, which goes with the object. It is locked for as long as the process that made it or
// a child of that lives: whoever makes the next one removes those of processes that were killed.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    RemoveAbandoned();
    std::string path = (std::filesystem::temp_directory_path() / kPrefix).string() + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder " + path);
    path_ = path;
    lock_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    flock(lock_, LOCK_SH);
  }
  ~TemporaryFolder() { Remove(); }
  TemporaryFolder(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // At once, for who ends without destructors.
  void Remove() {
    if (lock_ < 0) return;
    std::filesystem::remove_all(path_);
    close(lock_);
    lock_ = -1;
  }

 private:
  static constexpr const char* kPrefix = "torch_xla_test-";

  static void RemoveAbandoned() {
    std::error_code error;
    const auto all =
        std::filesystem::directory_iterator(std::filesystem::temp_directory_path(), error);
    for (const auto& entry : all) {
      if (!entry.path().filename().string().starts_with(kPrefix)) continue;
      const int folder =
          open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (folder < 0) continue;
      if (flock(folder, LOCK_EX | LOCK_NB) == 0 && !IsNew(folder)) {
        std::filesystem::remove_all(entry.path(), error);
      }
      close(folder);
    }
  }

  // It may have been made this moment, and not be locked yet.
  static bool IsNew(int folder) {
    struct stat status = {};
    return fstat(folder, &status) != 0 || time(nullptr) - status.st_ctime < 60;
  }

  std::string path_;
  int lock_ = -1;
};

}  // namespace test
