#include "lazy/view.h"

#include <numeric>
#include <utility>

#include "lazy/part.h"

namespace lazy {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Shape;
using Kind = ViewStep::Kind;

int64_t Product(const Dimensions& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

hlo::Value Flatten(Builder& b, hlo::Value x) { return b.Reshape(x, {x->shape().num_elements()}); }

// A complex number is a pair of real ones: one more dimension.
hlo::Value ToPairs(Builder& b, hlo::Value x) {
  Dimensions pair = x->dimensions();
  pair.push_back(1);
  return b.Concatenate({b.Reshape(b.Real(x), pair), b.Reshape(b.Imag(x), pair)}, x->shape().rank());
}

hlo::Value FromPairs(Builder& b, hlo::Value pairs, const Dimensions& sizes) {
  const auto last = static_cast<int64_t>(sizes.size());
  hlo::Value real = b.Reshape(b.SliceInDim(pairs, last, 0, 1), sizes);
  hlo::Value imaginary = b.Reshape(b.SliceInDim(pairs, last, 1, 2), sizes);
  return b.Complex(real, imaginary);
}

// The real type of the same bytes. A bool is a byte.
ElementType InMemory(ElementType type) {
  if (hlo::IsComplex(type)) return hlo::RealType(type);
  return type == ElementType::kPred ? ElementType::kU8 : type;
}

// The bytes of `x`, of a type of InMemory's, in row-major order as elements of another.
hlo::Value BitcastReal(Builder& b, hlo::Value x, ElementType type, const Dimensions& sizes) {
  if (x->element_type() == type) return b.Reshape(x, sizes);
  const size_t old_width = hlo::ByteWidth(x->element_type()), new_width = hlo::ByteWidth(type);
  if (new_width > old_width) {
    Dimensions groups = sizes;
    groups.push_back(static_cast<int64_t>(new_width / old_width));
    x = b.Reshape(x, groups);
  }
  return b.Reshape(b.BitcastConvert(x, type), sizes);
}

// The same bytes as elements of `type`, the last dimension shrinking or growing as torch's
// view(dtype) has it. A byte that is not zero is true, as torch reads bools.
hlo::Value Bitcast(Builder& b, hlo::Value x, ElementType type, const Dimensions& sizes) {
  if (hlo::IsComplex(x->element_type())) x = ToPairs(b, x);
  if (x->element_type() == ElementType::kPred) x = b.Convert(x, ElementType::kU8);
  Dimensions elements = sizes;
  if (hlo::IsComplex(type)) elements.push_back(2);
  x = BitcastReal(b, x, InMemory(type), elements);
  if (hlo::IsComplex(type)) return FromPairs(b, x, sizes);
  return type == ElementType::kPred ? b.Ne(x, b.Zeros(x->shape())) : x;
}

// `x` with the bytes of `part`, which is x as another type. Bytes other than 0 and 1 that a bool
// left as they were stay.
hlo::Value WriteBitcast(Builder& b, hlo::Value x, hlo::Value part) {
  if (part->element_type() != ElementType::kPred) {
    return Bitcast(b, part, x->element_type(), x->dimensions());
  }
  const Dimensions& bytes = part->dimensions();
  hlo::Value old = Bitcast(b, x, ElementType::kU8, bytes);
  hlo::Value is_same = b.Eq(b.Ne(old, b.Zeros(old->shape())), part);
  hlo::Value written = b.Select(is_same, old, b.Convert(part, ElementType::kU8));
  return Bitcast(b, written, x->element_type(), x->dimensions());
}

// Positions, in x's row-major order, of the elements that as_strided shows: of each, a vector of
// one index.
hlo::Value StridedIndices(Builder& b, const ViewStep& step, Index start) {
  hlo::Value index = b.BroadcastInDim(start, step.sizes, {});
  for (size_t i = 0; i < step.sizes.size(); ++i) {
    Shape shape(ElementType::kS64, step.sizes);
    hlo::Value along = b.Iota(shape, static_cast<int64_t>(i));
    index = b.Add(index, b.Multiply(along, b.Full(shape, step.strides[i])));
  }
  Dimensions vectors = step.sizes;
  vectors.push_back(1);
  return b.Reshape(index, vectors);
}

bool IsDense(const ViewStep& step) {
  int64_t expected = 1;
  for (size_t i = step.sizes.size(); i-- > 0;) {
    if (step.sizes[i] != 1 && step.strides[i] != expected) return false;
    expected *= step.sizes[i];
  }
  return true;
}

hlo::Value AsStrided(Builder& b, hlo::Value x, const ViewStep& step, Index start) {
  if (Product(step.sizes) == 0) return b.Zeros(Shape(x->element_type(), step.sizes));
  hlo::Value flat = Flatten(b, x);
  if (IsDense(step)) {
    return b.Reshape(TakePart(b, flat, 0, start, Product(step.sizes)), step.sizes);
  }
  hlo::GatherAttributes gather;
  gather.collapsed_slice_dims = {0};
  gather.start_index_map = {0};
  gather.slice_sizes = {1};
  gather.index_vector_dim = static_cast<int64_t>(step.sizes.size());
  return b.Gather(flat, StridedIndices(b, step, start), gather);
}

hlo::Value WriteAsStrided(Builder& b, hlo::Value x, hlo::Value part, const ViewStep& step,
                          Index start) {
  int64_t count = Product(step.sizes);
  if (count == 0) return x;
  hlo::Value flat = Flatten(b, x);
  if (IsDense(step)) {
    return b.Reshape(b.DynamicUpdateSlice(flat, Flatten(b, part), {start}), x->dimensions());
  }
  hlo::ScatterAttributes scatter;
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = static_cast<int64_t>(step.sizes.size());
  hlo::Shape scalar = Shape::Scalar(x->element_type());
  hlo::Computation* replace = b.Region(
      "replace", {scalar, scalar},
      [](Builder&, const std::vector<hlo::Value>& p) { return std::vector<hlo::Value>{p[1]}; });
  hlo::Value written = b.Scatter(flat, StridedIndices(b, step, start), b.Reshape(part, step.sizes),
                                 replace, scatter);
  return b.Reshape(written, x->dimensions());
}

hlo::Value Expand(Builder& b, hlo::Value x, const Dimensions& sizes) {
  Dimensions where;
  for (int64_t i = 0; i < x->shape().rank(); ++i) {
    where.push_back(static_cast<int64_t>(sizes.size()) - x->shape().rank() + i);
  }
  return b.BroadcastInDim(x, sizes, where);
}

// One of the values written to each repeated element: the first.
hlo::Value WriteExpand(Builder& b, hlo::Value x, hlo::Value part) {
  int64_t extra = part->shape().rank() - x->shape().rank();
  Dimensions limits = part->dimensions();
  for (int64_t i = 0; i < part->shape().rank(); ++i) {
    if (i < extra || x->dimensions()[i - extra] == 1) limits[i] = std::min<int64_t>(limits[i], 1);
  }
  Dimensions zeros(limits.size(), 0), ones(limits.size(), 1);
  if (Product(limits) != x->shape().num_elements()) return x;
  return b.Reshape(b.Slice(part, zeros, limits, ones), x->dimensions());
}

// `start` has a value if the step has one.
hlo::Value Read(Builder& b, hlo::Value x, const ViewStep& step, Index start) {
  switch (step.kind) {
    case Kind::kReshape:
      return b.Reshape(x, step.sizes);
    case Kind::kPermute:
      return b.Transpose(x, step.sizes);
    case Kind::kSlice:
      return TakePart(b, x, step.dimension, start, step.size, step.stride);
    case Kind::kExpand:
      return Expand(b, x, step.sizes);
    case Kind::kBitcast:
      return Bitcast(b, x, step.type, step.sizes);
    case Kind::kAsStrided:
      return AsStrided(b, x, step, start);
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "unknown view step");
}

// `x` with what `step` shows of it replaced by `part`.
hlo::Value Write(Builder& b, hlo::Value x, hlo::Value part, const ViewStep& step, Index start) {
  switch (step.kind) {
    case Kind::kReshape:
      return b.Reshape(part, x->dimensions());
    case Kind::kPermute: {
      Dimensions inverse(step.sizes.size());
      for (size_t i = 0; i < inverse.size(); ++i) inverse[step.sizes[i]] = static_cast<int64_t>(i);
      return b.Transpose(part, inverse);
    }
    case Kind::kSlice:
      return PutPart(b, x, part, step.dimension, start, step.stride);
    case Kind::kExpand:
      return WriteExpand(b, x, part);
    case Kind::kBitcast:
      return WriteBitcast(b, x, part);
    case Kind::kAsStrided:
      return WriteAsStrided(b, x, part, step, start);
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "unknown view step");
}

// The sizes of what `step` shows of an array of those sizes.
Dimensions SizesAfter(Dimensions sizes, const ViewStep& step) {
  if (step.kind == Kind::kSlice) {
    sizes[step.dimension] = step.size;
    return sizes;
  }
  if (step.kind != Kind::kPermute) return step.sizes;
  Dimensions permuted;
  for (int64_t d : step.sizes) permuted.push_back(sizes[d]);
  return permuted;
}

// One for each step; without a value where the step has no start.
std::vector<Index> StartsOfSteps(const ViewChain& chain, const std::vector<Index>& starts) {
  std::vector<Index> of_steps;
  size_t next = 0;
  for (const ViewStep& step : chain)
    of_steps.push_back(step.has_start() ? starts[next++] : Index());
  return of_steps;
}

}  // namespace

uint64_t ViewStep::Hash() const {
  uint64_t hash = hlo::CombineHash(static_cast<uint64_t>(kind), static_cast<uint64_t>(type));
  for (uint64_t part : {HashAttribute(sizes), HashAttribute(strides), HashAttribute(dimension),
                        HashAttribute(start), HashAttribute(size), HashAttribute(stride)}) {
    hash = hlo::CombineHash(hash, part);
  }
  return hash;
}

const char* ViewStep::name() const {
  switch (kind) {
    case Kind::kReshape:
    case Kind::kBitcast:
      return "aten::view";
    case Kind::kPermute:
      return "aten::permute";
    case Kind::kSlice:
      return "aten::slice";
    case Kind::kExpand:
      return "aten::expand";
    case Kind::kAsStrided:
      return "aten::as_strided";
  }
  return "";
}

std::string ViewStep::ToString() const {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (kind == Kind::kBitcast) add(std::string(hlo::ShortName(type)));
  if (kind == Kind::kSlice) {
    add("dim=" + std::to_string(dimension));
    add(std::to_string(size));
    add("step=" + std::to_string(stride));
  }
  for (int64_t size : sizes) add(std::to_string(size));
  for (int64_t stride : strides) add("step=" + std::to_string(stride));
  return std::string(name()) + "(" + out + ")";
}

void AppendStep(ViewChain& chain, ViewStep step) {
  if (!chain.empty() && step.kind == Kind::kReshape && chain.back().kind == Kind::kReshape) {
    chain.back() = std::move(step);
    return;
  }
  if (step.kind == Kind::kPermute && !chain.empty() && chain.back().kind == Kind::kPermute) {
    Dimensions merged;
    for (int64_t d : step.sizes) merged.push_back(chain.back().sizes[d]);
    chain.back().sizes = std::move(merged);
    return;
  }
  if (step.kind == Kind::kSlice && !chain.empty() && chain.back().kind == Kind::kSlice &&
      chain.back().dimension == step.dimension) {
    ViewStep& last = chain.back();
    const bool is_empty = step.size == 0;  // and lies nowhere
    last.start = is_empty ? 0 : last.start + step.start * last.stride;
    last.stride = step.size > 1 ? last.stride * step.stride : 1;  // of one element it says nothing
    last.size = step.size;
    return;
  }
  chain.push_back(std::move(step));
}

ViewChain AddStarts(OperandList& operands, const ViewChain& chain) {
  ViewChain rest = chain;
  uint32_t count = 0;
  for (ViewStep& step : rest) {
    if (!step.has_start()) continue;
    operands.Add({Node::MakeIndex(std::exchange(step.start, 0)), 0});
    ++count;
  }
  operands.AddCount(count);
  return rest;
}

hlo::Value ReadView(Builder& b, hlo::Value base, std::vector<Index> starts, ViewChain chain) {
  const std::vector<Index> start = StartsOfSteps(chain, starts);
  const hlo::Metadata metadata = b.metadata();
  for (size_t i = 0; i < chain.size(); ++i) {
    b.set_metadata(metadata.WithOperation(chain[i].name()));
    base = Read(b, base, chain[i], start[i]);
  }
  b.set_metadata(metadata);
  return base;
}

hlo::Value WriteView(Builder& b, hlo::Value base, hlo::Value part, std::vector<Index> starts,
                     ViewChain chain) {
  const std::vector<Index> start = StartsOfSteps(chain, starts);
  std::vector<hlo::Value> inputs{base};
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    inputs.push_back(Read(b, inputs.back(), chain[i], start[i]));
  }
  if (!chain.empty()) {
    part = b.BroadcastTo(part, SizesAfter(inputs.back()->dimensions(), chain.back()));
  }
  for (size_t i = chain.size(); i-- > 0;) part = Write(b, inputs[i], part, chain[i], start[i]);
  return part;
}

}  // namespace lazy
