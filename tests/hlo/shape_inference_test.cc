// Shape inference: rows of operands and attributes with the shape that follows, or a part of the
// message of the error.
#include "hlo/shape_inference.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlo {
namespace {

// "f32[2,?]", "token", "(f32[2], s32[])".
Shape Parse(const std::string& text) {
  if (text == "token") return Shape::Token();
  if (text[0] == '(') {
    std::vector<Shape> elements;
    int depth = 0;
    std::string part;
    for (char c : text.substr(1, text.size() - 2) + ",") {
      depth += (c == '[' || c == '(') - (c == ']' || c == ')');
      if (c == ',' && depth == 0) {
        if (!part.empty()) elements.push_back(Parse(part));
        part.clear();
      } else if (c != ' ' || !part.empty()) {
        part += c;
      }
    }
    return Shape::Tuple(std::move(elements));
  }
  size_t bracket = text.find('[');
  static const auto* const types = [] {
    auto* map = new std::map<std::string, ElementType>;
    for (int i = 1; i < static_cast<int>(ElementType::kToken); ++i) {
      (*map)[std::string(ShortName(static_cast<ElementType>(i)))] = static_cast<ElementType>(i);
    }
    return map;
  }();
  Dimensions dimensions;
  std::istringstream sizes(text.substr(bracket + 1, text.size() - bracket - 2));
  for (std::string size; std::getline(sizes, size, ',');) {
    dimensions.push_back(size == "?" ? kDynamic : std::stoll(size));
  }
  return Shape(types->at(text.substr(0, bracket)), std::move(dimensions));
}

// Computations that rows may call.
class Regions {
 public:
  Regions() {
    main_ = module_.AddComputation("main");
    Builder b(main_);
    add_f32 = b.ScalarCombiner(Opcode::kAdd, ElementType::kF32);
    add_bf16 = b.ScalarCombiner(Opcode::kAdd, ElementType::kBF16);
    add_s32 = b.ScalarCombiner(Opcode::kAdd, ElementType::kS32);
    less_f32 = b.Region("less_f32", Repeat("f32[]", 2), [](Builder& r, const auto& p) {
      return std::vector<Value>{r.Lt(p[0], p[1])};
    });
    less_f32_s32 =
        b.Region("less_f32_s32", {S("f32[]"), S("f32[]"), S("s32[]"), S("s32[]")},
                 [](Builder& r, const auto& p) { return std::vector<Value>{r.Lt(p[0], p[1])}; });
    pair = b.Region("pair", {S("f32[]"), S("s32[]"), S("f32[]"), S("s32[]")},
                    [](Builder&, const auto& p) { return std::vector<Value>{p[0], p[1]}; });
    negate = b.Region("negate", {S("f32[2]")},
                      [](Builder& r, const auto& p) { return std::vector<Value>{r.Negate(p[0])}; });
    twice = b.Region("twice", {S("f32[2]")},
                     [](Builder&, const auto& p) { return std::vector<Value>{p[0], p[0]}; });
    positive = b.Region("positive", {S("f32[2]")}, [](Builder& r, const auto& p) {
      Value zero = r.ConstantScalar(ElementType::kF32, 0.0);
      return std::vector<Value>{r.Gt(r.Reduce(Opcode::kAdd, p[0], {0}), zero)};
    });
    to_scalar = b.Region("to_scalar", {S("f32[]")}, [](Builder& r, const auto& p) {
      return std::vector<Value>{r.Convert(p[0], ElementType::kS8)};
    });
  }

  Computation *add_f32, *add_bf16, *add_s32, *less_f32, *less_f32_s32, *pair, *negate, *twice,
      *positive, *to_scalar;

 private:
  static Shape S(const char* text) { return Parse(text); }
  static std::vector<Shape> Repeat(const char* text, size_t count) {
    return std::vector<Shape>(count, Parse(text));
  }
  Module module_;
  Computation* main_;
};

Regions& R() {
  static auto* const regions = new Regions;
  return *regions;
}

struct Row {
  Opcode opcode;
  std::vector<std::string> operands;
  std::string expected;  // a shape, or "! " and a part of the message
  Attributes attributes = {};
  std::string given = "";
  std::vector<Computation*> called = {};
};

std::string Infer(const Row& row) {
  std::vector<Shape> shapes;
  for (const std::string& text : row.operands) shapes.push_back(Parse(text));
  std::vector<const Shape*> pointers;
  for (const Shape& shape : shapes) pointers.push_back(&shape);
  std::optional<Shape> given;
  if (!row.given.empty()) given = Parse(row.given);
  try {
    return InferShape(row.opcode, pointers, row.attributes, row.called, given).ToString();
  } catch (const Error& error) {
    return std::string("! ") + error.what();
  }
}

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string actual = Infer(row);
    std::string where(Name(row.opcode));
    for (const std::string& operand : row.operands) where += " " + operand;
    if (row.expected.starts_with("! ")) {
      EXPECT_TRUE(actual.starts_with("! ")) << where << " gave " << actual;
      EXPECT_NE(actual.find(row.expected.substr(2)), std::string::npos) << where << ": " << actual;
      // Every message names the operation and its operands.
      EXPECT_NE(actual.find(Name(row.opcode)), std::string::npos) << actual;
      for (const std::string& operand : row.operands) {
        EXPECT_NE(actual.find(operand), std::string::npos) << actual;
      }
    } else {
      EXPECT_EQ(actual, row.expected) << where;
    }
  }
}

