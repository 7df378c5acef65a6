// Memory shared with the server, from which the client takes what its transfers need.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "process/free_list.h"
#include "remote/client/connection.h"
#include "remote/segment.h"

namespace remote {

// Thread-safe.
class Arena {
 public:
  // With a server on another host there is none.
  Arena(std::shared_ptr<Connection> connection, bool local);

  struct Block {
    wire::Region region;
    char* data = nullptr;
    std::shared_ptr<Segment> segment;
  };
  // Pages that were used before come first: fresh ones cost more than the copy. Nothing if the
  // server cannot share memory with this process, or not that much. Throws if the server is lost.
  std::optional<Block> Take(size_t bytes);
  void Give(const Block& block) noexcept;

  // From now on executions put their results where this process can read them, if the server can.
  void ShareResults();
  bool shares_results() const { return results_ != nullptr; }
  // What the server has located. Throws for what is not there.
  std::shared_ptr<const char> At(const wire::Region& region);
  // In the memory for results. Throws the same.
  const char* ResultAt(size_t offset, size_t bytes) const;

 private:
  struct Part {
    std::shared_ptr<Segment> segment;
    process::FreeList free;
  };
  // Null if there is no such segment here. Throws the server's error.
  std::shared_ptr<Segment> Create(const wire::CreateSegment& call);
  std::optional<Block> TakeFromParts(size_t rounded, size_t bytes);
  std::optional<Block> TakeFrom(uint64_t number, Part& part, size_t bytes);
  bool AddPart(size_t bytes);

  std::shared_ptr<Connection> connection_;
  std::atomic<bool> usable_;
  std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<uint64_t, Part> parts_;
  uint64_t results_number_ = 0;
  std::shared_ptr<Segment> results_;  // as it is from ShareResults on
};

}  // namespace remote
