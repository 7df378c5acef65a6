#include "cpu/library/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/library/attention_tiles.h"
#include "cpu/library/onednn.h"
#include "cpu/library/strided_copy.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::CeilDivide;
using hlo::ElementType;
using hlo::RoundUp;

// Of queries and keys at a time: the block of scores and those of keys and values stay in the
// second cache, a tile's part of them in the first.
constexpr int64_t kQueryBlock = 64, kKeyBlock = 128;
// Of queries that pass by the same block of keys one after another.
constexpr int64_t kQueryPart = 1024;
// Fewer are not worth a copy of the keys.
constexpr int64_t kManyQueries = 4;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

const std::byte* At(const AttentionArray& array, const void* data, int64_t batch, int64_t head,
                    int64_t row) {
  const int64_t offset = batch * array.batch + head * array.head + row * array.row;
  return static_cast<const std::byte*>(data) + offset * hlo::ByteWidth(array.type);
}
std::byte* At(const AttentionArray& array, void* data, int64_t batch, int64_t head, int64_t row) {
  return const_cast<std::byte*>(At(array, static_cast<const void*>(data), batch, head, row));
}

// A thread's memory, given out piece by piece.
class ScratchPieces {
 public:
  explicit ScratchPieces(int64_t floats)
      : next_(static_cast<float*>(ThreadScratch(floats * sizeof(float)))) {}
  float* Take(int64_t floats) {
    float* piece = next_;
    next_ += RoundUp(floats, kAlignment);
    return piece;
  }
  static int64_t Sum(std::initializer_list<int64_t> pieces) {
    int64_t sum = 0;
    for (const int64_t floats : pieces) sum += RoundUp(floats, kAlignment);
    return sum;
  }

 private:
  static constexpr int64_t kAlignment = 16;  // floats
  float* next_;
};

struct Block {
  const float* data;
  int64_t stride;
};

// Rows as they lie if they are f32, otherwise a copy.
Block ReadRows(const AttentionArray& array, const std::byte* data, int64_t rows, int64_t columns,
               float* copy) {
  if (array.type == ElementType::kF32) return {reinterpret_cast<const float*>(data), array.row};
  const int64_t step = array.row * static_cast<int64_t>(hlo::ByteWidth(array.type));
  for (int64_t r = 0; r < rows; ++r) {
    ConvertRow(data + r * step, array.type, copy + r * columns, ElementType::kF32, columns);
  }
  return {copy, columns};
}

// A copy with zeros behind each row's end and no gaps, where they do not lie so; gaps stay where
// `with_gaps`.
Block PadRows(const AttentionArray& array, const std::byte* data, int64_t rows, int64_t columns,
              int64_t padded, bool with_gaps, float* copy) {
  if (array.type == ElementType::kF32 && columns == padded && (with_gaps || array.row == padded)) {
    return {reinterpret_cast<const float*>(data), array.row};
  }
  const int64_t step = array.row * static_cast<int64_t>(hlo::ByteWidth(array.type));
  for (int64_t r = 0; r < rows; ++r) {
    float* row = copy + r * padded;
    ConvertRow(data + r * step, array.type, row, ElementType::kF32, columns);
    std::fill(row + columns, row + padded, 0.0F);
  }
  return {copy, padded};
}

void WriteRows(const AttentionArray& array, std::byte* data, int64_t rows, int64_t columns,
               const float* values, int64_t stride) {
  const int64_t step = array.row * static_cast<int64_t>(hlo::ByteWidth(array.type));
  for (int64_t r = 0; r < rows; ++r) {
    ConvertRow(values + r * stride, ElementType::kF32, data + r * step, array.type, columns);
  }
}

// The parts of both passes that concern one block of scores.
class Scores {
 public:
  Scores(const AttentionTiles& tiles, const AttentionProblem& problem, const void* mask)
      : tiles_(tiles), p_(problem), mask_(mask) {}

