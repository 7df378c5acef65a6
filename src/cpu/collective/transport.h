// Moves the bytes of collectives between the ranks of a world. Used by one thread at a time, in the
// same order on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/collective/collective.h"
#include "cpu/collective/flat_array.h"
#include "hlo/element_type.h"

namespace cpu {

// One collective as a rank carries it out.
struct Exchange {
  const Collective& collective;
  uint64_t signature = 0;        // compared between the ranks
  std::string description;       // for the others' messages: the collective and the user's line
  std::vector<int64_t> members;  // the ranks that take part
  size_t me = 0;                 // this rank's place among them
};

// All functions return when the results are there and the operands are free, and throw hlo::Error
// naming the rank at fault. `parts[i]` is for, or from, member i; sizes are equal on all members.
class Transport {
 public:
  virtual ~Transport() = default;
  // `in` and `out` may be the same memory.
  virtual void AllReduce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                         const FlatArray& out) = 0;
  virtual void ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                             const std::vector<FlatArray>& parts, const FlatArray& out) = 0;
  virtual void AllGather(const Exchange& exchange, const FlatArray& in,
                         const std::vector<FlatArray>& parts) = 0;
  virtual void AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                        const std::vector<FlatArray>& out) = 0;
  // From member 0 to all; only member 0's `in` is read.
  virtual void Broadcast(const Exchange& exchange, const FlatArray& in, const FlatArray& out) = 0;
  // Sends to member `target` and receives from member `source`; -1: nobody. Sending does not wait
  // for the receiver, unless it is far behind.
  virtual void Permute(const Exchange& exchange, const FlatArray& in, const FlatArray& out,
                       int64_t target, int64_t source) = 0;
  // Tells the other ranks, as far as they can be reached, that this one gives up.
  virtual void Fail(const std::string& reason) noexcept = 0;
};

}  // namespace cpu
