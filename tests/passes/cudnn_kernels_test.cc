// What the calls of cuDNN's kernels compute with all that is put around them, against attention
// written out: the kernels' own arithmetic is written out in f32 in the calls' place, on finite
// numbers alone, as cuDNN wants them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../hlo/attention_formula.h"
#include "hlo/evaluator.h"
#include "hlo/verifier.h"
#include "pass_test.h"
#include "passes/cudnn_attention.h"

namespace passes {
namespace {

using hlo::AttentionAttributes;
using hlo::Dimensions;
using hlo::formula::AlongRows;
using hlo::formula::Contract;
using hlo::formula::Repeat;
using hlo::formula::SumGroups;
using hlo::formula::Wide;
using Values = std::vector<Value>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kScale = 0.4;
constexpr int64_t kTile = 128;  // keys

// --- The kernels

struct Kernel {
  Kernel(Builder& builder, const hlo::Instruction& instruction) : b(builder), call(instruction) {
    const auto& attributes = call.as<hlo::CustomCallAttributes>();
    is_causal = attributes.backend_config.find("\"CAUSAL\"") != std::string::npos;
    is_backward = attributes.target.ends_with("Backward");
    has_bias = attributes.target.find("Bias") != std::string::npos;
    query = Heads(0);
    key = Repeat(b, Heads(1), query->dimensions()[1]);
    value = Repeat(b, Heads(2), query->dimensions()[1]);
  }
  // [batch, rows, heads, width] with heads outside, in f32.
  Value Heads(size_t i) { return Wide(b, b.Transpose(call.operand(i), {0, 2, 1, 3})); }
  Value Own(Value x, size_t result) {
    return b.Convert(x, call.shape().tuple_shapes()[result].element_type());
  }

  Value Scores(size_t bias) {
    Value scores = Contract(b, query, 3, key, 3);
    scores = b.Multiply(scores, b.Full(scores->shape(), kScale));
    if (has_bias) {
      scores = b.Add(scores, b.BroadcastTo(Wide(b, call.operand(bias)), scores->dimensions()));
    }
    if (!is_causal) return scores;
    const Shape positions(ElementType::kS32, scores->dimensions());
    return b.Select(b.Ge(b.Iota(positions, 2), b.Iota(positions, 3)), scores,
                    b.Full(scores->shape(), -double{kInfinity}));
  }
  Values Forward() {
    const Value scores = Scores(3), largest = b.Reduce(Opcode::kMaximum, scores, {3});
    const Value exponential = b.Exp(b.Subtract(scores, AlongRows(b, largest, scores)));
    const Value sum = b.Reduce(Opcode::kAdd, exponential, {3});
    const Value weights = b.Divide(exponential, AlongRows(b, sum, scores));
    return {Own(Contract(b, weights, 3, value, 2), 0), b.Add(largest, b.Log(sum))};
  }
  // It computes whole tiles of keys: those beyond the last have nothing in them, a score of 0, and
  // a weight that is none of the row's.
  Values Backward() {
    Value scores = Scores(5);
    const int64_t keys = scores->dimensions()[3];
    const int64_t tiles = (keys + kTile - 1) / kTile * kTile;
    scores = PadTo(scores, 3, tiles);
    key = PadTo(key, 2, tiles);
    value = PadTo(value, 2, tiles);
    const Value gradient = Heads(4), result = Heads(has_bias ? 6 : 5);
    const Value weights = b.Exp(b.Subtract(scores, AlongRows(b, call.operand(3), scores)));
    const Value drop = b.Reduce(Opcode::kAdd, b.Multiply(gradient, result), {3});
    Value of_scores = b.Multiply(
        weights, b.Subtract(Contract(b, gradient, 3, value, 3), AlongRows(b, drop, scores)));
    of_scores = b.Multiply(of_scores, b.Full(of_scores->shape(), kScale));
    const int64_t groups = call.operand(1)->dimensions()[2];
    return {Own(Contract(b, of_scores, 3, key, 2), 0),
            Own(OfKeys(Contract(b, of_scores, 2, query, 2), groups, keys), 1),
            Own(OfKeys(Contract(b, weights, 2, gradient, 2), groups, keys), 2)};
  }
  Value PadTo(Value x, int64_t dimension, int64_t size) {
    const Dimensions none(4, 0);
    Dimensions high = none;
    high[static_cast<size_t>(dimension)] = size - x->dimensions()[static_cast<size_t>(dimension)];
    return b.Pad(x, b.ConstantScalar(x->element_type(), 0.0), none, high, none);
  }
  Value OfKeys(Value gradient, int64_t groups, int64_t keys) {
    return b.SliceInDim(SumGroups(b, gradient, groups), 2, 0, keys);
  }

