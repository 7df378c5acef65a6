#include "lazy/view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "hlo/evaluator.h"

namespace lazy {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;
using Kind = ViewStep::Kind;

ViewStep Step(Kind kind, Dimensions sizes, Dimensions offsets = {}, Dimensions strides = {}) {
  ViewStep step{kind};
  step.sizes = std::move(sizes);
  step.offsets = std::move(offsets);
  step.strides = std::move(strides);
  return step;
}

Literal Sequence(Dimensions dimensions, float first = 0) {
  Shape shape(ElementType::kF32, dimensions);
  std::vector<float> values(shape.num_elements());
  std::iota(values.begin(), values.end(), first);
  return Literal::FromVector(values, std::move(dimensions));
}

Literal Run(const std::vector<Literal>& arguments,
            const std::function<hlo::Value(hlo::Builder&, const std::vector<hlo::Value>&)>& f) {
  hlo::Module module;
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder builder(entry);
  std::vector<hlo::Value> parameters;
  for (const Literal& argument : arguments)
    parameters.push_back(builder.Parameter(argument.shape()));
  entry->set_results({f(builder, parameters)});
  return hlo::Evaluate(module, arguments)[0];
}

Literal Read(const Literal& base, const ViewChain& chain) {
  return Run({base}, [&](auto& b, auto& p) { return ReadView(b, p[0], chain); });
}
Literal Write(const Literal& base, const Literal& part, const ViewChain& chain) {
  return Run({base, part}, [&](auto& b, auto& p) { return WriteView(b, p[0], p[1], chain); });
}

struct Case {
  const char* name;
  Dimensions base;
  ViewChain chain;
};

class ViewTest : public testing::TestWithParam<Case> {};

// What is written is what is read back, and nothing else has changed.
TEST_P(ViewTest, WrittenPartIsReadBack) {
  const Case& c = GetParam();
  Literal base = Sequence(c.base);
  Literal before = Read(base, c.chain);
  Literal part = Sequence(before.shape().dimensions(), 1000);
  Literal after = Write(base, part, c.chain);
  EXPECT_EQ(Read(after, c.chain), part);
  int64_t changed = 0;
  for (int64_t i = 0; i < base.shape().num_elements(); ++i) {
    changed += base.AsDouble(i) != after.AsDouble(i);
  }
  EXPECT_EQ(changed, part.shape().num_elements());
}

INSTANTIATE_TEST_SUITE_P(
    Steps, ViewTest,
    testing::Values(Case{"reshape", {2, 6}, {Step(Kind::kReshape, {3, 4})}},
                    Case{"permute", {2, 3, 4}, {Step(Kind::kPermute, {2, 0, 1})}},
                    Case{"slice", {4, 5}, {Step(Kind::kSlice, {3, 5}, {1, 2}, {1, 1})}},
                    Case{"strided_slice", {7, 5}, {Step(Kind::kSlice, {6, 5}, {1, 0}, {2, 3})}},
                    Case{"empty_slice", {4}, {Step(Kind::kSlice, {2}, {2}, {1})}},
                    Case{"as_strided", {12}, {Step(Kind::kAsStrided, {3, 2}, {1}, {4, 2})}},
                    Case{"dense_as_strided", {12}, {Step(Kind::kAsStrided, {2, 3}, {4}, {3, 1})}},
                    Case{"diagonal", {4, 4}, {Step(Kind::kAsStrided, {4}, {0}, {5})}},
                    Case{"chain",
                         {4, 6},
                         {Step(Kind::kSlice, {4, 5}, {1, 0}, {1, 2}), Step(Kind::kPermute, {1, 0}),
                          Step(Kind::kReshape, {9})}}),
    [](const auto& info) { return info.param.name; });

TEST(ViewStepTest, ConsecutiveStepsMerge) {
  ViewChain chain;
  AppendStep(chain, Step(Kind::kReshape, {6}));
  AppendStep(chain, Step(Kind::kReshape, {2, 3}));
  AppendStep(chain, Step(Kind::kPermute, {1, 0}));
  AppendStep(chain, Step(Kind::kPermute, {1, 0}));
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[1].sizes, (Dimensions{0, 1}));
}

TEST(ViewStepTest, ExpandReadsTheSameElementOften) {
  Literal read = Read(Sequence({2}), {Step(Kind::kExpand, {3, 2})});
  EXPECT_EQ(read, Literal::FromVector<float>({0, 1, 0, 1, 0, 1}, {3, 2}));
}

TEST(ViewStepTest, BitcastGoesBothWays) {
  ViewStep step = Step(Kind::kBitcast, {2});
  step.type = ElementType::kS32;
  Literal base = Literal::FromVector<float>({1.0f, 2.0f});
  Literal bits = Read(base, {step});
  EXPECT_EQ(bits.AsInt(0), 0x3f800000);
  EXPECT_EQ(Write(base, bits, {step}), base);
}

TEST(ViewStepTest, ComplexNumbersArePairs) {
  ViewStep step = Step(Kind::kBitcast, {1, 2});
  step.type = ElementType::kF32;
  Literal base = Literal::FromVector<std::complex<float>>({{1, 2}});
  EXPECT_EQ(Read(base, {step}), Literal::FromVector<float>({1, 2}, {1, 2}));
  Literal written = Write(base, Literal::FromVector<float>({3, 4}, {1, 2}), {step});
  EXPECT_EQ(written, Literal::FromVector<std::complex<float>>({{3, 4}}));
}

}  // namespace
}  // namespace lazy