Attributes Dims(Dimensions dimensions) { return DimensionsAttributes{std::move(dimensions)}; }
Attributes Dim(int64_t dimension) { return DimensionAttributes{dimension}; }

TEST(ShapeInference, Elementwise) {
  using enum Opcode;
  Check({
      {kAdd, {"f32[2,3]", "f32[2,3]"}, "f32[2,3]"},
      {kAdd, {"pred[2]", "pred[2]"}, "pred[2]"},
      {kAdd, {"f32[?,3]", "f32[2,?]"}, "f32[2,3]"},
      {kAdd, {"f32[2,3]", "f32[3]"}, "! nothing is broadcast"},
      {kAdd, {"f32[2]", "f64[2]"}, "! same shape and element type"},
      {kAdd, {"f32[2]"}, "! takes 2 operands, not 1"},
      {kAdd, {"token", "token"}, "! must be tensors"},
      {kAdd, {"f32[2]", "f32[2]"}, "! differs from what follows", {}, "f32[3]"},
      {kSubtract, {"pred[2]", "pred[2]"}, "! must be one of integer, floating-point, complex"},
      {kAnd, {"f32[]", "f32[]"}, "! must be one of pred, integer, not f32"},
      {kShiftLeft, {"pred[]", "pred[]"}, "! must be one of integer"},
      {kComplex, {"f32[2]", "f32[2]"}, "c64[2]"},
      {kComplex, {"f16[2]", "f16[2]"}, "! must be f32 or f64"},
      {kAtan2, {"s32[]", "s32[]"}, "! floating-point, complex"},
      {kAbs, {"c128[2]"}, "f64[2]"},
      {kAbs, {"u8[2]"}, "! signed integer"},
      {kAbs, {"s8[2]"}, "s8[2]"},
      {kReal, {"c64[2]"}, "f32[2]"},
      {kImag, {"f32[2]"}, "f32[2]"},
      {kIsFinite, {"bf16[4]"}, "pred[4]"},
      {kIsFinite, {"c64[4]"}, "! floating-point"},
      {kCeil, {"s32[4]"}, "! floating-point"},
      {kTanh, {"s32[4]"}, "! floating-point, complex, not s32"},
      {kNot, {"pred[4]"}, "pred[4]"},
      {kPopcnt, {"pred[4]"}, "! integer"},
      {kCompare, {"f32[2]", "f32[2]"}, "pred[2]", CompareAttributes{}},
      {kCompare,
       {"s32[2]", "s32[2]"},
       "! one of floating-point",
       CompareAttributes{ComparisonDirection::kLt, ComparisonType::kTotalOrder}},
      {kCompare,
       {"c64[2]", "c64[2]"},
       "! EQ and NE only",
       CompareAttributes{ComparisonDirection::kLt, ComparisonType::kNotype}},
      {kCompare, {"f32[2]", "f32[2]"}, "! attributes are those of another operation"},
      {kSelect, {"pred[2]", "s8[2]", "s8[2]"}, "s8[2]"},
      {kSelect, {"pred[]", "s8[2]", "s8[2]"}, "s8[2]"},
      {kSelect, {"pred[3]", "s8[2]", "s8[2]"}, "! scalar or have the choices' dimensions"},
      {kSelect, {"s8[2]", "s8[2]", "s8[2]"}, "! of type pred"},
      {kSelect, {"pred[]", "s8[2]", "s8[3]"}, "! both choices"},
      {kClamp, {"f32[]", "f32[2]", "f32[2]"}, "f32[2]"},
      {kClamp, {"f32[1]", "f32[2]", "f32[2]"}, "! each bound"},
      {kConvert, {"f32[2]"}, "s8[2]", {}, "s8[2]"},
      {kConvert, {"f32[2]"}, "! differs", {}, "s8[3]"},
      {kConvert, {"f32[2]"}, "! must be stated"},
      {kBitcastConvert, {"f32[2]"}, "u32[2]", {}, "u32[2]"},
      {kBitcastConvert, {"f32[2]"}, "u8[2,4]", {}, "u8[2,4]"},
      {kBitcastConvert, {"u8[2,4]"}, "f32[2]", {}, "f32[2]"},
      {kBitcastConvert, {"u8[2,3]"}, "! last dimension", {}, "f32[2]"},
      {kBitcastConvert, {"c64[2]"}, "! between real and complex", {}, "f64[2]"},
      {kBitcastConvert, {"pred[2]"}, "! between pred", {}, "u8[2]"},
      {kReducePrecision, {"f32[2]"}, "f32[2]", ReducePrecisionAttributes{5, 10}},
      {kReducePrecision, {"f32[2]"}, "! at least 1", ReducePrecisionAttributes{0, 10}},
      {kUniformQuantize, {"f32[2]"}, "! quantized element types"},
  });
}

