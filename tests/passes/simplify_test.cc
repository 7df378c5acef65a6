#include "passes/simplify.h"

#include "pass_test.h"

namespace passes {
namespace {

// A row: parameters, what is computed of them, and what the entry is after simplification: its
// instructions without parameters, or kUnchanged.
constexpr int64_t kUnchanged = -1;

struct Case {
  const char* name;
  std::vector<Shape> parameters;
  Body body;
  int64_t instructions;
};

std::ostream& operator<<(std::ostream& out, const Case& row) { return out << row.name; }

hlo::DotAttributes Dot(hlo::Dimensions lhs_batch, hlo::Dimensions rhs_batch,
                       hlo::Dimensions lhs_contracting, hlo::Dimensions rhs_contracting) {
  hlo::DotAttributes attributes;
  attributes.lhs_batching_dimensions = std::move(lhs_batch);
  attributes.rhs_batching_dimensions = std::move(rhs_batch);
  attributes.lhs_contracting_dimensions = std::move(lhs_contracting);
  attributes.rhs_contracting_dimensions = std::move(rhs_contracting);
  return attributes;
}

using Values = std::vector<Value>;

Value Fill(Builder& b, const Shape& shape, double value) { return b.Full(shape, value); }

const Case kCases[] = {
    {"add_zero_integer",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.Add(x[0], b.Zeros(S32({3})))}; },
     0},
    {"add_positive_zero_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Add(x[0], Fill(b, F32({9}), 0.0))}; },
     kUnchanged},
    {"add_negative_zero_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Add(Fill(b, F32({9}), -0.0), x[0])}; },
     0},
    {"add_zero_to_absolute",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Add(b.Abs(x[0]), Fill(b, F32({9}), 0.0))}; },
     1},
    {"subtract_zero_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Subtract(x[0], Fill(b, F32({9}), 0.0))}; },
     0},
    {"subtract_negative_zero_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Subtract(x[0], Fill(b, F32({9}), -0.0))}; },
     kUnchanged},
    {"subtract_self_integer",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.Subtract(x[0], x[0])}; },
     2},
    {"subtract_self_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Subtract(x[0], x[0])}; },
     kUnchanged},
    {"multiply_one",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Multiply(Fill(b, F32({9}), 1), x[0])}; },
     0},
    {"multiply_zero_float",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Multiply(x[0], Fill(b, F32({9}), 0))}; },
     kUnchanged},
    {"multiply_zero_integer",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.Multiply(x[0], b.Zeros(S32({3})))}; },
     2},
    {"divide_power_of_two",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Divide(x[0], Fill(b, F32({9}), 8))}; },
     3},
    {"divide_three",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Divide(x[0], Fill(b, F32({9}), 3))}; },
     kUnchanged},
    {"divide_integer_two",
     {S32({9})},
     [](Builder& b, const Values& x) { return Values{b.Divide(x[0], Fill(b, S32({9}), 2))}; },
     kUnchanged},
    {"and_ones",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.And(x[0], b.Full(S32({3}), int64_t{-1}))}; },
     0},
    {"or_zero",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.Or(x[0], b.Zeros(S32({3})))}; },
     0},
    {"xor_self",
     {S32({3})},
     [](Builder& b, const Values& x) { return Values{b.Xor(x[0], x[0])}; },
     2},
    {"maximum_self",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Maximum(x[0], x[0])}; },
     0},
    {"power_one",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Power(x[0], Fill(b, F32({9}), 1))}; },
     0},
    {"power_two",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Power(x[0], Fill(b, F32({9}), 2))}; },
     1},
    {"negate_twice",
     {F32({9})},
     [](Builder& b, const Values& x) { return Values{b.Negate(b.Negate(x[0]))}; },
     0},
    {"real_of_complex",
     {F32({3}), F32({3})},
     [](Builder& b, const Values& x) {
       Value c = b.Complex(x[0], x[1]);
       return Values{b.Real(c), b.Imag(c)};
     },
     0},
    {"select_known",
     {F32({3}), F32({3})},
     [](Builder& b, const Values& x) {
       return Values{b.Select(b.Full(Shape(ElementType::kPred, {3}), int64_t{0}), x[0], x[1])};
     },
     0},
    {"select_equal_arms",
     {Shape(ElementType::kPred, {3}), F32({3})},
     [](Builder& b, const Values& x) { return Values{b.Select(x[0], x[1], x[1])}; },
     0},
    {"select_of_not",
     {Shape(ElementType::kPred, {3}), F32({3}), F32({3})},
     [](Builder& b, const Values& x) { return Values{b.Select(b.Not(x[0]), x[1], x[2])}; },
     1},
    {"convert_there_and_back",
     {S32({9})},
     [](Builder& b, const Values& x) {
       return Values{b.Convert(b.Convert(x[0], ElementType::kS64), ElementType::kS32)};
     },
     0},
    {"convert_bf16_through_f32",
     {Shape(ElementType::kBF16, {9})},
     [](Builder& b, const Values& x) {
       return Values{b.Convert(b.Convert(x[0], ElementType::kF32), ElementType::kBF16)};
     },
     0},
    {"convert_that_loses",
     {F32({9})},
     [](Builder& b, const Values& x) {
       return Values{b.Convert(b.Convert(x[0], ElementType::kBF16), ElementType::kF32)};
     },
     kUnchanged},
    {"convert_that_saturates",
     {Shape(ElementType::kS16, {9})},
     [](Builder& b, const Values& x) {
       return Values{b.Convert(b.Convert(x[0], ElementType::kF32), ElementType::kU8)};
     },
     kUnchanged},
    {"reshape_chain",
     {F32({2, 3})},
     [](Builder& b, const Values& x) { return Values{b.Reshape(b.Reshape(x[0], {6}), {3, 2})}; },
     1},
    {"reshape_back",
     {F32({2, 3})},
     [](Builder& b, const Values& x) { return Values{b.Reshape(b.Reshape(x[0], {6}), {2, 3})}; },
     0},
    {"transpose_chain",
     {F32({2, 3, 4})},
     [](Builder& b, const Values& x) {
       return Values{b.Transpose(b.Transpose(x[0], {1, 2, 0}), {1, 0, 2})};
     },
     1},
    {"transpose_back",
     {F32({2, 3, 4})},
     [](Builder& b, const Values& x) {
       return Values{b.Transpose(b.Transpose(x[0], {1, 2, 0}), {2, 0, 1})};
     },
     0},
    {"transpose_that_moves_nothing",
     {F32({2, 1, 4})},
     [](Builder& b, const Values& x) { return Values{b.Transpose(x[0], {1, 0, 2})}; },
     1},
    {"broadcast_chain",
     {F32({3})},
     [](Builder& b, const Values& x) {
       return Values{b.BroadcastInDim(b.BroadcastInDim(x[0], {2, 3}, {1}), {2, 4, 3}, {0, 2})};
     },
     1},
    {"broadcast_of_reshape",
     {F32({3})},
     [](Builder& b, const Values& x) {
       return Values{b.BroadcastInDim(b.Reshape(x[0], {1, 3}), {2, 3}, {0, 1})};
     },
     1},
    {"broadcast_of_ones_reshaped",
     {F32({1, 3})},
     [](Builder& b, const Values& x) {
       return Values{b.BroadcastInDim(b.Reshape(x[0], {1, 1, 3}), {2, 5, 3}, {0, 1, 2})};
     },
     1},
    {"slice_chain",
     {F32({20})},
     [](Builder& b, const Values& x) {
       return Values{b.Slice(b.Slice(x[0], {2}, {19}, {3}), {1}, {6}, {2})};
     },
     1},
    {"slice_of_everything",
     {F32({20})},
     [](Builder& b, const Values& x) { return Values{b.Slice(x[0], {0}, {20}, {1})}; },
     0},
    {"slice_of_piece",
     {F32({4, 2}), F32({4, 3})},
     [](Builder& b, const Values& x) {
       return Values{b.Slice(b.Concatenate({x[0], x[1]}, 1), {1, 3}, {4, 5}, {1, 1})};
     },
     1},
    {"slice_over_pieces",
     {F32({2}), F32({3})},
     [](Builder& b, const Values& x) {
       return Values{b.Slice(b.Concatenate({x[0], x[1]}, 0), {1}, {4}, {1})};
     },
     kUnchanged},
    {"reverse_back",
     {F32({4, 5})},
     [](Builder& b, const Values& x) { return Values{b.Reverse(b.Reverse(x[0], {1}), {1})}; },
     0},
    {"pad_nothing",
     {F32({4}), F32({})},
     [](Builder& b, const Values& x) { return Values{b.Pad(x[0], x[1], {0}, {0}, {0})}; },
     0},
    {"pad_that_crops",
     {F32({9}), F32({})},
     [](Builder& b, const Values& x) { return Values{b.Pad(x[0], x[1], {-2}, {-3}, {0})}; },
     1},
    {"concatenate_one",
     {F32({4})},
     [](Builder& b, const Values& x) { return Values{b.Concatenate({x[0]}, 0)}; },
     0},
    {"concatenate_nothing",
     {F32({4}), F32({0})},
     [](Builder& b, const Values& x) { return Values{b.Concatenate({x[1], x[0]}, 0)}; },
     0},
    {"dynamic_slice_at_constant",
     {F32({9})},
     [](Builder& b, const Values& x) {
       Value start = b.ConstantScalar(ElementType::kS32, int64_t{7});
       return Values{b.DynamicSlice(x[0], {start}, {4})};
     },
     1},
    {"dynamic_update_of_everything",
     {F32({4}), F32({4}), S32({})},
     [](Builder& b, const Values& x) { return Values{b.DynamicUpdateSlice(x[0], x[1], {x[2]})}; },
     0},
    {"element_of_tuple",
     {F32({4}), S32({2})},
     [](Builder& b, const Values& x) {
       return Values{b.GetTupleElement(b.Tuple({x[0], x[1]}), 1)};
     },
     0},
    {"dot_of_transposed_rhs",
     {F32({2, 3}), F32({4, 3})},
     [](Builder& b, const Values& x) { return Values{b.MatMul(x[0], b.Transpose(x[1], {1, 0}))}; },
     1},
    {"dot_of_transposed_batch",
     {F32({3, 2, 5}), F32({2, 5, 4})},
     [](Builder& b, const Values& x) {
       return Values{b.DotGeneral(b.Transpose(x[0], {1, 0, 2}), x[1], Dot({0}, {0}, {2}, {1}))};
     },
     1},
    {"dot_whose_free_dimensions_swap",
     {F32({2, 3, 5}), F32({5, 4})},
     [](Builder& b, const Values& x) {
       return Values{b.DotGeneral(b.Transpose(x[0], {1, 0, 2}), x[1], Dot({}, {}, {2}, {0}))};
     },
     kUnchanged},
    {"reduce_maximum_of_one",
     {F32({1, 4})},
     [](Builder& b, const Values& x) { return Values{b.Reduce(Opcode::kMaximum, x[0], {0})}; },
     1},
    {"reduce_integer_sum_of_one",
     {S32({3, 1})},
     [](Builder& b, const Values& x) { return Values{b.Reduce(Opcode::kAdd, x[0], {1})}; },
     1},
    {"if_known",
     {F32({4})},
     [](Builder& b, const Values& x) {
       auto branch = [&](Opcode opcode) {
         return b.Region("branch", {F32({4})}, [=](Builder& c, const Values& y) {
           return Values{c.Unary(opcode, y[0])};
         });
       };
       Value no = b.ConstantScalar(ElementType::kPred, int64_t{0});
       return Values{b.If(no, {x[0]}, branch(Opcode::kAbs), branch(Opcode::kNegate))};
     },
     1},
    {"case_out_of_range",
     {F32({4})},
     [](Builder& b, const Values& x) {
       auto branch = [&](Opcode opcode) {
         return b.Region("branch", {F32({4})}, [=](Builder& c, const Values& y) {
           return Values{c.Unary(opcode, y[0]), y[0]};
         });
       };
       Value index = b.ConstantScalar(ElementType::kS32, int64_t{-3});
       Value both = b.Case(index, {x[0]}, {branch(Opcode::kAbs), branch(Opcode::kNegate)});
       return Values{b.GetTupleElement(both, 0), b.GetTupleElement(both, 1)};
     },
     1},
    {"while_never",
     {F32({4}), S32({})},
     [](Builder& b, const Values& x) {
       auto* condition =
           b.Region("condition", {F32({4}), S32({})}, [](Builder& c, const Values& y) {
             return Values{c.ConstantScalar(ElementType::kPred, int64_t{0})};
           });
       auto* body = b.Region("body", {F32({4}), S32({})}, [](Builder& c, const Values& y) {
         return Values{c.Negate(y[0]), y[1]};
       });
       return Values{b.GetTupleElement(b.While({x[0], x[1]}, condition, body), 0)};
     },
     0},
};

class SimplifyTest : public testing::TestWithParam<Case> {};

TEST_P(SimplifyTest, KeepsResultsAndShrinks) {
  const Case& row = GetParam();
  auto module = MakeModule(row.parameters, row.body);
  bool changed = ApplyAndCompare(*module, Simplify);
  if (row.instructions == kUnchanged) {
    EXPECT_FALSE(changed) << module->ToString();
    return;
  }
  EXPECT_TRUE(changed);
  auto left = static_cast<int64_t>(module->entry()->instructions().size() - row.parameters.size());
  EXPECT_EQ(left, row.instructions) << module->ToString();
}

INSTANTIATE_TEST_SUITE_P(Rules, SimplifyTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A slice of nothing may begin where a slice with strides has long ended.
TEST(Simplify, EmptySliceOfAStridedSlice) {
  auto module = MakeModule({S32({17, 5})}, [](Builder& b, const std::vector<Value>& p) {
    Value inner = b.Slice(p[0], {3, 0}, {17, 5}, {5, 1});
    return std::vector<Value>{b.Slice(inner, {3, 1}, {3, 4}, {1, 1})};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, Simplify));
  EXPECT_EQ(CountOpcode(*module, Opcode::kSlice), 1);
}

}  // namespace
}  // namespace passes
