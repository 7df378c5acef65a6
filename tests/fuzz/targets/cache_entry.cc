// Bytes as an entry of the folder of compiled programs: it is read only if it is what was written.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "lazy/cache_folder.h"
#include "process/sha256.h"

namespace {

class Folder {
 public:
  Folder() : path_("/tmp/cache_entry.XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) __builtin_trap();
    cache_ = std::make_unique<lazy::CacheFolder>(path_, false);
    cache_->Write(key_, kProgram);
    std::ifstream file(cache_->EntryPath(key_), std::ios::binary);
    entry_.assign(std::istreambuf_iterator<char>(file), {});
  }
  ~Folder() {
    unlink(cache_->EntryPath(key_).c_str());
    rmdir(path_.c_str());
  }

  // Replaces the bytes at `offset` of the entry by others, or it as a whole.
  void Try(std::string bytes, size_t offset) {
    if (offset < entry_.size()) {
      std::string changed = entry_;
      changed.replace(offset, std::min(bytes.size(), entry_.size() - offset), bytes);
      bytes = changed;
    }
    std::ofstream(cache_->EntryPath(key_), std::ios::binary) << bytes;
    const auto read = cache_->Read(key_);
    if (read && *read != kProgram) __builtin_trap();
  }

 private:
  const std::string kProgram = "a compiled program";
  const process::Sha256Digest key_ = process::Sha256Of("key");
  std::string path_, entry_;
  std::unique_ptr<lazy::CacheFolder> cache_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Folder folder;
  if (size == 0) return 0;
  folder.Try(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), data[0]);
  return 0;
}
