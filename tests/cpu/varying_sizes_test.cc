// Kernels that read sizes at run time: one serves many sizes, and its results are the evaluator's.
#include "cpu/varying_sizes.h"

#include <functional>
#include <limits>
#include <random>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/emit/extent.h"
#include "cpu/kernel_cache.h"
#include "cpu/pipeline.h"
#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

int64_t Compiled() { return KernelCache::OfProcess().statistics().compiled; }

// A program of a batch, a length and a width.
struct Program {
  std::vector<Shape> parameters;
  std::function<Values(Builder&, const Values&)> body;
};
using MakeProgram = std::function<Program(int64_t batch, int64_t length, int64_t width)>;

const std::vector<std::pair<const char*, MakeProgram>>& Programs() {
  static const std::vector<std::pair<const char*, MakeProgram>> programs = {
      {"flat",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w}), F32({n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Multiply(b.Add(p[0], p[1]), p[1])};
                        }};
       }},
      {"bias",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w}), F32({w})}, [](Builder& b, const Values& p) {
                          return Values{b.Add(p[0], b.BroadcastTo(p[1], p[0]->dimensions()))};
                        }};
       }},
      {"mask",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{
             {F32({n, w, t, t}), F32({n, t})}, [](Builder& b, const Values& p) {
               return Values{b.Add(p[0], b.BroadcastInDim(p[1], p[0]->dimensions(), {0, 3}))};
             }};
       }},
      {"transpose",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w}), F32({n, w, t})}, [](Builder& b, const Values& p) {
                          return Values{b.Add(b.Transpose(p[0], {0, 2, 1}), p[1])};
                        }};
       }},
      {"heads",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, 4 * w})}, [=](Builder& b, const Values& p) {
                          Value x = b.Reshape(p[0], {n, t, 4, w});
                          return Values{b.Negate(b.Transpose(x, {0, 2, 1, 3}))};
                        }};
       }},
      {"slice",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{
             {F32({n, t + 3, w}), F32({n, t, w})}, [=](Builder& b, const Values& p) {
               return Values{b.Add(b.Slice(p[0], {0, 3, 0}, {n, t + 3, w}, {1, 1, 1}), p[1])};
             }};
       }},
      {"last element",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [=](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Slice(p[0], {0, t - 1, 0}, {n, t, w}, {1, 1, 1}))};
                        }};
       }},
      {"strided slice",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, 2 * t, w})}, [=](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Slice(p[0], {0, 1, 0}, {n, 2 * t, w}, {1, 2, 1}))};
                        }};
       }},
      {"pad",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [=](Builder& b, const Values& p) {
                          return Values{b.Pad(b.Exp(p[0]), b.ConstantScalar(ElementType::kF32, 2.0),
                                              {0, t, 0}, {0, 1, 2}, {0, 0, 0})};
                        }};
       }},
      {"interior pad",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [=](Builder& b, const Values& p) {
                          return Values{b.Pad(b.Exp(p[0]), b.ConstantScalar(ElementType::kF32, 2.0),
                                              {0, 1, 0}, {0, 2, 0}, {0, 1, 0})};
                        }};
       }},
      {"concatenate",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w}), F32({n, 2, w}), F32({n, t, w})},
                        [](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Concatenate({p[0], p[1], p[2]}, 1))};
                        }};
       }},
      {"concatenate the last",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, w, t}), F32({n, w, 1})}, [](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Concatenate({p[0], p[1]}, 2))};
                        }};
       }},
      {"reverse",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Reverse(p[0], {1}))};
                        }};
       }},
      {"reverse the last",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, w, t})}, [](Builder& b, const Values& p) {
                          return Values{b.Exp(b.Reverse(p[0], {2}))};
                        }};
       }},
      {"iota",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [=](Builder& b, const Values& p) {
                          return Values{b.Add(p[0], b.Iota(F32({n, t, w}), 1))};
                        }};
       }},
      {"dynamic slice",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t + 5, w}), Shape(ElementType::kS32, {})},
                        [=](Builder& b, const Values& p) {
                          Value zero = b.ConstantScalar(ElementType::kS32, int64_t{0});
                          return Values{b.Exp(b.DynamicSlice(p[0], {zero, p[1], zero}, {n, t, w}))};
                        }};
       }},
      {"dynamic update slice",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{
             {F32({n, t + 5, w}), F32({n, t, w}), Shape(ElementType::kS32, {})},
             [=](Builder& b, const Values& p) {
               Value zero = b.ConstantScalar(ElementType::kS32, int64_t{0});
               return Values{b.Exp(b.DynamicUpdateSlice(p[0], p[1], {zero, p[2], zero}))};
             }};
       }},
      {"convert",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{
             {Shape(ElementType::kBF16, {n, t, w}), Shape(ElementType::kPred, {n, t})},
             [](Builder& b, const Values& p) {
               Value mask = b.BroadcastInDim(p[1], p[0]->dimensions(), {0, 1});
               return Values{b.Convert(b.Select(mask, p[0], b.Negate(p[0])), ElementType::kF32)};
             }};
       }},
      {"complex",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{Shape(ElementType::kC64, {n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Multiply(p[0], b.Reverse(p[0], {1}))};
                        }};
       }},
      {"mean of lengths",  // a constant made of a size
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [=](Builder& b, const Values& p) {
                          Value sum = b.Reduce(Opcode::kAdd, p[0], {1});
                          const double count = static_cast<double>(t);
                          return Values{b.Multiply(sum, b.Full(F32({n, w}), 1 / count))};
                        }};
       }},
      {"constants of every width",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{
             {F32({n, t, w})}, [=](Builder& b, const Values& p) {
               Value sum = p[0];
               for (ElementType type :
                    {ElementType::kS8, ElementType::kU16, ElementType::kS32, ElementType::kS64,
                     ElementType::kF16, ElementType::kBF16, ElementType::kF64}) {
                 const Shape shape(type, {n, t, w});
                 Value constant = b.Full(shape, static_cast<double>(t % 90 + 30));
                 sum = b.Add(sum,
                             b.Convert(b.Add(b.Convert(p[0], type), constant), ElementType::kF32));
               }
               return Values{sum};
             }};
       }},
      {"softmax of lengths",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, w, t})},
                        [](Builder& b, const Values& p) { return Values{Softmax(b, p[0])}; }};
       }},
      {"softmax of widths",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})},
                        [](Builder& b, const Values& p) { return Values{Softmax(b, p[0])}; }};
       }},
      {"sum of lengths",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Reduce(Opcode::kAdd, p[0], {1})};
                        }};
       }},
      {"sum of rows",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, w, t})}, [](Builder& b, const Values& p) {
                          return Values{b.Reduce(Opcode::kAdd, p[0], {2})};
                        }};
       }},
      {"sum of batches",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Reduce(Opcode::kAdd, p[0], {0, 1})};
                        }};
       }},
      {"sum of all",
       [](int64_t n, int64_t t, int64_t w) {
         return Program{{F32({n, t, w})}, [](Builder& b, const Values& p) {
                          return Values{b.Reduce(Opcode::kAdd, b.Multiply(p[0], p[0]), {0, 1, 2})};
                        }};
       }},
  };
  return programs;
}

