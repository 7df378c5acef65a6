// What this process may use: of the machine's memory and processors what its cgroup (version 1 or
// 2), the cgroups above it, and its affinity mask leave it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace process {

// The folders of this process's cgroup and of those above it, the innermost first, as far as they
// are visible here. `root` holds proc/ and what the mount points name; empty for the machine's own.
// Nothing where there are no cgroups.
class Cgroups {
 public:
  explicit Cgroups(const std::string& root = "");

  struct Memory {
    int64_t limit = 0;  // in bytes
    int64_t used = 0;   // of it, without what the kernel takes back by itself (files' pages)
  };
  // Of each cgroup that has a limit; as it is now.
  std::vector<Memory> memory() const;
  // The smallest limit; nothing if there is none.
  std::optional<int64_t> memory_limit() const;
  // The smallest quota in processors, 1.5 for instance; nothing if there is none.
  std::optional<double> cpu_quota() const;

 private:
  struct Folder {
    std::string path;
    bool unified;  // version 2
  };
  std::vector<Folder> memory_, cpu_;
};

// In bytes: the machine's memory or a cgroup's limit, whichever is smaller.
int64_t MemoryLimit();
// At least 1: the processors of the affinity mask, or a cgroup's quota rounded up.
int UsableCpus();

}  // namespace process
