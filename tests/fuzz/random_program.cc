#include "random_program.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "byte_source.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/number_conversion.h"

namespace fuzz {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

constexpr int64_t kMostElements = 4096;
constexpr int64_t kMostSteps = 40;
constexpr int kMostDepth = 2;  // of regions within regions

#define FUZZ_OPCODE(name, text) Opcode::name,
constexpr Opcode kUnary[] = {HLO_ELEMENTWISE_UNARY_OPCODES(FUZZ_OPCODE)};
constexpr Opcode kBinary[] = {HLO_ELEMENTWISE_BINARY_OPCODES(FUZZ_OPCODE)};
#undef FUZZ_OPCODE

constexpr ElementType kTypes[] = {
    ElementType::kF32,  ElementType::kF32,  ElementType::kF32, ElementType::kF32,
    ElementType::kF32,  ElementType::kF64,  ElementType::kF16, ElementType::kBF16,
    ElementType::kBF16, ElementType::kS8,   ElementType::kS16, ElementType::kS32,
    ElementType::kS64,  ElementType::kU8,   ElementType::kU16, ElementType::kU32,
    ElementType::kU64,  ElementType::kPred, ElementType::kC64, ElementType::kC128};
constexpr ElementType kIndexTypes[] = {ElementType::kS32, ElementType::kS64, ElementType::kU32,
                                       ElementType::kS8,  ElementType::kU64, ElementType::kS16};
constexpr int64_t kSizes[] = {2, 3, 4, 5, 1, 8, 7, 6, 2, 3, 1, 9, 16, 0, 17, 33};

int64_t Count(const Dimensions& dimensions) {
  return std::accumulate(dimensions.begin(), dimensions.end(), int64_t{1}, std::multiplies<>());
}

// Builds one computation from a pool of values that its operations grow.
class Generator {
 public:
  Generator(ByteSource& bytes, Builder& builder, Values pool, int depth)
      : bytes_(bytes), b_(builder), pool_(std::move(pool)), depth_(depth) {}

  void Grow(int64_t steps) {
    for (int64_t i = 0; i < steps && !bytes_.empty(); ++i) {
      try {
        Step();
      } catch (const hlo::Error&) {
        // Not defined for the type or shape; nothing was added.
      }
    }
  }

  Values& pool() { return pool_; }
  Value Any() { return pool_[pool_.size() - 1 - Recent(pool_.size())]; }

  // A value of that shape, made from what there is where that is possible.
  Value Like(const Shape& shape) {
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

 private:
  // The newest values are the likeliest, so that chains grow.
  size_t Recent(size_t count) {
    const auto byte = static_cast<size_t>(bytes_.Byte());
    return (byte & 1) != 0 ? (byte >> 1) % std::min<size_t>(count, 3) : (byte >> 1) % count;
  }

  Value Find(const std::function<bool(Value)>& fits) {
    Values found;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(found), fits);
    return found.empty() ? nullptr : found[found.size() - 1 - Recent(found.size())];
  }