void Check(const Program& program) {
  CheckProgram(
      program.parameters, [&](Builder& b, const Values& p) { return program.body(b, p); }, 20);
}

// Each at ones, small ones, primes, multiples of the lanes, and large ones.
TEST(VaryingSizes, EveryOperationAtManySizes) {
  for (const auto& [name, make] : Programs()) {
    SCOPED_TRACE(name);
    for (int64_t length : {1, 2, 3, 5, 7, 8, 13, 16, 31, 32, 64, 67, 200}) {
      SCOPED_TRACE("length " + std::to_string(length));
      Check(make(2, length, 5));
      Check(make(3, length, 16));
      if (testing::Test::HasFailure()) return;
    }
  }
}

std::unique_ptr<hlo::Module> ModuleOf(const Program& program) {
  auto module = std::make_unique<hlo::Module>();
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder b(entry);
  Values parameters;
  for (const Shape& shape : program.parameters) parameters.push_back(b.Parameter(shape));
  entry->set_results(program.body(b, parameters));
  return module;
}

// The second size is the last one that is compiled, of sizes above those of vectors.
TEST(VaryingSizes, TheThirdSizeCompilesNothing) {
  for (const auto& [name, make] : Programs()) {
    SCOPED_TRACE(name);
    Compile(*ModuleOf(make(3, 301, 24)));
    Compile(*ModuleOf(make(3, 317, 24)));
    const int64_t before = Compiled();
    for (int64_t length : {303, 304, 389, 416, 512, 1001}) Compile(*ModuleOf(make(3, length, 24)));
    EXPECT_EQ(Compiled(), before);
    Compile(*ModuleOf(make(5, 389, 24)));  // now the batch varies, too
    const int64_t with_batch = Compiled();
    for (int64_t length : {307, 408, 997}) Compile(*ModuleOf(make(7, length, 24)));
    EXPECT_EQ(Compiled(), with_batch);
  }
}

