// Some elements of sorted lines: the custom calls TopK and mhlo.topk (the k largest, or smallest,
// of the last dimension, with their indices), and slices of sorts (cpu/passes/top_k.cc).
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu/library/bind.h"
#include "cpu/library/select_places.h"
#include "cpu/library/short_lines.h"
#include "cpu/library/sort.h"
#include "cpu/library/sort_key.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

// What a result holds of the sorted lines.
struct Excerpt {
  static constexpr int64_t kPositions = -1;

  int64_t operand;  // the sorted one, one that is sorted with it, or where elements came from
  ElementType type;
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};

class TopKCall : public LibraryCall {
 public:
  // `keys`: the number of the operand that is sorted by; `shape`: its shape.
  TopKCall(hlo::Shape shape, int64_t dimension, const SortOrder& order, int64_t keys,
           std::vector<Excerpt> excerpts)
      : shape_(std::move(shape)), order_(order), keys_(keys), excerpts_(std::move(excerpts)) {
    for (int64_t d = 0; d < shape_.rank(); ++d) {
      (d < dimension ? outer_ : d == dimension ? length_ : inner_) *= shape_.dimensions()[d];
    }
    key_width_ = static_cast<int64_t>(hlo::ByteWidth(shape_.element_type()));
    begin_ = length_;
    for (const Excerpt& excerpt : excerpts_) {
      begin_ = std::min(begin_, excerpt.begin);
      end_ = std::max(end_, excerpt.end);
    }
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (end_ <= begin_ || shape_.num_elements() == 0) return;
    if (TakesShortLines()) return RunShortLines(context, operands, results);
    const int64_t lines = LinesAtOnce(context.threads.num_threads()),
                  groups = hlo::CeilDivide(inner_, lines);
    context.threads.ParallelFor(outer_ * groups, [&](int64_t i) {
      const int64_t first = i % groups * lines;
      RunLines(i / groups, first, std::min(lines, inner_ - first), operands, results);
    });
  }
  std::string Description() const override {
    if (begin_ == 0) return "top " + std::to_string(end_);
    return "sorted places " + std::to_string(begin_) + " to " + std::to_string(end_);
  }

 private:
  // Lines that lie side by side are compared as they lie, where few elements are wanted of each.
  bool TakesRows() const {
    constexpr int64_t kFew = 16, kLeastLines = 8;
    return begin_ == 0 && end_ <= kFew && inner_ >= kLeastLines;
  }

  bool TakesShortLines() const { return AreShortLines(length_, outer_ * inner_); }

  void RunShortLines(const CallContext& context, const void* const* operands,
                     void* const* results) const {
    ForAllShortLines(context.threads, outer_, length_, inner_, [&](const ShortLines& lines) {
      ShortLineOrder order;
      FindOrder(order_, operands[keys_], lines, order);
      for (size_t r = 0; r < excerpts_.size(); ++r) {
        const Excerpt& excerpt = excerpts_[r];
        const SortedPlaces places = {excerpt.begin, excerpt.end};
        const auto width = static_cast<int64_t>(hlo::ByteWidth(excerpt.type));
        if (excerpt.operand == Excerpt::kPositions) {
          WritePositionsAt(places, lines, order, width, results[r]);
        } else {
          WriteElementsAt(places, lines, order, operands[excerpt.operand], width, results[r]);
        }
      }
    });
  }

  // Neighbouring lines read the same cache lines, but long ones fill the memory with their keys.
  int64_t LinesAtOnce(int64_t threads) const {
    constexpr int64_t kLeastOfRows = 32, kMostOfRows = 256, kMostLines = 16, kMostKeys = 1 << 20;
    if (TakesRows()) {
      return std::clamp(hlo::CeilDivide(outer_ * inner_, threads), kLeastOfRows, kMostOfRows);
    }
    return std::clamp<int64_t>(kMostKeys / length_, 1, kMostLines);
  }

  void RunLines(int64_t outer, int64_t first, int64_t lines, const void* const* operands,
                void* const* results) const {
    const int64_t wanted = end_ - begin_, start = outer * length_ * inner_ + first;
    std::vector<uint32_t> positions(wanted * lines);
    const auto* elements = static_cast<const std::byte*>(operands[keys_]);
    const SortLines taken = {elements + start * key_width_, length_, inner_, lines};
    if (TakesRows()) {
      SelectFirstOfLines(order_, taken, key_width_, positions);
    } else {
      SelectByKeys(taken, positions);
    }
    for (int64_t l = 0; l < lines; ++l) {
      const std::span<const uint32_t> of_line(positions.data() + l * wanted, wanted);
      for (size_t r = 0; r < excerpts_.size(); ++r) {
        Write(excerpts_[r], of_line, outer, first + l, operands, results[r]);
      }
    }
  }

