// Draws from given bits, above all those of which a generator makes one in billions: the mapping is
// right for all bits, on the reference evaluator and on the engine.
#include "aten/draws.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "aten/special.h"
#include "cpu/engine_testing.h"
#include "hlo/number_conversion.h"
#include "hlo/verifier.h"

namespace torch_xla {
namespace {

constexpr ElementType kFloats[] = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                   ElementType::kF64};

ElementType WordOf(ElementType type) {
  return type == ElementType::kF64 ? ElementType::kU64 : ElementType::kU32;
}

// The ends and the middle of all bits and what is near them, each power of two, and some thousands
// of others; the complement of each comes next to it.
std::vector<uint64_t> Patterns(int width) {
  std::vector<uint64_t> found = {0, 1, 2, 3, 0x7f, 0xff, 0x100, 0x1ff};
  for (int bit = 0; bit < width; ++bit) {
    uint64_t power = uint64_t{1} << bit;
    for (uint64_t pattern : {power, power - 1, power + 1}) found.push_back(pattern);
  }
  std::mt19937_64 generator(1);
  for (int i = 0; i < 4000; ++i) found.push_back(generator() >> (64 - width));
  std::vector<uint64_t> all;
  uint64_t mask = ~uint64_t{0} >> (64 - width);
  for (uint64_t pattern : found) {
    all.push_back(pattern & mask);
    all.push_back(~pattern & mask);
  }
  return all;
}

using Draw = std::function<Value(Builder&, Value bits)>;
using Numbers = std::vector<double>;

hlo::Literal Words(ElementType word) {
  std::vector<uint64_t> patterns = Patterns(hlo::BitWidth(word));
  hlo::Literal words(Shape(word, {static_cast<int64_t>(patterns.size())}));
  hlo::DispatchNative(word, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      auto data = words.mutable_data<T>();
      for (size_t i = 0; i < patterns.size(); ++i) data[i] = static_cast<T>(patterns[i]);
    }
  });
  return words;
}

Numbers ToNumbers(const hlo::Literal& literal) {
  Numbers numbers;
  hlo::DispatchNative(literal.shape().element_type(), [&]<typename T>() {
    if constexpr (!hlo::kIsComplex<T>) {
      for (T x : literal.data<T>()) numbers.push_back(hlo::ConvertNumber<double>(x));
    }
  });
  return numbers;
}

// What `draw` makes of one argument, on the evaluator and on the engine.
std::vector<Numbers> OnBoth(const hlo::Literal& argument, const Draw& draw) {
  hlo::Module module("draws");
  hlo::Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  main->set_results({draw(b, b.Parameter(argument.shape()))});
  hlo::VerifyModule(module);
  std::vector<hlo::Literal> arguments = {argument};
  return {ToNumbers(hlo::Evaluate(module, arguments)[0]),
          ToNumbers(cpu::RunOnEngine(*cpu::Compile(module), arguments)[0])};
}
std::vector<Numbers> DrawAll(ElementType word, const Draw& draw) {
  return OnBoth(Words(word), draw);
}

double Least(const Numbers& numbers) { return *std::ranges::min_element(numbers); }
double Most(const Numbers& numbers) { return *std::ranges::max_element(numbers); }

TEST(Draws, UnitUniformIsHalfOpenInItsType) {
  for (ElementType type : kFloats) {
    auto draw = [&](Builder& b, Value bits) { return b.Convert(UnitUniform(b, bits, type), type); };
    int digits = type == ElementType::kBF16  ? 8
                 : type == ElementType::kF16 ? 11
                 : type == ElementType::kF32 ? 24
                                             : 53;
    for (const Numbers& drawn : DrawAll(WordOf(type), draw)) {
      EXPECT_EQ(Least(drawn), 0);
      EXPECT_EQ(Most(drawn), 1 - std::ldexp(1.0, -digits));
    }
  }
}

