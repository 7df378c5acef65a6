// Kernels that programs share: found by what they are, compiled once, forgotten by use.
#include "cpu/kernel_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/kernel_signature.h"
#include "cpu/pipeline.h"
#include "engine_testing.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;

constexpr int64_t kEnough = 64 << 20;

// The fused module whose entry takes one parameter.
template <typename Body>
std::unique_ptr<hlo::Module> Fused(const Shape& shape, Body body) {
  auto module = std::make_unique<hlo::Module>();
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder b(entry);
  entry->set_results({body(b, b.Parameter(shape))});
  RunPipeline(*module, {});
  return module;
}

Value Scaled(Builder& b, Value x, float factor) {
  return b.Multiply(x, b.BroadcastTo(b.Constant(hlo::Literal::Scalar(factor)), x->dimensions()));
}

// `count` layers: loops between reductions of columns, which no loop is fused across.
std::unique_ptr<hlo::Module> Layers(const Shape& shape, int count, float factor = 3) {
  return Fused(shape, [&](Builder& b, Value x) {
    for (int i = 0; i < count; ++i) {
      x = b.Reduce(hlo::Opcode::kAdd, Scaled(b, x, factor), {0});
      x = b.BroadcastTo(x, shape.dimensions());
    }
    return x;
  });
}

// With all numbers in the code.
GeneratedCode Generate(const hlo::Module& module, KernelCache& cache) {
  return GenerateCode(module, Dump(), cache, SlotsFor::kNothing);
}

// What the only kernel of a program makes of 0, 1, 2, …
std::vector<float> Outputs(const GeneratedCode& code, int64_t count) {
  std::vector<float> in(count), out(count);
  for (int64_t i = 0; i < count; ++i) in[i] = static_cast<float>(i);
  void* buffers[] = {in.data(), out.data()};
  code.kernels[0].code->function()(buffers, 0, code.kernels[0].info.units);
  return out;
}

std::unique_ptr<hlo::Module> Times(float factor, Dimensions dimensions = {37}) {
  return Fused(F32(std::move(dimensions)),
               [&](Builder& b, Value x) { return Scaled(b, x, factor); });
}

TEST(KernelCache, SameProgramCompilesNothing) {
  KernelCache cache(kEnough);
  const GeneratedCode first = Generate(*Times(3), cache), second = Generate(*Times(3), cache);
  EXPECT_EQ(cache.statistics().compiled, 1);
  EXPECT_EQ(cache.statistics().found, 1);
  EXPECT_EQ(first.kernels[0].code, second.kernels[0].code);
  EXPECT_EQ(Outputs(second, 37)[36], 108);
}

TEST(KernelCache, OtherConstantIsAnotherKernel) {
  KernelCache cache(kEnough);
  const GeneratedCode first = Generate(*Times(3), cache), second = Generate(*Times(-0.5), cache);
  EXPECT_EQ(cache.statistics().compiled, 2);
  EXPECT_EQ(Outputs(first, 37)[2], 6);
  EXPECT_EQ(Outputs(second, 37)[2], -1);
}

TEST(KernelCache, OneLayerMoreCompilesNoKernelOfTheOthers) {
  KernelCache cache(kEnough);
  const GeneratedCode two = Generate(*Layers(F32({8, 37}), 2), cache);
  const int64_t compiled = cache.statistics().compiled;
  const GeneratedCode three = Generate(*Layers(F32({8, 37}), 3), cache);
  EXPECT_EQ(cache.statistics().compiled, compiled);
  EXPECT_EQ(two.kernels.size(), three.kernels.size());
  EXPECT_LT(two.kernel_of_instruction.size(), three.kernel_of_instruction.size());
}

// `rows` times the same of a row, as programs do that loop over them, and all of it together.
std::unique_ptr<hlo::Module> OfEachRow(int64_t rows) {
  return Fused(F32({rows, 37}), [&](Builder& b, Value x) {
    std::vector<Value> results;
    for (int64_t i = 0; i < rows; ++i) {
      const Value row = b.SliceInDim(x, 0, i, i + 1);
      const Value sum = b.Reduce(hlo::Opcode::kAdd, Scaled(b, row, 3), {1});
      const Value sums = b.BroadcastInDim(sum, row->dimensions(), {0});
      results.push_back(b.Subtract(row, sums));
    }
    return b.Concatenate(results, 0);
  });
}

// Rows differ in where they begin, which a kernel takes as an argument. Those whose beginning is
// another of the loop's numbers, or no offset, have kernels of their own.
TEST(KernelCache, AThousandEqualOperationsAreAFewKernels) {
  KernelCache cache(kEnough);
  const GeneratedCode code = GenerateCode(*OfEachRow(1024), Dump(), cache);
  EXPECT_EQ(code.kernel_of_instruction.size(), 1024u);
  EXPECT_LE(cache.statistics().compiled, 8);
}

