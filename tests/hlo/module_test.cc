#include "hlo/module.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/verifier.h"

namespace hlo {
namespace {

const Shape kVector(ElementType::kF32, {4});

// x, y -> tanh(x) * y + sum(y), with a dead instruction.
std::unique_ptr<Module> Sample(const std::string& name = "sample") {
  auto module = std::make_unique<Module>(name);
  Computation* main = module->AddComputation("main");
  module->set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector), y = b.Parameter(kVector);
  b.Negate(x);
  Value sum = b.Reduce(Opcode::kAdd, y, {0});
  Value result = b.Add(b.Multiply(b.Tanh(x), y), b.BroadcastTo(sum, {4}));
  main->set_results({result, y});
  module->input_output_aliases = {{0, 0, false}};
  return module;
}

TEST(Instruction, UsersFollowRewrites) {
  Module module;
  Computation* main = module.AddComputation("main");
  Builder b(main);
  Value x = b.Parameter(kVector), y = b.Parameter(kVector);
  Value square = b.Multiply(x, x);
  EXPECT_EQ(x->users(), std::vector<Value>{square});
  square->ReplaceOperand(0, y);
  EXPECT_EQ(x->users(), std::vector<Value>{square});
  EXPECT_EQ(y->users(), std::vector<Value>{square});
  square->ReplaceOperand(1, y);
  EXPECT_TRUE(x->users().empty());
  main->set_results({square});
  Value wrapped = b.Negate(square);
  square->ReplaceAllUsesWith(wrapped);
  EXPECT_EQ(main->result(), wrapped);
  EXPECT_EQ(wrapped->operand(0), square);
  y->ReplaceAllUsesWith(x);
  EXPECT_TRUE(y->users().empty());
  EXPECT_EQ(square->operand(0), x);
  EXPECT_EQ(square->operand(1), x);
  module.set_entry(main);
  EXPECT_NO_THROW(VerifyModule(module));
}

// Programs have thousands, and each new size of one makes them anew: their memory is what a pass
// takes most of its time for.
TEST(Instruction, IsSmall) { EXPECT_LE(sizeof(Instruction), size_t{192}); }

TEST(Instruction, SharesItsAttributesWithCopies) {
  auto module = Sample();
  const auto copy = module->Clone();
  for (size_t i = 0; i < module->entry()->instructions().size(); ++i) {
    const Instruction& from = *module->entry()->instructions()[i];
    const Instruction& to = *copy->entry()->instructions()[i];
    EXPECT_EQ(&from.attributes(), &to.attributes()) << from.ToString();
  }
  EXPECT_EQ(SharedAttributes(SortAttributes{1, true}), SharedAttributes(SortAttributes{1, true}));
  EXPECT_FALSE(SharedAttributes(SortAttributes{1}) == SharedAttributes(SortAttributes{2}));
  EXPECT_FALSE(SharedAttributes(SortAttributes{1}) == SharedAttributes());
  EXPECT_EQ(SharedAttributes(NoAttributes()), SharedAttributes());
}

TEST(Shape, KnowsThatASizeIsDynamic) {
  const Shape known(ElementType::kF32, {2, 3}), unknown(ElementType::kF32, {2, kDynamic});
  EXPECT_FALSE(known.is_dynamic());
  EXPECT_FALSE(Shape::Tuple({known, Shape::Token()}).is_dynamic());
  EXPECT_TRUE(unknown.is_dynamic());
  EXPECT_TRUE(unknown.WithElementType(ElementType::kS32).is_dynamic());
  EXPECT_FALSE(unknown.WithDimensions({2, 3}).is_dynamic());
  EXPECT_TRUE(Shape::Tuple({known, Shape::Tuple({unknown})}).is_dynamic());
}

TEST(Instruction, PrintsOneLine) {
  auto module = Sample();
  const Instruction* reduce = module->entry()->instructions()[4].get();
  EXPECT_EQ(reduce->ToString().substr(reduce->ToString().find('=')),
            "= f32[] reduce(%1, %6), dimensions = [0], calls @add.f32");
}

TEST(Computation, RemovesDeadInstructions) {
  auto module = Sample();
  Computation* main = module->entry();
  size_t before = main->instructions().size();
  EXPECT_EQ(main->RemoveDeadInstructions(), 1);
  EXPECT_EQ(main->instructions().size(), before - 1);
  EXPECT_NO_THROW(VerifyModule(*module));
}

TEST(Computation, KeepsSideEffects) {
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector);
  CustomCallAttributes print;
  print.target = "print";
  print.has_side_effect = true;
  b.CustomCall({b.Negate(x)}, kVector, print);
  main->set_results({x});
  EXPECT_EQ(main->RemoveDeadInstructions(), 0);
}

