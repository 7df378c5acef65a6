// Worlds of forked processes, on hosts that the test makes up.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cpu/collective/world.h"
#include "hlo/error.h"

namespace cpu {

// A store in a folder that all children see.
class FolderStore {
 public:
  FolderStore() {
    char name[] = "/tmp/collective_world_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~FolderStore() { std::filesystem::remove_all(folder_); }

  KeyValueStore Store() const {
    auto path = [folder = folder_](std::string name) {
      std::replace(name.begin(), name.end(), '/', '.');
      return folder + "/" + name;
    };
    KeyValueStore store;
    store.put = [path](const std::string& key, const std::string& value) {
      const std::string aside = path(key) + "~";
      std::ofstream(aside, std::ios::binary) << value;
      std::filesystem::rename(aside, path(key));
    };
    store.get = [path](const std::string& key,
                       std::chrono::milliseconds timeout) -> std::optional<std::string> {
      const auto deadline = std::chrono::steady_clock::now() + timeout;
      while (std::chrono::steady_clock::now() < deadline) {
        std::ifstream file(path(key), std::ios::binary);
        if (file) return std::string(std::istreambuf_iterator<char>(file), {});
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return {};
    };
    return store;
  }

 private:
  std::string folder_;
};

// The host of each rank, one letter each: "aabb" are two hosts of two processes.
using Layout = std::string;

// Runs body(world) in a child for each rank, which fails by throwing; how each has ended, as
// waitpid says.
inline std::vector<int> StatusesOf(const Layout& layout,
                                   const std::function<void(Collectives&)>& body,
                                   std::chrono::milliseconds timeout) {
  FolderStore store;
  std::vector<pid_t> children;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      int status = 0;
      try {
        WorldOptions options;
        options.rank = static_cast<int64_t>(rank);
        options.size = static_cast<int64_t>(layout.size());
        options.timeout = timeout;
        options.host = layout.substr(rank, 1);
        body(*ConnectWorld(options, store.Store()));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %zu of %s: %s\n", rank, layout.c_str(), error.what());
        status = 1;
      }
      std::fflush(nullptr);
      _exit(status);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

// All of them must succeed.
inline void InWorld(const Layout& layout, const std::function<void(Collectives&)>& body) {
  const std::vector<int> statuses = StatusesOf(layout, body, std::chrono::seconds(60));
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    EXPECT_EQ(statuses[rank], 0) << "rank " << rank << " of " << layout;
  }
}

inline void Require(bool condition, const std::string& what) {
  if (!condition) throw hlo::Error(what);
}

}  // namespace cpu
