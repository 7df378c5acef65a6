// The arithmetic of attention on blocks of f32 that fit into the caches, for vectors of 256 and of
// 512 bits.
#pragma once

#include <cstdint>

namespace cpu {

// C[m,n] = or += A[m,k] B[k,n], with n a multiple of the lanes. B's and C's rows are contiguous; of
// A's strides one is 1.
struct TileProduct {
  int64_t m, n, k;
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  bool accumulate;
};

// A block of scores [rows, columns], whose lines are `stride` apart and have room for a multiple of
// the lanes.
struct ScoreBlock {
  int64_t rows, columns, stride;
  float* scores;
  double scale;
  const float* mask;  // added to the scaled scores; null: nothing
  int64_t mask_stride;
  // Row r takes part in columns [0, limit + r); those behind have no weight.
  int64_t limit;
};

struct AttentionTiles {
  int64_t lanes;
  void (*multiply)(const TileProduct& product);
  // to[j * to_stride + i] = from[i * from_stride + j], and zeros for i in [rows, padded_rows).
  void (*transpose)(int64_t rows, int64_t columns, int64_t padded_rows, const float* from,
                    int64_t from_stride, float* to, int64_t to_stride);
  // Scores become exp(score - maximum), where a row's maximum and its sum of them include those of
  // the blocks before; what was summed up before has to be multiplied by the row's factor. True if
  // one is not 1.
  bool (*exponentiate)(const ScoreBlock& block, float* maxima, float* sums, float* factors);
  // Scores become weights, exp(score - log_sum) * factor, and the weights' gradients those of the
  // scores: weight * (gradient - drop) * scale.
  void (*differentiate)(const ScoreBlock& block, const float* log_sums, const float* factors,
                        const float* drops, float* gradients);
  // Each row times its number.
  void (*scale_rows)(int64_t rows, int64_t columns, float* x, int64_t stride, const float* numbers);
  // The sums of the rows of x * y.
  void (*row_dots)(int64_t rows, int64_t columns, const float* x, int64_t x_stride, const float* y,
                   int64_t y_stride, float* sums);
};

// Null where the processor has no vectors of 256 bits with FMA, or TORCH_XLA_CPU_ISA forbids them.
const AttentionTiles* FindAttentionTiles();

}  // namespace cpu
