// Kernels found by what chose their code: each is emitted as well here, and has to be the same.
#include "cpu/kernel_recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/kernel_cache.h"
#include "cpu/pipeline.h"
#include "engine_testing.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

constexpr int64_t kCacheBytes = 256 << 20;

using Body = std::function<Value(Builder& b, int64_t n)>;

std::unique_ptr<hlo::Module> ModuleOf(const Body& body, int64_t n) {
  auto module = std::make_unique<hlo::Module>();
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder b(entry);
  entry->set_results({body(b, n)});
  return module;
}

std::unique_ptr<hlo::Module> Fused(const Body& body, int64_t n) {
  auto module = ModuleOf(body, n);
  RunPipeline(*module, {});
  return module;
}

// Throws if a recipe leads to other code than emission.
KernelCache::Statistics CompileFor(const Body& body, const std::vector<int64_t>& sizes) {
  KernelCache cache(kCacheBytes, KernelCache::Recipes::kChecked);
  for (const int64_t n : sizes) GenerateCode(*Fused(body, n), Dump(), cache);
  return cache.statistics();
}

// Around the sizes of vectors and of what they are made of, and some that other dimensions have.
const std::vector<int64_t> kSizes = {
    5,   19,  2,   3,   4,   6,   7,   8,   9,    12,   13,    15,    16,    17,   23, 24,
    29,  31,  32,  33,  40,  47,  48,  49,  61,   63,   64,    65,    66,    96,   97, 127,
    128, 129, 191, 255, 256, 257, 509, 512, 1000, 4099, 16369, 16384, 16385, 20011};

const std::vector<std::pair<const char*, Body>> kPrograms = {
    {"elements and a row",
     [](Builder& b, int64_t n) {
       const Value row = b.Parameter(F32({40}));
       const Value x = b.Parameter(F32({n, 40}));
       return b.Tanh(b.Add(x, b.BroadcastTo(row, {n, 40})));
     }},
    {"softmax", [](Builder& b, int64_t n) { return Softmax(b, b.Parameter(F32({24, n}))); }},
    {"softmax of squares",
     [](Builder& b, int64_t n) {
       return Softmax(b,
                      b.Parameter(F32({2, std::min<int64_t>(n, 300), std::min<int64_t>(n, 300)})));
     }},
    {"sums of columns",
     [](Builder& b, int64_t n) {
       return b.Reduce(Opcode::kAdd, b.Exp(b.Parameter(F32({n, 40}))), {0});
     }},
    {"sums of as many columns",
     [](Builder& b, int64_t n) {
       return b.Reduce(Opcode::kAdd, b.Exp(b.Parameter(F32({7, n}))), {0});
     }},
    {"heads",
     [](Builder& b, int64_t n) {
       const Value x = b.Reshape(b.Exp(b.Parameter(F32({4 * n, 32}))), {4, n, 2, 16});
       return b.Negate(b.Reshape(b.Transpose(x, {0, 2, 1, 3}), {8, n, 16}));
     }},
    {"short rows",
     [](Builder& b, int64_t n) {
       const Value x = b.Parameter(F32({n, 3}));
       return b.Add(b.Transpose(b.Parameter(F32({3, n})), {1, 0}), b.Reverse(x, {0}));
     }},
    {"parts",
     [](Builder& b, int64_t n) {
       const Value x = b.Parameter(F32({2 * n, 9}));
       return b.Multiply(b.SliceInDim(x, 0, n - 1, 2 * n - 1), b.SliceInDim(x, 0, 0, 2 * n, 2));
     }},
    {"places",
     [](Builder& b, int64_t n) {
       const int64_t m = std::min<int64_t>(n, 400);
       const Shape places(ElementType::kS32, {m, m});
       const Value lower = b.Le(b.Iota(places, 1), b.Iota(places, 0));
       return b.Select(lower, b.Parameter(F32({m, m})), b.Zeros(F32({m, m})));
     }},
    {"a number of the size",
     [](Builder& b, int64_t n) {
       const Shape shape(ElementType::kS32, {n, 6});
       return b.Multiply(b.Parameter(shape), b.Full(shape, n));
     }},
    // It is in the code of every size, whatever else has its value.
    {"a number in a combiner",
     [](Builder& b, int64_t n) {
       const Shape one = Shape::Scalar(ElementType::kS32);
       hlo::Computation* combiner =
           b.Region("combiner", {one, one}, [&](Builder& c, const auto& x) {
             return std::vector<Value>{
                 c.Maximum(x[0], c.Minimum(x[1], c.ConstantScalar(ElementType::kS32, n)))};
           });
       const Value start = b.ConstantScalar(ElementType::kS32, int64_t{0});
       return b.Reduce(b.Parameter(Shape(ElementType::kS32, {30, n})), start, {1}, combiner);
     }},
    {"complex numbers of a size",
     [](Builder& b, int64_t n) {
       const Value size = b.Convert(b.Full(F32({n}), n), ElementType::kC64);
       return b.Multiply(size, b.Parameter(Shape(ElementType::kC64, {n})));
     }},
    {"chosen rows",
     [](Builder& b, int64_t n) {
       const Value rows = b.Parameter(Shape(ElementType::kS32, {n, 1}));
       hlo::GatherAttributes attributes;
       attributes.offset_dims = {1};
       attributes.collapsed_slice_dims = {0};
       attributes.start_index_map = {0};
       attributes.index_vector_dim = 1;
       attributes.slice_sizes = {1, 12};
       return b.Exp(b.Gather(b.Parameter(F32({2 * n, 12})), rows, attributes));
     }},
    {"joined",
     [](Builder& b, int64_t n) {
       const Value x = b.Exp(b.Parameter(F32({n, 12})));
       return b.Negate(b.Concatenate({x, b.Tanh(b.Parameter(F32({n + 3, 12})))}, 0));
     }},
};