  int64_t padded_width() const { return RoundUp(p_.width, tiles_.lanes); }
  int64_t padded_value_width() const { return RoundUp(p_.value_width, tiles_.lanes); }
  // The queries before a block's end see no key of the block that starts there, if causal.
  bool Sees(int64_t last_query, int64_t first_key) const {
    return !p_.is_causal || last_query >= first_key;
  }

  // The block of which `scores` are the products, and all that turns them into weights. `copy` is
  // for the mask.
  ScoreBlock MakeBlock(int64_t batch, int64_t head, int64_t first_query, int64_t queries,
                       int64_t first_key, int64_t keys, float* scores, float* copy) const {
    ScoreBlock block{.rows = queries,
                     .columns = keys,
                     .stride = kKeyBlock,
                     .scores = scores,
                     .scale = p_.scale,
                     .mask = nullptr,
                     .mask_stride = 0,
                     .limit = p_.is_causal ? first_query - first_key + 1 : keys};
    if (p_.mask) {
      const Block mask = ReadMask(batch, head, first_query, queries, first_key, keys, copy);
      block.mask = mask.data;
      block.mask_stride = mask.stride;
    }
    return block;
  }

  // [queries, keys] = rows of `width` numbers times such rows of the keys, which lie across.
  void Multiply(int64_t queries, int64_t keys, int64_t width, const Block& rows,
                const float* across, float* products) const {
    tiles_.multiply({.m = queries,
                     .n = RoundUp(keys, tiles_.lanes),
                     .k = width,
                     .a = rows.data,
                     .a_row = rows.stride,
                     .a_column = 1,
                     .b = across,
                     .ldb = kKeyBlock,
                     .c = products,
                     .ldc = kKeyBlock,
                     .accumulate = false});
  }

  // The same for rows of keys as they lie.
  void MultiplyFew(int64_t queries, int64_t keys, const Block& query, const Block& key,
                   float* products) const {
    for (int64_t q = 0; q < queries; ++q) {
      tiles_.row_dots(keys, p_.width, key.data, key.stride, query.data + q * query.stride, 0,
                      products + q * kKeyBlock);
    }
  }

  // Rows of the keys or values across: [width, kKeyBlock].
  void LayAcross(const Block& rows, int64_t keys, int64_t width, float* across) const {
    tiles_.transpose(keys, width, RoundUp(keys, tiles_.lanes), rows.data, rows.stride, across,
                     kKeyBlock);
  }

 private:
  Block ReadMask(int64_t batch, int64_t head, int64_t first_query, int64_t queries,
                 int64_t first_key, int64_t keys, float* copy) const {
    const AttentionArray& mask = *p_.mask;
    const auto width = static_cast<int64_t>(hlo::ByteWidth(mask.type));
    const std::byte* data =
        At(mask, mask_, batch, head, first_query) + first_key * mask.column * width;
    if (mask.type == ElementType::kF32 && mask.column == 1) {
      return {reinterpret_cast<const float*>(data), mask.row};
    }
    const int64_t rows = mask.row == 0 ? 1 : queries;
    for (int64_t r = 0; r < rows; ++r) {
      float* row = copy + r * kKeyBlock;
      ConvertRow(data + r * mask.row * width, mask.type, row, ElementType::kF32,
                 mask.column == 0 ? 1 : keys);
      if (mask.column == 0) std::fill(row + 1, row + keys, row[0]);
    }
    return {copy, mask.row == 0 ? 0 : kKeyBlock};
  }

  const AttentionTiles& tiles_;
  const AttentionProblem& p_;
  const void* mask_;
};

// --- Forward

class ForwardPass {
 public:
  ForwardPass(int num_threads, const AttentionProblem& problem, const AttentionOperands& operands,
              void* result, float* log_sum)
      : p_(problem),
        operands_(operands),
        result_(result),
        log_sum_(log_sum),
        tiles_(*FindAttentionTiles()),
        scores_(tiles_, p_, operands.mask),
        parts_(CountParts(num_threads)),
        part_rows_(CeilDivide(problem.queries, parts_)) {}

