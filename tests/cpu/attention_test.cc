// Attention as a library call, against the reference evaluator's decomposition.
#include <limits>

#include "../hlo/attention_formula.h"
#include "cpu/library/attention_call.h"
#include "cpu/pipeline.h"
#include "engine_testing.h"
#include "hlo/attention_composite.h"

namespace cpu {
namespace {

using hlo::AttentionAttributes;
using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct AttentionCase {
  const char* name;
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  bool is_causal = false;
  Dimensions mask = {};  // none if empty
  ElementType type = ElementType::kF32;
  // How operands and results lie: [batch, heads, rows, columns], or transposed from it.
  Dimensions order = {0, 1, 2, 3};
};

const Dimensions kRowsFirst = {0, 2, 1, 3};

const AttentionCase kCases[] = {
    {"tiny", 1, 1, 1, 1, 1, 1, 1},
    {"small", 2, 3, 3, 5, 7, 8, 8},
    {"small_causal", 2, 3, 3, 7, 5, 8, 8, true},
    {"blocks", 1, 2, 2, 64, 128, 64, 64},
    {"several_blocks", 1, 2, 2, 130, 300, 64, 64},
    {"several_blocks_causal", 1, 2, 2, 300, 300, 32, 32, true},
    {"more_keys_causal", 1, 1, 1, 140, 300, 16, 16, true},
    {"odd_width", 2, 2, 2, 67, 131, 19, 19},
    {"wide", 1, 1, 1, 70, 140, 160, 160},
    {"other_width_of_values", 1, 2, 2, 33, 150, 24, 40},
    {"one_query", 2, 3, 3, 1, 200, 64, 64},
    {"few_queries", 1, 2, 2, 3, 150, 20, 20, true},
    {"one_key", 1, 2, 2, 70, 1, 16, 16},
    {"groups", 1, 6, 2, 66, 130, 16, 16},
    {"groups_causal", 2, 4, 1, 130, 130, 16, 24, true},
    {"mask_of_all", 2, 2, 2, 70, 133, 16, 16, false, {2, 2, 70, 133}},
    {"mask_of_positions", 2, 2, 2, 70, 133, 16, 16, false, {70, 133}},
    {"mask_of_keys", 2, 2, 2, 70, 133, 16, 16, false, {2, 1, 1, 133}},
    {"mask_of_queries", 2, 2, 2, 70, 133, 16, 16, false, {70, 1}},
    {"mask_of_heads", 2, 2, 2, 70, 133, 16, 16, true, {1, 2, 1, 1}},
    {"transposed", 2, 3, 3, 65, 129, 16, 16, false, {}, ElementType::kF32, kRowsFirst},
    {"transposed_causal", 2, 4, 2, 65, 65, 24, 24, true, {}, ElementType::kF32, kRowsFirst},
    {"columns_across", 2, 3, 3, 9, 12, 16, 16, false, {}, ElementType::kF32, {0, 1, 3, 2}},
    {"bf16", 1, 2, 2, 70, 133, 20, 20, false, {70, 133}, ElementType::kBF16},
    {"bf16_transposed", 1, 4, 2, 70, 133, 16, 16, true, {}, ElementType::kBF16, kRowsFirst},
    {"bf16_wide", 1, 1, 1, 70, 140, 200, 264, false, {}, ElementType::kBF16},
    {"bf16_one_query", 1, 4, 2, 1, 140, 24, 24, false, {1, 140}, ElementType::kBF16, kRowsFirst},
    {"f16", 1, 2, 2, 70, 133, 20, 20, false, {70, 133}, ElementType::kF16},
    {"f64", 1, 2, 2, 9, 13, 8, 8, true, {9, 13}, ElementType::kF64},
};

// --- Programs

class AttentionProgram {
 public:
  explicit AttentionProgram(const AttentionCase& c)
      : c_(c), builder_(module_.AddComputation("main")) {
    module_.set_entry(builder_.computation());
    const Shape queries = ShapeOf(c.heads, c.queries, c.width);
    const Shape keys = ShapeOf(c.key_heads, c.keys, c.width);
    const Shape values = ShapeOf(c.key_heads, c.keys, c.value_width);
    operands_ = {Parameter(queries, true), Parameter(keys, true), Parameter(values, true)};
    if (!c.mask.empty()) mask_ = Parameter(Shape(c.type, c.mask), false);
  }

