#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "engine_testing.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

const ElementType kAllTypes[] = {ElementType::kPred, ElementType::kS8,   ElementType::kS16,
                                 ElementType::kS32,  ElementType::kS64,  ElementType::kU8,
                                 ElementType::kU16,  ElementType::kU32,  ElementType::kU64,
                                 ElementType::kF16,  ElementType::kBF16, ElementType::kF32,
                                 ElementType::kF64,  ElementType::kC64,  ElementType::kC128};

TEST(Engine, Add) {
  for (int64_t n : {1, 3, 16, 17, 1000, 100000}) {
    CheckProgram({F32({n}), F32({n})},
                 [](Builder& b, const Values& p) { return Values{b.Add(p[0], p[1])}; });
  }
}

// Kinds of element types, as letters: p(red), s(igned), u(nsigned), f(loat), c(omplex).
char LetterOf(ElementType type) {
  if (type == ElementType::kPred) return 'p';
  if (hlo::IsSignedInteger(type)) return 's';
  if (hlo::IsUnsignedInteger(type)) return 'u';
  return hlo::IsComplex(type) ? 'c' : 'f';
}

// The kinds that StableHLO's specification names for an operation.
std::string_view KindsOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMultiply:
      return "psufc";
    case Opcode::kDivide:
    case Opcode::kNegate:
    case Opcode::kPower:
    case Opcode::kSubtract:
      return "sufc";
    case Opcode::kRemainder:
      return "suf";  // and complex numbers, whose remainder nobody defines
    case Opcode::kAnd:
    case Opcode::kNot:
    case Opcode::kOr:
    case Opcode::kXor:
      return "psu";
    case Opcode::kCountLeadingZeros:
    case Opcode::kPopcnt:
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return "su";
    case Opcode::kAbs:
    case Opcode::kSign:
      return "sfc";
    case Opcode::kCeil:
    case Opcode::kComplex:
    case Opcode::kFloor:
    case Opcode::kIsFinite:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
      return "f";
    default:
      return "fc";
  }
}

// The numbers at which arithmetic goes wrong, over and over.
// Two operands have all pairs of them.
hlo::Literal ExtremeLiteral(const Shape& shape, size_t operand) {
  hlo::Literal literal(shape);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    auto elements = literal.mutable_data<T>();
    const double largest = std::is_same_v<T, double> ? 1e300 : 6e4;
    const double reals[] = {0,   -0.0,    1,        -1,   0.5, -2.5, 3,    INFINITY, -INFINITY,
                            NAN, largest, -largest, 1e-7, 1.5, 709,  -745, 88,       1e-5};
    for (size_t i = 0; i < elements.size(); ++i) {
      const auto at = [&](size_t count) { return (operand == 0 ? i : i / count) % count; };
      if constexpr (std::is_same_v<T, bool>) {
        elements[i] = at(2) == 0;
      } else if constexpr (std::is_integral_v<T>) {
        const T integers[] = {0,
                              1,
                              static_cast<T>(-1),
                              std::numeric_limits<T>::min(),
                              std::numeric_limits<T>::max(),
                              2,
                              7,
                              8,
                              31,
                              63,
                              64,
                              100};
        elements[i] = integers[at(std::size(integers))];
      } else {
        elements[i] = static_cast<T>(
            static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
                reals[at(std::size(reals))]));
      }
    }
  });
  return literal;
}

// Compares one operation on ordinary numbers and, but for complex ones, on extreme ones.
void CheckOperation(Opcode opcode, ElementType type, size_t operands) {
  SCOPED_TRACE(std::string(hlo::Name(opcode)) + " " + std::string(hlo::ShortName(type)));
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  const Shape shape(type, {37 * 18});
  Values p;
  std::vector<hlo::Literal> ordinary, extreme;
  for (size_t i = 0; i < operands; ++i) {
    p.push_back(b.Parameter(shape));
    ordinary.push_back(RandomLiteral(shape, static_cast<unsigned>(i + 1)));
    if (!hlo::IsComplex(type)) extreme.push_back(ExtremeLiteral(shape, i));
  }
  if (KindsOf(opcode).find(LetterOf(type)) == std::string_view::npos) {
    if (opcode != Opcode::kRemainder) {
      EXPECT_THROW(b.Create(opcode, p), hlo::Error);
    }
    return;
  }
  // Only f32 and f64 have complex numbers, and their parts.
  if (opcode == Opcode::kComplex && type != ElementType::kF32 && type != ElementType::kF64) {
    EXPECT_THROW(b.Create(opcode, p), hlo::Error);
    return;
  }
  entry->set_results({b.Create(opcode, p)});
  CheckModule(module, ordinary, 20);
  if (!extreme.empty()) CheckModule(module, extreme, 20);
}