  int64_t tasks() const { return p_.batch * p_.heads * parts_; }

  void Run(int64_t task) const {
    // The last part first: where a query sees the keys up to its own, it has the most work.
    const int64_t part = parts_ - 1 - task / (p_.batch * p_.heads);
    const int64_t index = task % (p_.batch * p_.heads);
    const int64_t first = part * part_rows_;
    Attend(index / p_.heads, index % p_.heads, first, std::min(part_rows_, p_.queries - first));
  }

 private:
  int64_t CountParts(int num_threads) const {
    const int64_t wanted = CeilDivide(4 * num_threads, p_.batch * p_.heads);
    const int64_t most = CeilDivide(p_.queries, kQueryBlock);
    const int64_t least = CeilDivide(p_.queries, kQueryPart);
    return num_threads == 1 ? least : std::clamp(wanted, least, std::max(least, most));
  }

  void Attend(int64_t batch, int64_t head, int64_t first_query, int64_t queries) const {
    if (queries <= 0) return;
    const int64_t padded = scores_.padded_value_width(),
                  key_head = head / (p_.heads / p_.key_heads);
    ScratchPieces pieces(ScratchPieces::Sum({p_.width * kKeyBlock, kKeyBlock * p_.width,
                                             kKeyBlock * padded, kQueryBlock * p_.width,
                                             kQueryBlock * kKeyBlock, kQueryBlock * kKeyBlock,
                                             queries * padded, queries, queries, kQueryBlock}));
    float* across = pieces.Take(p_.width * kKeyBlock);
    float* key_copy = pieces.Take(kKeyBlock * p_.width);
    float* value_copy = pieces.Take(kKeyBlock * padded);
    float* query_copy = pieces.Take(kQueryBlock * p_.width);
    float* scores = pieces.Take(kQueryBlock * kKeyBlock);
    float* mask_copy = pieces.Take(kQueryBlock * kKeyBlock);
    float* sums_of_values = pieces.Take(queries * padded);
    float* maxima = pieces.Take(queries);
    float* sums = pieces.Take(queries);
    float* factors = pieces.Take(kQueryBlock);
    std::fill_n(maxima, queries, kMinusInfinity);
    std::fill_n(sums, queries, 0.0F);
    const bool few = queries < kManyQueries;
    for (int64_t key = 0; key < p_.keys && scores_.Sees(first_query + queries - 1, key);
         key += kKeyBlock) {
      const int64_t keys = std::min(kKeyBlock, p_.keys - key);
      const Block key_rows = ReadRows(p_.key, At(p_.key, operands_.key, batch, key_head, key), keys,
                                      p_.width, key_copy);
      if (!few) scores_.LayAcross(key_rows, keys, p_.width, across);
      const Block values = PadRows(p_.value, At(p_.value, operands_.value, batch, key_head, key),
                                   keys, p_.value_width, padded, few, value_copy);
      for (int64_t q = 0; q < queries; q += kQueryBlock) {
        const int64_t count = std::min(kQueryBlock, queries - q);
        const int64_t at = first_query + q;
        if (!scores_.Sees(at + count - 1, key)) continue;
        const Block query = ReadRows(p_.query, At(p_.query, operands_.query, batch, head, at),
                                     count, p_.width, query_copy);
        if (few) {
          scores_.MultiplyFew(count, keys, query, key_rows, scores);
        } else {
          scores_.Multiply(count, keys, p_.width, query, across, scores);
        }
        const ScoreBlock block =
            scores_.MakeBlock(batch, head, at, count, key, keys, scores, mask_copy);
        float* out = sums_of_values + q * padded;
        if (tiles_.exponentiate(block, maxima + q, sums + q, factors) && key > 0) {
          tiles_.scale_rows(count, padded, out, padded, factors);
        }
        tiles_.multiply({.m = count,
                         .n = padded,
                         .k = keys,
                         .a = scores,
                         .a_row = kKeyBlock,
                         .a_column = 1,
                         .b = values.data,
                         .ldb = values.stride,
                         .c = out,
                         .ldc = padded,
                         .accumulate = key > 0});
      }
    }
    Finish(batch, head, first_query, queries, sums_of_values, padded, maxima, sums);
  }

