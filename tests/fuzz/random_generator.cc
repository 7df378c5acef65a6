#include "random_generator.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "hlo/error.h"
#include "hlo/number_conversion.h"

namespace fuzz {

void Generator::Grow(int64_t steps) {
  for (int64_t i = 0; i < steps && !bytes_.empty(); ++i) Try(&Generator::Step);
}

void Generator::GrowElementwise(int64_t steps) {
  static constexpr Method kMethods[] = {&Generator::Unary, &Generator::Binary, &Generator::Choose,
                                        &Generator::Convert};
  for (int64_t i = 0; i < steps && !bytes_.empty(); ++i) {
    Try(kMethods[bytes_.Below(std::size(kMethods))]);
  }
}

void Generator::Try(Method step) {
  try {
    (this->*step)();
  } catch (const hlo::Error&) {
  }
}

Value Generator::Like(const Shape& shape) {
  const int64_t choice = bytes_.Below(8);
  if (choice < 6) {
    if (Value found = Find([&](Value v) { return v->shape() == shape; })) return found;
    if (Value made = Fit(shape)) return made;
  }
  if (choice == 6 && shape.rank() > 0 && shape.element_type() != ElementType::kPred) {
    return b_.Iota(shape, bytes_.Below(shape.rank()));
  }
  return Constant(shape);
}

size_t Generator::Recent(size_t count) {
  const auto byte = static_cast<size_t>(bytes_.Byte());
  return (byte & 1) != 0 ? (byte >> 1) % std::min<size_t>(count, 3) : (byte >> 1) % count;
}

Value Generator::Find(const std::function<bool(Value)>& fits) {
  Values found;
  std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(found), fits);
  return found.empty() ? nullptr : found[found.size() - 1 - Recent(found.size())];
}

Value Generator::Fit(const Shape& shape) {
  Value same = Find([&](Value v) { return v->shape().num_elements() == shape.num_elements(); });
  if (same != nullptr && bytes_.Chance(140)) {
    return b_.Reshape(To(same, shape.element_type()), shape.dimensions());
  }
  Dimensions map;
  Value small = Find([&](Value v) { return Embed(v->dimensions(), shape.dimensions()); });
  if (small == nullptr) return nullptr;
  Embed(small->dimensions(), shape.dimensions(), &map);
  return b_.BroadcastInDim(To(small, shape.element_type()), shape.dimensions(), map);
}

bool Generator::Embed(const Dimensions& from, const Dimensions& to, Dimensions* map) {
  size_t at = 0;
  for (int64_t size : from) {
    while (at < to.size() && to[at] != size && size != 1) ++at;
    if (at == to.size()) return false;
    if (map != nullptr) map->push_back(static_cast<int64_t>(at));
    ++at;
  }
  return true;
}

Value Generator::To(Value x, ElementType type) {
  if (hlo::IsComplex(x->element_type()) && !hlo::IsComplex(type)) x = b_.Real(x);
  return b_.Convert(x, type);
}

Dimensions Generator::AnyDimensions(int64_t most) {
  Dimensions dimensions(bytes_.Below(5));
  int64_t count = 1;
  for (int64_t& size : dimensions) {
    size = kSizes[bytes_.Below(std::size(kSizes))];
    if (count * size > most) size = 1;
    count *= std::max<int64_t>(size, 1);
  }
  return dimensions;
}

Value Generator::Constant(const Shape& shape) {
  constexpr double kNumbers[] = {0, 1, 2, -1, 0.5, 3, -2, 10, 1e-3, 100, 0.1, 255};
  const double number = kNumbers[bytes_.Below(std::size(kNumbers))];
  if (bytes_.Chance(200) || shape.num_elements() > 64) {
    return b_.BroadcastInDim(b_.Constant(hlo::Literal::FromDouble(shape.element_type(), number)),
                             shape.dimensions(), {});
  }
  hlo::Literal literal(shape);
  std::mt19937 random(bytes_.Byte());
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& element : literal.mutable_data<T>()) {
      element =
          hlo::Literal::FromDouble(shape.element_type(), static_cast<double>(random() % 17) / 2 - 4)
              .template data<T>()[0];
    }
  });
  return b_.Constant(literal);
}

void Generator::Push(Value value) {
  if (value->shape().is_tuple()) {
    const auto count = static_cast<int64_t>(value->shape().tuple_shapes().size());
    for (int64_t i = 0; i < count; ++i) Push(b_.GetTupleElement(value, i));
  } else if (value->shape().is_array() && value->shape().num_elements() <= 4 * kMostElements) {
    pool_.push_back(value);
  }
}

void Generator::Step() {
  // Frequent ones come more than once.
  static constexpr Method kMethods[] = {
      &Generator::Unary,
      &Generator::Unary,
      &Generator::Binary,
      &Generator::Binary,
      &Generator::Binary,
      &Generator::Choose,
      &Generator::Convert,
      &Generator::BitcastConvert,
      &Generator::Broadcast,
      &Generator::Broadcast,
      &Generator::Reshape,
      &Generator::Reshape,
      &Generator::Transpose,
      &Generator::Transpose,
      &Generator::Reverse,
      &Generator::Slice,
      &Generator::Slice,
      &Generator::Pad,
      &Generator::Concatenate,
      &Generator::DynamicSlice,
      &Generator::DynamicUpdateSlice,
      &Generator::Gather,
      &Generator::Scatter,
      &Generator::Reduce,
      &Generator::Reduce,
      &Generator::Reduce,
      &Generator::ArgumentOfMaximum,
      &Generator::ReduceWindow,
      &Generator::Scan,
      &Generator::SelectAndScatter,
      &Generator::Sort,
      &Generator::Dot,
      &Generator::Dot,
      &Generator::Convolution,
      &Generator::Epilogue,
      &Generator::Softmax,
      &Generator::Normalize,
      &Generator::BatchNorm,
      &Generator::Random,
      &Generator::Fft,
      &Generator::LinearAlgebra,
      &Generator::If,
      &Generator::Case,
      &Generator::While,
      &Generator::Call,
      &Generator::Map,
      &Generator::Collective,
      &Generator::Barrier,
      &Generator::Source,
      &Generator::SumOfDots,
      &Generator::ReduceInOrder,
      &Generator::ElementLoop,
      &Generator::ElementLoop,
      &Generator::LoopOverRows,
  };
  (this->*kMethods[bytes_.Below(std::size(kMethods))])();
}

}  // namespace fuzz