TEST(ShapeInference, Rearrangement) {
  using enum Opcode;
  Check({
      {kBroadcastInDim, {"f32[3]"}, "f32[2,3]", Dims({1}), "f32[2,3]"},
      {kBroadcastInDim, {"f32[1,3]"}, "f32[2,3]", Dims({0, 1}), "f32[2,3]"},
      {kBroadcastInDim, {"f32[3]"}, "! must be 1 or equal", Dims({0}), "f32[2,3]"},
      {kBroadcastInDim, {"f32[3,3]"}, "! names a dimension twice", Dims({1, 1}), "f32[3,3]"},
      {kBroadcastInDim, {"f32[3]"}, "! must have 1 entries, not 2", Dims({0, 1}), "f32[2,3]"},
      {kBroadcastInDim, {"f32[3]"}, "! is not in [0, 2)", Dims({2}), "f32[2,3]"},
      {kReshape, {"f32[2,3]"}, "f32[6]", {}, "f32[6]"},
      {kReshape, {"f32[2,3]"}, "! as many elements", {}, "f32[5]"},
      {kReshape, {"f32[2,3]"}, "! differs", {}, "f64[6]"},
      {kTranspose, {"f32[2,3,4]"}, "f32[4,2,3]", Dims({2, 0, 1})},
      {kTranspose, {"f32[2,3,4]"}, "! permutation", Dims({2, 0})},
      {kTranspose, {"f32[2,3]"}, "! names a dimension twice", Dims({1, 1})},
      {kReverse, {"f32[2,3]"}, "f32[2,3]", Dims({1})},
      {kReverse, {"f32[2,3]"}, "! is not in [0, 2)", Dims({-1})},
      {kSlice, {"f32[9,4]"}, "f32[3,4]", SliceAttributes{{1, 0}, {8, 4}, {3, 1}}},
      {kSlice, {"f32[9]"}, "! start <= limit", SliceAttributes{{5}, {4}, {1}}},
      {kSlice, {"f32[9]"}, "! start <= limit", SliceAttributes{{5}, {10}, {1}}},
      {kSlice, {"f32[9]"}, "! stride > 0", SliceAttributes{{5}, {6}, {0}}},
      {kPad, {"f32[3,4]", "f32[]"}, "f32[8,2]", PadAttributes{{1, -1}, {2, -1}, {1, 0}}},
      {kPad, {"f32[3]", "f32[]"}, "! negative size -1", PadAttributes{{-4}, {0}, {0}}},
      {kPad, {"f32[3]", "f64[]"}, "! scalar of the operand's", PadAttributes{{0}, {0}, {0}}},
      {kPad, {"f32[3]", "f32[]"}, "! interior", PadAttributes{{0}, {0}, {-1}}},
      {kPad, {"f32[0]", "f32[]"}, "f32[3]", PadAttributes{{1}, {2}, {5}}},
      {kConcatenate, {"f32[2,3]", "f32[2,1]"}, "f32[2,4]", Dim(1)},
      {kConcatenate, {"f32[2,3]", "f32[3,1]"}, "! must agree", Dim(1)},
      {kConcatenate, {"f32[2,3]", "s32[2,3]"}, "! same element type and rank", Dim(1)},
      {kConcatenate, {}, "! at least 1", Dim(0)},
      {kDynamicSlice, {"f32[4,5]", "s32[]", "s32[]"}, "f32[2,5]", Dims({2, 5})},
      {kDynamicSlice, {"f32[4,5]", "s32[]"}, "! one start index for each", Dims({2, 5})},
      {kDynamicSlice, {"f32[4]", "f32[]"}, "! scalar of an integer type", Dims({2})},
      {kDynamicSlice, {"f32[4]", "s32[]"}, "! between 0 and", Dims({5})},
      {kDynamicUpdateSlice, {"f32[4]", "f32[2]", "u8[]"}, "f32[4]"},
      {kDynamicUpdateSlice, {"f32[4]", "f32[5]", "u8[]"}, "! not be larger"},
      {kIota, {}, "bf16[2,3]", Dim(1), "bf16[2,3]"},
      {kIota, {}, "! is not in [0, 2)", Dim(2), "bf16[2,3]"},
      {kIota, {}, "! integer, floating", Dim(0), "pred[2]"},
      {kGetDimensionSize, {"f32[?]"}, "s32[]", Dim(0)},
      {kSetDimensionSize, {"f32[4]", "s32[]"}, "f32[?]", Dim(0)},
      {kDynamicReshape, {"f32[6]", "s64[2]"}, "f32[2,?]", {}, "f32[2,?]"},
      {kDynamicReshape, {"f32[6]", "s64[3]"}, "! vector of 2 integers", {}, "f32[2,3]"},
      {kDynamicIota, {"s64[1]"}, "s32[?]", Dim(0), "s32[?]"},
      {kDynamicPad, {"f32[2]", "f32[]", "s64[1]", "s64[1]", "s64[1]"}, "f32[?]", {}, "f32[?]"},
      {kRealDynamicSlice, {"f32[2]", "s64[1]", "s64[1]", "s64[1]"}, "f32[1]", {}, "f32[1]"},
      {kDynamicBroadcastInDim,
       {"f32[3]", "s64[2]"},
       "f32[?,3]",
       DynamicBroadcastAttributes{{1}, {}, {}},
       "f32[?,3]"},
  });
}

