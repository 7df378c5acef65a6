// The rewrites of operations that no kernel does: afterwards there are none of the kind, and the
// program computes the same.
#include "cpu/passes/dimension_sizes.h"
#include "cpu/passes/expand_empty.h"
#include "cpu/passes/expand_random.h"
#include "cpu/passes/expand_select_and_scatter.h"
#include "cpu/passes/single_device.h"
#include "cpu/passes/split_reductions.h"
#include "engine_testing.h"
#include "hlo/verifier.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

Shape F32(hlo::Dimensions dimensions) { return Shape(ElementType::kF32, std::move(dimensions)); }

int64_t CountIn(const hlo::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& instruction : module.entry()->instructions()) {
    count += instruction->opcode() == opcode;
  }
  return count;
}

struct Case {
  const char* name;
  bool (*pass)(hlo::Module&);
  Opcode opcode;
  int64_t left;  // of the opcode; the program has more
  std::vector<Shape> parameters;
  Values (*body)(Builder&, const Values&);
};

Values Bits(Builder& b, Value state, hlo::RngAlgorithm algorithm) {
  Values results;
  for (const Shape& shape : {Shape(ElementType::kU32, {7, 3}), Shape(ElementType::kU64, {5}),
                             Shape(ElementType::kU32, {}), Shape(ElementType::kU8, {13}),
                             Shape(ElementType::kU16, {2, 1, 9})}) {
    Value pair = b.RngBitGenerator(state, algorithm, shape);
    results.push_back(b.GetTupleElement(pair, 0));
    results.push_back(b.GetTupleElement(pair, 1));
  }
  return results;
}

hlo::Window Pool(hlo::Dimensions size, hlo::Dimensions strides, hlo::Dimensions low,
                 hlo::Dimensions high) {
  hlo::Window window = hlo::Window::Trivial(static_cast<int64_t>(size.size()));
  window.dimensions = std::move(size);
  window.strides = std::move(strides);
  window.padding_low = std::move(low);
  window.padding_high = std::move(high);
  return window;
}

Value Scattered(Builder& b, Value operand, Value source, const hlo::Window& window) {
  auto* select = b.Region("select", {F32({}), F32({})},
                          [](Builder& r, const Values& q) { return Values{r.Ge(q[0], q[1])}; });
  return b.SelectAndScatter(operand, source, b.ConstantScalar(ElementType::kF32, 0.5), window,
                            select, b.ScalarCombiner(Opcode::kAdd, ElementType::kF32));
}