  // By conversion, reshape or broadcast of something; null if nothing fits.
  Value Fit(const Shape& shape) {
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

  // Whether `from` are some of the dimensions of `to`, in order, or of size one.
  static bool Embed(const Dimensions& from, const Dimensions& to, Dimensions* map = nullptr) {
    size_t at = 0;
    for (int64_t size : from) {
      while (at < to.size() && to[at] != size && size != 1) ++at;
      if (at == to.size()) return false;
      if (map != nullptr) map->push_back(static_cast<int64_t>(at));
      ++at;
    }
    return true;
  }

  Value To(Value x, ElementType type) {
    if (hlo::IsComplex(x->element_type()) && !hlo::IsComplex(type)) x = b_.Real(x);
    return b_.Convert(x, type);
  }

  ElementType AnyType() { return kTypes[bytes_.Below(std::size(kTypes))]; }
  ElementType AnyFloat() { return kTypes[bytes_.Below(9)]; }

  Dimensions AnyDimensions(int64_t most = kMostElements) {
    Dimensions dimensions(bytes_.Below(5));
    int64_t count = 1;
    for (int64_t& size : dimensions) {
      size = kSizes[bytes_.Below(std::size(kSizes))];
      if (count * size > most) size = 1;
      count *= std::max<int64_t>(size, 1);
    }
    return dimensions;
  }

  Value Constant(const Shape& shape) {
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
        element = hlo::Literal::FromDouble(shape.element_type(),
                                           static_cast<double>(random() % 17) / 2 - 4)
                      .template data<T>()[0];
      }
    });
    return b_.Constant(literal);
  }

  void Push(Value value) {
    if (value->shape().is_tuple()) {
      const auto count = static_cast<int64_t>(value->shape().tuple_shapes().size());
      for (int64_t i = 0; i < count; ++i) Push(b_.GetTupleElement(value, i));
    } else if (value->shape().is_array() && value->shape().num_elements() <= 4 * kMostElements) {
      pool_.push_back(value);
    }
  }

  void Step() {
    using Method = void (Generator::*)();
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
    };
    (this->*kMethods[bytes_.Below(std::size(kMethods))])();
  }

  void Source() { Push(Like(Shape(AnyType(), AnyDimensions()))); }

  void Unary() {
    const Opcode opcode = kUnary[bytes_.Below(std::size(kUnary))];
    Value x = Any();
    try {
      Push(b_.Unary(opcode, x));
    } catch (const hlo::Error&) {
      Push(b_.Unary(opcode, To(x, AnyFloat())));
    }
  }

  void Binary() {
    Value x = Any();
    Value y = Like(x->shape());
    if (bytes_.Chance(64)) std::swap(x, y);
    constexpr Opcode kFrequent[] = {Opcode::kAdd, Opcode::kMultiply, Opcode::kSubtract,
                                    Opcode::kMaximum};
    const Opcode opcode = bytes_.Chance(128) ? kFrequent[bytes_.Below(std::size(kFrequent))]
                                             : kBinary[bytes_.Below(std::size(kBinary))];
    // The remainder of complex numbers means nothing.
    if (opcode == Opcode::kRemainder && hlo::IsComplex(x->element_type())) return;
    Push(b_.Binary(opcode, x, y));
  }

  void Choose() {
    Value x = Any();
    Value y = Like(x->shape());
    switch (bytes_.Below(4)) {
      case 0:
        return Push(b_.Clamp(ScalarOrLike(x), x, ScalarOrLike(x)));
      case 1:
        return Push(b_.Compare(x, y, static_cast<hlo::ComparisonDirection>(bytes_.Below(6)),
                               hlo::IsFloat(x->element_type()) && bytes_.Chance(40)
                                   ? hlo::ComparisonType::kTotalOrder
                                   : hlo::ComparisonType::kNotype));
      case 2:
        if (bytes_.Chance(60)) {
          return Push(b_.Select(Like(Shape::Scalar(ElementType::kPred)), x, y));
        }
        return Push(b_.Select(Like(x->shape().WithElementType(ElementType::kPred)), x, y));
      default:
        return Push(
            b_.Select(b_.Compare(x, y, static_cast<hlo::ComparisonDirection>(bytes_.Below(6))),
                      Like(x->shape()), x));
    }
  }

  Value ScalarOrLike(Value x) {
    return Like(bytes_.Chance(128) ? Shape::Scalar(x->element_type()) : x->shape());
  }

  void Convert() {
    if (bytes_.Chance(40)) {
      return Push(
          b_.ReducePrecision(To(Any(), AnyFloat()), 1 + bytes_.Below(11), bytes_.Below(24)));
    }
    Push(To(Any(), AnyType()));
  }

  void BitcastConvert() {
    Value x = Any();
    const int width = hlo::BitWidth(x->element_type());
    ElementType type = AnyType();
    for (int i = 0; i < 4 && hlo::BitWidth(type) != width; ++i) type = AnyType();
    // The bits of a number are as uncertain as its last place.
    if (!hlo::IsInteger(x->element_type()) && !bytes_.Chance(20)) return Convert();
    Push(b_.BitcastConvert(x, type));
  }

  void Broadcast() {
    Value x = Any();
    Dimensions wide, map;
    int64_t count = std::max<int64_t>(x->shape().num_elements(), 1);
    for (size_t i = 0; i <= x->dimensions().size(); ++i) {
      if (bytes_.Chance(90) && wide.size() < 5) {
        const int64_t size = kSizes[bytes_.Below(std::size(kSizes))];
        if (count * size <= kMostElements) {
          wide.push_back(size);
          count *= std::max<int64_t>(size, 1);
        }
      }
      if (i == x->dimensions().size()) break;
      map.push_back(static_cast<int64_t>(wide.size()));
      wide.push_back(x->dimensions()[i]);
      if (wide.back() == 1 && bytes_.Chance(128) && count * 4 <= kMostElements) {
        wide.back() = 4;
        count *= 4;
      }
    }
    Push(b_.BroadcastInDim(x, wide, map));
  }

  void Reshape() {
    Value x = Any();
    int64_t left = x->shape().num_elements();
    if (left == 0) return Push(b_.Reshape(x, {0, 1 + bytes_.Below(4)}));
    Dimensions dimensions;
    while (left > 1 && dimensions.size() < 5) {
      if (bytes_.Chance(50)) dimensions.push_back(1);
      int64_t divisor = 1 + bytes_.Below(16);
      while (left % divisor != 0) --divisor;
      if (divisor == 1) divisor = left;
      dimensions.push_back(divisor);
      left /= divisor;
    }
    if (left > 1) dimensions.push_back(left);
    Push(b_.Reshape(x, dimensions));
  }

  Dimensions Permutation(int64_t rank) {
    Dimensions permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (int64_t i = rank; i > 1; --i) std::swap(permutation[i - 1], permutation[bytes_.Below(i)]);
    return permutation;
  }

  Dimensions SomeDimensions(int64_t rank) {
    Dimensions some;
    for (int64_t i = 0; i < rank; ++i) {
      if (bytes_.Chance(110)) some.push_back(i);
    }
    return some;
  }

  void Transpose() {
    Value x = Any();
    Push(b_.Transpose(x, Permutation(x->shape().rank())));
  }

  void Reverse() {
    Value x = Any();
    Push(b_.Reverse(x, SomeDimensions(x->shape().rank())));
  }

  void Slice() {
    Value x = Any();
    Dimensions start, limit, strides;
    for (int64_t size : x->dimensions()) {
      const int64_t first = bytes_.Chance(100) ? bytes_.Below(size + 1) : 0;
      start.push_back(first);
      limit.push_back(first + (bytes_.Chance(100) ? bytes_.Below(size - first + 1) : size - first));
      strides.push_back(bytes_.Chance(50) ? 1 + bytes_.Below(3) : 1);
    }
    Push(b_.Slice(x, start, limit, strides));
  }

  void Pad() {
    Value x = Any();
    Dimensions low, high, interior;
    for (size_t i = 0; i < x->dimensions().size(); ++i) {
      low.push_back(bytes_.Chance(128) ? bytes_.Below(5) - 2 : 0);
      high.push_back(bytes_.Chance(128) ? bytes_.Below(5) - 2 : 0);
      interior.push_back(bytes_.Chance(50) ? bytes_.Below(3) : 0);
    }
    Push(b_.Pad(x, Like(Shape::Scalar(x->element_type())), low, high, interior));
  }

  void Concatenate() {
    Value x = Any();
    if (x->shape().rank() == 0) x = b_.Reshape(x, {1});
    const int64_t dimension = bytes_.Below(x->shape().rank());
    Values parts = {x};
    for (int64_t i = 0, more = 1 + bytes_.Below(3); i < more; ++i) {
      Dimensions dimensions = x->dimensions();
      if (bytes_.Chance(100)) dimensions[dimension] = bytes_.Below(4);
      parts.push_back(Like(x->shape().WithDimensions(dimensions)));
    }
    if (bytes_.Chance(128)) std::swap(parts.front(), parts.back());
    Push(b_.Concatenate(parts, dimension));
  }

  Values Starts(int64_t rank) {
    const ElementType type = kIndexTypes[bytes_.Below(std::size(kIndexTypes))];
    Values starts;
    for (int64_t i = 0; i < rank; ++i) starts.push_back(Like(Shape::Scalar(type)));
    return starts;
  }

  Dimensions Sizes(const Dimensions& dimensions) {
    Dimensions sizes;
    for (int64_t size : dimensions) {
      sizes.push_back(bytes_.Chance(128) ? size : bytes_.Below(size + 1));
    }
    return sizes;
  }

  void DynamicSlice() {
    Value x = Any();
    Push(b_.DynamicSlice(x, Starts(x->shape().rank()), Sizes(x->dimensions())));
  }

  void DynamicUpdateSlice() {
    Value x = Any();
    Value update = Like(x->shape().WithDimensions(Sizes(x->dimensions())));
    Push(b_.DynamicUpdateSlice(x, update, Starts(x->shape().rank())));
  }

  // Positions along some dimensions of a value, one row of numbers for each.
  Value Indices(int64_t count, int64_t width) {
    const ElementType type = kIndexTypes[bytes_.Below(std::size(kIndexTypes))];
    return Like(Shape(type, {count, width}));
  }

  void Gather() {
    Value x = Any();
    const int64_t rank = x->shape().rank();
    if (rank == 0) return;
    const int64_t count = bytes_.Below(6);
    hlo::GatherAttributes attributes;
    attributes.index_vector_dim = 1;
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t size = x->dimensions()[i];
      if (size > 0 && bytes_.Chance(120)) attributes.start_index_map.push_back(i);
      const bool collapsed = size > 0 && bytes_.Chance(110);
      if (collapsed) {
        attributes.collapsed_slice_dims.push_back(i);
        attributes.slice_sizes.push_back(1);
      } else {
        attributes.offset_dims.push_back(1 + static_cast<int64_t>(attributes.offset_dims.size()));
        attributes.slice_sizes.push_back(bytes_.Chance(150) ? size : bytes_.Below(size + 1));
      }
    }
    const auto width = static_cast<int64_t>(attributes.start_index_map.size());
    Push(b_.Gather(x, Indices(count, width), attributes));
  }

  Opcode Combiner(ElementType type) {
    constexpr Opcode kArithmetic[] = {Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum,
                                      Opcode::kMultiply};
    constexpr Opcode kBits[] = {Opcode::kAnd, Opcode::kOr};
    if (type == ElementType::kPred) return kBits[bytes_.Below(2)];
    if (hlo::IsComplex(type)) return bytes_.Chance(200) ? Opcode::kAdd : Opcode::kMultiply;
    if (hlo::IsInteger(type) && bytes_.Chance(50)) return kBits[bytes_.Below(2)];
    return kArithmetic[bytes_.Below(std::size(kArithmetic))];
  }

  void Scatter() {
    Value x = Any();
    const int64_t rank = x->shape().rank();
    if (rank == 0) return;
    const int64_t count = bytes_.Below(6);
    hlo::ScatterAttributes attributes;
    attributes.index_vector_dim = 1;
    Dimensions updates = {count};
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t size = x->dimensions()[i];
      if (size > 0 && bytes_.Chance(120)) attributes.scatter_dims_to_operand_dims.push_back(i);
      if (size > 0 && bytes_.Chance(110)) {
        attributes.inserted_window_dims.push_back(i);
      } else {
        attributes.update_window_dims.push_back(static_cast<int64_t>(updates.size()));
        updates.push_back(bytes_.Chance(150) ? size : bytes_.Below(size + 1));
      }
    }
    const auto width = static_cast<int64_t>(attributes.scatter_dims_to_operand_dims.size());
    Value indices = Indices(count, width);
    Value update = Like(x->shape().WithDimensions(updates));
    Push(b_.Scatter(x, indices, update,
                    b_.ScalarCombiner(Combiner(x->element_type()), x->element_type()), attributes));
  }

  void Reduce() {
    Value x = Any();
    Dimensions some = SomeDimensions(x->shape().rank());
    if (bytes_.Chance(80) && x->shape().rank() > 0) some = {x->shape().rank() - 1};
    const Opcode combiner = Combiner(x->element_type());
    if (combiner == Opcode::kMaximum && bytes_.Chance(60)) {
      return Push(b_.Reduce(x, Like(Shape::Scalar(x->element_type())), some,
                            b_.ScalarCombiner(combiner, x->element_type())));
    }
    Push(b_.Reduce(combiner, x, some));
  }

  // The largest values and where they stand, as argmax has it: the first of equal ones.
  void ArgumentOfMaximum() {
    Value x = Any();
    if (hlo::IsComplex(x->element_type()) || x->shape().rank() == 0) return;
    const ElementType type = x->element_type();
    const int64_t dimension = bytes_.Below(x->shape().rank());
    const Shape scalar = Shape::Scalar(type), position = Shape::Scalar(ElementType::kS64);
    Computation* body =
        b_.Region("larger", {scalar, position, scalar, position}, [](Builder& r, const Values& p) {
          // NaN is larger than any number.
          Value take = r.Or(r.Gt(p[2], p[0]), r.And(r.Ne(p[2], p[2]), r.Eq(p[0], p[0])));
          Value tie = r.And(r.Or(r.Eq(p[2], p[0]), r.And(r.Ne(p[2], p[2]), r.Ne(p[0], p[0]))),
                            r.Lt(p[3], p[1]));
          take = r.Or(take, tie);
          return Values{r.Select(take, p[2], p[0]), r.Select(take, p[3], p[1])};
        });
    Value lowest = b_.Constant(hlo::IdentityLiteral(Opcode::kMaximum, type));
    Value last = b_.ConstantScalar(ElementType::kS64, std::numeric_limits<int64_t>::max());
    Push(b_.ReduceVariadic({x, b_.Iota(x->shape().WithElementType(ElementType::kS64), dimension)},
                           {lowest, last}, {dimension}, body));
  }

  // Windows of a few elements over the trailing dimensions.
  hlo::Window SmallWindow(Value x, bool dilated) {
    const int64_t rank = x->shape().rank();
    hlo::Window window = hlo::Window::Trivial(rank);
    for (int64_t i = std::max<int64_t>(0, rank - 2); i < rank; ++i) {
      window.dimensions[i] = 1 + bytes_.Below(3);
      window.strides[i] = 1 + bytes_.Below(3);
      if (window.dimensions[i] == 1) continue;
      window.padding_low[i] = bytes_.Chance(128) ? bytes_.Below(window.dimensions[i]) : 0;
      window.padding_high[i] = bytes_.Chance(128) ? bytes_.Below(window.dimensions[i]) : 0;
      if (!dilated) continue;
      if (bytes_.Chance(30)) window.window_dilations[i] = 2;
      if (bytes_.Chance(30)) window.base_dilations[i] = 2;
    }
    return window;
  }

  void ReduceWindow() {
    Value x = Any();
    const ElementType type = x->element_type();
    const Opcode combiner = Combiner(type);
    Push(b_.ReduceWindow(x, b_.Constant(hlo::IdentityLiteral(combiner, type)), SmallWindow(x, true),
                         b_.ScalarCombiner(combiner, type)));
  }

  // Cumulative sums, maxima, ….
  void Scan() {
    Value x = Any();
    const int64_t rank = x->shape().rank();
    if (rank == 0) return;
    const int64_t d = bytes_.Below(rank), size = x->dimensions()[d];
    if (size == 0) return;
    hlo::Window window = hlo::Window::Trivial(rank);
    window.dimensions[d] = size;
    (bytes_.Chance(128) ? window.padding_low : window.padding_high)[d] = size - 1;
    const Opcode combiner = Combiner(x->element_type());
    Push(b_.ReduceWindow(x, b_.Constant(hlo::IdentityLiteral(combiner, x->element_type())), window,
                         b_.ScalarCombiner(combiner, x->element_type())));
  }

  void SelectAndScatter() {
    Value x = Any();
    const ElementType type = x->element_type();
    if (hlo::IsComplex(type) || x->shape().rank() == 0) return;
    const hlo::Window window = SmallWindow(x, false);
    Dimensions source;
    for (size_t i = 0; i < x->dimensions().size(); ++i) {
      const int64_t room = x->dimensions()[i] + window.padding_low[i] + window.padding_high[i] -
                           window.dimensions[i];
      source.push_back(room < 0 ? 0 : room / window.strides[i] + 1);
    }
    const Shape scalar = Shape::Scalar(type);
    Computation* select = b_.Region("select", {scalar, scalar}, [](Builder& r, const Values& p) {
      return Values{r.Ge(p[0], p[1])};
    });
    const Opcode combiner = type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
    Push(b_.SelectAndScatter(x, Like(x->shape().WithDimensions(source)),
                             b_.Constant(hlo::IdentityLiteral(combiner, type)), window, select,
                             b_.ScalarCombiner(combiner, type)));
  }

  void Sort() {
    Value x = Any();
    const ElementType type = x->element_type();
    if (hlo::IsComplex(type) || x->shape().rank() == 0) return;
    const Shape scalar = Shape::Scalar(type);
    Values sorted = {x};
    std::vector<Shape> parameters = {scalar, scalar};
    if (bytes_.Chance(128)) {
      sorted.push_back(Like(x->shape().WithElementType(AnyType())));
      parameters.insert(parameters.end(), 2, Shape::Scalar(sorted[1]->element_type()));
    }
    const bool descending = bytes_.Chance(100);
    Computation* order = b_.Region("order", parameters, [&](Builder& r, const Values& p) {
      return Values{r.Compare(
          p[0], p[1], descending ? hlo::ComparisonDirection::kGt : hlo::ComparisonDirection::kLt,
          hlo::IsFloat(type) ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNotype)};
    });
    Push(b_.Sort(sorted, bytes_.Below(x->shape().rank()), true, order));
  }

  // x times something that fits, over some of its dimensions.
  Value Product(Value x) {
    const int64_t rank = x->shape().rank();
    hlo::DotAttributes attributes;
    Dimensions other;
    for (int64_t i = 0; i < rank && bytes_.Chance(90); ++i) {
      attributes.lhs_batching_dimensions.push_back(i);
      attributes.rhs_batching_dimensions.push_back(i);
      other.push_back(x->dimensions()[i]);
    }
    const auto batching = static_cast<int64_t>(other.size());
    int64_t free = std::max<int64_t>(1, x->shape().num_elements());
    if (batching < rank) {
      const int64_t contracted =
          bytes_.Chance(150) ? rank - 1 : batching + bytes_.Below(rank - batching);
      attributes.lhs_contracting_dimensions.push_back(contracted);
      free /= std::max<int64_t>(1, x->dimensions()[contracted]);
      const int64_t size = x->dimensions()[contracted];
      const int64_t columns = kSizes[bytes_.Below(std::size(kSizes))];
      const bool has_columns = free * columns <= kMostElements && bytes_.Chance(220);
      if (has_columns && bytes_.Chance(100)) {
        other.push_back(columns);
        attributes.rhs_contracting_dimensions.push_back(static_cast<int64_t>(other.size()));
        other.push_back(size);
      } else {
        attributes.rhs_contracting_dimensions.push_back(static_cast<int64_t>(other.size()));
        other.push_back(size);
        if (has_columns) other.push_back(columns);
      }
    }
    return b_.DotGeneral(x, Like(x->shape().WithDimensions(other)), attributes);
  }

  void Dot() { Push(Product(Any())); }

  // The gradient of a weight that was used twice.
  void SumOfDots() {
    const ElementType type = AnyFloat();
    const int64_t m = 1 + bytes_.Below(8), n = 1 + bytes_.Below(8);
    Value sum = nullptr;
    for (int64_t i = 0, terms = 2 + bytes_.Below(2); i < terms; ++i) {
      const int64_t k = 1 + bytes_.Below(4);
      Value product = b_.MatMul(Like(Shape(type, {m, k})), Like(Shape(type, {k, n})));
      sum = sum == nullptr ? product : b_.Add(sum, product);
    }
    Push(sum);
  }

  void Convolution() {
    const int64_t spatial = 1 + bytes_.Below(2);
    const ElementType type = bytes_.Chance(230) ? AnyFloat() : AnyType();
    const int64_t groups = bytes_.Chance(50) ? 2 : 1;
    const int64_t features = groups * (1 + bytes_.Below(3));
    const int64_t outputs = groups * (1 + bytes_.Below(4));
    hlo::ConvolutionAttributes attributes;
    attributes.feature_group_count = groups;
    attributes.window = hlo::Window::Trivial(spatial);
    attributes.window.dimensions.clear();
    Dimensions input = {1 + bytes_.Below(3), features}, kernel = {outputs, features / groups};
    for (int64_t i = 0; i < spatial; ++i) {
      input.push_back(1 + bytes_.Below(9));
      kernel.push_back(1 + bytes_.Below(3));
      attributes.window.strides[i] = 1 + bytes_.Below(2);
      attributes.window.padding_low[i] = bytes_.Below(3);
      attributes.window.padding_high[i] = bytes_.Below(3);
      if (bytes_.Chance(40)) attributes.window.base_dilations[i] = 2;
      if (bytes_.Chance(40)) attributes.window.window_dilations[i] = 2;
    }
    attributes.window.reversal.assign(spatial, bytes_.Chance(40));
    attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(spatial);
    Value x = Like(Shape(type, input));
    Value w = Like(Shape(type, kernel));
    if (bytes_.Chance(60)) {
      Dimensions reversed;
      for (int64_t i = 0; i < spatial; ++i) reversed.push_back(2 + i);
      w = b_.Reverse(w, reversed);
    }
    Value y = b_.Convolution(x, w, attributes);
    if (bytes_.Chance(128)) {
      y = b_.Add(y, b_.BroadcastInDim(Like(Shape(type, {outputs})), y->dimensions(), {1}));
    }
    Push(y);
  }

  // A product with a bias, an activation and a residual.
  void Epilogue() {
    Value y = Product(Any());
    const int64_t rank = y->shape().rank();
    if (rank > 0 && bytes_.Chance(200)) {
      Value bias = Like(Shape(y->element_type(), {y->dimensions().back()}));
      y = b_.Add(y, b_.BroadcastInDim(bias, y->dimensions(), {rank - 1}));
    }
    if (bytes_.Chance(128)) y = b_.Maximum(y, b_.Zeros(y->shape()));
    if (bytes_.Chance(100)) y = b_.Add(y, Like(y->shape()));
    if (bytes_.Chance(100)) y = b_.Multiply(y, Like(y->shape()));
    Push(y);
  }

  Value Along(Value reduced, Value x, int64_t dimension) {
    Dimensions map;
    for (int64_t i = 0; i < x->shape().rank(); ++i) {
      if (i != dimension) map.push_back(i);
    }
    return b_.BroadcastInDim(reduced, x->dimensions(), map);
  }

  void Softmax() {
    Value x = To(Any(), AnyFloat());
    if (x->shape().rank() == 0) return;
    const int64_t d = bytes_.Chance(200) ? x->shape().rank() - 1 : bytes_.Below(x->shape().rank());
    Value e = b_.Exp(b_.Subtract(x, Along(b_.Reduce(Opcode::kMaximum, x, {d}), x, d)));
    Push(b_.Divide(e, Along(b_.Reduce(Opcode::kAdd, e, {d}), x, d)));
  }

  void Normalize() {
    Value x = To(Any(), AnyFloat());
    if (x->shape().rank() == 0) return;
    const int64_t d = x->shape().rank() - 1;
    const auto size = static_cast<double>(x->dimensions()[d]);
    auto mean = [&](Value v) {
      Value sum = b_.Reduce(Opcode::kAdd, v, {d});
      return b_.Divide(sum, b_.Full(sum->shape(), size));
    };
    Value centered = b_.Subtract(x, Along(mean(x), x, d));
    Value variance = mean(b_.Multiply(centered, centered));
    Value scale = b_.Rsqrt(b_.Add(variance, b_.Full(variance->shape(), 0.01)));
    Push(b_.Multiply(centered, Along(scale, x, d)));
    Push(variance);
  }

  void BatchNorm() {
    Value x = To(Any(), AnyFloat());
    if (x->shape().rank() == 0 || x->shape().num_elements() == 0) return;
    const int64_t feature = bytes_.Below(x->shape().rank());
    const hlo::BatchNormAttributes attributes{0.01f, feature};
    const Shape channel(x->element_type(), {x->dimensions()[feature]});
    Value scale = Like(channel), offset = Like(channel), mean = Like(channel);
    Value variance = b_.Abs(Like(channel));
    switch (bytes_.Below(3)) {
      case 0:
        return Push(b_.Create(Opcode::kBatchNormTraining, {x, scale, offset}, attributes));
      case 1:
        return Push(
            b_.Create(Opcode::kBatchNormInference, {x, scale, offset, mean, variance}, attributes));
      default:
        return Push(b_.Create(Opcode::kBatchNormGrad, {x, scale, mean, variance, Like(x->shape())},
                              attributes));
    }
  }

  void Random() {
    constexpr ElementType kBits[] = {ElementType::kU32, ElementType::kU64, ElementType::kU8,
                                     ElementType::kU16, ElementType::kS32};
    const Shape shape(kBits[bytes_.Below(std::size(kBits))], AnyDimensions(512));
    const auto algorithm =
        bytes_.Chance(128) ? hlo::RngAlgorithm::kThreeFry : hlo::RngAlgorithm::kPhilox;
    Push(b_.RngBitGenerator(Like(Shape(ElementType::kU64, {2})), algorithm, shape));
  }

  void Fft() {
    constexpr hlo::FftType kKinds[] = {hlo::FftType::kFft, hlo::FftType::kIfft, hlo::FftType::kRfft,
                                       hlo::FftType::kIrfft};
    const hlo::FftType kind = kKinds[bytes_.Below(4)];
    Value x = Any();
    const bool wide = bytes_.Chance(128);
    x = To(x, kind == hlo::FftType::kRfft ? (wide ? ElementType::kF64 : ElementType::kF32)
                                          : (wide ? ElementType::kC128 : ElementType::kC64));
    if (x->shape().rank() == 0) return;
    Dimensions length = {x->dimensions().back()};
    if (kind == hlo::FftType::kIrfft) {
      length[0] = std::max<int64_t>(0, 2 * (length[0] - 1) + bytes_.Below(2));
    }
    Push(b_.Fft(x, kind, length));
  }

  // Well-conditioned square matrices, so that the results say something.
  void LinearAlgebra() {
    const ElementType type = bytes_.Chance(128) ? ElementType::kF32 : ElementType::kF64;
    const int64_t n = 1 + bytes_.Below(6), batch = 1 + bytes_.Below(3);
    const Dimensions dimensions = {batch, n, n};
    Value a = b_.Unary(Opcode::kSine, Like(Shape(type, dimensions)));
    Value rows = b_.Iota(Shape(ElementType::kS32, dimensions), 1);
    Value columns = b_.Iota(Shape(ElementType::kS32, dimensions), 2);
    const Shape shape = a->shape();
    a = b_.Add(b_.Add(a, b_.Transpose(a, {0, 2, 1})),
               b_.Select(b_.Eq(rows, columns), b_.Full(shape, 2.0 * static_cast<double>(n) + 2),
                         b_.Full(shape, 0.0)));
    const bool lower = bytes_.Chance(128);
    if (bytes_.Chance(128)) {
      // What stands in the other triangle is not specified.
      Value inside = lower ? b_.Ge(rows, columns) : b_.Le(rows, columns);
      return Push(b_.Select(inside, b_.Cholesky(a, lower), b_.Full(shape, 0.0)));
    }
    hlo::TriangularSolveAttributes attributes;
    attributes.left_side = bytes_.Chance(128);
    attributes.lower = lower;
    attributes.unit_diagonal = bytes_.Chance(60);
    attributes.transpose_a =
        bytes_.Chance(128) ? hlo::Transpose::kTranspose : hlo::Transpose::kNoTranspose;
    const int64_t columns_of_b = 1 + bytes_.Below(4);
    Push(b_.TriangularSolve(
        a,
        Like(Shape(type, attributes.left_side ? Dimensions{batch, n, columns_of_b}
                                              : Dimensions{batch, columns_of_b, n})),
        attributes));
  }

  // --- Control flow. Some values of the pool are passed.

  Values Captured() {
    Values captured;
    for (int64_t i = 0, count = 1 + bytes_.Below(3); i < count; ++i) captured.push_back(Any());
    return captured;
  }

  static std::vector<Shape> ShapesOf(const Values& values) {
    std::vector<Shape> shapes;
    for (Value value : values) shapes.push_back(value->shape());
    return shapes;
  }

  // A computation of `parameters` whose results have the shapes `results`.
  Computation* Body(const char* name, const std::vector<Shape>& parameters,
                    const std::vector<Shape>& results) {
    return b_.Region(name, parameters, [&](Builder& inner, const Values& values) {
      Generator generator(bytes_, inner, values, depth_ + 1);
      generator.Grow(bytes_.Below(6));
      Values made;
      for (const Shape& shape : results) made.push_back(generator.Like(shape));
      return made;
    });
  }

  void If() {
    if (depth_ >= kMostDepth) return;
    Values captured = Captured();
    const std::vector<Shape> results = {Any()->shape(), Any()->shape()};
    Computation* yes = Body("yes", ShapesOf(captured), results);
    Computation* no = Body("no", ShapesOf(captured), results);
    Push(b_.If(Like(Shape::Scalar(ElementType::kPred)), captured, yes, no));
  }

  void Case() {
    if (depth_ >= kMostDepth) return;
    Values captured = Captured();
    const std::vector<Shape> results = {Any()->shape()};
    std::vector<Computation*> branches;
    for (int64_t i = 0, count = 1 + bytes_.Below(3); i < count; ++i) {
      branches.push_back(Body("branch", ShapesOf(captured), results));
    }
    Push(b_.Case(Like(Shape::Scalar(ElementType::kS32)), captured, branches));
  }

  // A few iterations, which a counter ends.
  void While() {
    if (depth_ >= kMostDepth) return;
    const Shape counter = Shape::Scalar(ElementType::kS32);
    Values initial = Captured();
    initial.insert(initial.begin(), b_.ConstantScalar(ElementType::kS32, int64_t{0}));
    const std::vector<Shape> shapes = ShapesOf(initial);
    const int64_t trips = bytes_.Below(4);
    Computation* condition = b_.Region("condition", shapes, [&](Builder& r, const Values& p) {
      return Values{r.Lt(p[0], r.ConstantScalar(ElementType::kS32, trips))};
    });
    Computation* body = b_.Region("body", shapes, [&](Builder& r, const Values& p) {
      Generator generator(bytes_, r, p, depth_ + 1);
      generator.Grow(bytes_.Below(6));
      Values next = {r.Add(p[0], r.ConstantScalar(ElementType::kS32, int64_t{1}))};
      for (size_t i = 1; i < shapes.size(); ++i) next.push_back(generator.Like(shapes[i]));
      return next;
    });
    Push(b_.While(initial, condition, body));
  }

  void Call() {
    if (depth_ >= kMostDepth) return;
    Values captured = Captured();
    const Shape result = Any()->shape();
    Computation* callee = Body("callee", ShapesOf(captured), {result});
    if (bytes_.Chance(128)) return Push(b_.Call(callee, captured));
    hlo::CompositeAttributes attributes;
    attributes.name = "test.composite";
    Push(b_.Create(Opcode::kComposite, captured, attributes, {callee}, result));
  }

  void Map() {
    Value x = Any();
    Value y = Like(x->shape());
    const Shape scalar = Shape::Scalar(x->element_type());
    Computation* body = b_.Region("mapped", {scalar, scalar}, [&](Builder& r, const Values& p) {
      return Values{r.Maximum(r.Multiply(p[0], p[1]), r.Add(p[0], p[1]))};
    });
    Dimensions all(x->shape().rank());
    std::iota(all.begin(), all.end(), 0);
    Push(b_.Create(Opcode::kMap, {x, y}, hlo::DimensionsAttributes{all}, {body}));
  }

  void Collective() {
    Value x = Any();
    const ElementType type = x->element_type();
    Push(b_.Create(
        Opcode::kAllReduce, {x}, hlo::CollectiveAttributes{},
        {b_.ScalarCombiner(type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd, type)}));
  }

  void Barrier() { Push(b_.OptimizationBarrier({Any(), Any()})); }

  ByteSource& bytes_;
  Builder& b_;
  Values pool_;
  const int depth_;
};

