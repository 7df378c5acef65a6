#include "hlo/builder.h"

#include <limits>
#include <numeric>

#include "hlo/error.h"
#include "hlo/number_conversion.h"
#include "hlo/shape_inference.h"

namespace hlo {
namespace {

// The shape to state for an operation whose element type may be chosen.
std::optional<Shape> WithType(const Shape& shape, std::optional<ElementType> type) {
  if (!type) return std::nullopt;
  return shape.WithElementType(*type);
}

template <typename T>
T Lowest() {
  if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}

template <typename T>
T Highest() {
  if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

template <typename T>
T IdentityOf(Opcode combiner, ElementType type) {
  using Limits = std::conditional_t<kIsReal<T>, ComputeType<T>, T>;
  switch (combiner) {
    case Opcode::kAdd:
    case Opcode::kOr:
      return ConvertNumber<T>(int64_t{0});
    case Opcode::kMultiply:
      return ConvertNumber<T>(int64_t{1});
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      if constexpr (!kIsComplex<T>) {
        return T(combiner == Opcode::kMaximum ? Lowest<Limits>() : Highest<Limits>());
      }
      break;
    case Opcode::kAnd:
      if constexpr (std::is_same_v<T, bool>) return true;
      if constexpr (std::is_integral_v<T>) return static_cast<T>(-1);
      break;
    default:
      break;
  }
  throw Error(std::string(Name(combiner)) + " has no identity for elements of type " +
              std::string(ShortName(type)));
}

// Gives a contraction whose attributes name no precision this one.
void DefaultPrecision(Precision precision, Attributes* attributes) {
  if (precision == Precision::kDefault) return;
  auto fill = [&](std::vector<Precision>& named) {
    if (named.empty()) named = {precision, precision};
  };
  if (auto* dot = std::get_if<DotAttributes>(attributes)) fill(dot->precision);
  if (auto* convolution = std::get_if<ConvolutionAttributes>(attributes)) {
    fill(convolution->precision);
  }
}

}  // namespace

Literal IdentityLiteral(Opcode combiner, ElementType type) {
  return DispatchNative(
      type, [&]<typename T>() { return Literal::Scalar<T>(IdentityOf<T>(combiner, type)); });
}

Value Builder::Create(Opcode opcode, InstructionList operands, Attributes attributes,
                      std::vector<Computation*> called, std::optional<Shape> shape) {
  ShortList<const Shape*> shapes;
  shapes.reserve(operands.size());
  for (const Instruction* operand : operands) {
    if (!operand || operand->parent() != computation_) {
      throw Error(ErrorCode::kInternal,
                  std::string(Name(opcode)) + " in @" + computation_->name() + ": operand " +
                      std::to_string(shapes.size()) +
                      (operand ? " belongs to @" + operand->parent()->name() : " is null"));
    }
    shapes.push_back(&operand->shape());
  }
  DefaultPrecision(precision_, &attributes);
  Shape inferred = InferShape(opcode, shapes, attributes, called, shape);
  Value value = computation_->Add(opcode, std::move(inferred), std::move(operands),
                                  std::move(attributes), std::move(called));
  value->set_metadata(metadata_);
  return value;
}

Value Builder::Parameter(const Shape& shape) {
  ParameterAttributes attributes{static_cast<int64_t>(computation_->parameters().size())};
  return Create(Opcode::kParameter, {}, attributes, {}, shape);
}

Value Builder::Constant(Literal literal) {
  return Create(Opcode::kConstant, {}, ConstantAttributes{std::move(literal)});
}

Value Builder::ConstantScalar(ElementType type, double value) {
  return Constant(Literal::FromDouble(type, value));
}

Value Builder::ConstantScalar(ElementType type, int64_t value) {
  return Constant(Literal::FromInt(type, value));
}

Value Builder::Full(const Shape& shape, double value) {
  return BroadcastInDim(ConstantScalar(shape.element_type(), value), shape.dimensions(), {});
}

Value Builder::Full(const Shape& shape, int64_t value) {
  return BroadcastInDim(ConstantScalar(shape.element_type(), value), shape.dimensions(), {});
}

Value Builder::Zeros(const Shape& shape) { return Full(shape, int64_t{0}); }

Value Builder::Unary(Opcode opcode, Value x) { return Create(opcode, {x}); }

Value Builder::Binary(Opcode opcode, Value x, Value y) { return Create(opcode, {x, y}); }

Value Builder::Iota(const Shape& shape, int64_t dimension) {
  return Create(Opcode::kIota, {}, DimensionAttributes{dimension}, {}, shape);
}

Value Builder::Compare(Value x, Value y, ComparisonDirection direction, ComparisonType type) {
  return Create(Opcode::kCompare, {x, y}, CompareAttributes{direction, type});
}

Value Builder::Select(Value predicate, Value on_true, Value on_false) {
  return Create(Opcode::kSelect, {predicate, on_true, on_false});
}

Value Builder::Clamp(Value low, Value x, Value high) {
  return Create(Opcode::kClamp, {low, x, high});
}

Value Builder::Convert(Value x, ElementType type) {
  if (x->element_type() == type) return x;
  return Create(Opcode::kConvert, {x}, {}, {}, x->shape().WithElementType(type));
}

Value Builder::BitcastConvert(Value x, ElementType type) {
  if (x->element_type() == type) return x;
  Dimensions dimensions = x->dimensions();
  int from = BitWidth(x->element_type()), to = BitWidth(type);
  if (from > to && to > 0) dimensions.push_back(from / to);
  if (from < to && !dimensions.empty()) dimensions.pop_back();
  return Create(Opcode::kBitcastConvert, {x}, {}, {}, Shape(type, std::move(dimensions)));
}

Value Builder::ReducePrecision(Value x, int64_t exponent_bits, int64_t mantissa_bits) {
  return Create(Opcode::kReducePrecision, {x},
                ReducePrecisionAttributes{exponent_bits, mantissa_bits});
}

Value Builder::BroadcastInDim(Value x, Dimensions output_dimensions,
                              Dimensions broadcast_dimensions) {
  Shape shape = x->shape().WithDimensions(std::move(output_dimensions));
  if (shape.is_scalar() && x->shape().is_scalar()) return x;
  return Create(Opcode::kBroadcastInDim, {x}, DimensionsAttributes{std::move(broadcast_dimensions)},
                {}, std::move(shape));
}

Value Builder::BroadcastTo(Value x, const Dimensions& output_dimensions) {
  if (x->dimensions() == output_dimensions) return x;
  int64_t added = static_cast<int64_t>(output_dimensions.size()) - x->shape().rank();
  if (added < 0) {
    throw Error("broadcast_in_dim: " + x->shape().ToString() +
                " has more dimensions than the result " + hlo::ToString(output_dimensions));
  }
  Dimensions map(x->shape().rank());
  std::iota(map.begin(), map.end(), added);
  return BroadcastInDim(x, output_dimensions, std::move(map));
}

Value Builder::Reshape(Value x, Dimensions dimensions) {
  if (x->dimensions() == dimensions) return x;
  return Create(Opcode::kReshape, {x}, {}, {}, x->shape().WithDimensions(std::move(dimensions)));
}

Value Builder::Transpose(Value x, Dimensions permutation) {
  return Create(Opcode::kTranspose, {x}, DimensionsAttributes{std::move(permutation)});
}

Value Builder::Reverse(Value x, Dimensions dimensions) {
  return Create(Opcode::kReverse, {x}, DimensionsAttributes{std::move(dimensions)});
}

Value Builder::Slice(Value x, Dimensions start, Dimensions limit, Dimensions strides) {
  return Create(Opcode::kSlice, {x},
                SliceAttributes{std::move(start), std::move(limit), std::move(strides)});
}

Value Builder::SliceInDim(Value x, int64_t dimension, int64_t start, int64_t limit,
                          int64_t stride) {
  int64_t rank = x->shape().rank();
  if (dimension < 0 || dimension >= rank) {
    throw Error("slice(" + x->shape().ToString() + "): dimension " + std::to_string(dimension) +
                " is not in [0, " + std::to_string(rank) + ")");
  }
  Dimensions starts(rank, 0), limits = x->dimensions(), strides(rank, 1);
  starts[dimension] = start;
  limits[dimension] = limit;
  strides[dimension] = stride;
  return Slice(x, std::move(starts), std::move(limits), std::move(strides));
}

Value Builder::Pad(Value x, Value padding_value, Dimensions low, Dimensions high,
                   Dimensions interior) {
  return Create(Opcode::kPad, {x, padding_value},
                PadAttributes{std::move(low), std::move(high), std::move(interior)});
}

Value Builder::Concatenate(std::vector<Value> xs, int64_t dimension) {
  return Create(Opcode::kConcatenate, std::move(xs), DimensionAttributes{dimension});
}

Value Builder::DynamicSlice(Value x, std::vector<Value> starts, Dimensions sizes) {
  starts.insert(starts.begin(), x);
  return Create(Opcode::kDynamicSlice, std::move(starts), DimensionsAttributes{std::move(sizes)});
}

Value Builder::DynamicUpdateSlice(Value x, Value update, std::vector<Value> starts) {
  starts.insert(starts.begin(), {x, update});
  return Create(Opcode::kDynamicUpdateSlice, std::move(starts));
}

Value Builder::Gather(Value x, Value start_indices, GatherAttributes attributes) {
  return Create(Opcode::kGather, {x, start_indices}, std::move(attributes));
}

Value Builder::Scatter(Value x, Value indices, Value updates, Computation* combiner,
                       ScatterAttributes attributes) {
  return Create(Opcode::kScatter, {x, indices, updates}, std::move(attributes), {combiner});
}

Value Builder::DotGeneral(Value lhs, Value rhs, DotAttributes attributes,
                          std::optional<ElementType> result_type) {
  const Shape* shapes[] = {&lhs->shape(), &rhs->shape()};
  Shape shape = InferShape(Opcode::kDotGeneral, shapes, attributes, {}, std::nullopt);
  return Create(Opcode::kDotGeneral, {lhs, rhs}, std::move(attributes), {},
                WithType(shape, result_type));
}

Value Builder::MatMul(Value lhs, Value rhs) {
  DotAttributes attributes;
  attributes.lhs_contracting_dimensions = {1};
  attributes.rhs_contracting_dimensions = {0};
  return DotGeneral(lhs, rhs, std::move(attributes));
}

Value Builder::Convolution(Value lhs, Value rhs, ConvolutionAttributes attributes,
                           std::optional<ElementType> result_type) {
  const Shape* shapes[] = {&lhs->shape(), &rhs->shape()};
  Shape shape = InferShape(Opcode::kConvolution, shapes, attributes, {}, std::nullopt);
  return Create(Opcode::kConvolution, {lhs, rhs}, std::move(attributes), {},
                WithType(shape, result_type));
}

Value Builder::Reduce(Value x, Value init, Dimensions dimensions, Computation* body) {
  return ReduceVariadic({x}, {init}, std::move(dimensions), body);
}

Value Builder::Reduce(Opcode combiner, Value x, Dimensions dimensions) {
  ElementType type = x->element_type();
  // One after the other: numbers of instructions are the same whatever compiler orders arguments.
  Computation* body = ScalarCombiner(combiner, type);
  return Reduce(x, Constant(IdentityLiteral(combiner, type)), std::move(dimensions), body);
}

Value Builder::ReduceVariadic(std::vector<Value> xs, std::vector<Value> inits,
                              Dimensions dimensions, Computation* body) {
  xs.insert(xs.end(), inits.begin(), inits.end());
  return Create(Opcode::kReduce, std::move(xs), DimensionsAttributes{std::move(dimensions)},
                {body});
}

Value Builder::ReduceWindow(Value x, Value init, Window window, Computation* body) {
  return Create(Opcode::kReduceWindow, {x, init}, std::move(window), {body});
}

Value Builder::SelectAndScatter(Value operand, Value source, Value init, Window window,
                                Computation* select, Computation* scatter) {
  return Create(Opcode::kSelectAndScatter, {operand, source, init}, std::move(window),
                {select, scatter});
}

Value Builder::Sort(std::vector<Value> xs, int64_t dimension, bool is_stable,
                    Computation* comparator) {
  return Create(Opcode::kSort, std::move(xs), SortAttributes{dimension, is_stable}, {comparator});
}

Value Builder::Fft(Value x, FftType type, Dimensions length) {
  return Create(Opcode::kFft, {x}, FftAttributes{type, std::move(length)});
}

Value Builder::Cholesky(Value a, bool lower) {
  return Create(Opcode::kCholesky, {a}, CholeskyAttributes{lower});
}

Value Builder::TriangularSolve(Value a, Value b, TriangularSolveAttributes attributes) {
  return Create(Opcode::kTriangularSolve, {a, b}, attributes);
}

Value Builder::RngBitGenerator(Value state, RngAlgorithm algorithm, const Shape& shape) {
  return Create(Opcode::kRngBitGenerator, {state}, RngBitGeneratorAttributes{algorithm}, {},
                Shape::Tuple({state->shape(), shape}));
}

Value Builder::GetTupleElement(Value tuple, int64_t index) {
  return Create(Opcode::kGetTupleElement, {tuple}, TupleIndexAttributes{index});
}

Value Builder::Result(Value x, int64_t index) {
  if (index == 0 && !x->shape().is_tuple()) return x;
  return GetTupleElement(x, index);
}

Value Builder::Tuple(std::vector<Value> xs) { return Create(Opcode::kTuple, std::move(xs)); }

Value Builder::If(Value predicate, std::vector<Value> operands, Computation* on_true,
                  Computation* on_false) {
  operands.insert(operands.begin(), predicate);
  return Create(Opcode::kIf, std::move(operands), {}, {on_true, on_false});
}

Value Builder::Case(Value index, std::vector<Value> operands, std::vector<Computation*> branches) {
  operands.insert(operands.begin(), index);
  return Create(Opcode::kCase, std::move(operands), {}, std::move(branches));
}

Value Builder::While(std::vector<Value> initial, Computation* condition, Computation* body) {
  return Create(Opcode::kWhile, std::move(initial), {}, {condition, body});
}

Value Builder::Call(Computation* callee, std::vector<Value> operands) {
  return Create(Opcode::kCall, std::move(operands), {}, {callee});
}

Value Builder::OptimizationBarrier(std::vector<Value> xs) {
  return Create(Opcode::kOptimizationBarrier, std::move(xs));
}

Value Builder::CustomCall(std::vector<Value> operands, const Shape& shape,
                          CustomCallAttributes attributes) {
  return Create(Opcode::kCustomCall, std::move(operands), std::move(attributes), {}, shape);
}

Computation* Builder::ScalarCombiner(Opcode opcode, ElementType type) {
  Computation*& combiner = module()->scalar_combiners_[{opcode, type}];
  if (combiner) return combiner;
  Shape scalar = Shape::Scalar(type);
  std::string name = std::string(Name(opcode)) + "." + std::string(ShortName(type));
  // First of all, as computations anywhere in the module may come to call it.
  combiner = module()->AddComputation(name, module()->computations().front().get());
  Builder body(combiner);
  Value x = body.Parameter(scalar), y = body.Parameter(scalar);
  combiner->set_results({body.Binary(opcode, x, y)});
  return combiner;
}

Computation* Builder::Region(
    const std::string& name, const std::vector<Shape>& parameters,
    const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body) {
  Computation* region = module()->AddComputation(name, computation_);
  Builder builder(region);
  builder.set_metadata(metadata_);
  builder.set_precision(precision_);
  std::vector<Value> values;
  for (const Shape& shape : parameters) values.push_back(builder.Parameter(shape));
  region->set_results(body(builder, values));
  return region;
}

}  // namespace hlo