// Found by their code, not by their composites.
TEST(KernelCache, ShapesOfTheSameLoopShareCode) {
  KernelCache cache(kEnough);
  const GeneratedCode flat = Generate(*Times(3, {8 * 37}), cache),
                      matrix = Generate(*Times(3, {8, 37}), cache);
  EXPECT_EQ(cache.statistics().compiled, 1);
  EXPECT_EQ(cache.statistics().found, 0);
  EXPECT_EQ(flat.kernels[0].code, matrix.kernels[0].code);
}

TEST(KernelCache, ForgetsWhatWasNotUsedForLongest) {
  KernelCache cache(512 << 10);
  const GeneratedCode first = Generate(*Times(1000), cache);
  for (int i = 0; i < 100; ++i) {
    Generate(*Times(static_cast<float>(i + 2)), cache);
    if (i % 4 == 0) Generate(*Times(-7), cache);  // stays
    EXPECT_LE(cache.statistics().bytes, 512 << 10);
  }
  const int64_t compiled = cache.statistics().compiled;
  EXPECT_EQ(compiled, 102);
  Generate(*Times(-7), cache);
  Generate(*Times(101), cache);
  EXPECT_EQ(cache.statistics().compiled, compiled);
  Generate(*Times(1000), cache);
  EXPECT_EQ(cache.statistics().compiled, compiled + 1);
  EXPECT_EQ(Outputs(first, 37)[36], 36000);  // a program keeps its own
}

TEST(KernelCache, WithoutCapacityKeepsNothing) {
  KernelCache cache(0);
  const GeneratedCode first = Generate(*Times(3), cache), second = Generate(*Times(3), cache);
  EXPECT_EQ(cache.statistics().compiled, 2);
  EXPECT_EQ(cache.statistics().bytes, 0);
  EXPECT_EQ(Outputs(first, 37), Outputs(second, 37));
}

TEST(KernelCache, ThreadsThatWantTheSameCompileItOnce) {
  KernelCache cache(kEnough);
  const auto module = Layers(F32({64, 130}), 3);
  const int64_t kernels = static_cast<int64_t>(Generate(*module, cache).kernels.size());
  KernelCache shared(kEnough);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 20; ++k) Generate(*module, shared);
      });
    }
  }
  EXPECT_EQ(shared.statistics().compiled, kernels);
}

TEST(KernelCache, WhoWaitsForAFailedCompilationCompiles) {
  KernelCache cache(kEnough);
  const GeneratedCode code = Generate(*Times(3), cache);
  const std::string object(code.Objects()[0]);
  std::atomic<int> calls = 0, failures = 0, successes = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          const auto found = cache.Code("source", [&]() -> std::string {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            if (calls++ < 2) throw hlo::Error("no memory");
            return object;
          });
          EXPECT_EQ(found->object(), object);
          ++successes;
        } catch (const hlo::Error&) {
          ++failures;
        }
      });
    }
  }
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(successes, 2);
}

// Whoever wrote an executable says what its code is, which other programs do not rely on.
TEST(KernelCache, LoadedProgramsGiveOthersNothing) {
  KernelCache cache(kEnough), another(kEnough);
  const auto module = Layers(F32({8, 37}), 2);
  const GeneratedCode made = Generate(*module, cache);
  GeneratedCode loaded = GeneratedCode::ParseTable(made.SerializeTable());
  LoadObjects(*module, made.Objects(), loaded, another);
  EXPECT_EQ(loaded.SerializeTable(), made.SerializeTable());
  EXPECT_EQ(loaded.Objects(), made.Objects());
  const GeneratedCode again = Generate(*module, another);
  EXPECT_EQ(another.statistics().found, 0);
  EXPECT_NE(again.kernels[0].code, loaded.kernels[0].code);
  EXPECT_EQ(again.Objects(), loaded.Objects());
}

TEST(KernelCache, TablesOfOtherProgramsAreRefused) {
  KernelCache cache(kEnough);
  const auto module = Layers(F32({8, 37}), 2);
  const GeneratedCode made = Generate(*module, cache);
  const auto load = [&](const hlo::Module& of, std::vector<std::string_view> objects) {
    GeneratedCode code = GeneratedCode::ParseTable(made.SerializeTable());
    LoadObjects(of, objects, code, cache);
  };
  EXPECT_NO_THROW(load(*module, made.Objects()));
  EXPECT_THROW(load(*Layers(F32({8, 37}), 4), made.Objects()), hlo::Error);
  EXPECT_THROW(load(*module, {}), hlo::Error);
  KernelCache empty(0);
  GeneratedCode code = GeneratedCode::ParseTable(made.SerializeTable());
  EXPECT_THROW(LoadObjects(*module, std::vector<std::string_view>(9, "no object"), code, empty),
               hlo::Error);
}

