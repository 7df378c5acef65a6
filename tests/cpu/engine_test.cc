#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "engine_testing.h"
#include "hlo/error.h"

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
const ElementType kFloatTypes[] = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                   ElementType::kF64};

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

TEST(Engine, Rearrangements) {
  CheckProgram({F32({3, 5, 8})}, [](Builder& b, const Values& p) {
    Value x = b.Add(p[0], p[0]);
    return Values{
        b.Transpose(x, {0, 2, 1}),
        b.Transpose(x, {1, 0, 2}),
        b.Reshape(x, {15, 8}),
        b.Reverse(x, {0, 2}),
        b.Slice(x, {0, 1, 2}, {3, 5, 7}, {2, 1, 3}),
        b.BroadcastInDim(x, {3, 4, 5, 8}, {0, 2, 3}),
        b.Pad(x, b.ConstantScalar(ElementType::kF32, 7.0), {1, -1, 2}, {0, 2, -1}, {0, 2, 1}),
        b.Concatenate({x, p[0]}, 1),
        b.Reshape(b.Transpose(b.Reshape(x, {15, 2, 4}), {1, 0, 2}), {30, 4})};
  });
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

TEST(Engine, Broadcasts) {
  CheckProgram(
      {F32({6, 10}), F32({10}), F32({6}), F32({}), F32({6, 1})}, [](Builder& b, const Values& p) {
        Value x = b.Add(p[0], b.BroadcastInDim(p[1], {6, 10}, {1}));
        x = b.Multiply(x, b.BroadcastInDim(p[2], {6, 10}, {0}));
        x = b.Subtract(x, b.BroadcastInDim(p[3], {6, 10}, {}));
        x = b.Add(x, b.BroadcastInDim(p[4], {6, 10}, {0, 1}));
        return Values{
            b.Add(x, b.Convert(b.Iota(Shape(ElementType::kS32, {6, 10}), 1), ElementType::kF32))};
      });
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

// A reduced dimension of size one makes no loop, but the slice in it still has a position.
TEST(Engine, MaximumAndItsIndexOfOneSlicedElement) {
  hlo::Module module;
  auto* larger = module.AddComputation("larger");
  {
    Builder b(larger);
    Value x = b.Parameter(F32({})), i = b.Parameter(Shape(ElementType::kS64, {}));
    Value y = b.Parameter(F32({})), j = b.Parameter(Shape(ElementType::kS64, {}));
    Value greater = b.Gt(y, x);
    larger->set_results({b.Select(greater, y, x), b.Select(greater, j, i)});
  }
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  const Dimensions dims = {2, 4, 5, 4};
  Value x = b.Parameter(F32(dims));
  Value i = b.Parameter(Shape(ElementType::kS64, dims));
  auto part = [&](Value v) { return b.SliceInDim(v, 2, 3, 4); };
  Value best = b.ReduceVariadic({part(x), part(i)},
                                {b.ConstantScalar(ElementType::kF32, -1e30),
                                 b.ConstantScalar(ElementType::kS64, int64_t{-1})},
                                {2}, larger);
  entry->set_results({b.GetTupleElement(best, 0), b.GetTupleElement(best, 1)});
  CheckModule(module,
              {RandomLiteral(F32(dims), 1), RandomLiteral(Shape(ElementType::kS64, dims), 2)});
}

// Expensive values that two passes over a row need are kept; rows end within a vector here.
TEST(Engine, ValuesKeptBetweenPassesOverShortRows) {
  CheckProgram({F32({5}), F32({5, 1})}, [](Builder& b, const Values& p) {
    Value sine = b.Unary(Opcode::kSine, b.BroadcastInDim(p[0], {5, 5}, {1}));
    Value cosine = b.Unary(Opcode::kCosine, b.BroadcastInDim(p[0], {5, 5}, {1}));
    Value scale = b.BroadcastInDim(p[1], {5, 5}, {0, 1});
    Value product = b.Multiply(b.Multiply(scale, sine), b.Multiply(scale, cosine));
    return Values{product, sine, cosine, b.Reduce(Opcode::kAdd, product, {0, 1})};
  });
}

TEST(Engine, OperationsOverNothing) {
  CheckProgram({F32({5, 0}), Shape(ElementType::kU64, {2})}, [](Builder& b, const Values& p) {
    Value zero = b.ConstantScalar(ElementType::kF32, 1.5);
    Value random =
        b.RngBitGenerator(p[1], hlo::RngAlgorithm::kPhilox, Shape(ElementType::kU32, {0, 3}));
    return Values{b.Pad(p[0], zero, {0, 2}, {0, 1}, {0, 0}), b.Reduce(Opcode::kAdd, p[0], {1}),
                  b.GetTupleElement(random, 0), b.GetTupleElement(random, 1)};
  });
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

// Each has results, though it reads nothing.
TEST(Engine, ResultsOfNothing) {
  CheckProgram(
      {F32({3, 0}), F32({3, 7}), Shape(ElementType::kS32, {4, 0}), F32({0, 2})},
      [](Builder& b, const Values& p) {
        Value low = b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32));
        auto* maximum = b.ScalarCombiner(Opcode::kMaximum, ElementType::kF32);
        auto* add = b.ScalarCombiner(Opcode::kAdd, ElementType::kF32);
        auto* select = b.Region("select", {F32({}), F32({})}, [](Builder& r, const Values& q) {
          return Values{r.Ge(q[0], q[1])};
        });
        hlo::GatherAttributes gather;
        gather.index_vector_dim = 1;
        gather.offset_dims = {1};
        gather.collapsed_slice_dims = {0};
        gather.slice_sizes = {1, 5};
        return Values{b.Gather(p[1], p[2], gather),
                      b.SelectAndScatter(p[1], p[0], b.ConstantScalar(ElementType::kF32, 0.5),
                                         PoolWindow({1, 8}, {1, 1}, {0, 0}), select, add),
                      b.ReduceWindow(p[3], low, PoolWindow({3, 1}, {1, 1}, {2, 0}), maximum),
                      b.Fft(p[0], hlo::FftType::kRfft, {0}), b.MatMul(p[0], p[3])};
      });
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

TEST(Engine, LayerNorm) {
  CheckProgram(
      {F32({9, 48}), F32({48}), F32({48})},
      [](Builder& b, const Values& p) {
        Dimensions dims = p[0]->dimensions();
        Value n = b.Full(F32({9}), 48.0);
        Value mean = b.Divide(b.Reduce(Opcode::kAdd, p[0], {1}), n);
        Value centered = b.Subtract(p[0], b.BroadcastInDim(mean, dims, {0}));
        Value variance = b.Divide(b.Reduce(Opcode::kAdd, b.Multiply(centered, centered), {1}), n);
        Value rstd = b.Rsqrt(b.Add(variance, b.Full(F32({9}), 1e-5)));
        Value y = b.Multiply(centered, b.BroadcastInDim(rstd, dims, {0}));
        y = b.Add(b.Multiply(y, b.BroadcastInDim(p[1], dims, {1})),
                  b.BroadcastInDim(p[2], dims, {1}));
        return Values{y, mean, rstd};
      },
      10);
}

TEST(Engine, MlpWithLibraryDot) {
  CheckProgram(
      {F32({8, 20}), F32({20, 30}), F32({30}), F32({30, 5})},
      [](Builder& b, const Values& p) {
        Value h = b.Add(b.MatMul(p[0], p[1]), b.BroadcastInDim(p[2], {8, 30}, {1}));
        h = b.Maximum(h, b.Zeros(F32({8, 30})));
        return Values{Softmax(b, b.MatMul(h, p[3]))};
      },
      20);
}

TEST(Engine, ManyConsumersAndOutputs) {
  CheckProgram({F32({40}), F32({40})}, [](Builder& b, const Values& p) {
    Value m = b.Add(p[0], p[1]);
    Value v = b.Multiply(m, m);
    Value w = b.Divide(m, b.Sqrt(b.Add(v, b.Full(F32({40}), 1.0))));
    return Values{m, v, w, p[0], m};
  });
}

TEST(Engine, GatherAndDynamicSlice) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Value table = b.Parameter(F32({10, 20}));
  Value ids = b.Parameter(Shape(ElementType::kS32, {4, 3}));
  hlo::GatherAttributes attributes;
  attributes.offset_dims = {2};
  attributes.collapsed_slice_dims = {0};
  attributes.start_index_map = {0};
  attributes.index_vector_dim = 2;
  attributes.slice_sizes = {1, 20};
  Value rows = b.Gather(table, ids, attributes);
  Value start = b.Reshape(b.Slice(ids, {0, 0}, {1, 1}, {1, 1}), {});
  Value cut = b.DynamicSlice(table, {start, start}, {3, 7});
  Value updated =
      b.DynamicUpdateSlice(table, cut, {start, b.ConstantScalar(ElementType::kS32, int64_t{2})});
  entry->set_results({rows, cut, updated});
  CheckModule(module, {RandomLiteral(F32({10, 20}), 1),
                       RandomLiteral(Shape(ElementType::kS32, {4, 3}), 2)});
}

TEST(Engine, WhileLoop) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Value x = b.Parameter(F32({33}));
  Shape counter = Shape::Scalar(ElementType::kS32);
  auto* condition =
      b.Region("condition", {counter, F32({33}), F32({33})}, [](Builder& r, const Values& p) {
        return Values{r.Lt(p[0], r.ConstantScalar(ElementType::kS32, int64_t{5}))};
      });
  auto* body = b.Region("body", {counter, F32({33}), F32({33})}, [](Builder& r, const Values& p) {
    return Values{r.Add(p[0], r.ConstantScalar(ElementType::kS32, int64_t{1})), p[2],
                  r.Add(r.Multiply(p[1], p[2]), p[1])};
  });
  Value loop =
      b.While({b.ConstantScalar(ElementType::kS32, int64_t{0}), x, b.Tanh(x)}, condition, body);
  entry->set_results(
      {b.GetTupleElement(loop, 1), b.GetTupleElement(loop, 2), b.GetTupleElement(loop, 0)});
  CheckModule(module, {RandomLiteral(F32({33}), 1)}, 100);
}

