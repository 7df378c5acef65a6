// The operations of core.xla_builder by name: StableHLO's, with the conveniences of XLA's builder
// (scalars stretch, "same" padding, tuples as values).
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <functional>
#include <map>

#include "aten/dtype.h"
#include "aten/elementwise.h"
#include "aten/special.h"
#include "python/xla_builder.h"

namespace torch_xla {
namespace {

namespace py = pybind11;
using hlo::Computation;

// One call of CreateUserOp: the operands and attributes, as C++ has them.
class OpCall {
 public:
  OpCall(std::shared_ptr<UserBuilder> builder, const std::string& name,
         const std::vector<UserOp>& operands, const py::dict& attributes)
      : b(builder->builder()),
        builder_(std::move(builder)),
        name_(name),
        operands_(operands),
        attributes_(attributes) {
    for (const UserOp& operand : operands) CheckBuilder(operand);
  }

  Builder& b;

  size_t size() const { return operands_.size(); }
  const UserOp& operand(size_t i) const {
    TORCH_CHECK_VALUE(i < size(), name_, " takes more than ", size(), " operands");
    return operands_[i];
  }
  Value operator[](size_t i) const { return Array(operand(i)); }
  Values Arrays() const {
    Values values;
    for (const UserOp& operand : operands_) values.push_back(Array(operand));
    return values;
  }
  Values Leaves(size_t first = 0) const {
    Values values;
    for (size_t i = first; i < size(); ++i) operands_[i].Flatten(values);
    return values;
  }

  // An attribute that is missing, or None.
  bool Has(const char* key) const {
    return attributes_.contains(key) && !attributes_[key].is_none();
  }
  template <typename T>
  T Get(const char* key) const {
    if (!Has(key)) {
      throw py::value_error(std::string("operation ") + name_ + " needs the attribute " + key);
    }
    return py::cast<T>(attributes_[key]);
  }
  template <typename T>
  T Get(const char* key, T otherwise) const {
    return Has(key) ? Get<T>(key) : otherwise;
  }
  Dimensions Sizes(const char* key) const { return Get<Dimensions>(key); }
  Values GetArrays(const char* key) const {
    Values values;
    for (const UserOp& op : Get<std::vector<UserOp>>(key)) {
      CheckBuilder(op);
      values.push_back(Array(op));
    }
    return values;
  }

  // A computation as a region of the program that is built.
  Computation* Region(const char* key) const {
    const auto computation = Get<std::shared_ptr<UserComputation>>(key);
    std::vector<Shape> shapes;
    for (const UserShape& shape : computation->parameters) shape.Flatten(shapes);
    return b.Region(computation->name, shapes, [&](Builder& inner, const Values& parameters) {
      return hlo::InlineComputation(*computation->module->entry(), *inner.computation(),
                                    parameters);
    });
  }
  UserShape ResultOf(const char* key) const {
    return Get<std::shared_ptr<UserComputation>>(key)->result;
  }
  void CheckParameters(const char* key, const UserShape& shape) const {
    const auto computation = Get<std::shared_ptr<UserComputation>>(key);
    TORCH_CHECK_VALUE(computation->parameters.size() == 1 && computation->parameters[0] == shape,
                      key, " of ", name_, " takes one parameter of shape ", shape.ToString());
  }

  UserOp Wrap(Value value) const { return {.builder = builder_, .value = value}; }
  UserOp Wrap(std::vector<UserOp> elements) const {
    return {.builder = builder_, .elements = std::move(elements)};
  }
  // The results of an operation as a value of a shape.
  UserOp WrapResults(Value results, const UserShape& shape) const {
    std::vector<Shape> shapes;
    shape.Flatten(shapes);
    Values leaves;
    for (size_t i = 0; i < shapes.size(); ++i) {
      leaves.push_back(b.Result(results, static_cast<int64_t>(i)));
    }
    std::span<const Value> rest(leaves);
    return UserOp::FromLeaves(builder_, shape, rest);
  }

 private:
  void CheckBuilder(const UserOp& op) const {
    TORCH_CHECK_VALUE(op.builder == builder_, "an operand of ", name_, " is of another builder, ",
                      op.builder->name());
  }
  Value Array(const UserOp& op) const {
    TORCH_CHECK_VALUE(!op.is_tuple(), name_, " takes arrays, not the tuple ",
                      op.shape().ToString());
    return op.value;
  }

