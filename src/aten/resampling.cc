#include "aten/resampling.h"

#include <algorithm>

#include "aten/dimension.h"
#include "aten/indexing.h"
#include "aten/reduction.h"
#include "hlo/size_arithmetic.h"

namespace torch_xla {
namespace {

// More taps than these are cheaper as a sum over a window. Sums of taps are computed anew for each
// tap of the next dimension, which costs more where each is rounded to a byte.
constexpr size_t kMostGatheredTaps = 6, kMostGatheredTapsOfIntegers = 2;

int64_t OutputSize(const Resampling& r) { return static_cast<int64_t>(r.outputs.size()); }

bool IsSingle(const Taps& taps, int64_t index) {
  return taps.size() == 1 && taps[0].index == index && taps[0].weight == 1;
}

// How often each element is repeated, if that is all; else 0.
int64_t Repetitions(const Resampling& r) {
  if (r.input_size == 0 || OutputSize(r) % r.input_size != 0) return 0;
  int64_t times = OutputSize(r) / r.input_size;
  for (int64_t i = 0; i < OutputSize(r); ++i) {
    if (!IsSingle(r.outputs[i], i / times)) return 0;
  }
  return times;
}

// How many neighbours each output sums, if that is all; else 0.
int64_t GroupSize(const Resampling& r) {
  if (r.outputs.empty() || r.input_size % OutputSize(r) != 0) return 0;
  int64_t size = r.input_size / OutputSize(r);
  for (int64_t i = 0; i < OutputSize(r); ++i) {
    if (static_cast<int64_t>(r.outputs[i].size()) != size) return 0;
    for (int64_t k = 0; k < size; ++k) {
      const Tap& tap = r.outputs[i][k];
      if (tap.index != i * size + k || tap.weight != 1) return 0;
    }
  }
  return size;
}

// `dimensions` with one split into [outer, inner].
Dimensions SplitSizes(Dimensions dimensions, int64_t dimension, int64_t outer, int64_t inner) {
  dimensions[dimension] = outer;
  dimensions.insert(dimensions.begin() + dimension + 1, inner);
  return dimensions;
}

Value Repeat(Builder& b, Value x, int64_t dimension, int64_t times) {
  if (times == 1) return x;
  int64_t size = x->shape().dimension(dimension);
  Dimensions split = SplitSizes(x->dimensions(), dimension, size, times);
  Dimensions result = x->dimensions();
  result[dimension] = size * times;
  Dimensions kept = OtherDimensions({dimension + 1}, static_cast<int64_t>(split.size()));
  return b.Reshape(b.BroadcastInDim(x, split, kept), result);
}

Value SumGroups(Builder& b, Value x, int64_t dimension, int64_t size) {
  if (size == 1) return x;
  int64_t groups = x->shape().dimension(dimension) / size;
  return Sum(b, b.Reshape(x, SplitSizes(x->dimensions(), dimension, groups, size)),
             {dimension + 1});
}

size_t MostTaps(const Resampling& r) {
  size_t most = 0;
  for (const Taps& taps : r.outputs) most = std::max(most, taps.size());
  return most;
}

// In the type at once: what a loop reads is not converted in it.
Value Numbers(Builder& b, const std::vector<double>& values, ElementType type, Dimensions sizes) {
  auto literal = [&]<typename T>(T) {
    return hlo::Literal::FromVector(std::vector<T>(values.begin(), values.end()), sizes);
  };
  if (type == ElementType::kF32) return b.Constant(literal(0.0f));
  if (type == ElementType::kS32) return b.Constant(literal(int32_t{0}));
  return b.Convert(b.Constant(literal(0.0)), type);
}

Value Vector(Builder& b, const std::vector<double>& values, ElementType type) {
  return Numbers(b, values, type, {static_cast<int64_t>(values.size())});
}

// The k-th of `count` taps of every output. One that is missing repeats the last: an element that
// an output does not see must not reach it even as a NaN. They share its weight where that may not
// be zero; of integers the first has all of it.
std::pair<std::vector<int64_t>, std::vector<double>> TapColumn(const Resampling& r, size_t k,
                                                               size_t count, bool of_integers) {
  std::vector<int64_t> indices;
  std::vector<double> weights;
  for (const Taps& taps : r.outputs) {
    const Tap last = taps.empty() ? Tap{0, 0} : taps.back();
    const bool is_shared =
        r.has_fewer_taps && k + 1 >= taps.size() && !of_integers && !taps.empty();
    const double share = last.weight / static_cast<double>(count - taps.size() + 1);
    const bool is_present = k < taps.size();
    indices.push_back(is_present ? taps[k].index : last.index);
    weights.push_back(is_shared ? share : is_present ? taps[k].weight : 0);
  }
  return {indices, weights};
}

Value WithoutEmpty(Builder& b, Value x, int64_t dimension, const Resampling& r) {
  std::vector<double> seen;
  for (const Taps& taps : r.outputs) seen.push_back(taps.empty() ? 0 : 1);
  if (std::find(seen.begin(), seen.end(), 0) == seen.end()) return x;
  Value some = b.Convert(Vector(b, seen, ElementType::kF32), ElementType::kPred);
  return b.Select(AlongDimension(b, some, x->dimensions(), dimension), x, b.Zeros(x->shape()));
}

Value GatherTaps(Builder& b, Value x, int64_t dimension, const Resampling& r) {
  Value sum = nullptr;
  const size_t count = std::max<size_t>(MostTaps(r), 1);
  for (size_t k = 0; k < count; ++k) {
    auto [indices, weights] = TapColumn(r, k, count, hlo::IsInteger(x->element_type()));
    Value index = b.Constant(hlo::Literal::FromVector(indices, {OutputSize(r)}));
    Value term = TakeAlong(b, x, index, dimension);
    bool weighted = std::any_of(weights.begin(), weights.end(), [](double w) { return w != 1; });
    if (weighted) {
      Value weight = Vector(b, weights, x->element_type());
      term = b.Multiply(term, AlongDimension(b, weight, term->dimensions(), dimension));
    }
    sum = sum == nullptr ? term : b.Add(sum, term);
  }
  return WithoutEmpty(b, sum, dimension, r);
}

// Each output's elements from its first tap to its last, all of one width: those that have fewer
// see some of their neighbours without weight.
struct SourceWindows {
  int64_t width = 1;
  std::vector<int64_t> starts;
  std::vector<double> weights, present;  // outputs x width