  void Finish(int64_t batch, int64_t head, int64_t first_query, int64_t queries, float* values,
              int64_t stride, const float* maxima, float* sums) const {
    for (int64_t q = 0; q < queries; ++q) {
      log_sum_[batch * p_.log_sum.batch + head * p_.log_sum.head +
               (first_query + q) * p_.log_sum.row] =
          maxima[q] + std::log(sums[q]);  // minus infinity where all is masked
      sums[q] = sums[q] == 0 ? 0 : 1 / sums[q];
    }
    tiles_.scale_rows(queries, stride, values, stride, sums);
    WriteRows(p_.result, At(p_.result, result_, batch, head, first_query), queries, p_.value_width,
              values, stride);
  }

  const AttentionProblem& p_;
  const AttentionOperands& operands_;
  void* const result_;
  float* const log_sum_;
  const AttentionTiles& tiles_;
  const Scores scores_;
  const int64_t parts_, part_rows_;
};

// --- Backward

// How the work is cut: each piece has some of the keys of one head of theirs, and a copy of the
// queries' gradients if there are several.
struct BackwardPlan {
  int64_t parts, part_keys;
  int64_t padded_width;
  bool in_place;  // the queries' gradients are summed up where they belong

  BackwardPlan(int num_threads, int64_t lanes, const AttentionProblem& p,
               const AttentionGradients& gradients)
      : padded_width(RoundUp(p.width, lanes)) {
    const int64_t blocks = CeilDivide(p.keys, kKeyBlock);
    const int64_t wanted =
        num_threads == 1 ? 1 : CeilDivide(2 * num_threads, p.batch * p.key_heads);
    part_keys = CeilDivide(blocks, std::min(wanted, blocks)) * kKeyBlock;
    parts = CeilDivide(p.keys, part_keys);
    in_place = parts == 1 && gradients.query.type == ElementType::kF32 && p.width == padded_width;
  }

  int64_t rows(const AttentionProblem& p) const { return p.batch * p.heads * p.queries; }
  int64_t scratch_floats(const AttentionProblem& p) const {
    return in_place ? 0 : parts * rows(p) * padded_width;
  }
};

class BackwardPass {
 public:
  BackwardPass(int num_threads, const AttentionProblem& problem,
               const AttentionGradients& gradients, const AttentionOperands& operands,
               const void* result, const float* log_sum, const void* of_result, void* of_query,
               void* of_key, void* of_value, void* scratch)
      : p_(problem),
        g_(gradients),
        operands_(operands),
        result_(result),
        log_sum_(log_sum),
        of_result_(of_result),
        of_query_(of_query),
        of_key_(of_key),
        of_value_(of_value),
        of_queries_(static_cast<float*>(scratch)),
        tiles_(*FindAttentionTiles()),
        scores_(tiles_, p_, operands.mask),
        plan_(num_threads, tiles_.lanes, problem, gradients) {}

  int64_t tasks() const { return p_.batch * p_.key_heads * plan_.parts; }

  void Run(int64_t task) const {
    const int64_t part = task / (p_.batch * p_.key_heads), index = task % (p_.batch * p_.key_heads);
    Piece piece(*this, index / p_.key_heads, index % p_.key_heads, part);
    piece.Run();
  }

  int64_t sums() const { return plan_.in_place ? 0 : p_.batch * p_.heads; }

  // Adds up the parts of a head's gradients of queries, always in the same order.
  void AddParts(int64_t index) const {
    const int64_t size = p_.queries * plan_.padded_width;
    float* sum = of_queries_ + index * size;
    for (int64_t part = 1; part < plan_.parts; ++part) {
      const float* added = sum + part * p_.batch * p_.heads * size;
      for (int64_t i = 0; i < size; ++i) sum[i] += added[i];
    }
    WriteRows(g_.query, At(g_.query, of_query_, index / p_.heads, index % p_.heads, 0), p_.queries,
              p_.width, sum, plan_.padded_width);
  }