  std::shared_ptr<UserBuilder> builder_;
  const std::string& name_;
  const std::vector<UserOp>& operands_;
  const py::dict& attributes_;
};

// --- Element by element

// Scalars stretch, and so do dimensions of size 1 among equal ranks.
std::pair<Value, Value> Stretched(Builder& b, Value x, Value y) {
  const int64_t x_rank = x->shape().rank(), y_rank = y->shape().rank();
  if (x_rank != y_rank && x_rank != 0 && y_rank != 0) return {x, y};  // refused by the operation
  Dimensions sizes = x_rank == 0 ? y->dimensions() : x->dimensions();
  if (x_rank == y_rank) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 1) sizes[i] = y->dimensions()[i];
    }
  }
  auto stretch = [&](Value v) {
    for (size_t i = 0; i < v->dimensions().size(); ++i) {
      if (v->dimensions()[i] != sizes[i] && v->dimensions()[i] != 1) return v;
    }
    return b.BroadcastTo(v, sizes);
  };
  return {stretch(x), stretch(y)};
}

Value BinaryOf(OpCall& c, Opcode opcode) {
  const auto [x, y] = Stretched(c.b, c[0], c[1]);
  return c.b.Binary(opcode, x, y);
}

Value CompareOf(OpCall& c, hlo::ComparisonDirection direction) {
  const auto [x, y] = Stretched(c.b, c[0], c[1]);
  return c.b.Compare(x, y, direction);
}

Value ShiftRight(OpCall& c) {
  const bool is_signed = hlo::IsSignedInteger(c[0]->element_type());
  return BinaryOf(c, is_signed ? Opcode::kShiftRightArithmetic : Opcode::kShiftRightLogical);
}

Value Conjugate(Builder& b, Value x) {
  if (!IsComplexValue(x)) return x;
  return b.Complex(b.Real(x), b.Negate(b.Imag(x)));
}

// By two arguments of atan2, so that no quotient overflows.
Value ArcSine(Builder& b, Value x) {
  const Value one = Like(b, x, 1);
  const Value product = b.Multiply(b.Subtract(one, x), b.Add(one, x));
  return b.Binary(Opcode::kAtan2, x, b.Sqrt(product));
}
Value ArcTangent(Builder& b, Value x) { return b.Binary(Opcode::kAtan2, x, Like(b, x, 1)); }

// e^x / 2, in two factors that do not overflow before it does.
Value HalfExponential(Builder& b, Value x) {
  const Value half = Like(b, x, 0.5);
  const Value root = b.Exp(b.Multiply(x, half));
  return b.Multiply(b.Multiply(root, half), root);
}
Value HyperbolicCosine(Builder& b, Value x) {
  return b.Add(HalfExponential(b, x), HalfExponential(b, b.Negate(x)));
}
// Near zero e^x - 1 keeps what x has.
Value HyperbolicSine(Builder& b, Value x) {
  const Value far = b.Subtract(HalfExponential(b, x), HalfExponential(b, b.Negate(x)));
  const auto minus_one = [&](Value v) { return b.Unary(Opcode::kExponentialMinusOne, v); };
  const Value near = b.Multiply(Like(b, x, 0.5), b.Subtract(minus_one(x), minus_one(b.Negate(x))));
  return b.Select(b.Lt(b.Abs(x), Like(b, x, 1)), near, far);
}

// --- Shapes

Value ReshapeOf(OpCall& c) {
  const Value x = c.Has("dimensions") ? c.b.Transpose(c[0], c.Sizes("dimensions")) : c[0];
  return c.b.Reshape(x, c.Sizes("sizes"));
}

// New dimensions in front.
Value BroadcastOf(OpCall& c) {
  const Value x = c[0];
  Dimensions sizes = c.Sizes("sizes"), places;
  for (size_t i = 0; i < x->dimensions().size(); ++i) {
    places.push_back(static_cast<int64_t>(sizes.size()));
    sizes.push_back(x->dimensions()[i]);
  }
  return c.b.BroadcastInDim(x, sizes, places);
}

Value PadOf(OpCall& c) {
  Dimensions low, high, interior;
  for (const auto& [before, after, between] :
       c.Get<std::vector<std::tuple<int64_t, int64_t, int64_t>>>("config")) {
    low.push_back(before);
    high.push_back(after);
    interior.push_back(between);
  }
  return c.b.Pad(c[0], c[1], low, high, interior);
}

