#include "pass_test.h"
#include "passes/expand_batch_norm.h"
#include "passes/expand_composites.h"
#include "passes/inline_calls.h"

namespace passes {
namespace {

using Values = std::vector<Value>;

hlo::Computation* Doubler(Builder& b) {
  return b.Region("double", {F32({3})},
                  [](Builder& c, const Values& y) { return Values{c.Add(y[0], y[0])}; });
}

TEST(InlineCallsTest, InlinesNestedCallsAndCallsInRegions) {
  auto module = MakeModule({F32({3}), S32({})}, [](Builder& b, const Values& x) {
    hlo::Computation* twice = Doubler(b);
    auto* four_times = b.Region("quadruple", {F32({3})}, [&](Builder& c, const Values& y) {
      return Values{c.Call(twice, {c.Call(twice, {y[0]})}), y[0]};
    });
    auto* condition = b.Region("condition", {F32({3}), S32({})}, [](Builder& c, const Values& y) {
      return Values{c.Lt(y[1], c.ConstantScalar(ElementType::kS32, int64_t{2}))};
    });
    auto* body = b.Region("body", {F32({3}), S32({})}, [&](Builder& c, const Values& y) {
      Value one = c.ConstantScalar(ElementType::kS32, int64_t{1});
      return Values{c.GetTupleElement(c.Call(four_times, {y[0]}), 0), c.Add(y[1], one)};
    });
    Value loop = b.While({x[0], x[1]}, condition, body);
    Value call = b.Call(four_times, {b.GetTupleElement(loop, 0)});
    return Values{b.GetTupleElement(call, 1), b.GetTupleElement(call, 0)};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, InlineCalls));
  EXPECT_EQ(CountOpcode(*module, Opcode::kCall), 0);
  EXPECT_EQ(module->computations().size(), 3);  // the entry, the condition and the body
  EXPECT_FALSE(InlineCalls(*module));
}

TEST(InlineCallsTest, RefusesToGrowWithoutBounds) {
  auto module = MakeModule({F32({3})}, [](Builder& b, const Values& x) {
    hlo::Computation* callee = Doubler(b);
    for (int i = 0; i < 40; ++i) {
      callee = b.Region("twice", {F32({3})}, [&](Builder& c, const Values& y) {
        return Values{c.Call(callee, {c.Call(callee, {y[0]})})};
      });
    }
    return Values{b.Call(callee, {x[0]})};
  });
  EXPECT_THROW(InlineCalls(*module), hlo::Error);
}

Value Composite(Builder& b, const char* name, hlo::Computation* decomposition, Value x) {
  hlo::CompositeAttributes attributes;
  attributes.name = name;
  return b.Create(Opcode::kComposite, {x}, attributes, {decomposition});
}

TEST(ExpandCompositesTest, ExpandsThoseThatAreNotKept) {
  auto module = MakeModule({F32({3})}, [](Builder& b, const Values& x) {
    auto* inner = Doubler(b);
    auto* outer = b.Region("outer", {F32({3})}, [&](Builder& c, const Values& y) {
      return Values{c.Negate(Composite(c, "known", inner, y[0]))};
    });
    return Values{Composite(b, "unknown", outer, x[0])};
  });
  auto keep = [](const hlo::Instruction& composite) {
    return composite.as<hlo::CompositeAttributes>().name == "known";
  };
  EXPECT_TRUE(ApplyAndCompare(*module, [&](hlo::Module& m) { return ExpandComposites(m, keep); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 1);
  EXPECT_TRUE(ApplyAndCompare(*module, [](hlo::Module& m) { return ExpandComposites(m); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 0);
}

struct BatchNormCase {
  const char* name;
  Opcode opcode;
  ElementType type;
  int64_t feature_index;
};

std::ostream& operator<<(std::ostream& out, const BatchNormCase& row) { return out << row.name; }

class ExpandBatchNormTest : public testing::TestWithParam<BatchNormCase> {};

// Finite inputs, and a positive variance.
Literal Ramp(const Shape& shape, double low, double step) {
  Literal literal(shape);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    if constexpr (!std::is_same_v<T, std::complex<float>> &&
                  !std::is_same_v<T, std::complex<double>>) {
      auto data = literal.mutable_data<T>();
      for (size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<T>(static_cast<float>(low + step * static_cast<double>(i * 7 % 11)));
      }
    }
  });
  return literal;
}

TEST_P(ExpandBatchNormTest, AgreesWithTheReference) {
  const BatchNormCase& row = GetParam();
  hlo::Dimensions dimensions = {2, 3, 2, 2};
  std::swap(dimensions[1], dimensions[row.feature_index]);
  Shape x(row.type, dimensions), feature(row.type, {3});
  std::vector<Shape> parameters;
  switch (row.opcode) {
    case Opcode::kBatchNormTraining:
      parameters = {x, feature, feature};
      break;
    case Opcode::kBatchNormInference:
      parameters = {x, feature, feature, feature, feature};
      break;
    default:
      parameters = {x, feature, feature, feature, x};
  }
  auto module = MakeModule(parameters, [&](Builder& b, const Values& values) {
    hlo::BatchNormAttributes attributes{1e-3f, row.feature_index};
    Value result = b.Create(row.opcode, values, attributes);
    if (!result->shape().is_tuple()) return Values{result};
    return Values{b.GetTupleElement(result, 0), b.GetTupleElement(result, 1),
                  b.GetTupleElement(result, 2)};
  });
  std::vector<Literal> arguments;
  for (const Shape& shape : parameters) {
    arguments.push_back(Ramp(shape, 0.5, 0.25 * static_cast<double>(arguments.size() + 1)));
  }
  std::vector<Literal> expected = hlo::Evaluate(*module, arguments);
  EXPECT_TRUE(ExpandBatchNorm(*module));
  hlo::VerifyModule(*module);
  EXPECT_EQ(CountOpcode(*module, row.opcode), 0);
  std::vector<Literal> actual = hlo::Evaluate(*module, arguments);
  double tolerance = row.type == ElementType::kBF16 ? 0.04 : 1e-5;
  for (size_t i = 0; i < expected.size(); ++i) ExpectSame(expected[i], actual[i], tolerance);
}

const BatchNormCase kBatchNormCases[] = {
    {"training", Opcode::kBatchNormTraining, ElementType::kF32, 1},
    {"training_channels_last", Opcode::kBatchNormTraining, ElementType::kF32, 3},
    {"training_bf16", Opcode::kBatchNormTraining, ElementType::kBF16, 1},
    {"training_f64", Opcode::kBatchNormTraining, ElementType::kF64, 1},
    {"inference", Opcode::kBatchNormInference, ElementType::kF32, 1},
    {"inference_bf16", Opcode::kBatchNormInference, ElementType::kBF16, 1},
    {"grad", Opcode::kBatchNormGrad, ElementType::kF32, 1},
    {"grad_channels_last", Opcode::kBatchNormGrad, ElementType::kF32, 3},
};
INSTANTIATE_TEST_SUITE_P(Kinds, ExpandBatchNormTest, testing::ValuesIn(kBatchNormCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace passes