 private:
  class Piece {
   public:
    Piece(const BackwardPass& pass, int64_t batch, int64_t key_head, int64_t part)
        : pass_(pass),
          p_(pass.p_),
          tiles_(pass.tiles_),
          batch_(batch),
          key_head_(key_head),
          part_(part),
          group_(p_.heads / p_.key_heads),
          padded_(pass.plan_.padded_width),
          padded_value_(pass.scores_.padded_value_width()),
          pieces_(ScratchPieces::Sum(
              {p_.width * kKeyBlock, p_.value_width * kKeyBlock, kKeyBlock * padded_,
               kKeyBlock * std::max(padded_, padded_value_), kKeyBlock * padded_,
               kKeyBlock * padded_value_, kQueryBlock * padded_, kQueryBlock * padded_value_,
               kQueryBlock * kKeyBlock, kQueryBlock * kKeyBlock, kQueryBlock * kKeyBlock,
               group_ * p_.queries, group_ * p_.queries, group_ * p_.queries})),
          keys_across_(pieces_.Take(p_.width * kKeyBlock)),
          values_across_(pieces_.Take(p_.value_width * kKeyBlock)),
          key_copy_(pieces_.Take(kKeyBlock * padded_)),
          rows_(pieces_.Take(kKeyBlock * std::max(padded_, padded_value_))),
          of_key_(pieces_.Take(kKeyBlock * padded_)),
          of_value_(pieces_.Take(kKeyBlock * padded_value_)),
          query_copy_(pieces_.Take(kQueryBlock * padded_)),
          of_result_copy_(pieces_.Take(kQueryBlock * padded_value_)),
          weights_(pieces_.Take(kQueryBlock * kKeyBlock)),
          of_scores_(pieces_.Take(kQueryBlock * kKeyBlock)),
          mask_copy_(pieces_.Take(kQueryBlock * kKeyBlock)),
          log_sums_(pieces_.Take(group_ * p_.queries)),
          factors_(pieces_.Take(group_ * p_.queries)),
          drops_(pieces_.Take(group_ * p_.queries)) {}

    void Run() {
      for (int64_t i = 0; i < group_; ++i) {
        Clear(i);
        Summarize(i);
      }
      const int64_t first = part_ * pass_.plan_.part_keys;
      const int64_t last = std::min(first + pass_.plan_.part_keys, p_.keys);
      for (int64_t key = first; key < last; key += kKeyBlock) {
        RunKeys(key, std::min(kKeyBlock, last - key));
      }
    }

   private:
    int64_t Head(int64_t i) const { return key_head_ * group_ + i; }

    // Where the gradients of a head's queries are summed up.
    struct Sums {
      float* data;
      int64_t stride;
    };
    Sums OfQuery(int64_t i, int64_t query) const {
      if (pass_.plan_.in_place) {
        std::byte* data = At(pass_.g_.query, pass_.of_query_, batch_, Head(i), query);
        return {reinterpret_cast<float*>(data), pass_.g_.query.row};
      }
      const int64_t row =
          part_ * pass_.plan_.rows(p_) + (batch_ * p_.heads + Head(i)) * p_.queries + query;
      return {pass_.of_queries_ + row * padded_, padded_};
    }

    void Clear(int64_t i) const {
      const Sums sums = OfQuery(i, 0);
      for (int64_t q = 0; q < p_.queries; ++q) {
        std::fill_n(sums.data + q * sums.stride, padded_, 0.0F);
      }
    }