TEST(Engine, BinaryOfEveryType) {
#define OPCODE(name, ...) Opcode::name,
  for (Opcode opcode : {HLO_ELEMENTWISE_BINARY_OPCODES(OPCODE)}) {
    for (ElementType type : kAllTypes) CheckOperation(opcode, type, 2);
  }
}

TEST(Engine, UnaryOfEveryType) {
  for (Opcode opcode : {HLO_ELEMENTWISE_UNARY_OPCODES(OPCODE)}) {
    for (ElementType type : kAllTypes) CheckOperation(opcode, type, 1);
  }
#undef OPCODE
}

// Parts that are infinite or none beside each other, in pairs of numbers.
TEST(Engine, ComplexNumbersWithoutABound) {
  const double parts[] = {0, -0.0, 1, -1, 2.5, INFINITY, -INFINITY, NAN};
  constexpr int64_t kNumbers = 64;
  std::vector<std::complex<double>> first, second;
  for (int64_t i = 0; i < kNumbers * kNumbers; ++i) {
    const auto number = [&](int64_t index) {
      return std::complex<double>(parts[index / 8], parts[index % 8]);
    };
    first.push_back(number(i % kNumbers));
    second.push_back(number(i / kNumbers));
  }
  const std::vector<hlo::Literal> numbers = {
      hlo::Literal::FromVector<std::complex<double>>(first),
      hlo::Literal::FromVector<std::complex<double>>(second)};
  using enum Opcode;
  for (Opcode opcode : {kAbs, kCbrt, kCosine, kExponential, kLog, kLogistic, kRsqrt, kSign, kSine,
                        kSqrt, kTan, kTanh, kDivide, kMultiply, kPower}) {
    SCOPED_TRACE(std::string(hlo::Name(opcode)));
    const bool is_binary = opcode == kDivide || opcode == kMultiply || opcode == kPower;
    hlo::Module module;
    auto* entry = module.AddComputation("main");
    module.set_entry(entry);
    Builder b(entry);
    auto x = b.Parameter(numbers[0].shape()), y = b.Parameter(numbers[1].shape());
    entry->set_results({is_binary ? b.Binary(opcode, x, y) : b.Unary(opcode, x)});
    CheckModule(module, numbers, 20);
  }
}

TEST(Engine, ConvertBetweenAllTypes) {
  for (ElementType from : kAllTypes) {
    for (ElementType to : kAllTypes) {
      SCOPED_TRACE(std::string(hlo::ShortName(from)) + " to " + std::string(hlo::ShortName(to)));
      CheckProgram({Shape(from, {41})},
                   [&](Builder& b, const Values& p) { return Values{b.Convert(p[0], to)}; });
    }
  }
}

// Towards zero, the nearest number of the type where there is none, and 0 for NaN.
TEST(Engine, FloatsAtTheLimitsOfIntegers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const hlo::Literal numbers = hlo::Literal::FromVector<double>(
      {0.9,        -0.9,       -0.0,          127.5,      128,         -128.5,      -129,
       255.5,      256,        32767.5,       32768,      -32768.5,    -32769,      65535.5,
       65536,      2147483520, 2147483647,    2147483648, -2147483648, -2147483904, 4294967040,
       4294967295, 4294967296, 0x1p63 - 1024, 0x1p63,     -0x1p63,     -0x1.1p63,   0x1p64 - 2048,
       0x1p64,     -1e30,      1e300,         kInfinity,  -kInfinity,  std::nan("")});
  using enum ElementType;
  for (ElementType from : {kF16, kBF16, kF32, kF64}) {
    for (ElementType to : {kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64}) {
      SCOPED_TRACE(std::string(hlo::ShortName(from)) + " to " + std::string(hlo::ShortName(to)));
      hlo::Module module;
      auto* entry = module.AddComputation("main");
      module.set_entry(entry);
      Builder b(entry);
      entry->set_results({b.Convert(b.Convert(b.Parameter(numbers.shape()), from), to)});
      CheckModule(module, {numbers}, 0);
    }
  }
}

