#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "hlo/evaluator.h"
#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::Builder;
using hlo::Dimensions;
using hlo::FftType;
using hlo::Value;

void CheckFft(const Dimensions& batch, const Dimensions& lengths, ElementType real) {
  for (FftType type : {FftType::kFft, FftType::kIfft, FftType::kRfft, FftType::kIrfft}) {
    Dimensions dimensions = batch;
    dimensions.insert(dimensions.end(), lengths.begin(), lengths.end());
    if (type == FftType::kIrfft) dimensions.back() = dimensions.back() / 2 + 1;
    Shape shape(type == FftType::kRfft ? real : hlo::ComplexType(real), dimensions);
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder builder(module.entry());
    Value fft = builder.Fft(builder.Parameter(shape), type, lengths);
    Literal x = RandomLiteral(shape, 5);
    auto got = RunLibraryCall(*fft, {x});
    ASSERT_EQ(got.size(), 1u);
    auto expected = hlo::EvaluateInstruction(*fft, {x});
    EXPECT_TRUE(Near(got[0], expected[0], Tolerance(real) * 2)) << fft->ToString();
  }
}

// Of each radix, of several, of a prime that is none; lines one by one, in the lanes of a vector,
// and more than it has.
TEST(Fft, MatchesTheEvaluator) {
  for (ElementType real : {ElementType::kF32, ElementType::kF64}) {
    for (const Dimensions& lengths :
         {Dimensions{1}, Dimensions{2}, Dimensions{8}, Dimensions{7}, Dimensions{30},
          Dimensions{64}, Dimensions{37}, Dimensions{74}, Dimensions{120}, Dimensions{67},
          Dimensions{134}, Dimensions{4, 6}, Dimensions{5, 3}, Dimensions{2, 3, 8},
          Dimensions{3, 4, 5}}) {
      CheckFft({1}, lengths, real);
      CheckFft({5}, lengths, real);
    }
    CheckFft({37}, {12}, real);
    CheckFft({5, 7}, {6, 18}, real);
  }
}

// One of a large prime, which takes seconds where each element is a sum of all; five that are too
// long for a vector's lanes.
TEST(Fft, LongLines) {
  for (const auto& [lines, length] : {std::pair<int64_t, int64_t>{1, 65537}, {5, 3 << 16}}) {
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder builder(module.entry());
    Value x = builder.Parameter(Shape(ElementType::kC64, {lines, length}));
    Value fft = builder.Fft(x, FftType::kFft, {length});
    Value back = builder.Fft(fft, FftType::kIfft, {length});
    const Literal literal = RandomLiteral(x->shape(), 5);
    const auto start = std::chrono::steady_clock::now();
    const Literal spectrum = RunLibraryCall(*fft, {literal})[0];
    EXPECT_TRUE(Near(RunLibraryCall(*back, {spectrum})[0], literal, 1e-5)) << length;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << length;
  }
}

// Lines lie side by side in vectors, and stay by themselves.
TEST(Fft, ANanStaysInItsLine) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  const Shape shape(ElementType::kF32, {4, 10});
  Value fft = builder.Fft(builder.Parameter(shape), FftType::kRfft, {10});
  std::vector<float> numbers(40, 1);
  numbers[13] = std::numeric_limits<float>::quiet_NaN();
  const auto got = RunLibraryCall(*fft, {Literal::FromVector<float>(numbers, {4, 10})});
  const auto spectrum = got[0].data<std::complex<float>>();
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(std::isnan(spectrum[i].real()), i / 6 == 1) << i;
  }
}

}  // namespace
}  // namespace cpu