const Case kCases[] = {
    {"three_fry",
     ExpandRandom,
     Opcode::kRngBitGenerator,
     0,
     {Shape(ElementType::kU64, {2})},
     [](Builder& b, const Values& p) { return Bits(b, p[0], hlo::RngAlgorithm::kThreeFry); }},
    {"philox",
     ExpandRandom,
     Opcode::kRngBitGenerator,
     0,
     {Shape(ElementType::kU64, {2})},
     [](Builder& b, const Values& p) { return Bits(b, p[0], hlo::RngAlgorithm::kPhilox); }},
    {"pooling_without_overlap",
     ExpandSelectAndScatter,
     Opcode::kSelectAndScatter,
     0,
     {F32({2, 6, 8}), F32({2, 3, 4})},
     [](Builder& b, const Values& p) {
       return Values{Scattered(b, p[0], p[1], Pool({1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}))};
     }},
    {"pooling_with_overlap_and_padding",
     ExpandSelectAndScatter,
     Opcode::kSelectAndScatter,
     0,
     {F32({5, 7}), F32({3, 7})},
     [](Builder& b, const Values& p) {
       return Values{Scattered(b, p[0], p[1], Pool({3, 3}, {2, 1}, {1, 1}, {1, 1}))};
     }},
    {"rows_left_over",
     ExpandSelectAndScatter,
     Opcode::kSelectAndScatter,
     0,
     {F32({9}), F32({3})},
     [](Builder& b, const Values& p) {
       return Values{Scattered(b, p[0], p[1], Pool({2}, {3}, {0}, {0}))};
     }},
    {"gradient_of_nothing",
     ExpandEmpty,
     Opcode::kSelectAndScatter,
     0,
     {F32({3}), F32({0})},
     [](Builder& b, const Values& p) {
       return Values{Scattered(b, p[0], p[1], Pool({5}, {1}, {0}, {0}))};
     }},
    {"sum_of_nothing",
     ExpandEmpty,
     Opcode::kReduce,
     1,  // that of something
     {F32({4, 0}), F32({4})},
     [](Builder& b, const Values& p) {
       return Values{b.Reduce(Opcode::kAdd, p[0], {1}), b.Reduce(Opcode::kMaximum, p[1], {0})};
     }},
    {"padding_around_nothing",
     ExpandEmpty,
     Opcode::kPad,
     0,
     {F32({0, 2})},
     [](Builder& b, const Values& p) {
       return Values{b.Pad(p[0], b.ConstantScalar(ElementType::kF32, 3.0), {1, 0}, {2, 1}, {0, 0})};
     }},
    {"windows_over_nothing",
     ExpandEmpty,
     Opcode::kReduceWindow,
     0,
     {F32({0, 3})},
     [](Builder& b, const Values& p) {
       return Values{b.ReduceWindow(p[0], b.ConstantScalar(ElementType::kF32, 0.0),
                                    Pool({2, 1}, {1, 1}, {2, 0}, {1, 0}),
                                    b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
     }},
    {"gather_at_no_position",
     ExpandEmpty,
     Opcode::kGather,
     0,
     {F32({4, 5, 6}), Shape(ElementType::kS32, {3, 0})},
     [](Builder& b, const Values& p) {
       hlo::GatherAttributes gather;
       gather.index_vector_dim = 1;
       gather.offset_dims = {0, 2};
       gather.collapsed_slice_dims = {1};
       gather.slice_sizes = {2, 1, 5};
       return Values{b.Gather(p[0], p[1], gather)};
     }},
    {"spectrum_of_nothing",
     ExpandEmpty,
     Opcode::kFft,
     0,
     {F32({3, 0})},
     [](Builder& b, const Values& p) { return Values{b.Fft(p[0], hlo::FftType::kRfft, {0})}; }},
    {"sum_over_one_device",
     ResolveSingleDevice,
     Opcode::kAllReduce,
     0,
     {F32({6})},
     [](Builder& b, const Values& p) {
       return Values{b.Create(Opcode::kAllReduce, {p[0]}, hlo::CollectiveAttributes{},
                              {b.ScalarCombiner(Opcode::kAdd, ElementType::kF32)})};
     }},
    {"permutation_of_one_device",
     ResolveSingleDevice,
     Opcode::kCollectivePermute,
     0,
     {F32({6})},
     [](Builder& b, const Values& p) {
       hlo::CollectiveAttributes to_itself;
       to_itself.source_target_pairs = {{0, 0}};
       return Values{b.Create(Opcode::kCollectivePermute, {p[0]}, to_itself),
                     b.Create(Opcode::kCollectivePermute, {p[0]}, hlo::CollectiveAttributes{})};
     }},
    {"number_of_the_device",
     ResolveSingleDevice,
     Opcode::kReplicaId,
     0,
     {},
     [](Builder& b, const Values&) {
       return Values{b.Create(Opcode::kReplicaId, {}, {}, {}, Shape::Scalar(ElementType::kU32))};
     }},
    {"dimension_size",
     ResolveDimensionSizes,
     Opcode::kGetDimensionSize,
     0,
     {F32({6, 7})},
     [](Builder& b, const Values& p) {
       return Values{b.Create(Opcode::kGetDimensionSize, {p[0]}, hlo::DimensionAttributes{1})};
     }},
};

class ExpandTest : public testing::TestWithParam<Case> {};

TEST_P(ExpandTest, NoneIsLeftAndTheResultsStay) {
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
  ASSERT_GT(CountIn(module, row.opcode), row.left);
  const auto expected = hlo::Evaluate(module, arguments);
  EXPECT_TRUE(row.pass(module));
  entry->RemoveDeadInstructions();
  module.SortComputations();
  hlo::VerifyModule(module);
  EXPECT_EQ(CountIn(module, row.opcode), row.left) << module.ToString();
  const auto actual = hlo::Evaluate(module, arguments);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ExpectClose(expected[i], actual[i]);
}

INSTANTIATE_TEST_SUITE_P(Rewrites, ExpandTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A large sum to few results becomes a sum of sums; one of a few elements stays.
TEST(SplitReductions, PartsOfLargeSums) {
  for (const auto& [rows, columns, reductions] :
       {std::tuple<int64_t, int64_t, int64_t>{512, 1024, 2}, {4, 8, 1}}) {
    hlo::Module module;
    auto* entry = module.AddComputation("main");
    module.set_entry(entry);
    Builder b(entry);
    const Shape shape = F32({rows, columns});
    entry->set_results({b.Reduce(Opcode::kAdd, b.Parameter(shape), {0, 1})});
    const std::vector<hlo::Literal> arguments = {RandomLiteral(shape, 1)};
    const auto expected = hlo::Evaluate(module, arguments);
    EXPECT_EQ(SplitReductions(module), reductions > 1);
    module.SortComputations();
    hlo::VerifyModule(module);
    EXPECT_EQ(CountIn(module, Opcode::kReduce), reductions) << module.ToString();
    ExpectClose(expected[0], hlo::Evaluate(module, arguments)[0], 100);
  }
}

}  // namespace
}  // namespace cpu