TEST(KernelRecipe, LeadsToTheCodeOfItsSizes) {
  int64_t followed = 0;
  for (const auto& [name, body] : kPrograms) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(followed += CompileFor(body, kSizes).followed);
  }
  EXPECT_GT(followed, static_cast<int64_t>(4 * kSizes.size()));
}

// The third size and all that follow emit nothing: of sixty lengths, a few are on another side of a
// comparison.
TEST(KernelRecipe, NewLengthsEmitNothing) {
  std::vector<int64_t> lengths;
  for (int64_t n = 101; n <= 160; ++n) lengths.push_back(n);
  const KernelCache::Statistics statistics = CompileFor(
      [](Builder& b, int64_t n) { return Softmax(b, b.Parameter(F32({24, n}))); }, lengths);
  EXPECT_LE(statistics.compiled, 4);
  EXPECT_GE(statistics.followed, 54);
}

// Random chains of operations on arrays whose dimensions are made of n.
class RandomChain {
 public:
  explicit RandomChain(uint32_t seed) : seed_(seed) {}

  Value operator()(Builder& b, int64_t n) const {
    std::minstd_rand random(seed_);
    random.discard(8);
    const auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
    const std::vector<int64_t> choices = {n, 2 * n, n + 1, 8, 3, 1, 40};
    Dimensions dimensions;
    for (int64_t rank = 2 + pick(2); rank > 0; --rank) dimensions.push_back(choices[pick(7)]);
    Value x = b.Parameter(F32(dimensions));
    for (int64_t steps = 3 + pick(6); steps > 0; --steps) x = Step(b, x, pick);
    return b.Negate(x);
  }