TEST(Draws, IntervalsExcludeTheirUpperEnd) {
  const std::pair<double, double> intervals[] = {
      {0, 1}, {-2, 5},         {100, 101},    {-1, 0},      {-101, -100}, {0.1, 0.7},
      {3, 3}, {1e4, 1e4 + 64}, {-1e-4, 1e-4}, {1e-7, 3e-7}, {-65504, 0},  {1000, 1024}};
  for (ElementType type : kFloats) {
    for (auto [from, to] : intervals) {
      SCOPED_TRACE(testing::Message() << hlo::Name(type) << " [" << from << ", " << to << ")");
      Interval interval = IntervalOf(type, from, to);
      auto draw = [&](Builder& b, Value bits) {
        Value u = UnitUniform(b, bits, type);
        Value drawn = InInterval(b, u, Like(b, u, interval.from), Like(b, u, interval.width),
                                 Like(b, u, interval.last));
        return b.Convert(drawn, type);
      };
      // The ends as the type has them.
      auto ends = [&](Builder& b, Value) {
        return b.Concatenate({b.Convert(b.Full(Shape(ElementType::kF64, {1}), from), type),
                              b.Convert(b.Full(Shape(ElementType::kF64, {1}), to), type)},
                             0);
      };
      Numbers limits = DrawAll(WordOf(type), ends)[0];
      for (const Numbers& drawn : DrawAll(WordOf(type), draw)) {
        EXPECT_EQ(Least(drawn), limits[0]);
        if (limits[0] < limits[1]) {
          EXPECT_LT(Most(drawn), limits[1]);
        } else {
          EXPECT_EQ(Most(drawn), limits[0]);
        }
      }
    }
  }
}

TEST(Draws, NormalIsFiniteAndSymmetric) {
  for (ElementType type : {ElementType::kF32, ElementType::kF64}) {
    // sqrt(2) erfcinv of 2^-31 and 2^-63.
    double most = type == ElementType::kF32 ? 6.2302601 : 9.0801552;
    for (const Numbers& drawn : DrawAll(WordOf(type), StandardNormal)) {
      EXPECT_NEAR(Most(drawn), most, 1e-5);
      for (size_t i = 0; i < drawn.size(); i += 2) EXPECT_EQ(drawn[i], -drawn[i + 1]);
    }
  }
}

// Where a distribution is more than one loop, few arrays of its size lie between them.
TEST(Draws, AreMadeInLittleMemory) {
  constexpr int64_t kCount = 1 << 12;
  const std::pair<const char*, Value (*)(Builder&, Value)> distributions[] = {
      {"normal", StandardNormal}, {"exponential", StandardExponential}, {"cauchy", StandardCauchy}};
  for (const auto& [name, draw] : distributions) {
    for (ElementType type : {ElementType::kF32, ElementType::kF64}) {
      SCOPED_TRACE(testing::Message() << name << " " << hlo::Name(type));
      hlo::Module module("draws");
      hlo::Computation* main = module.AddComputation("main");
      module.set_entry(main);
      Builder b(main);
      main->set_results({draw(b, b.Parameter(Shape(WordOf(type), {kCount})))});
      const int64_t result_bytes = kCount * hlo::BitWidth(type) / 8;
      EXPECT_LE(cpu::Compile(module)->arena_bytes(), 14 * result_bytes);
    }
  }
}

TEST(Draws, ExponentialIsPositiveAndFinite) {
  for (ElementType type : {ElementType::kF32, ElementType::kF64}) {
    int width = hlo::BitWidth(type);
    for (const Numbers& drawn : DrawAll(WordOf(type), StandardExponential)) {
      EXPECT_NEAR(Least(drawn) / std::ldexp(1.0, -width), 1, 1e-6);
      EXPECT_NEAR(Most(drawn), width * std::numbers::ln2, 1e-5);
    }
  }
}

TEST(Draws, CauchyIsFiniteAndSymmetric) {
  for (ElementType type : {ElementType::kF32, ElementType::kF64}) {
    double most = std::ldexp(1.0, hlo::BitWidth(type)) / std::numbers::pi;
    for (const Numbers& drawn : DrawAll(WordOf(type), StandardCauchy)) {
      EXPECT_NEAR(Most(drawn) / most, 1, 1e-5);
      for (size_t i = 0; i < drawn.size(); i += 2) EXPECT_EQ(drawn[i], -drawn[i + 1]);
    }
  }
}