DotAttributes Dot(Dimensions lb, Dimensions rb, Dimensions lc, Dimensions rc) {
  return DotAttributes{std::move(lb), std::move(rb), std::move(lc), std::move(rc), {}};
}

ConvolutionAttributes Conv2d() {
  ConvolutionAttributes convolution;
  convolution.window = Window::Trivial(2);
  convolution.window.dimensions.clear();
  convolution.dimensions = ConvolutionDimensions::ChannelsFirst(2);
  return convolution;
}

TEST(ShapeInference, Contractions) {
  using enum Opcode;
  ConvolutionAttributes strided = Conv2d(), grouped = Conv2d(), both = Conv2d(), batch = Conv2d();
  strided.window.strides = {2, 1};
  strided.window.padding_low = {1, -1};
  strided.window.base_dilations = {1, 2};
  strided.window.window_dilations = {2, 1};
  grouped.feature_group_count = 2;
  both.feature_group_count = both.batch_group_count = 2;
  batch.batch_group_count = 2;
  ConvolutionAttributes wrong = Conv2d();
  wrong.dimensions.input_feature_dimension = 0;
  Check({
      {kDotGeneral, {"f32[2,3]", "f32[3,4]"}, "f32[2,4]", Dot({}, {}, {1}, {0})},
      {kDotGeneral, {"f32[5,2,3]", "f32[3,5,4]"}, "f32[5,2,4]", Dot({0}, {1}, {2}, {0})},
      {kDotGeneral, {"bf16[2,3]", "bf16[3]"}, "f32[2]", Dot({}, {}, {1}, {0}), "f32[2]"},
      {kDotGeneral, {"s8[2,3]", "s8[3]"}, "s32[2]", Dot({}, {}, {1}, {0}), "s32[2]"},
      {kDotGeneral,
       {"f32[2,3]", "f32[3]"},
       "! of the operands' kind",
       Dot({}, {}, {1}, {0}),
       "s32[2]"},
      {kDotGeneral, {"f32[2,3]", "f32[4,4]"}, "! different sizes 3 and 4", Dot({}, {}, {1}, {0})},
      {kDotGeneral, {"f32[2,3]", "f32[3,4]"}, "! as many contracting", Dot({}, {}, {1}, {})},
      {kDotGeneral, {"f32[2,3]", "f32[2,3]"}, "! names a dimension twice", Dot({1}, {1}, {1}, {0})},
      {kDotGeneral, {"f32[2,3]", "s32[3,4]"}, "! of the same kind", Dot({}, {}, {1}, {0})},
      {kConvolution, {"f32[1,3,8,8]", "f32[4,3,3,3]"}, "f32[1,4,6,6]", Conv2d()},
      {kConvolution, {"f32[1,3,9,5]", "f32[4,3,3,3]"}, "f32[1,4,3,6]", strided},
      {kConvolution, {"f32[1,6,8,8]", "f32[4,3,3,3]"}, "f32[1,4,6,6]", grouped},
      {kConvolution, {"f32[1,3,8,8]", "f32[4,3,3,3]"}, "! has 3 features", grouped},
      {kConvolution, {"f32[2,3,8,8]", "f32[4,3,3,3]"}, "f32[1,4,6,6]", batch},
      {kConvolution, {"f32[3,3,8,8]", "f32[4,3,3,3]"}, "! multiple of batch_group_count", batch},
      {kConvolution, {"f32[2,6,8,8]", "f32[4,3,3,3]"}, "! must not both", both},
      {kConvolution, {"f32[1,3,8,8]", "f32[4,3,3]"}, "! same rank", Conv2d()},
      {kConvolution, {"f32[1,3,8,8]", "f32[4,3,3,3]"}, "! names a dimension twice", wrong},
      {kConvolution, {"f32[1,3,2,8]", "f32[4,3,3,3]"}, "f32[1,4,0,6]", Conv2d()},
  });
}

