// Steps that move bytes, on their own: against the evaluator, over shapes at the edges of blocks.
#include "cpu/data_movement.h"

#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

// Binds the only operation and runs it.
template <typename Body>
void CheckStep(const std::vector<Shape>& shapes, const std::vector<hlo::Literal>& arguments,
               Body body) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Values parameters;
  for (const Shape& shape : shapes) parameters.push_back(b.Parameter(shape));
  Value moved = body(b, parameters);
  entry->set_results({moved});
  const NativeStep::Function run = BindDataMovement(*moved);
  ASSERT_NE(run, nullptr) << moved->ToString();
  std::vector<void*> operands;
  for (const hlo::Literal& argument : arguments) {
    operands.push_back(const_cast<std::byte*>(argument.bytes()));
  }
  GuardedBlock result(moved->shape().byte_size());
  void* results[] = {result.data()};
  const RunOptions options;
  const RunState state{ThreadPool::Default(), options, nullptr, nullptr, nullptr};
  run({state, operands.data(), results, nullptr});
  EXPECT_TRUE(result.IsIntact()) << moved->ToString();
  EXPECT_EQ(hlo::Evaluate(module, arguments)[0], hlo::Literal(moved->shape(), result.data()))
      << moved->ToString();
}

TEST(DataMovement, TransposesOfEveryWidth) {
  const std::pair<Dimensions, Dimensions> cases[] = {{{65, 3}, {1, 0}},
                                                     {{16, 16}, {1, 0}},
                                                     {{17, 130}, {1, 0}},
                                                     {{3, 20, 33}, {0, 2, 1}},
                                                     {{9, 5, 7}, {2, 1, 0}},
                                                     {{8, 1, 24}, {2, 1, 0}},
                                                     {{2, 9, 4, 11}, {1, 3, 0, 2}},
                                                     {{64, 2, 64}, {2, 0, 1}},
                                                     {{128, 128}, {1, 0}}};
  for (ElementType type : {ElementType::kS8, ElementType::kS16, ElementType::kF32,
                           ElementType::kS64, ElementType::kC128}) {
    for (const auto& [dimensions, permutation] : cases) {
      const Shape shape(type, dimensions);
      CheckStep({shape}, {RandomLiteral(shape, 1)},
                [&, p = permutation](Builder& b, const Values& v) { return b.Transpose(v[0], p); });
    }
  }
}

TEST(DataMovement, Concatenations) {
  for (ElementType type : {ElementType::kPred, ElementType::kBF16, ElementType::kF32,
                           ElementType::kS64, ElementType::kC128}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 1},
                                              {1, 1, 1},
                                              {1, 1, 1, 1},
                                              {3, 0, 5},
                                              {7},
                                              {2, 1},
                                              {1, 1, 1, 1, 1},
                                              {4, 2},
                                              {9, 3},
                                              {1, 17, 31},
                                              {600, 1, 35}}) {
      for (int64_t dimension : {0, 1}) {
        std::vector<Shape> shapes;
        std::vector<hlo::Literal> arguments;
        for (int64_t size : sizes) {
          shapes.emplace_back(type, dimension == 0 ? Dimensions{size, 6} : Dimensions{70, size});
          arguments.push_back(RandomLiteral(shapes.back(), static_cast<unsigned>(shapes.size())));
        }
        CheckStep(shapes, arguments,
                  [&](Builder& b, const Values& v) { return b.Concatenate(v, dimension); });
      }
    }
  }
}

// Starts that lie outside are moved to the nearest place that holds the update.
TEST(DataMovement, UpdatesAnywhere) {
  const Shape whole(ElementType::kF32, {5, 6, 4});
  for (const Dimensions& size : {Dimensions{2, 6, 4}, Dimensions{1, 3, 4}, Dimensions{5, 2, 1},
                                 Dimensions{5, 6, 4}, Dimensions{0, 3, 4}}) {
    const Shape update(ElementType::kF32, size);
    for (int64_t start :
         {int64_t{0}, int64_t{1}, int64_t{-7}, int64_t{100}, INT64_MAX, INT64_MIN}) {
      const Shape index = Shape::Scalar(ElementType::kS64);
      const auto at = hlo::Literal::Scalar(start);
      CheckStep({whole, update, index},
                {RandomLiteral(whole, 1), RandomLiteral(update, 2), at, at, at},
                [&](Builder& b, Values v) {
                  v.push_back(b.Parameter(index));
                  v.push_back(b.Parameter(index));
                  return b.DynamicUpdateSlice(v[0], v[1], {v[2], v[3], v[4]});
                });
    }
  }
  const Shape index = Shape::Scalar(ElementType::kU64);
  const Shape row(ElementType::kF32, {6}), cell(ElementType::kF32, {2});
  CheckStep({row, cell, index},
            {RandomLiteral(row, 1), RandomLiteral(cell, 2), hlo::Literal::Scalar(UINT64_MAX)},
            [](Builder& b, const Values& v) { return b.DynamicUpdateSlice(v[0], v[1], {v[2]}); });
}

TEST(DataMovement, ArithmeticIsNone) {
  hlo::Module module;
  Builder b(module.AddComputation("main"));
  Value x = b.Parameter(Shape(ElementType::kF32, {4, 4}));
  EXPECT_EQ(BindDataMovement(*b.Add(x, x)), nullptr);
  // Nor is a transpose that a loop does as well.
  EXPECT_EQ(BindDataMovement(*b.Transpose(x, {1, 0})), nullptr);
}

}  // namespace
}  // namespace cpu