Value GatherOf(OpCall& c) {
  hlo::GatherAttributes attributes{
      .offset_dims = c.Sizes("offset_dims"),
      .collapsed_slice_dims = c.Sizes("collapsed_slice_dims"),
      .operand_batching_dims = {},
      .start_indices_batching_dims = {},
      .start_index_map = c.Sizes("start_index_map"),
      .index_vector_dim = c.Get<int64_t>("index_vector_dim"),
      .slice_sizes = c.Get<Dimensions>("slice_sizes", c[0]->dimensions()),
      .indices_are_sorted = c.Get<bool>("indices_are_sorted", false),
  };
  if (!c.Has("slice_sizes")) {  // whole dimensions, but those that are dropped
    for (const int64_t dimension : attributes.collapsed_slice_dims) {
      attributes.slice_sizes.at(static_cast<size_t>(dimension)) = 1;
    }
  }
  return c.b.Gather(c[0], c[1], attributes);
}

Value ScatterOf(OpCall& c) {
  return c.b.Scatter(c[0], c[1], c[2], c.Region("computation"),
                     {
                         .update_window_dims = c.Sizes("update_window_dims"),
                         .inserted_window_dims = c.Sizes("inserted_window_dims"),
                         .input_batching_dims = {},
                         .scatter_indices_batching_dims = {},
                         .scatter_dims_to_operand_dims = c.Sizes("scatter_dims_to_operand_dims"),
                         .index_vector_dim = c.Get<int64_t>("index_vector_dim"),
                         .indices_are_sorted = c.Get<bool>("indices_are_sorted", false),
                         .unique_indices = c.Get<bool>("unique_indices", false),
                     });
}

// --- Windows

// "valid": none. "same": as many results as there are strides in a dimension, the rest of an odd
// padding behind. A list: (before, behind) of each dimension.
void SetPadding(OpCall& c, hlo::Window& window, const Dimensions& sizes,
                const Dimensions& extents) {
  const size_t rank = sizes.size();
  window.padding_low.assign(rank, 0);
  window.padding_high.assign(rank, 0);
  if (!c.Has("padding")) return;
  const py::object padding = c.Get<py::object>("padding");
  if (!py::isinstance<py::str>(padding)) {
    const auto pairs = py::cast<std::vector<std::pair<int64_t, int64_t>>>(padding);
    TORCH_CHECK_VALUE(pairs.size() == rank, "the padding has ", pairs.size(), " pairs for ", rank,
                      " dimensions");
    for (size_t i = 0; i < rank; ++i) {
      std::tie(window.padding_low[i], window.padding_high[i]) = pairs[i];
    }
    return;
  }
  const auto word = py::cast<std::string>(padding);
  TORCH_CHECK_VALUE(word == "valid" || word == "same", "padding is \"valid\", \"same\" or pairs, ",
                    "not \"", word, "\"");
  if (word == "valid") return;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t stride = window.strides[i];
    const int64_t results = (sizes[i] + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, ((results - 1) * stride) + extents[i] - sizes[i]);
    window.padding_low[i] = total / 2;
    window.padding_high[i] = total - (total / 2);
  }
}

hlo::Window WindowOf(OpCall& c, const char* dimensions, const char* strides) {
  hlo::Window window = hlo::Window::Trivial(c[0]->shape().rank());
  window.dimensions = c.Sizes(dimensions);
  window.strides = c.Sizes(strides);
  TORCH_CHECK_VALUE(window.dimensions.size() == c[0]->dimensions().size() &&
                        window.strides.size() == c[0]->dimensions().size(),
                    "a window has a size and a stride for each of the operand's ",
                    c[0]->shape().rank(), " dimensions");
  SetPadding(c, window, c[0]->dimensions(), window.dimensions);
  return window;
}

Value MaxPoolOf(OpCall& c) {
  const ElementType type = c[0]->element_type();
  const Value lowest = c.b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, type));
  return c.b.ReduceWindow(c[0], lowest, WindowOf(c, "kernel_size", "stride"),
                          c.b.ScalarCombiner(Opcode::kMaximum, type));
}