Window Pool(Dimensions sizes, Dimensions strides) {
  Window window = Window::Trivial(static_cast<int64_t>(sizes.size()));
  window.dimensions = std::move(sizes);
  window.strides = std::move(strides);
  return window;
}

TEST(ShapeInference, Reductions) {
  using enum Opcode;
  Window dilated = Pool({2}, {1});
  dilated.base_dilations = {2};
  Check({
      {kReduce, {"f32[2,3]", "f32[]"}, "f32[2]", Dims({1}), "", {R().add_f32}},
      {kReduce, {"bf16[2,3]", "bf16[]"}, "f32[3]", Dims({0}), "", {R().add_f32}},
      {kReduce, {"f32[2,3]", "f32[]"}, "! cannot be promoted", Dims({0}), "", {R().add_bf16}},
      {kReduce, {"f32[2,3]", "f32[2]"}, "! scalar of its input's", Dims({1}), "", {R().add_f32}},
      {kReduce, {"f32[2,3]", "f32[]"}, "! is not in [0, 2)", Dims({2}), "", {R().add_f32}},
      {kReduce, {"f32[2,3]", "f32[]"}, "! calls 1 computations", Dims({1})},
      {kReduce, {"f32[2,3]", "f32[]"}, "! must return", Dims({1}), "", {R().pair}},
      {kReduce,
       {"f32[4]", "s32[4]", "f32[]", "s32[]"},
       "(f32[], s32[])",
       Dims({0}),
       "",
       {R().pair}},
      {kReduce,
       {"f32[4]", "s32[5]", "f32[]", "s32[]"},
       "! same dimensions",
       Dims({0}),
       "",
       {R().pair}},
      {kReduceWindow, {"f32[5,6]", "f32[]"}, "f32[4,3]", Pool({2, 2}, {1, 2}), "", {R().add_f32}},
      {kReduceWindow, {"f32[5]", "f32[]"}, "! must be positive", Pool({0}, {1}), "", {R().add_f32}},
      {kReduceWindow,
       {"f32[5]", "f32[]"},
       "! must have 1 entries",
       Pool({1, 1}, {1, 1}),
       "",
       {R().add_f32}},
      {kSelectAndScatter,
       {"f32[4]", "f32[2]", "f32[]"},
       "f32[4]",
       Pool({2}, {2}),
       "",
       {R().less_f32, R().add_f32}},
      {kSelectAndScatter,
       {"f32[4]", "f32[3]", "f32[]"},
       "! one element for each window",
       Pool({2}, {2}),
       "",
       {R().less_f32, R().add_f32}},
      {kSelectAndScatter,
       {"f32[4]", "f32[6]", "f32[]"},
       "! no dilations",
       dilated,
       "",
       {R().less_f32, R().add_f32}},
      {kSelectAndScatter,
       {"f32[4]", "f32[2]", "f32[]"},
       "! its select",
       Pool({2}, {2}),
       "",
       {R().add_f32, R().add_f32}},
      {kMap, {"f32[2,3]"}, "s8[2,3]", Dims({0, 1}), "", {R().to_scalar}},
      {kMap, {"f32[2,3]"}, "! list all dimensions in order", Dims({1, 0}), "", {R().to_scalar}},
      {kMap, {"s32[2,3]"}, "! must take", Dims({0, 1}), "", {R().to_scalar}},
      {kSort, {"f32[2,3]"}, "f32[2,3]", SortAttributes{1, true}, "", {R().less_f32}},
      {kSort,
       {"f32[2,3]", "s32[2,3]"},
       "(f32[2,3], s32[2,3])",
       SortAttributes{1, true},
       "",
       {R().less_f32_s32}},
      {kSort, {"f32[2,3]"}, "! must take", SortAttributes{1, true}, "", {R().less_f32_s32}},
      {kSort, {"f32[2,3]"}, "! is not in [0, 2)", SortAttributes{2, true}, "", {R().less_f32}},
      {kSort, {"f32[2,3]"}, "! must return", SortAttributes{1, true}, "", {R().add_f32}},
  });
}

