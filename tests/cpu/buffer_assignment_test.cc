// Where a program's values live, by what the compiled program says of itself.
#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

constexpr int64_t kBytes = 64 * 64 * 4;
const Shape kSquare(ElementType::kF32, {64, 64});

struct CompiledProgram {
  hlo::Module module;
  std::unique_ptr<Executable> executable;

  template <typename Body>
  CompiledProgram(int parameters, Body body, std::vector<hlo::InputOutputAlias> aliases = {}) {
    auto* entry = module.AddComputation("main");
    module.set_entry(entry);
    Builder b(entry);
    Values values;
    for (int i = 0; i < parameters; ++i) values.push_back(b.Parameter(kSquare));
    entry->set_results(body(b, values));
    module.input_output_aliases = std::move(aliases);
    executable = Compile(module);
  }

  int64_t Count(const std::string& what) const {
    const std::string text = executable->ToString();
    const std::string steps = text.substr(0, text.find("\nmodule "));
    int64_t count = 0;
    for (size_t at = steps.find(what); at != steps.npos; at = steps.find(what, at + 1)) ++count;
    return count;
  }

  void Check() const {
    std::vector<hlo::Literal> arguments;
    for (size_t i = 0; i < executable->parameter_shapes().size(); ++i) {
      arguments.push_back(RandomLiteral(kSquare, static_cast<unsigned>(i + 1)));
    }
    const auto expected = hlo::Evaluate(module, arguments);
    const auto actual = RunOnEngine(*executable, arguments);
    for (size_t i = 0; i < expected.size(); ++i) ExpectClose(expected[i], actual[i], 10);
  }
};

// A step that is no part of a loop.
Value Turned(Builder& b, Value x) { return b.Transpose(x, {1, 0}); }

// However long a chain, two of its values live at a time.
TEST(BufferAssignment, AChainNeedsTwoBuffers) {
  const CompiledProgram chain(1, [](Builder& b, const Values& p) {
    Value x = p[0];
    for (int i = 0; i < 12; ++i) x = Turned(b, b.Tanh(x));
    return Values{x};
  });
  EXPECT_LE(chain.executable->arena_bytes(), 2 * kBytes);
  EXPECT_GT(chain.executable->arena_bytes(), 0);
  chain.Check();
}

// Else thousands of programs that a process keeps would hold as many arenas.
TEST(BufferAssignment, AProgramThatRestsHoldsNoBuffer) {
  const CompiledProgram chain(1, [](Builder& b, const Values& p) {
    return Values{Turned(b, b.Tanh(Turned(b, b.Tanh(p[0]))))};
  });
  EXPECT_GT(chain.executable->arena_bytes(), 0);
  const int64_t before = GetMemoryStatistics().bytes_in_use;
  chain.Check();
  EXPECT_EQ(GetMemoryStatistics().bytes_in_use, before);
}

// What is needed at the end is not overwritten before.
TEST(BufferAssignment, ValuesThatLiveTogetherLieApart) {
  constexpr int kValues = 6;
  const CompiledProgram fan(1, [](Builder& b, const Values& p) {
    Values values;
    Value x = p[0];
    for (int i = 0; i < kValues; ++i) values.push_back(x = Turned(b, b.Tanh(x)));
    Value sum = Turned(b, values[0]);
    for (int i = 1; i < kValues; ++i) sum = Turned(b, b.Add(sum, values[i]));
    return Values{sum};
  });
  EXPECT_GE(fan.executable->arena_bytes(), (kValues - 1) * kBytes);
  fan.Check();
}

// Else the whole of it would be copied for each result that is a few updates of a new array.
TEST(BufferAssignment, WhatAResultUpdatesLiesInItsPlace) {
  const CompiledProgram updates(2, [](Builder& b, const Values& p) {
    const Value row = Turned(b, b.SliceInDim(p[1], 1, 3, 4));
    Value x = Turned(b, p[0]);
    for (int64_t i : {5, 9}) {
      const Value zero = b.ConstantScalar(ElementType::kS32, int64_t{0});
      x = b.DynamicUpdateSlice(x, row, {b.ConstantScalar(ElementType::kS32, i), zero});
    }
    return Values{x};
  });
  EXPECT_LT(updates.executable->arena_bytes(), kBytes);
  updates.Check();
}