    // The rows' logarithmic sums, and the sums of the result times its gradient.
    void Summarize(int64_t i) {
      // Beside a largest score of this size the logarithm of a sum of some is nothing.
      constexpr float kLarge = 1e5F;
      const AttentionArray& array = p_.log_sum;
      for (int64_t q = 0; q < p_.queries; ++q) {
        const float log_sum =
            pass_.log_sum_[batch_ * array.batch + Head(i) * array.head + q * array.row];
        log_sums_[i * p_.queries + q] = log_sum;
        factors_[i * p_.queries + q] = 1;
        if (std::abs(log_sum) > kLarge && std::isfinite(log_sum)) SumAgain(i, q);
      }
      for (int64_t q = 0; q < p_.queries; q += kQueryBlock) {
        const int64_t count = std::min(kQueryBlock, p_.queries - q);
        const Block of_result =
            ReadRows(pass_.g_.result, At(pass_.g_.result, pass_.of_result_, batch_, Head(i), q),
                     count, p_.value_width, of_result_copy_);
        const Block result = ReadRows(p_.result, At(p_.result, pass_.result_, batch_, Head(i), q),
                                      count, p_.value_width, rows_);
        tiles_.row_dots(count, p_.value_width, of_result.data, of_result.stride, result.data,
                        result.stride, drops_ + i * p_.queries + q);
      }
    }

    // A row's largest score instead of its logarithmic sum, and what the exponentials of the others
    // less it are to be multiplied by.
    void SumAgain(int64_t i, int64_t q) {
      float largest = kMinusInfinity, sum = 0, factor;
      for (int64_t key = 0; key < p_.keys && pass_.scores_.Sees(q, key); key += kKeyBlock) {
        const int64_t keys = std::min(kKeyBlock, p_.keys - key);
        const Block query =
            ReadRows(p_.query, At(p_.query, pass_.operands_.query, batch_, Head(i), q), 1, p_.width,
                     query_copy_);
        const Block rows = ReadRows(p_.key, At(p_.key, pass_.operands_.key, batch_, key_head_, key),
                                    keys, p_.width, key_copy_);
        pass_.scores_.MultiplyFew(1, keys, query, rows, weights_);
        const ScoreBlock block =
            pass_.scores_.MakeBlock(batch_, Head(i), q, 1, key, keys, weights_, mask_copy_);
        tiles_.exponentiate(block, &largest, &sum, &factor);
      }
      log_sums_[i * p_.queries + q] = largest;
      factors_[i * p_.queries + q] = 1 / sum;
    }

    void RunKeys(int64_t key, int64_t keys) {
      const std::byte* key_rows = At(p_.key, pass_.operands_.key, batch_, key_head_, key);
      key_ = PadRows(p_.key, key_rows, keys, p_.width, padded_, false, key_copy_);
      pass_.scores_.LayAcross(key_, keys, p_.width, keys_across_);
      const Block value =
          ReadRows(p_.value, At(p_.value, pass_.operands_.value, batch_, key_head_, key), keys,
                   p_.value_width, rows_);
      pass_.scores_.LayAcross(value, keys, p_.value_width, values_across_);
      std::fill_n(of_key_, keys * padded_, 0.0F);
      std::fill_n(of_value_, keys * padded_value_, 0.0F);
      for (int64_t i = 0; i < group_; ++i) {
        for (int64_t q = 0; q < p_.queries; q += kQueryBlock) {
          const int64_t count = std::min(kQueryBlock, p_.queries - q);
          if (pass_.scores_.Sees(q + count - 1, key)) RunBlock(i, q, count, key, keys);
        }
      }
      WriteRows(pass_.g_.key, At(pass_.g_.key, pass_.of_key_, batch_, key_head_, key), keys,
                p_.width, of_key_, padded_);
      WriteRows(pass_.g_.value, At(pass_.g_.value, pass_.of_value_, batch_, key_head_, key), keys,
                p_.value_width, of_value_, padded_value_);
    }