  enum Passes { kForward, kBackward, kBoth };

  // The other pass, where a program has one of them, is written out.
  void Build(Passes passes) {
    const AttentionAttributes attributes = {.scale = 0.4, .is_causal = c_.is_causal};
    const auto with_mask = [&](Values values) {
      if (mask_ != nullptr) values.push_back(mask_);
      return values;
    };
    const auto decompose = [&](Builder& b, const Values& x) {
      return hlo::formula::AttentionForward(b, x, attributes);
    };
    const Values forward = passes == kBackward
                               ? decompose(builder_, with_mask(operands_))
                               : hlo::Attention(builder_, hlo::kAttention, with_mask(operands_),
                                                attributes, decompose);
    Values results = {Lay(forward[0]), builder_.Transpose(forward[1], {0, 2, 1})};
    if (passes != kForward) {
      const Value gradient = Parameter(ShapeOf(c_.heads, c_.queries, c_.value_width), true);
      const Values backward = hlo::Attention(
          builder_, hlo::kAttentionBackward,
          with_mask({gradient, operands_[0], operands_[1], operands_[2], forward[0], forward[1]}),
          attributes, [&](Builder& b, const Values& x) {
            return hlo::formula::AttentionBackward(b, x, attributes);
          });
      for (const Value value : backward) results.push_back(Lay(value));
    }
    builder_.computation()->set_results(results);
  }

  // Whether the library serves the program's attentions.
  std::vector<bool> Served() {
    std::vector<bool> served;
    for (const auto& instruction : module_.entry()->instructions()) {
      if (hlo::IsAttention(*instruction)) served.push_back(ServesAttention(*instruction));
    }
    return served;
  }

  hlo::Module& module() { return module_; }
  std::vector<Literal>& arguments() { return arguments_; }

 private:
  Shape ShapeOf(int64_t heads, int64_t rows, int64_t columns) const {
    return Shape(c_.type, {c_.batch, heads, rows, columns});
  }

  // A parameter that lies in the case's order.
  Value Parameter(const Shape& shape, bool transposed) {
    Shape lies = shape;
    if (transposed) {
      Dimensions dimensions;
      for (const int64_t d : c_.order) dimensions.push_back(shape.dimensions()[d]);
      lies = Shape(shape.element_type(), dimensions);
    }
    arguments_.push_back(
        RandomLiteral(lies, static_cast<unsigned>(arguments_.size() + 1), -1.5, 1.5));
    const Value parameter = builder_.Parameter(lies);
    return transposed ? builder_.Transpose(parameter, c_.order) : parameter;
  }
  // The orders are their own inverses.
  Value Lay(Value x) { return builder_.Transpose(x, c_.order); }