// Nor is the second, where the first program is told what varies. Constants and limits of slices
// are other numbers than sizes: that they vary is seen at the second.
TEST(VaryingSizes, WhatIsKnownToVaryIsCompiledOnce) {
  size_t compiled_once = 0;
  for (const auto& [name, make] : Programs()) {
    SCOPED_TRACE(name);
    KernelCache cache(int64_t{64} << 20);
    const auto compile = [&](int64_t length) {
      const auto module = ModuleOf(make(3, length, 24));
      RunPipeline(*module, {});
      GenerateCode(*module, Dump(), cache, SlotsFor::kWhatVaries,
                   {length, 3 * length, 24 * length});
    };
    compile(301);
    const int64_t first = cache.statistics().compiled;
    compile(317);
    const int64_t second = cache.statistics().compiled;
    compiled_once += second == first ? 1 : 0;
    for (int64_t length : {416, 1001}) compile(length);
    EXPECT_EQ(cache.statistics().compiled, second);
  }
  EXPECT_GT(compiled_once, Programs().size() / 2);
}

TEST(VaryingSizes, ResultsFollowTheSizes) {
  for (const auto& [name, make] : Programs()) {
    SCOPED_TRACE(name);
    for (int64_t length : {41, 53, 40, 129, 97, 24}) {
      const auto module = ModuleOf(make(2, length, 12));
      std::vector<hlo::Literal> arguments;
      for (const hlo::Instruction* parameter : module->entry()->parameters()) {
        arguments.push_back(
            RandomLiteral(parameter->shape(), static_cast<unsigned>(arguments.size() + 1)));
      }
      const auto expected = hlo::Evaluate(*module, arguments);
      const auto executable = Compile(*module);
      const auto actual = RunOnEngine(*executable, arguments);
      ExpectClose(expected[0], actual[0], 20);
      const auto loaded = LoadExecutable(executable->Serialize());
      EXPECT_EQ(loaded->Serialize(), executable->Serialize());
      EXPECT_EQ(RunOnEngine(*loaded, arguments), actual);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// --- Extents.

TEST(Extent, ConstantsStayConstants) {
  const Extent product = Extent(6) * 4, sum = product + 3, difference = Extent(3) - 5;
  EXPECT_TRUE(product.Is(24));
  EXPECT_EQ(product.divisor, 24);
  EXPECT_TRUE(sum.Is(27));
  EXPECT_TRUE(difference.Is(-2));
  EXPECT_TRUE((product / 5).Is(4));
  // The bits of -0.0, which has no magnitude of its type.
  EXPECT_EQ(Extent(std::numeric_limits<int64_t>::min()).divisor, int64_t{1} << 62);
}

TEST(Extent, KnowsWhatDividesIt) {
  KernelSizes sizes({37});
  const Extent length = sizes.Size(37), rows = length * 8;
  EXPECT_TRUE(rows.varies);
  EXPECT_EQ(rows.value, 296);
  EXPECT_EQ(rows.divisor, 8);
  EXPECT_EQ((rows + 4).divisor, 4);
  EXPECT_EQ((length / 4).value, 9);
  EXPECT_EQ((length / 4).divisor, 1);
  EXPECT_TRUE((length * 0).Is(0));
  EXPECT_TRUE((length - length).Is(0));
  EXPECT_FALSE(sizes.Size(8).varies);
}

TEST(Extent, EqualNumbersShareASlot) {
  KernelSizes sizes({37, 8});
  const Extent length = sizes.Size(37), batch = sizes.Size(8);
  EXPECT_EQ(sizes.Slot(length * batch), 0);
  EXPECT_EQ(sizes.Slot(batch * length), 0);
  EXPECT_EQ(sizes.Slot(length * batch - batch), 1);
  EXPECT_EQ(sizes.Slot((length - 1) * batch), 1);
  EXPECT_EQ(sizes.Slot(length), 2);
  std::vector<int64_t> slots;
  for (const Extent& slot : sizes.slots()) slots.push_back(slot.value);
  EXPECT_EQ(slots, (std::vector<int64_t>{296, 288, 37}));
}

// A size that happens to be a product of others has a slot of its own: code does not depend on it.
TEST(Extent, EqualValuesDoNot) {
  KernelSizes sizes({4, 16});
  const Extent four = sizes.Size(4), sixteen = sizes.Size(16);
  EXPECT_NE(sizes.Slot(four * four), sizes.Slot(sixteen));
}

// --- What varies.

std::vector<std::optional<KernelSignature>> Signatures(std::vector<int64_t> numbers) {
  return {KernelSignature{"structure", std::move(numbers)}, std::nullopt};
}

VaryingNumbers Observed(VaryingSizes& varying, std::vector<int64_t> numbers,
                        const std::set<int64_t>& known = {}) {
  return varying.Observe(Signatures(std::move(numbers)), known)[0];
}

TEST(VaryingSizesOfPrograms, AreThoseThatDiffered) {
  VaryingSizes varying(1 << 20);
  using Numbers = VaryingNumbers;
  EXPECT_EQ(Observed(varying, {8, 37, 64, 1}), Numbers());
  EXPECT_EQ(Observed(varying, {8, 37, 64, 1}), Numbers());
  EXPECT_EQ(Observed(varying, {8, 41, 64, 1}), (Numbers{0, 2, 0, 0}));
  EXPECT_EQ(Observed(varying, {8, 37, 64, 1}), (Numbers{0, 2, 0, 0}));
  EXPECT_EQ(Observed(varying, {9, 37, 64, 1}), (Numbers{1, 2, 0, 0}));
  EXPECT_EQ(Observed(varying, {8, 1, 64, 1}), (Numbers{1, 0, 0, 0}));
  EXPECT_EQ(Observed(varying, {8, -7, 64, 1}), (Numbers{1, 2, 0, 0}));
  EXPECT_EQ(Observed(varying, {8, 37}), Numbers());  // another structure, then
}

TEST(VaryingSizesOfPrograms, AreAllAfterManyChanges) {
  VaryingSizes varying(1 << 20);
  Observed(varying, {10, 10, 10, 10, 10});
  Observed(varying, {11, 10, 10, 10, 10});
  Observed(varying, {10, 12, 10, 10, 10});
  EXPECT_EQ(Observed(varying, {3, 4, 13, 5, 6}), (VaryingNumbers{1, 2, 3, 4, 5}));
}

TEST(VaryingSizesOfPrograms, AreTheSameSizeWhereTheyWereNeverApart) {
  VaryingSizes varying(1 << 20);
  Observed(varying, {10, 10, 10, 10});
  EXPECT_EQ(Observed(varying, {7, 10, 7, 10}), (VaryingNumbers{1, 0, 1, 0}));
  EXPECT_EQ(Observed(varying, {10, 10, 10, 10}), (VaryingNumbers{1, 0, 1, 0}));  // by chance
  EXPECT_EQ(Observed(varying, {5, 10, 6, 10}), (VaryingNumbers{1, 0, 3, 0}));
  EXPECT_EQ(Observed(varying, {9, 10, 9, 10}), (VaryingNumbers{1, 0, 3, 0}));
}

TEST(VaryingSizesOfPrograms, AreKnownWhereNothingWasSeenYet) {
  VaryingSizes varying(1 << 20);
  EXPECT_EQ(Observed(varying, {10, 10, 4, -10}, {10}), (VaryingNumbers{1, 1, 0, 3}));
  // The second ten has stayed.
  EXPECT_EQ(Observed(varying, {7, 10, 4, -7}, {7}), (VaryingNumbers{1, 0, 0, 4}));
  EXPECT_EQ(Observed(varying, {10, 10, 4, -10}, {10, 4}), (VaryingNumbers{1, 0, 3, 4}));
}

TEST(VaryingSizesOfPrograms, AreThoseOfManyKernelsOfOneStructure) {
  std::vector<std::optional<KernelSignature>> few, many;
  for (int64_t i = 0; i < 100; ++i) {
    many.push_back(KernelSignature{"loop", {8, 20 + i, 640}});
    few.push_back(KernelSignature{"loop", {8, 20 + i % 30, 640}});
    many.push_back(KernelSignature{"other", {8, 20, 640}});
  }
  const auto of_many = VaryingSizes(1 << 20).Observe(many);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(of_many[2 * i], (VaryingNumbers{0, 2, 0}));
    EXPECT_TRUE(of_many[2 * i + 1].empty());
  }
  for (const auto& sizes : VaryingSizes(1 << 20).Observe(few)) EXPECT_TRUE(sizes.empty());
}

// A length that is a width, or what becomes one: kernels that were made for others serve it.
TEST(VaryingSizes, ASizeThatIsAnotherByChanceCompilesNothing) {
  constexpr int64_t kWidth = 80;
  for (const auto& [name, make] : Programs()) {
    // Which are no recipe's.
    if (std::string_view(name) == "interior pad" || std::string_view(name) == "complex") continue;
    SCOPED_TRACE(name);
    KernelCache cache(int64_t{64} << 20);
    const auto compile = [&](int64_t length) {
      const auto module = ModuleOf(make(2, length, kWidth));
      RunPipeline(*module, {});
      GenerateCode(*module, Dump(), cache);
    };
    compile(101);
    compile(103);
    const int64_t before = cache.statistics().compiled;
    for (const int64_t length : {kWidth, kWidth - 3, kWidth + 2}) compile(length);
    EXPECT_EQ(cache.statistics().compiled, before);
  }
}

// Turns of a loop that grows.
TEST(VaryingSizes, AProgramThatGrowsCompilesOneKernelForAllItsTurns) {
  constexpr int64_t kTurns = 80;
  hlo::Module module;
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  const Value rows = b.Parameter(F32({kTurns + 50, 24}));
  std::vector<hlo::Instruction*> results;
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    const Value part = b.Slice(rows, {0, 0}, {turn + 50, 24}, {1, 1});
    results.push_back(b.Reduce(
        Opcode::kAdd, b.Unary(Opcode::kTanh, b.Unary(Opcode::kExponential, part)), {0, 1}));
  }
  entry->set_results(results);
  const int64_t before = Compiled();
  const auto executable = Compile(module);
  EXPECT_LT(Compiled() - before, 8);
  const std::vector<hlo::Literal> arguments = {RandomLiteral(rows->shape(), 1)};
  const auto expected = hlo::Evaluate(module, arguments);
  const auto actual = RunOnEngine(*executable, arguments);
  for (size_t i = 0; i < expected.size(); ++i) ExpectClose(expected[i], actual[i], 60);
}

}  // namespace
}  // namespace cpu