 private:
  template <typename Pick>
  static Value Step(Builder& b, Value x, const Pick& pick) {
    const Dimensions sizes = x->dimensions();
    const auto rank = static_cast<int64_t>(sizes.size());
    const int64_t d = rank == 0 ? 0 : pick(rank), which = pick(16);
    if (which < 2 || rank == 0) return b.Tanh(x);
    if (which == 2) return b.Multiply(x, b.Parameter(x->shape()));
    if (which == 3) return Along(b, x, d, b.Parameter(F32({sizes[d]})));
    if (which == 4) return b.Reverse(x, {d});
    if (which == 5 && rank > 1) return b.Reduce(Opcode::kAdd, x, {d});
    if (which == 6 && sizes[d] > 2) return b.SliceInDim(x, d, 1, sizes[d]);
    if (which == 7) return Softmax(b, x);
    if (which == 8 && d + 1 < rank) {
      Dimensions joined = sizes;
      joined[d] *= joined[d + 1];
      joined.erase(joined.begin() + d + 1);
      return b.Reshape(x, joined);
    }
    if (which >= 10 && sizes[d] > 0) return OfPlaces(b, x, d, which);
    Dimensions permutation(sizes.size());
    for (int64_t i = 0; i < rank; ++i) permutation[i] = (i + d) % rank;
    return b.Transpose(x, permutation);
  }
  // Whose elements come from computed places.
  static Value OfPlaces(Builder& b, Value x, int64_t d, int64_t which) {
    const Dimensions sizes = x->dimensions();
    const Dimensions none(sizes.size());
    const auto with = [&](Dimensions list, int64_t size) {
      list[d] = size;
      return list;
    };
    std::vector<Value> starts(sizes.size(), b.ConstantScalar(ElementType::kS32, int64_t{0}));
    starts[d] = b.Parameter(Shape(ElementType::kS32, {}));
    switch (which) {
      case 10:
        return b.Concatenate({x, b.Tanh(b.Parameter(F32(with(sizes, 5)))), x}, d);
      case 11:
        return b.Pad(x, b.ConstantScalar(ElementType::kF32, 2.0), with(none, 3), with(none, -1),
                     none);
      case 12:
        return b.DynamicSlice(x, starts, with(sizes, (sizes[d] + 1) / 2));
      case 13:
        return b.DynamicUpdateSlice(x, b.Parameter(F32(with(sizes, 1))), starts);
      case 14:
        return b.Gather(x, b.Parameter(Shape(ElementType::kS32, {8, 1})), RowsOf(sizes, d));
      default:
        return b.Gather(x, b.Parameter(Shape(ElementType::kS32, {sizes[d], 1})), RowsOf(sizes, d));
    }
  }
  // Rows along dimension d, which become the first.
  static hlo::GatherAttributes RowsOf(Dimensions sizes, int64_t d) {
    hlo::GatherAttributes attributes;
    for (size_t i = 1; i < sizes.size(); ++i) {
      attributes.offset_dims.push_back(static_cast<int64_t>(i));
    }
    attributes.collapsed_slice_dims = {d};
    attributes.start_index_map = {d};
    attributes.index_vector_dim = 1;
    sizes[d] = 1;
    attributes.slice_sizes = sizes;
    return attributes;
  }
  static Value Along(Builder& b, Value x, int64_t d, Value row) {
    return b.Add(x, b.BroadcastInDim(row, x->dimensions(), {d}));
  }

  uint32_t seed_;
};

TEST(KernelRecipe, LeadsToTheCodeOfRandomPrograms) {
  int64_t followed = 0;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_NO_THROW(followed +=
                    CompileFor(RandomChain(seed), {5, 11, 6, 7, 12, 16, 39, 8, 20, 64}).followed);
  }
  EXPECT_GT(followed, 120);
}

// Code that was made where sizes were told apart gives what the evaluator gives where they are
// equal: n to 8, 3, 40, and 2n or n + 1 to those.
TEST(KernelRecipe, ServesSizesThatAreOthersByChance) {
  const auto followed = [] { return KernelCache::OfProcess().statistics().followed; };
  int64_t by_chance = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    int64_t before = 0;
    for (const int64_t n : {11, 13, 8, 40, 3, 4, 7, 20, 39}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(n));
      const auto module = ModuleOf(RandomChain(seed), n);
      std::vector<hlo::Literal> arguments;
      for (const hlo::Instruction* parameter : module->entry()->parameters()) {
        arguments.push_back(
            RandomLiteral(parameter->shape(), static_cast<unsigned>(arguments.size() + 1), -1, 9));
      }
      if (n == 8) before = followed();
      const auto executable = cpu::Compile(*module);
      ExpectClose(hlo::Evaluate(*module, arguments)[0], RunOnEngine(*executable, arguments)[0],
                  200);
      if (testing::Test::HasFailure()) return;
    }
    by_chance += followed() - before;
  }
  EXPECT_GT(by_chance, 300);
}

}  // namespace
}  // namespace cpu