  const AttentionCase& c_;
  hlo::Module module_;
  Builder builder_;
  Values operands_;
  Value mask_ = nullptr;
  std::vector<Literal> arguments_;
};

class AttentionTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTest, IsAsDecomposed) {
  for (const AttentionProgram::Passes passes :
       {AttentionProgram::kForward, AttentionProgram::kBackward, AttentionProgram::kBoth}) {
    SCOPED_TRACE(passes);
    AttentionProgram program(GetParam());
    program.Build(passes);
    CheckModule(program.module(), program.arguments(), 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// What a masked row, an infinity or NaN gives, forward and backward.
void CheckSpecial(const std::function<void(std::vector<Literal>&)>& change, double scale = 20) {
  const AttentionCase c = {"special", 1, 2, 2, 70, 140, 16, 16, false, {70, 140}};
  for (const AttentionProgram::Passes passes :
       {AttentionProgram::kForward, AttentionProgram::kBackward}) {
    AttentionProgram program(c);
    program.Build(passes);
    change(program.arguments());
    CheckModule(program.module(), program.arguments(), scale);
  }
}

TEST(AttentionOfSpecialValues, RowsThatAreWhollyMasked) {
  CheckSpecial([](std::vector<Literal>& arguments) {
    auto mask = arguments[3].mutable_data<float>();
    for (const int64_t row : {0, 7, 69}) {
      std::fill_n(mask.begin() + row * 140, 140, -kInfinity);
    }
  });
}

TEST(AttentionOfSpecialValues, FirstBlocksThatAreMasked) {
  CheckSpecial([](std::vector<Literal>& arguments) {
    auto mask = arguments[3].mutable_data<float>();
    for (const int64_t row : {0, 7, 69}) {
      std::fill_n(mask.begin() + row * 140, 130, -kInfinity);
    }
  });
}

TEST(AttentionOfSpecialValues, NotANumberAndInfinities) {
  for (const float special : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    for (const int64_t element : {int64_t{3} * 16, int64_t{2} * 70 * 16 - 1}) {
      CheckSpecial([&](std::vector<Literal>& arguments) {
        arguments[0].mutable_data<float>()[element] = special;
      });
    }
    CheckSpecial([&](std::vector<Literal>& arguments) {
      arguments[3].mutable_data<float>()[5] = special;
      arguments[3].mutable_data<float>()[3 * 140 + 139] = special;
    });
  }
}

// The lowest number masks as well, and a row of nothing else weighs all keys alike.
TEST(AttentionOfSpecialValues, MasksOfTheLowestNumber) {
  CheckSpecial([](std::vector<Literal>& arguments) {
    auto mask = arguments[3].mutable_data<float>();
    for (const int64_t row : {0, 7, 69}) {
      std::fill_n(mask.begin() + row * 140, row == 7 ? 130 : 140,
                  std::numeric_limits<float>::lowest());
    }
  });
}

TEST(AttentionOfSpecialValues, NotANumberAmongMasked) {
  CheckSpecial([](std::vector<Literal>& arguments) {
    auto mask = arguments[3].mutable_data<float>();
    for (const int64_t row : {0, 7, 69}) {
      std::fill_n(mask.begin() + row * 140, 140, -kInfinity);
      mask[row * 140 + row] = std::numeric_limits<float>::quiet_NaN();
    }
  });
}

TEST(AttentionOfSpecialValues, LargeScores) {
  CheckSpecial(
      [](std::vector<Literal>& arguments) {
        for (float& x : arguments[3].mutable_data<float>()) x *= 1000;
      },
      200);  // a score's last bit is 1e-4
}

// Work is cut by the number of threads, never by who is quick.
TEST(Attention, HasTheSameBitsEachTime) {
  const AttentionCase c = {"large", 1, 1, 1, 300, 600, 32, 32};
  AttentionProgram program(c);
  program.Build(AttentionProgram::kBoth);
  const std::unique_ptr<Executable> executable = Compile(program.module());
  const std::vector<Literal> first = RunOnEngine(*executable, program.arguments());
  for (int i = 0; i < 5; ++i) {
    const std::vector<Literal> again = RunOnEngine(*executable, program.arguments());
    for (size_t k = 0; k < first.size(); ++k) {
      EXPECT_EQ(0, std::memcmp(first[k].bytes(), again[k].bytes(), first[k].byte_size()));
    }
  }
}

// The largest value of a program of 2,048 positions is not the 16 MB of a head's scores.
TEST(Attention, HasNoMatrixOfScores) {
  const AttentionCase c = {"long", 1, 2, 2, 2048, 2048, 16, 16};
  AttentionProgram program(c);
  program.Build(AttentionProgram::kBoth);
  if (!program.Served()[0]) GTEST_SKIP() << "this processor has no vectors for it";
  const std::unique_ptr<Executable> executable = Compile(program.module());
  EXPECT_LT(executable->arena_bytes(), 4 << 20);
}

// Few scores are computed once for both passes, where a program has both.
TEST(Attention, FewScoresOfBothPassesAreDecomposed) {
  const auto served = [](const AttentionCase& c, AttentionProgram::Passes passes) {
    AttentionProgram program(c);
    program.Build(passes);
    return program.Served();
  };
  const AttentionCase few = {"few", 1, 2, 2, 128, 128, 16, 16};
  if (!served(few, AttentionProgram::kForward)[0]) {
    GTEST_SKIP() << "this processor has no vectors for it";
  }
  using Each = std::vector<bool>;
  EXPECT_EQ(served(few, AttentionProgram::kBackward), Each({true}));
  EXPECT_EQ(served(few, AttentionProgram::kBoth), Each({false, false}));
  EXPECT_EQ(served({"fewer", 1, 2, 2, 32, 32, 16, 16}, AttentionProgram::kBoth),
            Each({true, true}));
  EXPECT_EQ(served({"causal", 1, 2, 2, 128, 128, 16, 16, true}, AttentionProgram::kBoth),
            Each({true, true}));
  EXPECT_EQ(served({"many", 1, 2, 2, 512, 512, 16, 16}, AttentionProgram::kBoth),
            Each({true, true}));
}

TEST(Attention, IsSerialized) {
  const AttentionCase c = {"saved", 1, 2, 2, 70, 300, 16, 16, true};
  AttentionProgram program(c);
  program.Build(AttentionProgram::kBoth);
  const std::unique_ptr<Executable> executable = Compile(program.module());
  const std::vector<Literal> expected = RunOnEngine(*executable, program.arguments());
  const std::unique_ptr<Executable> loaded = LoadExecutable(executable->Serialize());
  const std::vector<Literal> actual = RunOnEngine(*loaded, program.arguments());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(0, std::memcmp(expected[k].bytes(), actual[k].bytes(), expected[k].byte_size()));
  }
}

// Picked twice, as where equal values are not joined.
TEST(Attention, ResultsMayBePickedTwice) {
  const AttentionCase c = {"twice", 1, 2, 2, 9, 11, 8, 8};
  AttentionProgram program(c);
  program.Build(AttentionProgram::kForward);
  hlo::Computation* entry = program.module().entry();
  Builder b(entry);
  for (const auto& instruction : entry->instructions()) {
    if (!hlo::IsAttention(*instruction)) continue;
    Values results = entry->results();
    results.push_back(b.Negate(b.GetTupleElement(instruction.get(), 0)));
    entry->set_results(results);
    break;
  }
  CompileOptions options;
  options.disabled_passes = {"common_subexpressions"};
  CheckCompiled(program.module(), options, program.arguments(),
                hlo::Evaluate(program.module(), program.arguments()), 20);
}

// Anybody may give a composite that name.
TEST(Attention, CompositesOfOtherFormsAreDecomposed) {
  const auto check = [](const std::vector<Shape>& shapes, bool has_attributes) {
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder b(module.entry());
    Values operands;
    std::vector<Literal> arguments;
    for (const Shape& shape : shapes) {
      operands.push_back(b.Parameter(shape));
      arguments.push_back(RandomLiteral(shape, static_cast<unsigned>(arguments.size() + 1)));
    }
    hlo::Computation* body =
        b.Region("other", shapes, [](Builder& inner, const Values& x) -> Values {
          return {inner.Negate(x[0]), inner.Exp(x[1])};
        });
    hlo::CompositeAttributes attributes{hlo::kAttention, {}, 0};
    if (has_attributes) {
      attributes.attributes["scale"] = {.value = 1.0, .element_type = ElementType::kF64};
      attributes.attributes["is_causal"] = {.value = false};
    }
    const Value composite =
        b.Create(hlo::Opcode::kComposite, operands, attributes, {body},
                 Shape::Tuple({body->results()[0]->shape(), body->results()[1]->shape()}));
    module.entry()->set_results({b.GetTupleElement(composite, 0), b.GetTupleElement(composite, 1)});
    CheckModule(module, arguments);
  };
  const Shape matrix(ElementType::kF32, {3, 4}), four(ElementType::kF32, {1, 2, 3, 4});
  check({matrix, matrix}, true);
  check({matrix, matrix, matrix}, true);
  check({four, four, four}, true);
  check({four, four, four}, false);
  check({four, Shape(ElementType::kF32, {1, 3, 3, 4}), four}, true);
  check({four, four, four, four, four, four, four, four}, true);
}

// A result that nobody reads is still written somewhere.
TEST(Attention, ResultsMayBeUnused) {
  const AttentionCase c = {"unused", 1, 2, 2, 9, 11, 8, 8};
  AttentionProgram program(c);
  program.Build(AttentionProgram::kBoth);
  hlo::Computation* entry = program.module().entry();
  entry->set_results({entry->results()[3]});
  CheckModule(program.module(), program.arguments(), 20);
}

}  // namespace
}  // namespace cpu
