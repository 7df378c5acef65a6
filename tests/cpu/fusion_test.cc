// Which operations share a kernel.
#include "cpu/pipeline.h"
#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

Shape F32(hlo::Dimensions dimensions) { return Shape(ElementType::kF32, std::move(dimensions)); }

struct Case {
  const char* name;
  std::vector<Shape> parameters;
  Values (*body)(Builder&, const Values&);
  // What the entry does then, in order: composites by name, other operations by opcode.
  std::vector<std::string> steps;
};

Value AlongRows(Builder& b, Value x, Value rows) {
  return b.BroadcastInDim(rows, x->dimensions(), {0});
}

const Case kCases[] = {
    {"chain",
     {F32({100}), F32({100})},
     [](Builder& b, const Values& p) {
       return Values{b.Exp(b.Multiply(b.Add(p[0], p[1]), b.Tanh(p[0])))};
     },
     {"cpu.loop"}},
    {"two_results_of_one_loop",
     {F32({100})},
     [](Builder& b, const Values& p) {
       Value x = b.Exp(p[0]);
       return Values{x, b.Add(x, p[0])};
     },
     {"cpu.loop"}},
    {"softmax",
     {F32({12, 40})},
     [](Builder& b, const Values& p) {
       Value e = b.Exp(b.Subtract(p[0], AlongRows(b, p[0], b.Reduce(Opcode::kMaximum, p[0], {1}))));
       return Values{b.Divide(e, AlongRows(b, e, b.Reduce(Opcode::kAdd, e, {1})))};
     },
     {"cpu.loop"}},
    {"sums_of_columns_share_what_they_read",
     {F32({50, 30})},
     [](Builder& b, const Values& p) {
       return Values{b.Reduce(Opcode::kAdd, p[0], {0}),
                     b.Reduce(Opcode::kAdd, b.Multiply(p[0], p[0]), {0})};
     },
     {"cpu.reduce"}},
    {"sums_of_different_arrays_do_not",
     {F32({50, 30}), F32({50, 30})},
     [](Builder& b, const Values& p) {
       return Values{b.Reduce(Opcode::kAdd, p[0], {0}), b.Reduce(Opcode::kAdd, p[1], {0})};
     },
     {"cpu.reduce", "cpu.reduce"}},
    {"gathered_values_are_computed_once",
     {F32({10, 20}), Shape(ElementType::kS32, {4, 1})},
     [](Builder& b, const Values& p) {
       hlo::GatherAttributes rows;
       rows.offset_dims = {1};
       rows.collapsed_slice_dims = rows.start_index_map = {0};
       rows.index_vector_dim = 1;
       rows.slice_sizes = {1, 20};
       return Values{b.Negate(b.Gather(b.Exp(p[0]), p[1], rows))};
     },
     {"cpu.loop", "cpu.loop"}},
    {"large_transposes_stand_alone",
     {F32({40, 30})},
     [](Builder& b, const Values& p) { return Values{b.Exp(b.Transpose(b.Tanh(p[0]), {1, 0}))}; },
     {"cpu.loop", "transpose", "cpu.loop"}},
    {"small_ones_do_not",
     {F32({4, 3})},
     [](Builder& b, const Values& p) { return Values{b.Exp(b.Transpose(b.Tanh(p[0]), {1, 0}))}; },
     {"cpu.loop"}},
    {"sort",
     {F32({40})},
     [](Builder& b, const Values& p) {
       auto* less = b.Region("less", {F32({}), F32({})},
                             [](Builder& r, const Values& q) { return Values{r.Lt(q[0], q[1])}; });
       return Values{b.Sort({b.Exp(p[0])}, 0, true, less)};
     },
     {"cpu.loop", "cpu.sort"}},
    {"cumulative_sum",
     {F32({40})},
     [](Builder& b, const Values& p) {
       hlo::Window window = hlo::Window::Trivial(1);
       window.dimensions = {40};
       window.padding_low = {39};
       return Values{b.ReduceWindow(p[0], b.ConstantScalar(ElementType::kF32, 0.0), window,
                                    b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
     },
     {"cpu.scan"}},
    {"views_are_no_step",
     {F32({40})},
     [](Builder& b, const Values& p) { return Values{b.Reshape(p[0], {4, 10})}; },
     {}},
};

class FusionTest : public testing::TestWithParam<Case> {};

TEST_P(FusionTest, StepsAreThese) {
  const Case& row = GetParam();
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Values parameters;
  std::vector<hlo::Literal> arguments;
  for (const Shape& shape : row.parameters) {
    parameters.push_back(b.Parameter(shape));
    arguments.push_back(RandomLiteral(shape, static_cast<unsigned>(arguments.size() + 1)));
  }
  entry->set_results(row.body(b, parameters));
  const auto expected = hlo::Evaluate(module, arguments);
  RunPipeline(module, {.disabled = {}, .verify = true});
  std::vector<std::string> steps;
  for (const auto& instruction : module.entry()->instructions()) {
    switch (instruction->opcode()) {
      case Opcode::kParameter:
      case Opcode::kConstant:
      case Opcode::kGetTupleElement:
      case Opcode::kReshape:
        break;
      case Opcode::kComposite:
        steps.push_back(instruction->as<hlo::CompositeAttributes>().name);
        break;
      default:
        steps.emplace_back(hlo::Name(instruction->opcode()));
    }
  }
  EXPECT_EQ(steps, row.steps) << module.ToString();
  const auto actual = hlo::Evaluate(module, arguments);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ExpectClose(expected[i], actual[i], 30);
}

INSTANTIATE_TEST_SUITE_P(Programs, FusionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cpu