Value SelectAndScatterOf(OpCall& c) {
  return c.b.SelectAndScatter(c[0], c[1], c[2], WindowOf(c, "window_dimensions", "window_strides"),
                              c.Region("select_computation"), c.Region("scatter_computation"));
}

std::vector<hlo::Precision> PrecisionOf(OpCall& c) {
  std::vector<hlo::Precision> precision;
  if (!c.Has("precision_config")) return precision;
  for (std::string word : c.Get<std::vector<std::string>>("precision_config")) {
    std::transform(word.begin(), word.end(), word.begin(), ::tolower);
    TORCH_CHECK_VALUE(word == "default" || word == "high" || word == "highest",
                      "a precision is default, high or highest, not ", word);
    precision.push_back(word == "default" ? hlo::Precision::kDefault
                        : word == "high"  ? hlo::Precision::kHigh
                                          : hlo::Precision::kHighest);
  }
  return precision;
}

hlo::ConvolutionDimensions ConvolutionDimensionsOf(OpCall& c) {
  if (!c.Has("input_batch_dimension")) {
    return hlo::ConvolutionDimensions::ChannelsFirst(c[0]->shape().rank() - 2);
  }
  return {
      .input_batch_dimension = c.Get<int64_t>("input_batch_dimension"),
      .input_feature_dimension = c.Get<int64_t>("input_feature_dimension"),
      .input_spatial_dimensions = c.Sizes("input_spatial_dimensions"),
      .kernel_input_feature_dimension = c.Get<int64_t>("kernel_input_feature_dimension"),
      .kernel_output_feature_dimension = c.Get<int64_t>("kernel_output_feature_dimension"),
      .kernel_spatial_dimensions = c.Sizes("kernel_spatial_dimensions"),
      .output_batch_dimension = c.Get<int64_t>("output_batch_dimension"),
      .output_feature_dimension = c.Get<int64_t>("output_feature_dimension"),
      .output_spatial_dimensions = c.Sizes("output_spatial_dimensions"),
  };
}

Value ConvolutionOf(OpCall& c) {
  hlo::ConvolutionAttributes attributes;
  attributes.dimensions = ConvolutionDimensionsOf(c);
  attributes.feature_group_count = c.Get<int64_t>("feature_group_count", 1);
  attributes.batch_group_count = c.Get<int64_t>("batch_group_count", 1);
  attributes.precision = PrecisionOf(c);
  Dimensions sizes, extents;
  for (const int64_t d : attributes.dimensions.input_spatial_dimensions) {
    sizes.push_back(c[0]->dimensions().at(static_cast<size_t>(d)));
  }
  for (const int64_t d : attributes.dimensions.kernel_spatial_dimensions) {
    extents.push_back(c[1]->dimensions().at(static_cast<size_t>(d)));
  }
  hlo::Window& window = attributes.window;
  window = hlo::Window::Trivial(static_cast<int64_t>(sizes.size()));
  window.dimensions.clear();
  window.strides = c.Sizes("window_strides");
  TORCH_CHECK_VALUE(window.strides.size() == sizes.size(), "a convolution has a stride for each ",
                    "of its ", sizes.size(), " spatial dimensions");
  window.base_dilations = c.Get<Dimensions>("lhs_dilation", window.base_dilations);
  window.window_dilations = c.Get<Dimensions>("rhs_dilation", window.window_dilations);
  SetPadding(c, window, sizes, extents);
  return c.b.Convolution(c[0], c[1], attributes);
}

// --- Products and reductions

// Of vectors and matrices: the last dimension with the first.
Value DotOf(OpCall& c) {
  return c.b.DotGeneral(c[0], c[1],
                        {.lhs_batching_dimensions = {},
                         .rhs_batching_dimensions = {},
                         .lhs_contracting_dimensions = {c[0]->shape().rank() - 1},
                         .rhs_contracting_dimensions = {0},
                         .precision = PrecisionOf(c)});
}

Value ReduceAllOf(OpCall& c) {
  Dimensions all;
  for (int64_t i = 0; i < c[0]->shape().rank(); ++i) all.push_back(i);
  return c.b.Reduce(c[0], c[1], all, c.Region("computation"));
}

