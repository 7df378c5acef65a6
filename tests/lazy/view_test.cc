#include "lazy/view.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "hlo/evaluator.h"

namespace lazy {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;
using Kind = ViewStep::Kind;

ViewStep Step(Kind kind, Dimensions sizes, int64_t start = 0, Dimensions strides = {}) {
  ViewStep step{kind};
  step.sizes = std::move(sizes);
  step.start = start;
  step.strides = std::move(strides);
  return step;
}

ViewStep Slice(int64_t dimension, int64_t start, int64_t size, int64_t stride = 1) {
  return {
      .kind = Kind::kSlice, .dimension = dimension, .start = start, .size = size, .stride = stride};
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

// The starts of a chain as constants of the program, or as further arguments of it.
class Starts {
 public:
  explicit Starts(const ViewChain& chain) : chain_(AddStarts(operands_, chain)) {}

  const ViewChain& chain() const { return chain_; }
  std::vector<Index> Constants(hlo::Builder& b) const {
    std::vector<Index> starts;
    for (const Value& start : operands_.values()) {
      starts.push_back({b.ConstantScalar(ElementType::kS64, start.node->index())});
    }
    return starts;
  }
  void AddTo(std::vector<Literal>& arguments) const {
    for (const Value& start : operands_.values()) {
      arguments.push_back(Literal::Scalar(start.node->index()));
    }
  }

 private:
  OperandList operands_;
  ViewChain chain_;
};

// Both ways, which give the same.
Literal RunBoth(std::vector<Literal> arguments, const ViewChain& chain,
                const std::function<hlo::Value(hlo::Builder&, const std::vector<hlo::Value>&,
                                               const std::vector<Index>&, const ViewChain&)>& f) {
  const Starts starts(chain);
  const size_t count = arguments.size();
  Literal result = Run(
      arguments, [&](auto& b, auto& p) { return f(b, p, starts.Constants(b), starts.chain()); });
  starts.AddTo(arguments);
  Literal dynamic = Run(arguments, [&](auto& b, auto& p) {
    std::vector<Index> indices;
    for (size_t i = count; i < p.size(); ++i) indices.push_back({p[i]});
    return f(b, p, indices, starts.chain());
  });
  EXPECT_EQ(dynamic, result);
  return result;
}

Literal Read(const Literal& base, const ViewChain& chain) {
  return RunBoth({base}, chain, [](auto& b, auto& p, auto& starts, auto& rest) {
    return ReadView(b, p[0], starts, rest);
  });
}
Literal Write(const Literal& base, const Literal& part, const ViewChain& chain) {
  return RunBoth({base, part}, chain, [](auto& b, auto& p, auto& starts, auto& rest) {
    return WriteView(b, p[0], p[1], starts, rest);
  });
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
                    Case{"slice", {4, 5}, {Slice(0, 1, 2), Slice(1, 2, 3)}},
                    Case{"strided_slice", {7, 5}, {Slice(0, 1, 3, 2), Slice(1, 0, 2, 3)}},
                    Case{"empty_slice", {4}, {Slice(0, 0, 0)}},
                    Case{"last_row", {4, 3}, {Slice(0, 3, 1)}},
                    Case{"last_strided", {8}, {Slice(0, 1, 3, 3)}},
                    Case{"as_strided", {12}, {Step(Kind::kAsStrided, {3, 2}, 1, {4, 2})}},
                    Case{"dense_as_strided", {12}, {Step(Kind::kAsStrided, {2, 3}, 4, {3, 1})}},
                    Case{"diagonal", {4, 4}, {Step(Kind::kAsStrided, {4}, 0, {5})}},
                    Case{"chain",
                         {4, 6},
                         {Slice(0, 1, 3), Slice(1, 0, 3, 2), Step(Kind::kPermute, {1, 0}),
                          Step(Kind::kReshape, {9})}}),
    [](const auto& info) { return info.param.name; });

// A number, a row and a column are stretched to the part that they are written to.
TEST(ViewStepTest, WrittenPartsAreStretched) {
  const ViewChain chain = {Slice(0, 1, 2), Step(Kind::kPermute, {1, 0})};
  const Literal base = Sequence({4, 3});
  for (const Dimensions& narrow : {Dimensions{}, {2}, {1, 2}, {3, 1}}) {
    const Literal part = Sequence(narrow, 100);
    const Literal whole =
        lazy::Run({part}, [](auto& b, auto& p) { return b.BroadcastTo(p[0], {3, 2}); });
    EXPECT_EQ(Write(base, part, chain), Write(base, whole, chain));
  }
}

TEST(ViewStepTest, ConsecutiveStepsMerge) {
  ViewChain chain;
  AppendStep(chain, Step(Kind::kReshape, {6}));
  AppendStep(chain, Step(Kind::kReshape, {2, 3}));
  AppendStep(chain, Step(Kind::kPermute, {1, 0}));
  AppendStep(chain, Step(Kind::kPermute, {1, 0}));
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[1].sizes, (Dimensions{0, 1}));
}

TEST(ViewStepTest, SlicesOfOneDimensionMerge) {
  ViewChain chain;
  AppendStep(chain, Slice(1, 2, 8, 3));  // 2, 5, 8, …
  AppendStep(chain, Slice(1, 1, 3, 2));  // 5, 11, 17
  EXPECT_EQ(chain, ViewChain{Slice(1, 5, 3, 6)});
  AppendStep(chain, Slice(0, 1, 1));
  EXPECT_EQ(chain.size(), 2u);
  AppendStep(chain, Slice(0, 1, 0));
  EXPECT_EQ(chain[1], Slice(0, 0, 0));
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

TEST(ViewTest, StepsAreNamedAsTorchNamesThem) {
  ViewStep slice{.kind = ViewStep::Kind::kSlice, .dimension = 1, .size = 3, .stride = 2};
  EXPECT_EQ(slice.ToString(), "aten::slice(dim=1, 3, step=2)");
  ViewStep permute{.kind = ViewStep::Kind::kPermute, .sizes = {1, 0}};
  EXPECT_EQ(permute.ToString(), "aten::permute(1, 0)");
  hlo::Module module("test");
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder b(entry);
  b.set_metadata(hlo::Metadata{"net/aten::read_view", "", 0});
  hlo::Value x = b.Parameter(hlo::Shape(hlo::ElementType::kF32, {2, 3}));
  EXPECT_EQ(ReadView(b, x, {}, {permute})->metadata().op_name, "net/aten::permute");
  EXPECT_EQ(b.metadata().op_name, "net/aten::read_view");
}

}  // namespace
}  // namespace lazy