GatherAttributes RowGather() {
  GatherAttributes gather;
  gather.offset_dims = {1};
  gather.collapsed_slice_dims = {0};
  gather.start_index_map = {0};
  gather.index_vector_dim = 1;
  gather.slice_sizes = {1, 6};
  return gather;
}

ScatterAttributes RowScatter() {
  ScatterAttributes scatter;
  scatter.update_window_dims = {1};
  scatter.inserted_window_dims = {0};
  scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  return scatter;
}

TEST(ShapeInference, Indexing) {
  using enum Opcode;
  GatherAttributes rows = RowGather(), too_large = RowGather(), implied = RowGather();
  too_large.slice_sizes = {1, 7};
  GatherAttributes thick = RowGather();
  thick.slice_sizes = {2, 6};
  implied.index_vector_dim = 2;
  implied.offset_dims = {2};
  GatherAttributes two = RowGather();
  two.start_index_map = {0, 1};
  GatherAttributes dynamic = RowGather();
  dynamic.slice_sizes.clear();
  GatherAttributes batch = RowGather();
  batch.offset_dims = {2};
  batch.collapsed_slice_dims = {1};
  batch.operand_batching_dims = {0};
  batch.start_indices_batching_dims = {1};
  batch.start_index_map = {1};
  batch.index_vector_dim = 2;
  batch.slice_sizes = {1, 1, 5};
  Check({
      {kGather, {"f32[4,6]", "s32[5,1]"}, "f32[5,6]", rows},
      {kGather, {"f32[4,6]", "s32[5,3]"}, "f32[5,3,6]", implied},
      {kGather, {"f32[3,4,5]", "s32[2,3,1]"}, "f32[2,3,5]", batch},
      {kGather, {"f32[3,4,5]", "s32[2,9,1]"}, "! batching dimensions must have equal", batch},
      {kGather, {"f32[4,6]", "f32[5,1]"}, "! must be integers", rows},
      {kGather, {"f32[4,6]", "s32[5,1]"}, "! slice size 7", too_large},
      {kGather, {"f32[4,6]", "s32[5,1]"}, "! at most 1", thick},
      {kGather, {"f32[4,6]", "s32[5,1]"}, "! 1 entries, but 2", two},
      {kGather, {"f32[4,6,2]", "s32[5,1]"}, "! must be the operand's 3", rows},
      {kDynamicGather, {"f32[4,6]", "s32[5,1]", "s32[2]"}, "f32[5,6]", dynamic, "f32[5,6]"},
      {kScatter, {"f32[4,6]", "s32[5,1]", "f32[5,6]"}, "f32[4,6]", RowScatter(), "", {R().add_f32}},
      {kScatter, {"f32[4,6]", "s32[5,1]", "f32[5,2]"}, "f32[4,6]", RowScatter(), "", {R().add_f32}},
      {kScatter,
       {"f32[4,6]", "s32[5,1]", "f32[5,7]"},
       "! must be at most 6",
       RowScatter(),
       "",
       {R().add_f32}},
      {kScatter,
       {"f32[4,6]", "s32[5,1]", "f32[4,6]"},
       "! must be 5",
       RowScatter(),
       "",
       {R().add_f32}},
      {kScatter,
       {"f32[4,6]", "s32[5,1]", "f32[5]"},
       "! must have the rank",
       RowScatter(),
       "",
       {R().add_f32}},
      {kScatter,
       {"f32[4,6]", "s32[5,1]", "s32[5,6]"},
       "! input's element type",
       RowScatter(),
       "",
       {R().add_f32}},
      {kScatter,
       {"s32[4,6]", "s32[5,1]", "s32[5,6]"},
       "! cannot be promoted",
       RowScatter(),
       "",
       {R().add_f32}},
  });
}