TEST(Computation, RemovesSomeOfManyUsers) {
  constexpr size_t kUsers = 40000;
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector);
  std::vector<Value> kept;
  for (size_t i = 0; i < kUsers; ++i) {
    kept.push_back(b.Negate(x));
    b.Add(x, b.Abs(x));
  }
  main->set_results(kept);
  const std::clock_t start = std::clock();
  EXPECT_EQ(main->RemoveDeadInstructions(), 2 * kUsers);
  // To look through all users for each of the dead would be some 6e9 steps.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2);
  EXPECT_EQ(std::vector<Value>(x->users()), kept);
  EXPECT_NO_THROW(VerifyModule(module));
}

TEST(Computation, RemoveRefusesUsed) {
  auto module = Sample();
  Computation* main = module->entry();
  EXPECT_THROW(main->Remove(main->parameter(0)), Error);
  EXPECT_THROW(main->Remove(main->result()), Error);
  main->Remove(main->instructions()[2].get());  // the dead negate
  EXPECT_NO_THROW(VerifyModule(*module));
}

TEST(Computation, RemovedParameterRenumbersTheOthers) {
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value unused = b.Parameter(kVector), x = b.Parameter(kVector);
  main->set_results({x});
  main->Remove(unused);
  EXPECT_EQ(x->parameter_number(), 0);
  EXPECT_NO_THROW(VerifyModule(module));
}

TEST(Computation, SortsAndFindsCycles) {
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector);
  Value early = b.Negate(x), late = b.Tanh(x);
  early->ReplaceOperand(0, late);
  main->set_results({early});
  EXPECT_THROW(VerifyModule(module), Error);
  main->SortTopologically();
  EXPECT_NO_THROW(VerifyModule(module));
  late->ReplaceOperand(0, early);
  EXPECT_THROW(main->SortTopologically(), Error);
}

// As a program's constants are: a NaN is itself, and a zero is not the one of the other sign.
TEST(Attributes, NumbersAreTheirBits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto composite = [](std::vector<double> numbers) -> Attributes {
    const AttributeValue list{std::move(numbers), ElementType::kF64};
    return CompositeAttributes{.name = "a",
                               .attributes = {{"b", {1.0, ElementType::kF64}}, {"c", list}}};
  };
  const auto normalization = [](float epsilon) -> Attributes {
    return BatchNormAttributes{epsilon, 1};
  };
  EXPECT_EQ(composite({kNan, 0.0}), composite({kNan, 0.0}));
  EXPECT_EQ(HashAttributes(composite({kNan, 0.0})), HashAttributes(composite({kNan, 0.0})));
  EXPECT_NE(composite({0.0}), composite({-0.0}));
  EXPECT_NE(composite({0.0}), composite({0.0, 0.0}));
  EXPECT_EQ(normalization(static_cast<float>(kNan)), normalization(static_cast<float>(kNan)));
  EXPECT_NE(normalization(0), normalization(-0.0f));
}

TEST(Module, CloneIsEqualAndIndependent) {
  auto module = Sample();
  auto clone = module->Clone();
  EXPECT_NO_THROW(VerifyModule(*clone));
  EXPECT_EQ(clone->Hash(), module->Hash());
  EXPECT_TRUE(SameComputation(*clone->entry(), *module->entry()));
  EXPECT_EQ(clone->computations().size(), module->computations().size());
  Builder b(clone->entry());
  clone->entry()->set_result(0, b.Negate(clone->entry()->result(0)));
  EXPECT_NE(clone->Hash(), module->Hash());
  EXPECT_FALSE(SameComputation(*clone->entry(), *module->entry()));
}

