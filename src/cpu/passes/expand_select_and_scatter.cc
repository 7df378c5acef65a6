#include "cpu/passes/engine_passes.h"
#include "cpu/passes/windows.h"

#include <iterator>
#include <utility>

#include "hlo/builder.h"
#include "hlo/size_arithmetic.h"
#include "passes/for_each_computation.h"
#include "passes/large_windows.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using Value = Instruction*;
using Values = std::vector<Instruction*>;

// Of two elements with their positions the one that wins, where the first stands before the second;
// `in_any_order` also where it does not.
hlo::Computation* Winner(Builder& b, hlo::Computation* select, ElementType type,
                         bool in_any_order) {
  const Shape scalar = Shape::Scalar(type);
  const Shape index = Shape::Scalar(ElementType::kS32);
  return b.Region("winner", {scalar, index, scalar, index}, [&](Builder& r, const Values& p) {
    Value none = r.ConstantScalar(ElementType::kS32, int64_t{-1});
    Value is_second = r.Eq(p[3], none);
    Value turned = r.And(r.Not(is_second), r.Lt(p[3], p[1]));
    Values pair = {p[0], p[2]};
    if (in_any_order) pair = {r.Select(turned, p[2], p[0]), r.Select(turned, p[0], p[2])};
    Value keeps = hlo::InlineComputation(*select, *r.computation(), pair)[0];
    if (in_any_order) keeps = r.Xor(keeps, turned);
    // What is absent (padding, the start) never wins.
    Value first = r.And(r.Ne(p[1], none), r.Or(keeps, is_second));
    return Values{r.Select(first, p[0], p[2]), r.Select(first, p[1], p[3])};
  });
}

// The position, in the operand, of each window's winner; -1 where a window lies in the padding.
Value Winners(Builder& b, const Instruction& instruction, const hlo::Window& window) {
  Value elements = instruction.operand(0);
  const ElementType type = elements->element_type();
  Value positions =
      b.Reshape(b.Iota(Shape(ElementType::kS32, {elements->shape().num_elements()}), 0),
                elements->dimensions());
  const bool is_large = passes::AreLargeWindows(window);
  hlo::Computation* body = Winner(b, instruction.called_computations()[0], type, is_large);
  Value start = b.Constant(hlo::Literal(Shape::Scalar(type)));
  Value none = b.ConstantScalar(ElementType::kS32, int64_t{-1});
  const auto windows = is_large ? OneByOne(window) : std::vector<hlo::Window>{window};
  for (const hlo::Window& one : windows) {
    Value pair = b.Create(Opcode::kReduceWindow, {elements, positions, start, none}, one, {body});
    elements = b.GetTupleElement(pair, 0);
    positions = b.GetTupleElement(pair, 1);
  }
  return positions;
}

// Where windows overlap, an element asks each position of those that it may be in whether it has
// won there, or each window tells its winner, though by one thread. Telling takes as long as some
// questions do, of vectors of neighbours; fewer elements than windows move on by are no neighbours.
constexpr int64_t kMostQuestions = 24;
bool WindowsTell(const hlo::Window& window) {
  return hlo::Product(window.dimensions) > kMostQuestions || window.strides.back() > 1;
}

// A value for each window, where the elements of the operand are.
class OfWindows {
 public:
  OfWindows(Builder& b, const hlo::Window& window, const Dimensions& dimensions)
      : b_(b), window_(window), dimensions_(dimensions), rank_(std::ssize(dimensions)) {}

  bool Overlap() const {
    for (int64_t d = 0; d < rank_; ++d) {
      if (window_.strides[d] < window_.dimensions[d]) return true;
    }
    return false;
  }
  int64_t Positions() const {
    return hlo::Product(window_.dimensions, 0, window_.dimensions.size());
  }

  // Those of the windows that have an element at a position of theirs; `none` where there is no
  // window.
  Value At(int64_t position, Value value, Value none) const {
    Dimensions low(rank_), high(rank_), interior(rank_);
    for (int64_t d = rank_ - 1; d >= 0; --d) {
      const int64_t k = position % window_.dimensions[d];
      position /= window_.dimensions[d];
      // Window o has this position at o * stride - padding + k.
      low[d] = k - window_.padding_low[d];
      interior[d] = window_.strides[d] - 1;
      const int64_t spread = (value->dimensions()[d] - 1) * window_.strides[d] + 1;
      high[d] = dimensions_[d] - low[d] - spread;
    }
    return b_.Pad(value, none, low, high, interior);
  }

