// A folder of files, each named by a digest, that many processes of one user share. What is read
// from it is executed, so nothing is taken from it that another user could have put there.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "process/sha256.h"

namespace lazy {

class CacheFolder {
 public:
  // Makes the folder (mode 0700) unless `readonly`. Throws hlo::Error: kNotFound if it is missing
  // or no folder, kPermissionDenied if another user owns it or may write to it. Trusted owners are
  // this user, root, and the numbers in TORCH_XLA_CACHE_TRUSTED_USERS ("1000,1001").
  CacheFolder(const std::string& path, bool readonly);
  ~CacheFolder();
  CacheFolder(const CacheFolder&) = delete;

  const std::string& path() const { return path_; }
  bool readonly() const { return readonly_; }

  // The bytes that were stored under the key; nothing if there are none. An entry that is damaged,
  // cut off, another key's, or that another user owns or may change is left alone and warned of.
  std::optional<std::string> Read(const process::Sha256Digest& key) const;
  // Replaces the entry whole, so that readers see the old one or the new one. Does nothing if
  // readonly. What goes wrong is warned of, once in the life of this object.
  void Write(const process::Sha256Digest& key, const std::string& bytes);
  // For messages.
  std::string EntryPath(const process::Sha256Digest& key) const;

 private:
  void WarnOfWriting(const std::string& reason);
  void RemoveAbandoned() const;

  std::string path_;
  bool readonly_;
  int folder_ = -1;  // held open: what is checked is what is used
  std::atomic<bool> warned_ = false;
};

}  // namespace lazy