// Each part between the seams is a loop of its own.
TEST(Engine, PartsOfRowsAndColumns) {
  for (ElementType type : {ElementType::kF32, ElementType::kS8, ElementType::kC64}) {
    for (int64_t shift : {1, 3, 16, 99}) {
      CheckProgram({Shape(type, {20, 100}), Shape(type, {1000})}, [&](Builder& b, const Values& p) {
        const auto rolled = [&](Value x, int64_t d, int64_t by) {
          const int64_t size = x->dimensions()[d];
          Value sum = b.Add(x, x);
          return b.Concatenate(
              {b.SliceInDim(sum, d, size - by, size), b.SliceInDim(sum, d, 0, size - by)}, d);
        };
        Value zero = b.Zeros(Shape::Scalar(type));
        Value one_row = b.SliceInDim(p[0], 0, 4, 5);
        return Values{rolled(p[0], 1, shift),
                      b.Negate(rolled(rolled(p[0], 0, 7), 1, shift)),
                      rolled(p[1], 0, shift),
                      b.Pad(b.Negate(p[0]), zero, {2, shift}, {1, 5}, {0, 0}),
                      b.Pad(p[0], zero, {-1, -shift + 1}, {3, shift}, {0, 0}),
                      b.Negate(b.Concatenate({one_row, p[0], one_row, p[0]}, 0)),
                      b.SliceInDim(b.Negate(b.Concatenate({p[1], p[1]}, 0)), 0, 990, 1300)};
      });
    }
  }
}

