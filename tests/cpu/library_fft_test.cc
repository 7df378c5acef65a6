#include <gtest/gtest.h>

#include "hlo/evaluator.h"
#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::Builder;
using hlo::Dimensions;
using hlo::FftType;
using hlo::Value;

TEST(Fft, MatchesTheEvaluator) {
  for (bool wide : {false, true}) {
    ElementType real = wide ? ElementType::kF64 : ElementType::kF32;
    ElementType complex = hlo::ComplexType(real);
    for (const Dimensions& lengths :
         {Dimensions{1}, Dimensions{8}, Dimensions{7}, Dimensions{30}, Dimensions{4, 6},
          Dimensions{5, 3}, Dimensions{2, 3, 8}, Dimensions{3, 4, 5}}) {
      for (FftType type : {FftType::kFft, FftType::kIfft, FftType::kRfft, FftType::kIrfft}) {
        Dimensions dimensions = {3};
        dimensions.insert(dimensions.end(), lengths.begin(), lengths.end());
        if (type == FftType::kIrfft) dimensions.back() = dimensions.back() / 2 + 1;
        Shape shape(type == FftType::kRfft ? real : complex, dimensions);
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
  }
}

}  // namespace
}  // namespace cpu