  void SelectByKeys(const SortLines& lines, std::span<uint32_t> positions) const {
    std::vector<uint64_t> keys(length_ * lines.lines);
    MakeSortKeys(order_, lines, keys.data());
    const auto wanted = static_cast<size_t>(end_ - begin_);
    for (int64_t l = 0; l < lines.lines; ++l) {
      SelectPlaces({keys.data() + l * length_, static_cast<size_t>(length_)}, begin_,
                   positions.subspan(l * wanted, wanted));
    }
  }

  void Write(const Excerpt& excerpt, std::span<const uint32_t> positions, int64_t outer,
             int64_t inner, const void* const* operands, void* result) const {
    const auto width = static_cast<int64_t>(hlo::ByteWidth(excerpt.type));
    auto* to = static_cast<std::byte*>(result) + (outer * excerpt.count() * inner_ + inner) * width;
    for (int64_t i = excerpt.begin; i < excerpt.end; ++i, to += inner_ * width) {
      const uint32_t position = positions[i - begin_];
      if (excerpt.operand != Excerpt::kPositions) {
        const auto* from = static_cast<const std::byte*>(operands[excerpt.operand]);
        std::memcpy(to, from + ((outer * length_ + position) * inner_ + inner) * width, width);
      } else if (width == 4) {
        *reinterpret_cast<uint32_t*>(to) = position;
      } else {
        *reinterpret_cast<uint64_t*>(to) = position;
      }
    }
  }

  hlo::Shape shape_;
  SortOrder order_;
  int64_t keys_;
  std::vector<Excerpt> excerpts_;
  int64_t outer_ = 1, length_ = 1, inner_ = 1;
  int64_t key_width_ = 0;
  int64_t begin_ = 0, end_ = 0;  // the sorted places that all excerpts together span
};

// Whether the results are what is written: a program that comes from elsewhere may say anything.
bool AreFirstOf(const hlo::Shape& shape, const hlo::Shape& values, const hlo::Shape& indices) {
  if (shape.rank() == 0 || values.rank() != shape.rank() ||
      values.element_type() != shape.element_type() ||
      indices.element_type() != ElementType::kS32 || indices.dimensions() != values.dimensions()) {
    return false;
  }
  hlo::Dimensions whole = values.dimensions();
  whole.back() = shape.dimensions().back();
  return whole == shape.dimensions() && values.dimensions().back() <= whole.back();
}

bool IsLargest(const hlo::CustomCallAttributes& call) {
  const auto found = call.dictionary.find("largest");
  if (found == call.dictionary.end()) return true;
  const bool* flag = std::get_if<bool>(&found->second.value);
  return flag == nullptr || *flag;
}

}  // namespace

std::unique_ptr<LibraryCall> BindTopK(const Instruction& call) {
  const auto& attributes = call.as<hlo::CustomCallAttributes>();
  if (attributes.target != "TopK" && attributes.target != "mhlo.topk") return nullptr;
  if (!call.shape().is_tuple() || call.shape().tuple_shapes().size() != 2 ||
      call.operand_count() == 0) {
    return nullptr;
  }
  const hlo::Shape& shape = call.operand(0)->shape();
  const hlo::Shape& values = call.shape().tuple_shapes()[0];
  const hlo::Shape& indices = call.shape().tuple_shapes()[1];
  SortOrder order;
  order.type = shape.element_type();
  order.descending = IsLargest(attributes);
  order.total_order = order.zeros_and_nans_equal = true;
  if (!AreFirstOf(shape, values, indices) || !HasSortKey(order.type)) return nullptr;
  const int64_t count = values.dimensions().back();
  return std::make_unique<TopKCall>(
      shape, shape.rank() - 1, order, 0,
      std::vector<Excerpt>{{0, order.type, 0, count},
                           {Excerpt::kPositions, ElementType::kS32, 0, count}});
}

std::unique_ptr<LibraryCall> BindSlicesOfSort(const Instruction& composite) {
  const Instruction* sort = nullptr;
  std::vector<Excerpt> excerpts;
  for (const Instruction* slice : composite.called_computations().at(0)->results()) {
    if (slice->opcode() != Opcode::kSlice) return nullptr;
    const Instruction* picked = slice->operand(0);
    sort = picked->opcode() == Opcode::kGetTupleElement ? picked->operand(0) : picked;
    if (sort->opcode() != Opcode::kSort) return nullptr;
    const Instruction* sorted = sort->operand(picked == sort ? 0 : picked->tuple_index());
    const int64_t dimension = sort->as<hlo::SortAttributes>().dimension;
    const auto& range = slice->as<hlo::SliceAttributes>();
    excerpts.push_back(
        {sorted->opcode() == Opcode::kIota ? Excerpt::kPositions : sorted->parameter_number(),
         slice->element_type(), range.start_indices[dimension], range.limit_indices[dimension]});
  }
  const auto order = RecognizeSortOrder(*sort->called_computations()[0]);
  if (!order) return nullptr;
  const Instruction* keys = sort->operand(order->operand);
  return std::make_unique<TopKCall>(keys->shape(), sort->as<hlo::SortAttributes>().dimension,
                                    *order, keys->parameter_number(), std::move(excerpts));
}

}  // namespace cpu