TEST(Engine, Reductions) {
  for (Dimensions dims :
       std::vector<Dimensions>{{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}) {
    for (Dimensions shape : std::vector<Dimensions>{{4, 7, 33}, {3, 64, 2}, {1, 130, 70}}) {
      SCOPED_TRACE(hlo::ToString(dims) + " of " + hlo::ToString(shape));
      CheckProgram(
          {F32(shape)},
          [&](Builder& b, const Values& p) {
            return Values{b.Reduce(Opcode::kAdd, p[0], dims),
                          b.Reduce(Opcode::kMaximum, b.Exp(p[0]), dims)};
          },
          30);
    }
  }
}

// The evaluator draws none of less than a byte.
TEST(Engine, RandomIntegersOfFewBits) {
  for (ElementType type : {ElementType::kU2, ElementType::kU4, ElementType::kS4}) {
    hlo::Module module;
    hlo::Computation* entry = module.AddComputation("main");
    module.set_entry(entry);
    Builder b(entry);
    Value state = b.Parameter(Shape(ElementType::kU64, {2}));
    Value random = b.RngBitGenerator(state, hlo::RngAlgorithm::kThreeFry, Shape(type, {400}));
    entry->set_results({b.Convert(b.GetTupleElement(random, 1), ElementType::kS32)});
    const hlo::Literal seed = RandomLiteral(Shape(ElementType::kU64, {2}), 1);
    const auto drawn = RunOnEngine(*Compile(module, {}), {seed})[0];
    const auto [low, high] = std::ranges::minmax(drawn.data<int32_t>());
    const int numbers = 1 << hlo::BitWidth(type);
    EXPECT_EQ(low, hlo::IsSignedInteger(type) ? -numbers / 2 : 0);
    EXPECT_EQ(high - low, numbers - 1);
  }
}

TEST(Engine, ReductionsOfEveryType) {
  for (ElementType type : kAllTypes) {
    for (Opcode op : {Opcode::kAdd, Opcode::kMultiply, Opcode::kMaximum, Opcode::kMinimum}) {
      if (type == ElementType::kPred && op != Opcode::kMaximum) continue;
      if (hlo::IsComplex(type) && op != Opcode::kAdd && op != Opcode::kMultiply) continue;
      SCOPED_TRACE(std::string(hlo::Name(op)) + " " + std::string(hlo::ShortName(type)));
      CheckProgram(
          {Shape(type, {5, 19})},
          [&](Builder& b, const Values& p) {
            return Values{b.Reduce(op, p[0], {1}), b.Reduce(op, p[0], {0})};
          },
          30, 0.5, 1.5);
    }
  }
}

TEST(Engine, Softmax) {
  for (Dimensions dims : std::vector<Dimensions>{{12, 10}, {3, 5, 64}, {7, 1000}, {2, 3}}) {
    CheckProgram({F32(dims)}, [](Builder& b, const Values& p) { return Values{Softmax(b, p[0])}; });
  }
}

// The loop that reads the sums could also compute the indices, were they not needed for the sums.
TEST(Engine, AReshapeReadInALoopAndInMemory) {
  const auto module = hlo::ReadStablehloText(R"(
func.func public @main(%indices: tensor<5xi64>, %updates: tensor<5xf32>) -> (tensor<5xf32>) {
  %four = stablehlo.constant dense<4> : tensor<i64>
  %fours = stablehlo.broadcast_in_dim %four, dims = [] : (tensor<i64>) -> tensor<5xi64>
  %index = stablehlo.minimum %indices, %fours : tensor<5xi64>
  %column = stablehlo.reshape %index : (tensor<5xi64>) -> tensor<5x1xi64>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<5xf32>
  %sums = "stablehlo.scatter"(%zeros, %column, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %sum = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<5xf32>, tensor<5x1xi64>, tensor<5xf32>) -> tensor<5xf32>
  %read = "stablehlo.gather"(%sums, %column) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<5xf32>, tensor<5x1xi64>) -> tensor<5xf32>
  %number = stablehlo.convert %index : (tensor<5xi64>) -> tensor<5xf32>
  %result = stablehlo.add %read, %number : tensor<5xf32>
  func.return %result : tensor<5xf32>
})");
  CheckModule(*module,
              {hlo::Literal::FromVector<int64_t>({3, 1, 9, 1, 0}), RandomLiteral(F32({5}), 1)},
              100);
}

// Indices that follow from the positions alone: windows of a row, also with a start beyond the
// first or the last one, which clamps.
TEST(Engine, GathersAtPlainPositions) {
  for (int64_t start : {0, 5, -3, 40}) {
    for (int64_t stride : {1, 2, -1}) {
      CheckProgram({F32({60})}, [&](Builder& b, const Values& p) {
        const Shape shape(ElementType::kS64, {9, 20});
        const auto number = [&](int64_t n) { return b.Full(shape, n); };
        Value index = b.Add(b.Multiply(b.Iota(shape, 0), number(stride)), b.Iota(shape, 1));
        index = b.Add(index, number(start));
        Value wrapped = b.Select(b.Lt(index, number(0)), b.Add(index, number(60)), index);
        hlo::GatherAttributes attributes;
        attributes.collapsed_slice_dims = attributes.start_index_map = {0};
        attributes.slice_sizes = {1};
        attributes.index_vector_dim = 2;
        const auto gathered = [&](Value at) {
          return b.Gather(p[0], b.Reshape(at, {9, 20, 1}), attributes);
        };
        return Values{b.Negate(gathered(index)), gathered(wrapped),
                      gathered(b.Convert(index, ElementType::kS32))};
      });
    }
  }
}

TEST(Engine, Scatter) {
  for (int64_t width : {1, 5, 16, 40}) {
    CheckProgram(
        {F32({10, width}), Shape(ElementType::kS32, {7, 1}), F32({7, width})},
        [&](Builder& b, const Values& p) {
          hlo::ScatterAttributes attributes;
          attributes.update_window_dims = {1};
          attributes.inserted_window_dims = {0};
          attributes.scatter_dims_to_operand_dims = {0};
          attributes.index_vector_dim = 1;
          return Values{b.Scatter(p[0], p[1], p[2],
                                  b.ScalarCombiner(Opcode::kAdd, ElementType::kF32), attributes),
                        p[0]};
        },
        10);
  }
}

