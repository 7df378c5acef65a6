// Scaled dot-product attention without the matrix of scores: block after block of the keys passes
// by, and what a query has summed up so far is scaled again when its largest score grows (Dao et
// al., FlashAttention). The gradients compute the scores anew from their logarithmic sums.
#pragma once

#include <cstdint>
#include <optional>

#include "cpu/thread_pool.h"
#include "hlo/element_type.h"

namespace cpu {

// How an operand or result [batch, heads, rows, columns] lies in memory: strides in elements.
// Columns are contiguous, or, of a mask, one number serves all.
struct AttentionArray {
  hlo::ElementType type = hlo::ElementType::kF32;
  int64_t batch = 0, head = 0, row = 0, column = 1;
};

struct AttentionProblem {
  int64_t batch, heads, key_heads;  // heads / key_heads of the queries' share one of the keys'
  int64_t queries, keys, width, value_width;
  double scale;
  bool is_causal;  // a query sees keys up to its own position
  AttentionArray query, key, value, result;
  AttentionArray log_sum;  // [batch, heads, rows]: f32
  std::optional<AttentionArray> mask;
};

struct AttentionOperands {
  const void *query, *key, *value, *mask;
};

// `num_threads`: for how many the work is cut.
//
// Needs FindAttentionTiles(). Sizes are not 0. A query that sees no key has the result 0 and the
// sum minus infinity.
void AttentionForward(ThreadPool& threads, int num_threads, const AttentionProblem& problem,
                      const AttentionOperands& operands, void* result, float* log_sum);

struct AttentionGradients {
  AttentionArray result;  // how the result's gradient lies
  AttentionArray query, key, value;
};

// Bytes of scratch that AttentionBackward needs.
int64_t AttentionBackwardScratch(int num_threads, const AttentionProblem& problem,
                                 const AttentionGradients& gradients);

void AttentionBackward(ThreadPool& threads, int num_threads, const AttentionProblem& problem,
                       const AttentionGradients& gradients, const AttentionOperands& operands,
                       const void* result, const float* log_sum, const void* of_result,
                       void* of_query, void* of_key, void* of_value, void* scratch);

}  // namespace cpu