  explicit SourceWindows(const Resampling& r) {
    std::vector<int64_t> firsts;
    for (const Taps& taps : r.outputs) {
      int64_t first = r.input_size, last = 0;
      for (const Tap& tap : taps) {
        first = std::min(first, tap.index);
        last = std::max(last, tap.index);
      }
      firsts.push_back(taps.empty() ? 0 : first);
      width = std::max(width, last - firsts.back() + 1);
    }
    weights.resize(r.outputs.size() * width);
    present.resize(weights.size());
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      starts.push_back(std::min(firsts[i], r.input_size - width));
      for (const Tap& tap : r.outputs[i]) {
        const size_t place = i * width + tap.index - starts[i];
        weights[place] += tap.weight;  // taps may be of one pixel
        present[place] = 1;
      }
    }
  }
};

// The second dimension of x, split into outputs and their windows.
Value GatherWindows(Builder& b, Value x, const SourceWindows& windows) {
  hlo::GatherAttributes attributes;
  attributes.offset_dims = OtherDimensions({1}, x->shape().rank() + 1);
  attributes.start_index_map = {1};
  attributes.index_vector_dim = 1;
  attributes.slice_sizes = x->dimensions();
  attributes.slice_sizes[1] = windows.width;
  const auto outputs = static_cast<int64_t>(windows.starts.size());
  return b.Gather(x, b.Constant(hlo::Literal::FromVector(windows.starts, {outputs, 1})),
                  attributes);
}

// What is before and behind the dimension as one each, which makes the loop twice as fast.
Dimensions Flattened(const Dimensions& dimensions, int64_t dimension) {
  const size_t at = dimension, end = dimensions.size();
  Dimensions flat{hlo::Product(dimensions, 0, at), dimensions[at]};
  if (at + 1 < end) flat.push_back(hlo::Product(dimensions, at + 1, end));
  return flat;
}

// One loop, however many taps there are. A number that an output does not see must not reach it
// even as a NaN; zero times an integer is nothing.
Value SumWindows(Builder& b, Value x, int64_t dimension, const Resampling& r) {
  const SourceWindows windows(r);
  Dimensions result = x->dimensions();
  result[dimension] = OutputSize(r);
  Value terms = GatherWindows(b, b.Reshape(x, Flattened(x->dimensions(), dimension)), windows);
  auto along = [&](const std::vector<double>& values) {
    Value matrix = Numbers(b, values, x->element_type(), {OutputSize(r), windows.width});
    return b.BroadcastInDim(matrix, terms->dimensions(), {1, 2});
  };
  const bool all = std::ranges::count(windows.present, 0) == 0;
  if (!all && !hlo::IsInteger(x->element_type())) {
    Value present = b.Convert(along(windows.present), ElementType::kPred);
    terms = b.Select(present, terms, b.Zeros(terms->shape()));
  }
  return b.Reshape(Sum(b, b.Multiply(terms, along(windows.weights)), {2}), result);
}

Value ResampleDimension(Builder& b, Value x, int64_t dimension, const Resampling& r) {
  if (int64_t times = Repetitions(r)) return Repeat(b, x, dimension, times);
  if (int64_t size = GroupSize(r)) return SumGroups(b, x, dimension, size);
  const bool integers = hlo::IsInteger(x->element_type());
  const size_t gathered = integers ? kMostGatheredTapsOfIntegers : kMostGatheredTaps;
  if (MostTaps(r) <= gathered) return GatherTaps(b, x, dimension, r);
  return SumWindows(b, x, dimension, r);
}

}  // namespace

void AddTap(Taps& taps, int64_t index, double weight) {
  for (Tap& tap : taps) {
    if (tap.index != index) continue;
    tap.weight += weight;
    return;
  }
  taps.push_back({index, weight});
}

bool KeepsAll(const Resampling& resampling) { return Repetitions(resampling) == 1; }

Resampling Transposed(const Resampling& resampling) {
  Resampling transposed{.input_size = OutputSize(resampling), .outputs = {}};
  transposed.outputs.resize(resampling.input_size);
  for (int64_t i = 0; i < OutputSize(resampling); ++i) {
    for (const Tap& tap : resampling.outputs[i]) {
      AddTap(transposed.outputs[tap.index], i, tap.weight);
    }
  }
  return transposed;
}

// The contiguous last dimension is resampled while there is least of it: last when the dimensions
// shrink, first when they grow.
Value Resample(Builder& b, Value x, int64_t first, const std::vector<Resampling>& resamplings) {
  int64_t count = static_cast<int64_t>(resamplings.size());
  double growth = 1;
  for (const Resampling& r : resamplings) {
    growth *= static_cast<double>(OutputSize(r)) / static_cast<double>(r.input_size);
  }
  for (int64_t k = 0; k < count; ++k) {
    int64_t i = growth < 1 ? k : count - 1 - k;
    x = ResampleDimension(b, x, first + i, resamplings[i]);
  }
  return x;
}

}  // namespace torch_xla