// Rows of the operand take their updates apart from each other, whether they have indices of their
// own, or share one list.
TEST(Engine, ScatterAlongRows) {
  for (int64_t rows : {3, 19}) {
    CheckProgram(
        {F32({rows, 10}), Shape(ElementType::kS64, {7, 1}), Shape(ElementType::kS64, {rows, 7, 1}),
         F32({rows, 7}), F32({rows, 10, 24}), F32({rows, 7, 24})},
        [&](Builder& b, const Values& p) {
          auto* add = b.ScalarCombiner(Opcode::kAdd, ElementType::kF32);
          hlo::ScatterAttributes shared;
          shared.update_window_dims = {0};
          shared.inserted_window_dims = shared.scatter_dims_to_operand_dims = {1};
          shared.index_vector_dim = 1;
          hlo::ScatterAttributes wide = shared;
          wide.update_window_dims = {0, 2};
          hlo::ScatterAttributes own;
          own.input_batching_dims = own.scatter_indices_batching_dims = {0};
          own.inserted_window_dims = own.scatter_dims_to_operand_dims = {1};
          own.index_vector_dim = 2;
          return Values{b.Scatter(p[0], p[1], p[3], add, shared),
                        b.Scatter(p[4], p[1], p[5], add, wide),
                        b.Scatter(p[0], p[2], p[3], add, own)};
        },
        10);
  }
}

TEST(Engine, RandomBits) {
  for (auto algorithm : {hlo::RngAlgorithm::kThreeFry, hlo::RngAlgorithm::kPhilox}) {
    for (const Shape& shape : {Shape(ElementType::kU32, {}), Shape(ElementType::kU32, {7, 3}),
                               Shape(ElementType::kU32, {4, 6}), Shape(ElementType::kU64, {5}),
                               Shape(ElementType::kU8, {13}), Shape(ElementType::kU16, {3, 3})}) {
      SCOPED_TRACE(shape.ToString());
      CheckProgram({Shape(ElementType::kU64, {2})}, [&](Builder& b, const Values& p) {
        Value pair = b.RngBitGenerator(p[0], algorithm, shape);
        return Values{b.GetTupleElement(pair, 0), b.GetTupleElement(pair, 1)};
      });
    }
  }
}

// Differences, and choices among equal elements and NaN, depend on the order of the elements.
TEST(Engine, ReductionsInTheOrderOfTheElements) {
  const Shape scalar = F32({});
  const auto reduced_by = [&](Builder& b, Value x, const hlo::Dimensions& dimensions,
                              const std::function<Value(Builder&, const Values&)>& body) {
    hlo::Computation* region = b.Region(
        "body", {scalar, scalar}, [&](Builder& r, const Values& p) { return Values{body(r, p)}; });
    return b.Reduce(x, b.ConstantScalar(ElementType::kF32, 0.0), dimensions, region);
  };
  for (const hlo::Dimensions& sizes :
       {hlo::Dimensions{7, 67}, {64, 33}, {2048, 2}, {1, 1}, {3, 1}, {0, 5}, {512, 300}}) {
    SCOPED_TRACE(F32(sizes).ToString());
    CheckProgram(
        {F32(sizes)},
        [&](Builder& b, const Values& p) {
          Values results;
          for (const hlo::Dimensions& dimensions :
               {hlo::Dimensions{0}, hlo::Dimensions{1}, hlo::Dimensions{0, 1}}) {
            results.push_back(reduced_by(b, p[0], dimensions, [](Builder& r, const Values& q) {
              return r.Subtract(q[0], q[1]);
            }));
            results.push_back(reduced_by(b, p[0], dimensions, [](Builder& r, const Values& q) {
              return r.Subtract(q[1], q[0]);
            }));
            // The square root of a negative number is NaN, which no comparison takes.
            Value some_nan = b.Sqrt(p[0]);
            results.push_back(reduced_by(b, some_nan, dimensions, [](Builder& r, const Values& q) {
              return r.Select(r.Lt(q[1], q[0]), q[0], q[1]);
            }));
          }
          return results;
        },
        1000);
  }
}

}  // namespace
}  // namespace cpu