// Results that may take a parameter's buffer.
void AddAliases(ByteSource& bytes, hlo::Module& module) {
  const Computation& entry = *module.entry();
  std::vector<bool> taken(entry.parameters().size());
  for (size_t output = 0; output < entry.results().size(); ++output) {
    for (size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] || entry.parameter(p)->shape() != entry.result(output)->shape()) continue;
      if (!bytes.Chance(128)) continue;
      taken[p] = true;
      module.input_output_aliases.push_back(
          {static_cast<int64_t>(output), static_cast<int64_t>(p), false});
      break;
    }
  }
}

template <typename T>
T RandomNumber(std::mt19937& random) {
  const auto number = static_cast<double>(static_cast<int>(random() % 33) - 16) / 4;
  const unsigned kind = random() % 64;
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (kind == 0) return std::numeric_limits<T>::max();
    if (kind == 1) return std::numeric_limits<T>::min();
    if (kind == 2) return static_cast<T>(random());
    return static_cast<T>(static_cast<int>(number * 2));
  } else if constexpr (hlo::kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(RandomNumber<Part>(random) / 4, static_cast<Part>(number));
  } else {
    const double fraction = static_cast<double>(random() % 1000) / 4096;
    if (kind == 0) return static_cast<T>(std::numeric_limits<float>::infinity());
    if (kind == 1) return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    if (kind == 2) return static_cast<T>(-0.0f);
    if (kind == 3) return static_cast<T>(static_cast<float>(number * 1000));
    return static_cast<T>(static_cast<float>(number + fraction));
  }
}

}  // namespace

