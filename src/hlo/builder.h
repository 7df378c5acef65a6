// Builder: appends instructions to a computation, inferring their shapes and checking their
// operands. Each method is StableHLO's operation of that name; every one throws Error, naming the
// operation and the shapes, when the operands do not fit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace hlo {

using Value = Instruction*;

class Builder {
 public:
  explicit Builder(Computation* computation) : computation_(computation) {}
  Computation* computation() const { return computation_; }
  Module* module() const { return computation_->module(); }

  // Metadata of all instructions made from here on.
  void set_metadata(SharedMetadata metadata) { metadata_ = std::move(metadata); }
  const Metadata& metadata() const { return *metadata_; }
  const SharedMetadata& shared_metadata() const { return metadata_; }
  // What contractions made from here on ask for, unless their attributes name a precision.
  void set_precision(Precision precision) { precision_ = precision; }

  // The general form: infers the shape (`shape` is needed where the operands do not determine it,
  // and checked), checks, appends.
  Value Create(Opcode opcode, InstructionList operands, Attributes attributes = {},
               std::vector<Computation*> called = {}, std::optional<Shape> shape = std::nullopt);

  // Appends a parameter with the next number.
  Value Parameter(const Shape& shape);
  Value Constant(Literal literal);
  Value ConstantScalar(ElementType type, double value);
  Value ConstantScalar(ElementType type, int64_t value);
  // A scalar constant broadcast to a shape.
  Value Full(const Shape& shape, double value);
  Value Full(const Shape& shape, int64_t value);
  Value Zeros(const Shape& shape);
  Value Iota(const Shape& shape, int64_t dimension);

  // Elementwise. Operands of a binary have identical shapes: StableHLO has no implicit broadcast.
  Value Unary(Opcode opcode, Value x);
  Value Binary(Opcode opcode, Value x, Value y);
  Value Add(Value x, Value y) { return Binary(Opcode::kAdd, x, y); }
  Value Subtract(Value x, Value y) { return Binary(Opcode::kSubtract, x, y); }
  Value Multiply(Value x, Value y) { return Binary(Opcode::kMultiply, x, y); }
  Value Divide(Value x, Value y) { return Binary(Opcode::kDivide, x, y); }
  Value Maximum(Value x, Value y) { return Binary(Opcode::kMaximum, x, y); }
  Value Minimum(Value x, Value y) { return Binary(Opcode::kMinimum, x, y); }
  Value Power(Value x, Value y) { return Binary(Opcode::kPower, x, y); }
  Value Remainder(Value x, Value y) { return Binary(Opcode::kRemainder, x, y); }
  Value And(Value x, Value y) { return Binary(Opcode::kAnd, x, y); }
  Value Or(Value x, Value y) { return Binary(Opcode::kOr, x, y); }
  Value Xor(Value x, Value y) { return Binary(Opcode::kXor, x, y); }
  Value Complex(Value real, Value imaginary) { return Binary(Opcode::kComplex, real, imaginary); }
  Value Not(Value x) { return Unary(Opcode::kNot, x); }
  Value Negate(Value x) { return Unary(Opcode::kNegate, x); }
  Value Abs(Value x) { return Unary(Opcode::kAbs, x); }
  Value Exp(Value x) { return Unary(Opcode::kExponential, x); }
  Value Log(Value x) { return Unary(Opcode::kLog, x); }
  Value Sqrt(Value x) { return Unary(Opcode::kSqrt, x); }
  Value Rsqrt(Value x) { return Unary(Opcode::kRsqrt, x); }
  Value Tanh(Value x) { return Unary(Opcode::kTanh, x); }
  Value Logistic(Value x) { return Unary(Opcode::kLogistic, x); }
  Value Real(Value x) { return Unary(Opcode::kReal, x); }
  Value Imag(Value x) { return Unary(Opcode::kImag, x); }
  Value Compare(Value x, Value y, ComparisonDirection direction,
                ComparisonType type = ComparisonType::kNotype);
  Value Eq(Value x, Value y) { return Compare(x, y, ComparisonDirection::kEq); }
  Value Ne(Value x, Value y) { return Compare(x, y, ComparisonDirection::kNe); }
  Value Lt(Value x, Value y) { return Compare(x, y, ComparisonDirection::kLt); }
  Value Le(Value x, Value y) { return Compare(x, y, ComparisonDirection::kLe); }
  Value Gt(Value x, Value y) { return Compare(x, y, ComparisonDirection::kGt); }
  Value Ge(Value x, Value y) { return Compare(x, y, ComparisonDirection::kGe); }
  // `predicate` has the operands' dimensions or is a scalar.
  Value Select(Value predicate, Value on_true, Value on_false);
  // min(max(x, low), high); low and high have x's shape or are scalars.
  Value Clamp(Value low, Value x, Value high);
  Value Convert(Value x, ElementType type);  // x itself when it has the type
  Value BitcastConvert(Value x, ElementType type);
  Value ReducePrecision(Value x, int64_t exponent_bits, int64_t mantissa_bits);