Value TriangularSolveOf(OpCall& c) {
  const bool transpose = c.Get<bool>("transpose_a", false);
  return c.b.TriangularSolve(
      c[0], c[1],
      {.left_side = c.Get<bool>("left_side", true),
       .lower = c.Get<bool>("lower", true),
       .unit_diagonal = c.Get<bool>("unit_diagonal", false),
       .transpose_a = transpose ? hlo::Transpose::kTranspose : hlo::Transpose::kNoTranspose});
}

// --- Several results, and control

UserOp SortOf(OpCall& c) {
  const Values operands = c.Arrays();
  int64_t dimension = c.Get<int64_t>("dimension", -1);
  if (dimension < 0) dimension += c[0]->shape().rank();
  const Value sorted =
      c.b.Sort(operands, dimension, c.Get<bool>("is_stable", false), c.Region("comparator"));
  if (operands.size() == 1) return c.Wrap(sorted);
  UserShape shape{.is_tuple = true};
  for (const Value operand : operands) {
    shape.elements.push_back({.array = operand->shape()});
  }
  return c.WrapResults(sorted, shape);
}

Value MapOf(OpCall& c) {
  TORCH_CHECK_VALUE(!c.Has("static_operands") || py::len(c.Get<py::object>("static_operands")) == 0,
                    "Map takes no static operands");
  return c.b.Create(Opcode::kMap, c.Arrays(), hlo::DimensionsAttributes{c.Sizes("dimensions")},
                    {c.Region("computation")});
}

UserOp CallOf(OpCall& c) {
  const Value results = c.b.Call(c.Region("computation"), c.Leaves());
  return c.WrapResults(results, c.ResultOf("computation"));
}

// A branch that takes both branches' operands, and uses its own.
Computation* BranchOf(OpCall& c, const char* key, size_t own, const std::vector<Shape>& shapes) {
  const auto computation = c.Get<std::shared_ptr<UserComputation>>(key);
  c.CheckParameters(key, c.operand(own).shape());
  Values first;
  c.operand(1).Flatten(first);
  return c.b.Region(computation->name, shapes, [&](Builder& inner, const Values& parameters) {
    const auto middle = parameters.begin() + static_cast<int64_t>(first.size());
    const Values mine =
        own == 1 ? Values(parameters.begin(), middle) : Values(middle, parameters.end());
    return hlo::InlineComputation(*computation->module->entry(), *inner.computation(), mine);
  });
}

UserOp ConditionalOf(OpCall& c) {
  const Values operands = c.Leaves(1);
  std::vector<Shape> shapes;
  for (const Value operand : operands) shapes.push_back(operand->shape());
  Computation* on_true = BranchOf(c, "true_computation", 1, shapes);
  Computation* on_false = BranchOf(c, "false_computation", 2, shapes);
  return c.WrapResults(c.b.If(c[0], operands, on_true, on_false), c.ResultOf("true_computation"));
}

UserOp WhileOf(OpCall& c) {
  const UserShape shape = c.operand(0).shape();
  c.CheckParameters("condition_computation", shape);
  c.CheckParameters("body_computation", shape);
  const Value results =
      c.b.While(c.Leaves(), c.Region("condition_computation"), c.Region("body_computation"));
  return c.WrapResults(results, shape);
}

UserOp TupleOf(OpCall& c) {
  std::vector<UserOp> elements;
  for (size_t i = 0; i < c.size(); ++i) elements.push_back(c.operand(i));
  return c.Wrap(std::move(elements));
}

UserOp TupleElementOf(OpCall& c) {
  const UserOp& tuple = c.operand(0);
  const auto index = c.Get<int64_t>("index");
  TORCH_CHECK_INDEX(
      tuple.is_tuple() && index >= 0 && index < static_cast<int64_t>(tuple.elements.size()),
      "there is no element ", index, " in ", tuple.shape().ToString());
  return tuple.elements[static_cast<size_t>(index)];
}

Value ConstantOf(OpCall& c) {
  const at::Tensor value = c.Get<at::Tensor>("value").cpu().contiguous();
  return c.b.Constant(hlo::Literal(Shape(ToElementType(value.scalar_type()), value.sizes().vec()),
                                   value.const_data_ptr()));
}

Value IotaOf(OpCall& c) {
  return c.b.Iota(ShapeFromPython(c.Get<py::object>("shape")).array,
                  c.Get<int64_t>("iota_dimension"));
}