  // Where windows do not overlap: that of the only window that an element may be in, if it is not
  // behind its end.
  Value OfOnlyOne(Value value, Value none) const {
    Dimensions parted, joined, places, low, high;
    for (int64_t d = 0; d < rank_; ++d) {
      const int64_t count = value->dimensions()[d], stride = window_.strides[d];
      places.push_back(std::ssize(parted));
      parted.push_back(count);
      if (stride > 1) parted.push_back(stride);
      joined.push_back(count * stride);
      low.push_back(-window_.padding_low[d]);
      high.push_back(dimensions_[d] - low.back() - joined.back());
    }
    Value spread = b_.Reshape(b_.BroadcastInDim(value, parted, places), joined);
    return b_.Pad(spread, none, low, high, Dimensions(rank_, 0));
  }

 private:
  Builder& b_;
  const hlo::Window& window_;
  const Dimensions& dimensions_;
  const int64_t rank_;
};

// The result of an element that has won a window with this update.
Value Scattered(Builder& b, hlo::Computation* scatter, Value result, Value update) {
  hlo::DimensionsAttributes all;
  for (int64_t d = 0; d < result->shape().rank(); ++d) all.dimensions.push_back(d);
  return b.Create(Opcode::kMap, {result, update}, std::move(all), {scatter});
}

// Each window's update goes to where its winner is, window after window; positions of windows that
// have none are out of bounds.
Value ScatteredOneByOne(Builder& b, hlo::Computation* scatter, Value result, Value winners,
                        Value source) {
  const int64_t count = source->shape().num_elements();
  hlo::ScatterAttributes attributes;
  attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = {0};
  attributes.index_vector_dim = 1;
  Value flat =
      b.Scatter(b.Reshape(result, {result->shape().num_elements()}), b.Reshape(winners, {count, 1}),
                b.Reshape(source, {count}), scatter, std::move(attributes));
  return b.Reshape(flat, result->dimensions());
}

void Expand(hlo::Computation& computation, Instruction* instruction) {
  Builder b(&computation);
  b.set_metadata(instruction->shared_metadata());
  hlo::Window window = instruction->as<hlo::Window>();
  Value source = instruction->operand(1);
  Value init = instruction->operand(2);
  const Dimensions& dimensions = instruction->dimensions();
  const int64_t rank = instruction->shape().rank();
  window.base_dilations.assign(rank, 1);
  window.window_dilations.assign(rank, 1);
  Value winners = Winners(b, *instruction, window);
  hlo::Computation* scatter = instruction->called_computations()[1];
  Value own = b.Reshape(b.Iota(Shape(ElementType::kS32, {instruction->shape().num_elements()}), 0),
                        dimensions);
  Value result = b.BroadcastInDim(init, dimensions, {});
  Value none = b.ConstantScalar(ElementType::kS32, int64_t{-1});
  Value zero = b.Constant(hlo::Literal(Shape::Scalar(source->element_type())));
  const auto take = [&](Value winner, Value update) {
    result = b.Select(b.Eq(winner, own), Scattered(b, scatter, result, update), result);
  };
  const OfWindows of_windows(b, window, dimensions);
  if (!of_windows.Overlap()) {
    take(of_windows.OfOnlyOne(winners, none), of_windows.OfOnlyOne(source, zero));
  } else if (WindowsTell(window)) {
    result = ScatteredOneByOne(b, scatter, result, winners, source);
  } else {
    // An element is at later window positions for earlier windows.
    for (int64_t position = of_windows.Positions() - 1; position >= 0; --position) {
      take(of_windows.At(position, winners, none), of_windows.At(position, source, zero));
    }
  }
  instruction->ReplaceAllUsesWith(result);
}

bool HasElements(const Instruction& instruction) {
  return instruction.shape().num_elements() != 0 &&
         instruction.operand(1)->shape().num_elements() != 0;
}

bool ExpandSelectAndScatters(hlo::Computation& computation) {
  const auto is_found = [](const Instruction& instruction) {
    return instruction.opcode() == Opcode::kSelectAndScatter && HasElements(instruction);
  };
  return passes::RewriteEach(computation, is_found, [&](Instruction* instruction) {
    Expand(computation, instruction);
    return true;
  });
}

}  // namespace

bool ExpandSelectAndScatter(hlo::Module& module) {
  return passes::ForEachComputation(module, ExpandSelectAndScatters);
}

}  // namespace cpu
