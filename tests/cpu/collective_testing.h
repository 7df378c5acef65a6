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

#include "cpu/collective/communicator.h"
#include "hlo/error.h"
#include "temporary_folder.h"

namespace cpu {

// A store in a folder that all children see.
class FolderStore {
 public:
  KeyValueStore Store() const {
    auto path = [folder = folder_.path()](std::string name) {
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
  test::TemporaryFolder folder_;
};

// The host of each rank, one letter each: "aabb" are two hosts of two processes.
using Layout = std::string;

// How the children have ended, as waitpid says.
inline std::vector<int> Await(const std::vector<pid_t>& children) {
  std::vector<int> statuses;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

// Runs body(options, store) in a child for each rank, which fails by throwing.
inline std::vector<pid_t> StartRanks(
    const Layout& layout, const KeyValueStore& store,
    const std::function<void(CommunicatorOptions, KeyValueStore)>& body) {
  std::vector<pid_t> children;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      int status = 0;
      try {
        CommunicatorOptions options;
        options.rank = static_cast<int64_t>(rank);
        options.size = static_cast<int64_t>(layout.size());
        options.timeout = std::chrono::seconds(60);
        options.host = layout.substr(rank, 1);
        body(options, store);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %zu of %s: %s\n", rank, layout.c_str(), error.what());
        status = 1;
      }
      std::fflush(nullptr);
      _exit(status);
    }
    children.push_back(child);
  }
  return children;
}

// Runs body(world) in a child for each rank, which fails by throwing; how each has ended.
inline std::vector<int> StatusesOf(const Layout& layout,
                                   const std::function<void(Communicator&)>& body,
                                   std::chrono::milliseconds timeout) {
  FolderStore store;
  return Await(StartRanks(layout, store.Store(),
                          [&](CommunicatorOptions options, const KeyValueStore& shared) {
                            options.timeout = timeout;
                            body(*ConnectCommunicator(options, shared));
                          }));
}

// All of them must succeed.
inline void InWorld(const Layout& layout, const std::function<void(Communicator&)>& body) {
  const std::vector<int> statuses = StatusesOf(layout, body, std::chrono::seconds(60));
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    EXPECT_EQ(statuses[rank], 0) << "rank " << rank << " of " << layout;
  }
}

inline void Require(bool condition, const std::string& what) {
  if (!condition) throw hlo::Error(what);
}

// The error of `call`, which must come soon.
inline hlo::Error ErrorOf(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const hlo::Error& error) {
    Require(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10),
            std::string("the error came late: ") + error.what());
    return error;
  }
  throw hlo::Error("no error");
}

inline void RequireWords(const hlo::Error& error, const std::vector<std::string>& words) {
  const std::string text = error.what();
  for (const std::string& word : words) {
    Require(text.find(word) != std::string::npos, "no '" + word + "' in: " + text);
  }
}

inline Collective AllReduceOf(int64_t elements, const std::string& source) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.operands = {hlo::Shape(hlo::ElementType::kF32, {elements})};
  collective.source = source;
  return collective;
}

// In place, of ones.
inline void CarryOut(Communicator& world, const Collective& collective) {
  std::vector<float> data(collective.operands[0].num_elements(), 1);
  void* array = data.data();
  world.Run(collective, &array, &array);
}

}  // namespace cpu