TEST(ShapeInference, Numeric) {
  using enum Opcode;
  TriangularSolveAttributes right;
  right.left_side = false;
  BatchNormAttributes norm{0.1f, 1};
  RngBitGeneratorAttributes three_fry{RngAlgorithm::kThreeFry}, philox{RngAlgorithm::kPhilox};
  RngAttributes uniform{RngDistribution::kUniform}, normal{RngDistribution::kNormal};
  Check({
      {kCholesky, {"f32[2,3,3]"}, "f32[2,3,3]", CholeskyAttributes{true}},
      {kCholesky, {"f32[2,3]"}, "! square", CholeskyAttributes{true}},
      {kCholesky, {"s32[3,3]"}, "! floating-point or complex", CholeskyAttributes{true}},
      {kTriangularSolve, {"f32[3,3]", "f32[3,2]"}, "f32[3,2]", TriangularSolveAttributes{}},
      {kTriangularSolve, {"f32[3,3]", "f32[2,3]"}, "f32[2,3]", right},
      {kTriangularSolve, {"f32[3,3]", "f32[2,3]"}, "! order of a", TriangularSolveAttributes{}},
      {kTriangularSolve, {"f32[2,3,3]", "f32[1,3,2]"}, "! batch", TriangularSolveAttributes{}},
      {kFft, {"c64[2,6]"}, "c64[2,6]", FftAttributes{FftType::kFft, {6}}},
      {kFft, {"f32[2,6]"}, "c64[2,4]", FftAttributes{FftType::kRfft, {6}}},
      {kFft, {"c128[2,4]"}, "f64[2,7]", FftAttributes{FftType::kIrfft, {7}}},
      {kFft, {"c64[2,4]"}, "! must have the size 5", FftAttributes{FftType::kIrfft, {8}}},
      {kFft, {"f32[2,4]"}, "! takes complex", FftAttributes{FftType::kFft, {4}}},
      {kFft, {"c64[4]"}, "! RFFT takes", FftAttributes{FftType::kRfft, {4}}},
      {kFft, {"c64[4]"}, "! 1 to 3 entries", FftAttributes{FftType::kFft, {}}},
      {kBatchNormTraining,
       {"f32[2,3,4]", "f32[3]", "f32[3]"},
       "(f32[2,3,4], f32[3], f32[3])",
       norm},
      {kBatchNormTraining, {"f32[2,3,4]", "f32[3]", "f32[4]"}, "! vector of 3", norm},
      {kBatchNormInference, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, "f32[2,3]", norm},
      {kBatchNormGrad,
       {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[2,3]"},
       "(f32[2,3], f32[3], f32[3])",
       norm},
      {kBatchNormGrad, {"f32[2,3]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, "! grad_output", norm},
      {kRngBitGenerator, {"u64[2]"}, "(u64[2], u32[5])", three_fry, "(u64[2], u32[5])"},
      {kRngBitGenerator, {"u64[3]"}, "! THREE_FRY's state", three_fry, "(u64[3], u32[5])"},
      {kRngBitGenerator, {"u64[3]"}, "(u64[3], s8[5])", philox, "(u64[3], s8[5])"},
      {kRngBitGenerator, {"u64[4]"}, "! PHILOX's", philox, "(u64[4], s8[5])"},
      {kRngBitGenerator, {"u64[2]"}, "! tuple (state, bits)", philox, "u32[5]"},
      {kRng, {"f32[]", "f32[]", "s64[2]"}, "f32[2,3]", uniform, "f32[2,3]"},
      {kRng, {"s32[]", "s32[]", "s64[1]"}, "! UNIFORM makes", normal, "s32[3]"},
      {kRng,
       {"f32[]", "f32[]", "s64[1]"},
       "! integer for each result dimension",
       uniform,
       "f32[2,3]"},
  });
}

TEST(ShapeInference, Control) {
  using enum Opcode;
  CustomCallAttributes call;
  call.target = "f";
  CustomCallAttributes aliased = call;
  aliased.output_operand_aliases = {{{}, 1, {}}};
  Check({
      {kParameter, {}, "(f32[2], token)", ParameterAttributes{0}, "(f32[2], token)"},
      {kParameter, {}, "! must be stated", ParameterAttributes{0}},
      {kConstant, {}, "s8[]", ConstantAttributes{Literal::Scalar<int8_t>(3)}},
      {kTuple, {"f32[2]", "token"}, "(f32[2], token)"},
      {kGetTupleElement, {"(f32[2], s32[])"}, "s32[]", TupleIndexAttributes{1}},
      {kGetTupleElement, {"(f32[2], s32[])"}, "! is not in [0, 2)", TupleIndexAttributes{2}},
      {kGetTupleElement, {"f32[2]"}, "! must be a tuple", TupleIndexAttributes{0}},
      {kCall, {"f32[2]"}, "f32[2]", {}, "", {R().negate}},
      {kCall, {"f32[2]"}, "(f32[2], f32[2])", {}, "", {R().twice}},
      {kCall, {"f32[3]"}, "! @negate must take (f32[3]), but takes (f32[2])", {}, "", {R().negate}},
      {kComposite, {"f32[2]"}, "f32[2]", CompositeAttributes{}, "", {R().negate}},
      {kIf, {"pred[]", "f32[2]"}, "f32[2]", {}, "", {R().negate, R().negate}},
      {kIf, {"pred[]", "f32[2]"}, "! branch @twice must return", {}, "", {R().negate, R().twice}},
      {kIf, {"s32[]", "f32[2]"}, "! must be pred[]", {}, "", {R().negate, R().negate}},
      {kCase, {"s32[]", "f32[2]"}, "f32[2]", {}, "", {R().negate, R().negate, R().negate}},
      {kCase, {"s64[]", "f32[2]"}, "! must be s32[]", {}, "", {R().negate}},
      {kCase, {"s32[]"}, "! at least one branch"},
      {kWhile, {"f32[2]"}, "f32[2]", {}, "", {R().positive, R().negate}},
      {kWhile, {"f32[2]"}, "! the body @twice must return", {}, "", {R().positive, R().twice}},
      {kWhile, {"f32[2]"}, "! the condition @negate must return", {}, "", {R().negate, R().negate}},
      {kOptimizationBarrier, {"f32[2]", "s8[]"}, "(f32[2], s8[])"},
      {kAfterAll, {"token", "token"}, "token"},
      {kAfterAll, {"f32[2]"}, "! must be tokens"},
      {kCustomCall, {"f32[2]"}, "(f32[2], u8[9])", call, "(f32[2], u8[9])"},
      {kCustomCall, {"f32[2]"}, "! is not in [0, 1)", aliased, "f32[2]"},
  });
}

TEST(ShapeInference, Collectives) {
  using enum Opcode;
  CollectiveAttributes everybody, four, permute, exchange;
  four.replica_groups = {{0, 1, 2, 3}};
  permute.source_target_pairs = {{0, 1}, {1, 2}};
  CollectiveAttributes twice = permute;
  twice.source_target_pairs = {{0, 1}, {2, 1}};
  exchange.split_count = 2;
  exchange.concat_dimension = 1;
  Check({
      {kAllGather, {"f32[2,3]"}, "f32[8,3]", four},
      {kAllGather, {"f32[2,3]"}, "f32[6,3]", everybody, "f32[6,3]"},
      {kAllGather, {"f32[2,3]"}, "! multiple of a device's share", everybody, "f32[5,3]"},
      {kAllGather, {"f32[2,3]"}, "! must be stated", everybody},
      {kAllReduce, {"f32[2]"}, "f32[2]", four, "", {R().add_f32}},
      {kAllReduce, {"f32[2]", "f32[3]"}, "(f32[2], f32[3])", four, "", {R().add_f32}},
      {kAllReduce, {"s32[2]"}, "! cannot be promoted", four, "", {R().add_f32}},
      {kReduceScatter, {"f32[8]"}, "f32[2]", four, "", {R().add_f32}},
      {kReduceScatter, {"f32[6]"}, "! multiple of the group's size", four, "", {R().add_f32}},
      {kAllToAll, {"f32[4,3]"}, "f32[2,6]", exchange},
      {kAllToAll, {"f32[3,3]"}, "! multiple of split_count", exchange},
      {kCollectivePermute, {"f32[4]"}, "f32[4]", permute},
      {kCollectivePermute, {"f32[4]"}, "! unique", twice},
      {kCollectiveBroadcast, {"f32[4]"}, "f32[4]", four},
      {kReplicaId, {}, "u32[]"},
      {kPartitionId, {"f32[]"}, "! takes 0 operands"},
      {kOutfeed, {"f32[2]", "token"}, "token", FeedAttributes{}},
      {kOutfeed, {"f32[2]"}, "! must be a token", FeedAttributes{}},
      {kInfeed, {"token"}, "(f32[2], token)", FeedAttributes{}, "(f32[2], token)"},
      {kInfeed, {"token"}, "! last result must be a token", FeedAttributes{}, "f32[2]"},
      {kSend, {"f32[2]", "token"}, "token", everybody},
      {kRecv, {"token"}, "(f32[2], token)", everybody, "(f32[2], token)"},
  });
}

}  // namespace
}  // namespace hlo
