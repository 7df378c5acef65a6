// Collectives: operations in which several processes ("ranks") of one world exchange arrays.
//
// How it works
//
// A world is made once per process by ConnectWorld (world.h), over a key-value store that all ranks
// share. Each rank then runs the same collectives in the same order; one that is started is put
// into a queue, and a communication thread works it off in order, while the program goes on
// computing until it waits for the result.
//
// Between processes of one host data goes through shared memory (shared_memory_transport.h),
// between hosts over TCP (network_transport.h). Both add in the order of the ranks, and every
// element is computed once and copied, so that all ranks, and both transports, get the same bits.
//
// What can go wrong is an hlo::Error on every rank, and never a hang:
//   - ranks that diverge (another operation, type, number of elements, or group) compare a
//   signature
//     with every message: kFailedPrecondition naming the rank and both collectives;
//   - a rank that has died or closed its client: kUnavailable, within a second;
//   - a rank that does not arrive within the timeout: kDeadlineExceeded naming it and what it did
//     last.
// After the first error the world is broken: what follows fails at once with the same reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/shape.h"

namespace cpu {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kBroadcast,
  kBarrier,
};

// How all_reduce and reduce_scatter combine. For pred: sum and max are "or", product and min "and".
// f16 and bf16 are summed in f32 and rounded once.
enum class Reduction : uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

// What a collective does; the same on every rank that takes part. Fields as in StableHLO.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  Reduction reduction = Reduction::kSum;
  std::vector<hlo::Shape> operands;                   // arrays; several are exchanged together
  int64_t dimension = 0;                              // all_gather_dim, scatter_dimension
  int64_t split_dimension = 0, concat_dimension = 0;  // all_to_all
  // Ranks that exchange with one another; empty: all of them. A rank in no group gets zeros from a
  // broadcast, and an error from the others.
  std::vector<std::vector<int64_t>> groups;
  // permute: (source, target); a rank that is no target gets zeros. One pair is a send and its
  // receive: only these two need to run it.
  std::vector<std::vector<int64_t>> pairs;
  // The user's line, for messages: "train.py:12"; may differ between ranks.
  std::string source;

  // "all_reduce(sum) of f32[4] over ranks 0, 1 (train.py:12)".
  std::string ToString() const;
  // Equal for collectives that fit together.
  uint64_t Signature() const;
};

// One rank's end of a world. Start, Wait and Run may be called from any thread; the collectives of
// all threads form one order, which must be the same on all ranks.
class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Queues the collective and returns at once. Until Wait has returned, the collective and the
  // operands must stay as they are, and the results are undefined. Results overlap no operands. In
  // an all_reduce result i may be operand i.
  virtual uint64_t Start(const Collective& collective, const void* const* operands,
                         void* const* results) = 0;
  // Returns when the started collective, and all before it, are done. Throws hlo::Error if it
  // failed; its memory is no longer used then.
  virtual void Wait(uint64_t ticket) = 0;
  // Start and Wait, without a change of threads when nothing else is queued.
  virtual void Run(const Collective& collective, const void* const* operands,
                   void* const* results) = 0;
};

}  // namespace cpu