  // Shape and index.
  // `broadcast_dimensions[i]` is the output dimension of x's dimension i; a size-1 dimension
  // stretches.
  Value BroadcastInDim(Value x, Dimensions output_dimensions, Dimensions broadcast_dimensions);
  // x with leading dimensions added, or size-1 dimensions stretched, in numpy's sense; x itself
  // when nothing changes.
  Value BroadcastTo(Value x, const Dimensions& output_dimensions);
  Value Reshape(Value x, Dimensions dimensions);  // x itself when nothing changes
  Value Transpose(Value x, Dimensions permutation);
  Value Reverse(Value x, Dimensions dimensions);
  Value Slice(Value x, Dimensions start, Dimensions limit, Dimensions strides);
  Value SliceInDim(Value x, int64_t dimension, int64_t start, int64_t limit, int64_t stride = 1);
  Value Pad(Value x, Value padding_value, Dimensions low, Dimensions high, Dimensions interior);
  Value Concatenate(std::vector<Value> xs, int64_t dimension);
  Value DynamicSlice(Value x, std::vector<Value> starts, Dimensions sizes);
  Value DynamicUpdateSlice(Value x, Value update, std::vector<Value> starts);
  Value Gather(Value x, Value start_indices, GatherAttributes attributes);
  // One operand and one update; the general form is Create(kScatter).
  Value Scatter(Value x, Value indices, Value updates, Computation* combiner,
                ScatterAttributes attributes);

  // Contractions.
  Value DotGeneral(Value lhs, Value rhs, DotAttributes attributes,
                   std::optional<ElementType> result_type = std::nullopt);
  Value MatMul(Value lhs, Value rhs);  // [m,k] x [k,n]
  Value Convolution(Value lhs, Value rhs, ConvolutionAttributes attributes,
                    std::optional<ElementType> result_type = std::nullopt);

  // Reductions. `body` combines two scalars.
  Value Reduce(Value x, Value init, Dimensions dimensions, Computation* body);
  // Reduce with add, multiply, maximum, minimum, and or or, from the operation's identity.
  Value Reduce(Opcode combiner, Value x, Dimensions dimensions);
  // N inputs, N inits, a body of 2N parameters; a tuple unless N = 1.
  Value ReduceVariadic(std::vector<Value> xs, std::vector<Value> inits, Dimensions dimensions,
                       Computation* body);
  Value ReduceWindow(Value x, Value init, Window window, Computation* body);
  Value SelectAndScatter(Value operand, Value source, Value init, Window window,
                         Computation* select, Computation* scatter);
  // A tuple of the sorted operands unless there is one.
  Value Sort(std::vector<Value> xs, int64_t dimension, bool is_stable, Computation* comparator);

  Value Fft(Value x, FftType type, Dimensions length);
  Value Cholesky(Value a, bool lower);
  Value TriangularSolve(Value a, Value b, TriangularSolveAttributes attributes);
  // Returns the tuple (new state, bits).
  Value RngBitGenerator(Value state, RngAlgorithm algorithm, const Shape& shape);

  // Control.
  Value GetTupleElement(Value tuple, int64_t index);
  // The i-th result: GetTupleElement for a tuple, x itself for i = 0 otherwise.
  Value Result(Value x, int64_t index);
  Value Tuple(std::vector<Value> xs);
  // `operands` go to both branches as parameters. A tuple unless there is one result.
  Value If(Value predicate, std::vector<Value> operands, Computation* on_true,
           Computation* on_false);
  Value Case(Value index, std::vector<Value> operands, std::vector<Computation*> branches);
  Value While(std::vector<Value> initial, Computation* condition, Computation* body);
  Value Call(Computation* callee, std::vector<Value> operands);
  Value OptimizationBarrier(std::vector<Value> xs);
  Value CustomCall(std::vector<Value> operands, const Shape& shape,
                   CustomCallAttributes attributes);

  // A computation of two scalar parameters that applies a binary op; made once per module and type.
  Computation* ScalarCombiner(Opcode opcode, ElementType type);
  // A new computation built by a function that receives its builder and returns its results.
  Computation* Region(
      const std::string& name, const std::vector<Shape>& parameters,
      const std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>& body);

 private:
  Computation* computation_;
  SharedMetadata metadata_;
  Precision precision_ = Precision::kDefault;
};

// The identity of add, multiply, maximum, minimum, and, or for a type: 0, 1, lowest, highest, all
// ones, 0.
Literal IdentityLiteral(Opcode combiner, ElementType type);

}  // namespace hlo