// A pass copies many instructions: copies of a shape, and of where they come from, are the same
// objects.
TEST(Module, CopiesShareShapesAndMetadata) {
  auto module = Sample();
  Instruction* result = module->entry()->result(0);
  result->set_metadata(Metadata{"aten::add", "model.py", 3});
  auto clone = module->Clone();
  const Instruction* copy = clone->entry()->result(0);
  EXPECT_EQ(&copy->metadata(), &result->metadata());
  ASSERT_FALSE(result->dimensions().empty());
  EXPECT_EQ(&copy->dimensions(), &result->dimensions());
  EXPECT_EQ(&result->shape().WithElementType(ElementType::kS32).dimensions(),
            &result->dimensions());
  result->set_metadata({});
  EXPECT_EQ(copy->metadata().op_name, "aten::add");
  EXPECT_EQ(Shape::Scalar(ElementType::kF32).dimensions(), Dimensions());
  EXPECT_NE(Shape(ElementType::kF32, {2}), Shape(ElementType::kF32, {3}));
  EXPECT_EQ(Shape(ElementType::kF32, {2}), Shape(ElementType::kF32, {2}));
}

TEST(Module, HashKnowsWhatIsComputedAndNothingElse) {
  auto a = Sample("a"), b = Sample("b");
  b->entry()->result(0)->set_metadata(Metadata{"aten::add", "model.py", 3});
  EXPECT_EQ(a->Hash(), b->Hash());
  b->entry()->RemoveDeadInstructions();
  EXPECT_EQ(a->Hash(), b->Hash());
  b->input_output_aliases.clear();
  EXPECT_NE(a->Hash(), b->Hash());
}

// The same graph with one thing changed must differ.
TEST(Module, HashSeesConstantsAttributesAndRegions) {
  auto build = [](double constant, int64_t dimension, Opcode combiner) {
    auto module = std::make_unique<Module>();
    Computation* main = module->AddComputation("main");
    module->set_entry(main);
    Builder b(main);
    Value x = b.Parameter(Shape(ElementType::kF32, {4, 4}));
    Value y = b.Add(x, b.Full(x->shape(), constant));
    Value init = b.ConstantScalar(ElementType::kF32, 0.0);
    main->set_results(
        {b.Reduce(y, init, {dimension}, b.ScalarCombiner(combiner, ElementType::kF32))});
    return module->Hash();
  };
  size_t hash = build(1, 0, Opcode::kAdd);
  EXPECT_EQ(hash, build(1, 0, Opcode::kAdd));
  EXPECT_NE(hash, build(2, 0, Opcode::kAdd));
  EXPECT_NE(hash, build(1, 1, Opcode::kAdd));
  EXPECT_NE(hash, build(1, 0, Opcode::kMaximum));
}

TEST(Module, SortsAndDropsComputations) {
  Module module;
  Computation* main = module.AddComputation("main");
  Computation* unused = module.AddComputation("unused");
  Computation* callee = module.AddComputation("callee");
  module.set_entry(main);
  Builder(unused).Parameter(kVector);
  Builder c(callee);
  callee->set_results({c.Negate(c.Parameter(kVector))});
  Builder b(main);
  main->set_results({b.Call(callee, {b.Parameter(kVector)})});
  EXPECT_THROW(VerifyModule(module), Error);
  module.SortComputations();
  EXPECT_NO_THROW(VerifyModule(module));
  EXPECT_EQ(module.computations().back().get(), main);
  module.RemoveUnreachableComputations();
  EXPECT_EQ(module.computations().size(), 2u);
}

TEST(InlineComputation, WithinAndAcrossModules) {
  auto source = Sample();
  Module target;
  Computation* main = target.AddComputation("main");
  target.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector);
  auto first = InlineComputation(*source->entry(), *main, {x, x});
  auto second = InlineComputation(*source->entry(), *main, first);
  main->set_results(second);
  EXPECT_EQ(first[1], x);
  EXPECT_NO_THROW(VerifyModule(target));
  EXPECT_THROW(InlineComputation(*source->entry(), *main, {x}), Error);
}

TEST(Module, LongProgramsTakeLinearTime) {
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kVector), one = b.Full(kVector, 1.0);
  Value y = x;
  for (int i = 0; i < 20000; ++i) y = b.Add(y, one);
  main->set_results({y});
  const std::clock_t start = std::clock();
  auto clone = module.Clone();
  EXPECT_EQ(clone->Hash(), module.Hash());
  EXPECT_TRUE(SameComputation(*clone->entry(), *main));
  main->SortTopologically();
  EXPECT_EQ(main->RemoveDeadInstructions(), 0);
  VerifyModule(module);
  InlineComputation(*main, *main, {x});
  EXPECT_EQ(main->RemoveDeadInstructions(), 20002);
  // The processor's time: other work on the machine does not count. Quadratic work would be some
  // 4e8 steps for each of these.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5);
}

}  // namespace
}  // namespace hlo