ElementType TypeOf(OpCall& c) {
  py::dict scalar;
  scalar["type"] = c.Get<std::string>("to_type");
  scalar["sizes"] = py::tuple();
  return ShapeFromPython(scalar).array.element_type();
}

// --- The names

using Make = std::function<UserOp(OpCall&)>;

Make Array(Value (*make)(OpCall&)) {
  return [make](OpCall& c) { return c.Wrap(make(c)); };
}
Make Unary(Opcode opcode) {
  return [opcode](OpCall& c) { return c.Wrap(c.b.Unary(opcode, c[0])); };
}
Make Formula(Value (*formula)(Builder&, Value)) {
  return [formula](OpCall& c) { return c.Wrap(formula(c.b, c[0])); };
}
Make Binary(Opcode opcode) {
  return [opcode](OpCall& c) { return c.Wrap(BinaryOf(c, opcode)); };
}
Make Comparison(hlo::ComparisonDirection direction) {
  return [direction](OpCall& c) { return c.Wrap(CompareOf(c, direction)); };
}

std::map<std::string, Make> Elementwise() {
  using enum hlo::ComparisonDirection;
  return {
      {"Abs", Unary(Opcode::kAbs)},
      {"Ceil", Unary(Opcode::kCeil)},
      {"Clz", Unary(Opcode::kCountLeadingZeros)},
      {"Cos", Unary(Opcode::kCosine)},
      {"Exp", Unary(Opcode::kExponential)},
      {"Expm1", Unary(Opcode::kExponentialMinusOne)},
      {"Floor", Unary(Opcode::kFloor)},
      {"Imag", Unary(Opcode::kImag)},
      {"Log", Unary(Opcode::kLog)},
      {"Log1p", Unary(Opcode::kLogPlusOne)},
      {"Neg", Unary(Opcode::kNegate)},
      {"Not", Unary(Opcode::kNot)},
      {"Real", Unary(Opcode::kReal)},
      {"Rsqrt", Unary(Opcode::kRsqrt)},
      {"Sign", Unary(Opcode::kSign)},
      {"Sin", Unary(Opcode::kSine)},
      {"Sqrt", Unary(Opcode::kSqrt)},
      {"Tan", Unary(Opcode::kTan)},
      {"Tanh", Unary(Opcode::kTanh)},
      {"Acos", Formula(&Acos)},
      {"Asin", Formula(&ArcSine)},
      {"Atan", Formula(&ArcTangent)},
      {"Conj", Formula(&Conjugate)},
      {"Cosh", Formula(&HyperbolicCosine)},
      {"Erf", Formula(&Erf)},
      {"Erfc", Formula(&Erfc)},
      {"ErfInv", Formula(&ErfInv)},
      {"Sinh", Formula(&HyperbolicSine)},
      {"Add", Binary(Opcode::kAdd)},
      {"And", Binary(Opcode::kAnd)},
      {"Atan2", Binary(Opcode::kAtan2)},
      {"Div", Binary(Opcode::kDivide)},
      {"Max", Binary(Opcode::kMaximum)},
      {"Min", Binary(Opcode::kMinimum)},
      {"Mul", Binary(Opcode::kMultiply)},
      {"Or", Binary(Opcode::kOr)},
      {"Pow", Binary(Opcode::kPower)},
      {"Rem", Binary(Opcode::kRemainder)},
      {"ShiftLeft", Binary(Opcode::kShiftLeft)},
      {"ShiftRight", Array(&ShiftRight)},
      {"Sub", Binary(Opcode::kSubtract)},
      {"Xor", Binary(Opcode::kXor)},
      {"Eq", Comparison(kEq)},
      {"Ge", Comparison(kGe)},
      {"Gt", Comparison(kGt)},
      {"Le", Comparison(kLe)},
      {"Lt", Comparison(kLt)},
      {"Ne", Comparison(kNe)},
      {"Clamp", Array([](OpCall& c) { return c.b.Clamp(c[1], c[0], c[2]); })},
      {"Select", Array([](OpCall& c) { return c.b.Select(c[0], c[1], c[2]); })},
      {"Convert", Array([](OpCall& c) { return c.b.Convert(c[0], TypeOf(c)); })},
      {"BitcastConvert", Array([](OpCall& c) { return c.b.BitcastConvert(c[0], TypeOf(c)); })},
  };
}