TEST(Draws, CoinsOfCertainty) {
  for (double p : {0.0, 0x1p-40, 1.0, 1 - 0x1p-40}) {
    auto draw = [p](Builder& b, Value bits) { return Coin(b, bits, p); };
    for (const Numbers& drawn : DrawAll(ElementType::kU32, draw)) {
      EXPECT_EQ(Least(drawn), std::round(p));
      EXPECT_EQ(Most(drawn), std::round(p));
    }
  }
  // Only the first of all bits, and all but the last.
  for (double p : {0x1p-32, 1 - 0x1p-32}) {
    auto draw = [p](Builder& b, Value bits) { return Coin(b, bits, p); };
    for (const Numbers& drawn : DrawAll(ElementType::kU32, draw)) {
      EXPECT_EQ(drawn[0], 1);
      EXPECT_EQ(drawn[1], 0);
    }
  }
}

TEST(Draws, FiniteInEveryType) {
  const double infinity = std::numeric_limits<double>::infinity();
  auto numbers = hlo::Literal::FromVector(
      std::vector<double>{-infinity, infinity, 0, 1e-300, 1e300, 70000, -70000, 1.5, 1e-6});
  for (ElementType type :
       {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64}) {
    auto finite = [&](Builder& b, Value x) { return ToFinite(b, x, type); };
    for (const Numbers& made : OnBoth(numbers, finite)) {
      for (double x : made) EXPECT_TRUE(std::isfinite(x));
      EXPECT_EQ(made[7], 1.5);
    }
    auto positive = [&](Builder& b, Value x) { return ToPositiveFinite(b, x, type); };
    for (const Numbers& made : OnBoth(numbers, positive)) {
      for (double x : made) EXPECT_TRUE(x > 0 && std::isfinite(x));
      EXPECT_EQ(made[7], 1.5);
      EXPECT_NEAR(made[8], 1e-6, 5e-8);
    }
  }
  for (auto [type, most] : {std::pair{ElementType::kU8, 255.0},
                            {ElementType::kS8, 127.0},
                            {ElementType::kS32, 2147483647.0},
                            {ElementType::kU16, 65535.0}}) {
    auto positive = [&](Builder& b, Value x) { return ToPositiveFinite(b, x, type); };
    for (const Numbers& made : OnBoth(numbers, positive)) {
      EXPECT_EQ(made[1], most);
      EXPECT_EQ(made[0], 1);
    }
  }
}

// erfinv(x): in f64 to its last digits but two, also where 1 - |x| is small, and where x is.
TEST(Draws, InverseErrorFunctionFarOut) {
  struct Case {
    double x, result;
  };
  const Case cases[] = {{1e-300, 8.8622692545275801e-301}, {1e-12, 8.8622692545275801e-13},
                        {0.0078125, 0.006923758491549614}, {0.5, 0.47693627620446987},
                        {1 - 0x1p-40, 5.0512540852493897}, {1 - 0x1p-53, 5.8635847487551689}};
  std::vector<double> arguments;
  for (const Case& c : cases) {
    arguments.push_back(c.x);
    arguments.push_back(-c.x);
  }
  for (const Numbers& made : OnBoth(hlo::Literal::FromVector(arguments), ErfInv)) {
    for (size_t i = 0; i < made.size(); ++i) {
      double expected = cases[i / 2].result * (i % 2 == 0 ? 1 : -1);
      EXPECT_NEAR(made[i] / expected, 1, 1e-13) << arguments[i];
    }
  }
  auto ends = hlo::Literal::FromVector(std::vector<float>{1, -1, 1.5, 1 - 0x1p-24});
  for (const Numbers& made : OnBoth(ends, ErfInv)) {
    EXPECT_EQ(made[0], std::numeric_limits<double>::infinity());
    EXPECT_EQ(made[1], -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(made[2]));
    EXPECT_NEAR(made[3], 3.8325069, 2e-6);
  }
}

}  // namespace
}  // namespace torch_xla