    void RunBlock(int64_t i, int64_t q, int64_t queries, int64_t key, int64_t keys) {
      const int64_t head = Head(i);
      const Block query = PadRows(p_.query, At(p_.query, pass_.operands_.query, batch_, head, q),
                                  queries, p_.width, padded_, false, query_copy_);
      const Block of_result =
          PadRows(pass_.g_.result, At(pass_.g_.result, pass_.of_result_, batch_, head, q), queries,
                  p_.value_width, padded_value_, false, of_result_copy_);
      pass_.scores_.Multiply(queries, keys, p_.width, query, keys_across_, weights_);
      const ScoreBlock block =
          pass_.scores_.MakeBlock(batch_, head, q, queries, key, keys, weights_, mask_copy_);
      pass_.scores_.Multiply(queries, keys, p_.value_width, of_result, values_across_, of_scores_);
      const int64_t row = i * p_.queries + q;
      tiles_.differentiate(block, log_sums_ + row, factors_ + row, drops_ + row, of_scores_);
      AddProduct(keys, queries, weights_, 1, kKeyBlock, of_result, padded_value_, of_value_,
                 padded_value_);
      AddProduct(keys, queries, of_scores_, 1, kKeyBlock, query, padded_, of_key_, padded_);
      const Sums of_query = OfQuery(i, q);
      AddProduct(queries, keys, of_scores_, kKeyBlock, 1, key_, padded_, of_query.data,
                 of_query.stride);
    }

    void AddProduct(int64_t m, int64_t k, const float* a, int64_t a_row, int64_t a_column,
                    const Block& b, int64_t n, float* c, int64_t ldc) const {
      tiles_.multiply({.m = m,
                       .n = n,
                       .k = k,
                       .a = a,
                       .a_row = a_row,
                       .a_column = a_column,
                       .b = b.data,
                       .ldb = b.stride,
                       .c = c,
                       .ldc = ldc,
                       .accumulate = true});
    }

    const BackwardPass& pass_;
    const AttentionProblem& p_;
    const AttentionTiles& tiles_;
    const int64_t batch_, key_head_, part_, group_, padded_, padded_value_;
    ScratchPieces pieces_;
    float *const keys_across_, *const values_across_, *const key_copy_, *const rows_;
    float *const of_key_, *const of_value_, *const query_copy_, *const of_result_copy_;
    float *const weights_, *const of_scores_, *const mask_copy_, *const log_sums_, *const factors_;
    float* const drops_;
    Block key_{};
  };

  const AttentionProblem& p_;
  const AttentionGradients& g_;
  const AttentionOperands& operands_;
  const void* const result_;
  const float* const log_sum_;
  const void* const of_result_;
  void *const of_query_, *const of_key_, *const of_value_;
  float* const of_queries_;
  const AttentionTiles& tiles_;
  const Scores scores_;
  const BackwardPlan plan_;
};

}  // namespace

void AttentionForward(ThreadPool& threads, int num_threads, const AttentionProblem& problem,
                      const AttentionOperands& operands, void* result, float* log_sum) {
  const ForwardPass pass(num_threads, problem, operands, result, log_sum);
  threads.ParallelFor(pass.tasks(), [&](int64_t task) { pass.Run(task); });
}

int64_t AttentionBackwardScratch(int num_threads, const AttentionProblem& problem,
                                 const AttentionGradients& gradients) {
  const BackwardPlan plan(num_threads, FindAttentionTiles()->lanes, problem, gradients);
  return plan.scratch_floats(problem) * static_cast<int64_t>(sizeof(float));
}

void AttentionBackward(ThreadPool& threads, int num_threads, const AttentionProblem& problem,
                       const AttentionGradients& gradients, const AttentionOperands& operands,
                       const void* result, const float* log_sum, const void* of_result,
                       void* of_query, void* of_key, void* of_value, void* scratch) {
  const BackwardPass pass(num_threads, problem, gradients, operands, result, log_sum, of_result,
                          of_query, of_key, of_value, scratch);
  threads.ParallelFor(pass.tasks(), [&](int64_t task) { pass.Run(task); });
  threads.ParallelFor(pass.sums(), [&](int64_t index) { pass.AddParts(index); });
}

}  // namespace cpu