std::map<std::string, Make> Structured() {
  return {
      {"Broadcast", Array(&BroadcastOf)},
      {"BroadcastInDim", Array([](OpCall& c) {
         return c.b.BroadcastInDim(c[0], c.Sizes("sizes"), c.Sizes("dimensions"));
       })},
      {"ConcatInDim",
       Array([](OpCall& c) { return c.b.Concatenate(c.Arrays(), c.Get<int64_t>("dimension")); })},
      {"Constant", Array(&ConstantOf)},
      {"DynamicSlice", Array([](OpCall& c) {
         return c.b.DynamicSlice(c[0], c.GetArrays("start_indices"), c.Sizes("slice_sizes"));
       })},
      {"DynamicUpdateSlice", Array([](OpCall& c) {
         return c.b.DynamicUpdateSlice(c[0], c[1], c.GetArrays("start_indices"));
       })},
      {"Gather", Array(&GatherOf)},
      {"GetDimensionSize", Array([](OpCall& c) {
         return c.b.Create(Opcode::kGetDimensionSize, {c[0]},
                           hlo::DimensionAttributes{c.Get<int64_t>("dimension")});
       })},
      {"Iota", Array(&IotaOf)},
      {"Pad", Array(&PadOf)},
      {"Reshape", Array(&ReshapeOf)},
      {"Rev", Array([](OpCall& c) { return c.b.Reverse(c[0], c.Sizes("dimensions")); })},
      {"Scatter", Array(&ScatterOf)},
      {"Slice", Array([](OpCall& c) {
         return c.b.Slice(c[0], c.Sizes("start_indices"), c.Sizes("limit_indices"),
                          c.Sizes("strides"));
       })},
      {"SliceInDim", Array([](OpCall& c) {
         return c.b.SliceInDim(c[0], c.Get<int64_t>("dimno"), c.Get<int64_t>("start_index"),
                               c.Get<int64_t>("limit_index"), c.Get<int64_t>("stride", 1));
       })},
      {"Transpose", Array([](OpCall& c) { return c.b.Transpose(c[0], c.Sizes("permutation")); })},
      {"Conv", Array(&ConvolutionOf)},
      {"ConvGeneral", Array(&ConvolutionOf)},
      {"ConvGeneralDilated", Array(&ConvolutionOf)},
      {"ConvWithGeneralDimensions", Array(&ConvolutionOf)},
      {"ConvWithGeneralPadding", Array(&ConvolutionOf)},
      {"Dot", Array(&DotOf)},
      {"MaxPool", Array(&MaxPoolOf)},
      {"Reduce", Array([](OpCall& c) {
         return c.b.Reduce(c[0], c[1], c.Sizes("dimensions"), c.Region("computation"));
       })},
      {"ReduceAll", Array(&ReduceAllOf)},
      {"ReduceWindow", Array([](OpCall& c) {
         return c.b.ReduceWindow(c[0], c[1], WindowOf(c, "window_dimensions", "window_strides"),
                                 c.Region("computation"));
       })},
      {"SelectAndScatter", Array(&SelectAndScatterOf)},
      {"SelectAndScatterWithGeneralPadding", Array(&SelectAndScatterOf)},
      {"TriangularSolve", Array(&TriangularSolveOf)},
      {"Map", Array(&MapOf)},
      {"Call", &CallOf},
      {"Conditional", &ConditionalOf},
      {"GetTupleElement", &TupleElementOf},
      {"Sort", &SortOf},
      {"Tuple", &TupleOf},
      {"While", &WhileOf},
  };
}

const std::map<std::string, Make>& Operations() {
  static const auto* operations = [] {
    auto* all = new std::map<std::string, Make>(Elementwise());
    all->merge(Structured());
    return all;
  }();
  return *operations;
}

}  // namespace

UserOp CreateUserOp(std::shared_ptr<UserBuilder> builder, const std::string& name,
                    const std::vector<UserOp>& operands, const py::dict& attributes) {
  const auto make = Operations().find(name);
  TORCH_CHECK_NOT_IMPLEMENTED(make != Operations().end(), "xla_builder has no operation ", name,
                              "; operations with sizes that only the running program knows "
                              "(DynamicReshape, SetDimensionSize) are none of the engine's");
  OpCall call(std::move(builder), name, operands, attributes);
  return make->second(call);
}

}  // namespace torch_xla