std::vector<hlo::Literal> MakeArguments(const hlo::Module& module, unsigned seed) {
  std::mt19937 random(seed);
  // Extremes spread through a program until it says nothing else: one in four has any.
  const bool with_extremes = seed % 4 == 0;
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    hlo::Literal literal(parameter->shape());
    hlo::DispatchNative(parameter->element_type(), [&]<typename T>() {
      for (T& element : literal.mutable_data<T>()) {
        element = RandomNumber<T>(random);
        if constexpr (hlo::kIsComplex<T> || hlo::kIsReal<T>) {
          // Nor is it any standard's what infinite complex numbers give.
          const bool may_be_extreme = with_extremes && !hlo::kIsComplex<T>;
          while (!may_be_extreme &&
                 !(std::abs(hlo::ConvertNumber<std::complex<double>>(element)) < 1000)) {
            element = RandomNumber<T>(random);
          }
        }
      }
    });
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

RandomProgram MakeRandomProgram(std::span<const uint8_t> data) {
  ByteSource bytes(data);
  const unsigned seed = bytes.Byte();
  RandomProgram program;
  program.module = std::make_unique<hlo::Module>("random");
  Computation* entry = program.module->AddComputation("main");
  program.module->set_entry(entry);
  Builder builder(entry);
  Values parameters;
  for (int64_t i = 0, count = 1 + bytes.Below(3); i < count; ++i) {
    const ElementType type = kTypes[bytes.Below(std::size(kTypes))];
    Dimensions dimensions(bytes.Below(5), 1);
    for (int64_t& size : dimensions) {
      size = kSizes[bytes.Below(std::size(kSizes))];
      if (Count(dimensions) > kMostElements) size = 1;
    }
    // Another argument of the same shape is what binary operations want.
    const Shape shape =
        i > 0 && bytes.Chance(128) ? parameters[0]->shape() : Shape(type, dimensions);
    parameters.push_back(builder.Parameter(shape));
  }
  Generator generator(bytes, builder, parameters, 0);
  generator.Grow(kMostSteps);
  Values results;
  const Values& pool = generator.pool();
  for (size_t i = 0; i < std::min<size_t>(pool.size(), 4); ++i) {
    results.push_back(pool[pool.size() - 1 - i]);
  }
  if (bytes.Chance(60)) results.push_back(generator.Any());
  entry->set_results(results);
  AddAliases(bytes, *program.module);
  program.module->RemoveUnreachableComputations();
  program.module->SortComputations();
  program.arguments = MakeArguments(*program.module, seed);
  return program;
}

std::vector<uint8_t> BytesOfSeed(unsigned seed, size_t size) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

}  // namespace fuzz