// The loop that reads the sums could also compute the indices, were they not needed for the sums.
TEST(Engine, AReshapeReadInALoopAndInMemory) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Shape indices(ElementType::kS64, {5});
  Value index = b.Minimum(b.Parameter(indices), b.Full(indices, int64_t{4}));
  Value column = b.Reshape(index, {5, 1});
  hlo::ScatterAttributes scatter;
  scatter.inserted_window_dims = scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  Value sums = b.Scatter(b.Zeros(F32({5})), column, b.Parameter(F32({5})),
                         b.ScalarCombiner(Opcode::kAdd, ElementType::kF32), scatter);
  hlo::GatherAttributes gather;
  gather.collapsed_slice_dims = gather.start_index_map = {0};
  gather.index_vector_dim = 1;
  gather.slice_sizes = {1};
  Value read = b.Gather(sums, column, gather);
  entry->set_results({b.Add(read, b.Convert(index, ElementType::kF32))});
  CheckModule(
      module,
      {hlo::Literal::FromVector(std::vector<int64_t>{3, 1, 9, 1, 0}), RandomLiteral(F32({5}), 1)},
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
  // A vector of two indices.
  CheckProgram({F32({9, 20})}, [&](Builder& b, const Values& p) {
    const Shape shape(ElementType::kS32, {20, 9, 1});
    Value both = b.Concatenate({b.Iota(shape, 1), b.Iota(shape, 0)}, 2);
    hlo::GatherAttributes attributes;
    attributes.collapsed_slice_dims = attributes.start_index_map = {0, 1};
    attributes.slice_sizes = {1, 1};
    attributes.index_vector_dim = 2;
    return Values{b.Negate(b.Gather(p[0], both, attributes))};
  });
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

TEST(Engine, Sort) {
  CheckProgram(
      {F32({4, 33, 3}), Shape(ElementType::kS32, {4, 33, 3})}, [](Builder& b, const Values& p) {
        const Shape f = F32({}), i = Shape::Scalar(ElementType::kS32);
        auto* less = b.Region("less", {f, f, i, i},
                              [](Builder& r, const Values& q) { return Values{r.Lt(q[0], q[1])}; });
        Value sorted = b.Sort({p[0], p[1]}, 1, true, less);
        return Values{b.GetTupleElement(sorted, 0), b.GetTupleElement(sorted, 1)};
      });
}

// An order that only the compiled comparator knows.
TEST(Engine, SortByACompiledComparator) {
  CheckProgram({F32({3, 700}), Shape(ElementType::kS32, {3, 700})},
               [](Builder& b, const Values& p) {
                 const Shape f = F32({}), i = Shape::Scalar(ElementType::kS32);
                 auto* nearer = b.Region("nearer", {f, f, i, i}, [](Builder& r, const Values& q) {
                   return Values{r.Lt(r.Multiply(q[0], q[0]), r.Multiply(q[1], q[1]))};
                 });
                 Value sorted = b.Sort({p[0], p[1]}, 1, true, nearer);
                 return Values{b.GetTupleElement(sorted, 0), b.GetTupleElement(sorted, 1)};
               });
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

TEST(Engine, BatchNorm) {
  CheckProgram(
      {F32({4, 6, 5, 5}), F32({6}), F32({6})},
      [](Builder& b, const Values& p) {
        Value t = b.Create(Opcode::kBatchNormTraining, {p[0], p[1], p[2]},
                           hlo::BatchNormAttributes{1e-5f, 1});
        return Values{b.GetTupleElement(t, 0), b.GetTupleElement(t, 1), b.GetTupleElement(t, 2)};
      },
      30);
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

TEST(Engine, LargeReductionsAreSplit) {
  CheckProgram(
      {F32({512, 520})},
      [](Builder& b, const Values& p) {
        return Values{b.Reduce(Opcode::kAdd, p[0], {0, 1}), b.Reduce(Opcode::kAdd, p[0], {0}),
                      b.Reduce(Opcode::kMaximum, p[0], {1})};
      },
      300);
}

// A convolution block and its gradients, as a training step has them.
TEST(Engine, ConvolutionBlock) {
  CheckProgram(
      {F32({2, 3, 8, 8}), F32({4, 3, 3, 3}), F32({4})},
      [](Builder& b, const Values& p) {
        hlo::ConvolutionAttributes attributes;
        attributes.window = hlo::Window::Trivial(2);
        attributes.window.dimensions.clear();
        attributes.window.padding_low = attributes.window.padding_high = {1, 1};
        attributes.window.reversal = {false, false};
        attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(2);
        Value y = b.Convolution(p[0], p[1], attributes);
        y = b.Add(y, b.BroadcastInDim(p[2], y->dimensions(), {1}));
        Value relu = b.Maximum(y, b.Zeros(y->shape()));
        hlo::Window pool = PoolWindow({1, 1, 2, 2}, {1, 1, 2, 2}, {0, 0, 0, 0});
        Value low = b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32));
        Value pooled =
            b.ReduceWindow(relu, low, pool, b.ScalarCombiner(Opcode::kMaximum, ElementType::kF32));
        auto* select = b.Region("select", {F32({}), F32({})}, [](Builder& r, const Values& q) {
          return Values{r.Ge(q[0], q[1])};
        });
        Value gradient =
            b.SelectAndScatter(relu, pooled, b.ConstantScalar(ElementType::kF32, 0.0), pool, select,
                               b.ScalarCombiner(Opcode::kAdd, ElementType::kF32));
        return Values{pooled, gradient, b.Reduce(Opcode::kAdd, gradient, {0, 2, 3})};
      },
      50);
}

TEST(Engine, CollectivesOfOneDevice) {
  CheckProgram({F32({6})}, [](Builder& b, const Values& p) {
    Value sum = b.Create(Opcode::kAllReduce, {p[0]}, hlo::CollectiveAttributes{},
                         {b.ScalarCombiner(Opcode::kAdd, ElementType::kF32)});
    return Values{sum, b.Create(Opcode::kReplicaId, {}, {}, {}, Shape::Scalar(ElementType::kU32))};
  });
}

TEST(Engine, BranchesAndEmptyArrays) {
  CheckProgram({Shape::Scalar(ElementType::kPred), F32({5}), F32({0, 4})}, [](Builder& b,
                                                                              const Values& p) {
    auto* yes = b.Region("yes", {F32({5})},
                         [](Builder& r, const Values& q) { return Values{r.Add(q[0], q[0])}; });
    auto* no = b.Region("no", {F32({5})}, [](Builder&, const Values& q) { return Values{q[0]}; });
    return Values{b.If(p[0], {p[1]}, yes, no), b.Add(p[2], p[2]),
                  b.Reduce(Opcode::kAdd, p[2], {0})};
  });
}

// A row reduction's value is needed for other rows too: it has to be computed before the loop.
TEST(Engine, RowsOfATransposedSoftmax) {
  CheckProgram({F32({6, 6})}, [](Builder& b, const Values& p) {
    Value s = Softmax(b, p[0]);
    return Values{b.Add(s, b.Transpose(s, {1, 0}))};
  });
}

}  // namespace
}  // namespace cpu
