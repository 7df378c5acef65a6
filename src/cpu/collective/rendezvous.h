// How the ranks of a world find each other: each puts what the others need to know into the store
// that they share, and waits for what they put.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cpu/collective/communicator.h"
#include "cpu/collective/key_value_store.h"

namespace cpu {

class Rendezvous {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Rendezvous(const CommunicatorOptions& options, const KeyValueStore& store);

  const CommunicatorOptions& options() const { return options_; }
  Deadline deadline() const { return deadline_; }

  // Under this rank's name.
  void Put(const std::string& what, const std::string& value) const;
  // Waits. Throws hlo::Error(kDeadlineExceeded) naming the ranks that put nothing.
  std::string Get(const std::string& what, int64_t rank) const;
  std::vector<std::string> GetFromAll(const std::string& what) const;

  // `more` is what else is known of them.
  [[noreturn]] void ThrowMissing(const std::vector<int64_t>& ranks,
                                 const std::string& more = "") const;

 private:
  const CommunicatorOptions& options_;
  const KeyValueStore& store_;
  Deadline start_, deadline_;
};

}  // namespace cpu