// Of two results one is what the other updates: they lie apart.
TEST(BufferAssignment, AResultIsNotOverwrittenByAnother) {
  const CompiledProgram updates(2, [](Builder& b, const Values& p) {
    const Value row = Turned(b, b.SliceInDim(p[1], 1, 3, 4));
    const Value x = Turned(b, p[0]), zero = b.ConstantScalar(ElementType::kS32, int64_t{0});
    return Values{b.DynamicUpdateSlice(x, row, {zero, zero}), x};
  });
  updates.Check();
}

// The place of a value that is two results was given to an operand for each of them.
TEST(BufferAssignment, AValueThatIsTwoResultsTakesThePlaceOfOneOperand) {
  const CompiledProgram sum(2, [](Builder& b, const Values& p) {
    const Value x = b.Add(Turned(b, p[0]), Turned(b, p[1]));
    return Values{x, x};
  });
  sum.Check();
}

// As gradients of weights are, which are recorded when all that they read is there.
TEST(BufferAssignment, WhatFreesMoreThanItTakesRunsEarly) {
  const CompiledProgram step(2, [](Builder& b, const Values& p) {
    Values values, products;
    Value x = p[0];
    for (int i = 0; i < 8; ++i) values.push_back(x = Turned(b, b.Tanh(x)));
    for (Value value : values) products.push_back(b.MatMul(value, p[1]));
    return products;
  });
  EXPECT_LE(step.executable->arena_bytes(), 3 * kBytes);
  step.Check();
}

// What would free memory waits for those that read an argument which it overwrites.
TEST(BufferAssignment, AnEarlyResultLeavesADonatedArgumentToItsReaders) {
  const CompiledProgram step(2,
                             [](Builder& b, const Values& p) {
                               const Value product = Turned(b, b.Tanh(p[1]));
                               const Value reader = Turned(b, b.Exp(p[0]));
                               return Values{b.Add(p[0], Turned(b, product)), reader};
                             },
                             {{0, 0, false}});
  EXPECT_EQ(step.Count("copy("), 0);
  step.Check();
}

// Results are computed where the caller wants them.
TEST(BufferAssignment, ResultsNeedNoCopy) {
  const CompiledProgram step(
      2, [](Builder& b, const Values& p) { return Values{b.Add(p[0], p[1]), Turned(b, p[0])}; });
  EXPECT_EQ(step.Count("copy("), 0);
  EXPECT_EQ(step.executable->arena_bytes(), 0);
  step.Check();
}

TEST(BufferAssignment, TheSameResultTwiceIsCopiedOnce) {
  const CompiledProgram twice(1, [](Builder& b, const Values& p) {
    Value x = b.Exp(p[0]);
    return Values{x, x, p[0]};
  });
  EXPECT_EQ(twice.Count("copy("), 2);  // the second one, and the parameter
  twice.Check();
}

// A result takes over a donated argument at once if nothing reads that later, else after a copy.
TEST(BufferAssignment, DonatedArguments) {
  const CompiledProgram in_place(
      2, [](Builder& b, const Values& p) { return Values{b.Add(p[0], p[1])}; }, {{0, 0, false}});
  EXPECT_EQ(in_place.executable->aliased_parameters(), std::vector<int64_t>{0});
  EXPECT_EQ(in_place.Count("copy("), 0);
  const CompiledProgram crossed(2, [](Builder& b, const Values& p) { return Values{p[1], p[0]}; },
                                {{0, 0, false}, {1, 1, false}});
  EXPECT_GE(crossed.Count("copy("), 3);  // at least one argument is put aside
  EXPECT_GE(crossed.executable->arena_bytes(), kBytes);
  in_place.Check();
  crossed.Check();
}

}  // namespace
}  // namespace cpu