// Programs of the whole engine: bytes are the same after loading, and the results.
TEST(KernelCache, ExecutablesAreTheSameAfterLoading) {
  const auto module = Layers(F32({8, 37}), 2);
  const std::unique_ptr<Executable> made = Compile(*module);
  const std::unique_ptr<Executable> loaded = LoadExecutable(made->Serialize());
  EXPECT_EQ(loaded->Serialize(), made->Serialize());
  EXPECT_EQ(loaded->code_bytes(), made->code_bytes());
  EXPECT_GT(loaded->code_bytes(), 0);
  const std::vector<hlo::Literal> arguments = {RandomLiteral(F32({8, 37}), 1)};
  EXPECT_EQ(RunOnEngine(*loaded, arguments), RunOnEngine(*made, arguments));
}

// --- Signatures.

std::string SignatureOfOnly(const hlo::Module& module) {
  const auto kernels = KernelInstructions(module);
  EXPECT_EQ(kernels.size(), 1u);
  const auto signature = SignatureOf(*kernels[0]);
  EXPECT_TRUE(signature.has_value());
  return signature ? signature->ToString() : "";
}

TEST(KernelSignature, DiffersWhereCodeDiffers) {
  const auto slice = [](int64_t start, int64_t limit, int64_t stride) {
    return Fused(F32({64, 40}), [&](Builder& b, Value x) {
      return b.Negate(b.Slice(x, {start, 0}, {limit, 40}, {stride, 1}));
    });
  };
  const auto pad = [](int64_t low, int64_t high, int64_t interior) {
    return Fused(F32({16, 16}), [&](Builder& b, Value x) {
      return b.Pad(b.Negate(x), b.Constant(hlo::Literal::Scalar(1.0f)), {low, 0}, {high, 0},
                   {interior, 0});
    });
  };
  const auto subtract = [](bool swap) {
    return Fused(F32({37}), [&](Builder& b, Value x) {
      const Value y = b.Exp(x);
      return swap ? b.Subtract(x, y) : b.Subtract(y, x);
    });
  };
  std::set<std::string> texts;
  int64_t programs = 0;
  const auto add = [&](const std::unique_ptr<hlo::Module>& module) {
    texts.insert(SignatureOfOnly(*module));
    ++programs;
  };
  add(slice(0, 8, 1));
  add(slice(1, 9, 1));
  add(slice(1, 8, 1));
  add(slice(0, 16, 2));
  add(pad(1, 2, 0));
  add(pad(2, 1, 0));
  add(pad(0, 3, 0));
  add(pad(1, 2, 1));
  add(subtract(false));
  add(subtract(true));
  add(Times(0.5f));
  add(Times(0.25f));
  add(Times(0.5f, {38}));
  add(Times(0.5f, {1, 37}));
  EXPECT_EQ(static_cast<int64_t>(texts.size()), programs);
  add(slice(0, 8, 1));
  EXPECT_EQ(static_cast<int64_t>(texts.size()), programs - 1);
}

// Structure is what sizes leave alone.
TEST(KernelSignature, SizesAreNumbers) {
  const auto of = [](Dimensions dimensions) {
    const auto module = Times(0.5f, std::move(dimensions));
    return *SignatureOf(*KernelInstructions(*module)[0]);
  };
  EXPECT_EQ(of({4, 37}).structure, of({5, 41}).structure);
  EXPECT_NE(of({4, 37}).numbers, of({5, 41}).numbers);
  EXPECT_NE(of({4, 37}).structure, of({4 * 37}).structure);
}

TEST(RecentlyUsedTest, KeepsWhatWasUsed) {
  RecentlyUsed<int> table(1000);
  table.Insert("a", 1, 300);
  const int64_t bytes = table.bytes();
  EXPECT_GT(bytes, 300);
  table.Insert("b", 2, 300);
  EXPECT_EQ(table.bytes(), 2 * bytes);
  EXPECT_EQ(*table.Find("a"), 1);
  table.Insert("c", 3, 300);  // b goes
  EXPECT_EQ(table.Find("b"), nullptr);
  EXPECT_EQ(*table.Find("a"), 1);
  EXPECT_EQ(*table.Find("c"), 3);
  table.Insert("a", 4, 100);
  EXPECT_EQ(*table.Find("a"), 4);
  EXPECT_EQ(table.bytes(), 2 * bytes - 200);
  table.Insert("d", 5, 2000);
  EXPECT_EQ(table.Find("d"), nullptr);
  EXPECT_EQ(table.size(), 2u);
}

}  // namespace
}  // namespace cpu
