// What a rank knows of the others over the network, and they of it, whatever their programs do:
// a thread sends signs of life and takes in what comes, so that a rank that computes for minutes is
// told from one that is stopped, or cannot be reached.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/collective/link.h"

namespace cpu {

class PeerWatch {
 public:
  enum class State : uint32_t {
    kHere,
    kLeft,    // it has closed its client
    kFailed,  // it has given up, and says why
    kDied,    // its connection has ended
    kSilent,  // it has given no sign of life for the timeout
  };

  // `links` are for nothing else; by rank, empty at this rank's own place. Throws hlo::Error if the
  // system gives no thread.
  PeerWatch(std::vector<Link> links, std::chrono::milliseconds timeout);
  // What was announced is sent first, as far as others take it.
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;

  int64_t size() const;
  std::chrono::milliseconds timeout() const;
  State state(int64_t rank) const;
  std::string reason(int64_t rank) const;  // why it failed
  // Readable when a state has changed since ClearChanged.
  int changed_file() const;
  void ClearChanged();
  // After another connection with the rank has broken: waits a moment to be told why. One of which
  // none comes has died.
  void AwaitEnd(int64_t rank);
  // Tells all others, without waiting.
  void Announce(State state, const std::string& reason) noexcept;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
  int64_t process_;
};

}  // namespace cpu