  Builder& b;
  const hlo::Instruction& call;
  bool is_causal, is_backward, has_bias;
  Value query, key, value;
};

// Returns how many calls there were.
int WriteOutCalls(hlo::Computation& entry) {
  std::vector<hlo::Instruction*> calls;
  for (const auto& i : entry.instructions()) {
    if (i->opcode() == Opcode::kCustomCall) calls.push_back(i.get());
  }
  Builder b(&entry);
  for (hlo::Instruction* call : calls) {
    Kernel kernel(b, *call);
    const Values results = kernel.is_backward ? kernel.Backward() : kernel.Forward();
    const std::vector<hlo::Instruction*> picks = call->users();
    for (hlo::Instruction* pick : picks) {
      const Value result = results[static_cast<size_t>(pick->tuple_index())];
      EXPECT_EQ(result->shape(), pick->shape());
      pick->ReplaceAllUsesWith(result);
    }
  }
  entry.SortTopologically();
  entry.RemoveDeadInstructions();
  return static_cast<int>(calls.size());
}

// --- The cases

struct MaskedCase {
  const char* name;
  Dimensions mask;  // [b,h,q,k], each may be 1; none if empty
  int64_t queries, keys;
  bool is_causal = false;
  int64_t heads = 4, groups = 4;
};

// Numbers, and -inf here and there.
const MaskedCase kMaskedCases[] = {
    {"positions", {70, 72}, 70, 72},
    {"odd_positions", {65, 67}, 65, 67},
    {"batch", {2, 1, 65, 64}, 65, 64, false, 4, 2},
    {"heads", {1, 4, 64, 64}, 64, 64, true},
    {"all", {2, 4, 66, 67}, 66, 67},
    {"keys", {2, 1, 1, 67}, 65, 67},
    {"keys_causal", {2, 1, 1, 67}, 67, 67, true},
    {"queries", {64, 1}, 64, 67},
    {"queries_causal", {1, 4, 64, 1}, 64, 64, true},
    {"one_number", {1, 1}, 64, 66},
    {"none", {}, 65, 67},
    {"none_causal", {}, 65, 65, true, 4, 1},
};

std::unique_ptr<hlo::Module> AttentionProgram(const MaskedCase& c, ElementType type) {
  const Shape queries(type, {2, c.heads, c.queries, 8}), keys(type, {2, c.groups, c.keys, 8});
  std::vector<Shape> parameters = {queries, keys, keys, queries};
  if (!c.mask.empty()) parameters.emplace_back(type, c.mask);
  return MakeModule(parameters, [&](Builder& b, const Values& x) {
    const AttentionAttributes attributes = {.scale = kScale, .is_causal = c.is_causal};
    const auto with_mask = [&](Values values) {
      if (x.size() > 4) values.push_back(x[4]);
      return values;
    };
    Values results =
        hlo::Attention(b, hlo::kAttention, with_mask({x[0], x[1], x[2]}), attributes,
                       [&](Builder& body, const Values& inner) {
                         return hlo::formula::AttentionForward(body, inner, attributes);
                       });
    const Values gradients = hlo::Attention(
        b, hlo::kAttentionBackward, with_mask({x[3], x[0], x[1], x[2], results[0], results[1]}),
        attributes, [&](Builder& body, const Values& inner) {
          return hlo::formula::AttentionBackward(body, inner, attributes);
        });
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  });
}

// Between -1 and 1.
Literal SmallNumbers(const Shape& shape, unsigned seed) {
  Literal literal(shape);
  std::mt19937 random(seed);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& x : literal.mutable_data<T>()) {
      x = static_cast<T>(static_cast<float>(random() % 257) / 128 - 1);
    }
  });
  return literal;
}

