// A collective: an operation in which several processes ("ranks") exchange arrays (communicator.h).
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
  // all_gather, reduce_scatter, all_to_all: the ranks of a group as the results' shapes have it, an
  // error where it has others; 0: the results have room for those there are.
  int64_t group_size = 0;
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

}  // namespace cpu