// Numbers, a third of them `low`; every fifth line nothing but `low`, every seventh nothing but
// -inf, and of some lines of `low` a few.
Literal MaskOf(const Shape& shape, float low) {
  Literal literal = SmallNumbers(shape, 9);
  const int64_t keys = shape.dimensions().back();
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    auto mask = literal.mutable_data<T>();
    std::mt19937 random(7);
    for (size_t i = 0; i < mask.size(); ++i) {
      const int64_t line = static_cast<int64_t>(i) / keys, key = static_cast<int64_t>(i) % keys;
      if (random() % 3 == 0 || line % 5 == 2) mask[i] = static_cast<T>(low);
      if (line % 7 == 1 || (line % 5 == 2 && line % 2 == 0 && key % 4 == 1)) {
        mask[i] = static_cast<T>(-kInfinity);
      }
    }
  });
  return literal;
}

float LowestOf(ElementType type) { return type == ElementType::kF16 ? -65504.0F : -3.3895e38F; }

// What masks are filled with; f16 has nothing between its lowest number and -inf.
std::vector<float> LowNumbers(ElementType type) {
  if (type == ElementType::kF16) return {-kInfinity, LowestOf(type), -1e4F, -100, -2};
  return {-kInfinity, LowestOf(type), -1e9F, -1e4F, -100, -2};
}

class CudnnKernelsTest : public testing::TestWithParam<MaskedCase> {};

TEST_P(CudnnKernelsTest, GiveWhatTheDecompositionGives) {
  for (const ElementType type : {ElementType::kF16, ElementType::kBF16}) {
    for (const float low : LowNumbers(type)) {
      SCOPED_TRACE(std::string(hlo::Name(type)) + " " + std::to_string(low));
      const auto module = AttentionProgram(GetParam(), type);
      std::vector<Literal> arguments;
      for (unsigned i = 0; i < 4; ++i) {
        arguments.push_back(SmallNumbers(module->entry()->parameters()[i]->shape(), i));
      }
      if (module->entry()->parameters().size() > 4) {
        arguments.push_back(MaskOf(module->entry()->parameters()[4]->shape(), low));
      }
      std::vector<Literal> expected = hlo::Evaluate(*module, arguments);
      ASSERT_TRUE(UseCudnnAttention(*module));
      hlo::VerifyModule(*module);
      EXPECT_EQ(WriteOutCalls(*module->entry()), 2);
      hlo::VerifyModule(*module);
      const std::vector<Literal> actual = hlo::Evaluate(*module, arguments);
      for (size_t i = 0; i < expected.size(); ++i) {
        // Where a row has nothing else its logarithm is such a number, and which is of no use.
        if (i == 1 && low < -1e4F && low > -kInfinity) continue;
        SCOPED_TRACE(i);
        ExpectSame(expected[i], actual[i], type == ElementType::kF16 ? 4e-3 : 3e-2);
      }
    }
  }
}

// A program of the backward pass alone, with what a decomposed forward pass gave.
TEST(CudnnKernels, BackwardTakesTheDecompositionsLogarithms) {
  const MaskedCase c = {"", {2, 1, 65, 67}, 65, 67};
  for (const float low : LowNumbers(ElementType::kBF16)) {
    SCOPED_TRACE(low);
    const auto module = AttentionProgram(c, ElementType::kBF16);
    std::vector<Literal> arguments;
    for (unsigned i = 0; i < 4; ++i) {
      arguments.push_back(SmallNumbers(module->entry()->parameters()[i]->shape(), i));
    }
    arguments.push_back(MaskOf(module->entry()->parameters()[4]->shape(), low));
    const std::vector<Literal> expected = hlo::Evaluate(*module, arguments);
    EXPECT_TRUE(UseCudnnAttention(
        *module, [](const std::string& kind) { return kind.starts_with("backward"); }));
    EXPECT_EQ(WriteOutCalls(*module->entry()), 1);
    const std::vector<Literal> actual = hlo::Evaluate(*module, arguments);
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectSame(expected[i], actual[i], 3e-2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudnnKernelsTest, testing::ValuesIn(kMaskedCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace passes
