#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cpu/library/dot.h"
#include "cpu/library/epilogue.h"
#include "cpu/library/row_product.h"
#include "cpu/library/strided_copy.h"
#include "hlo/text_reader.h"
#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::Builder;
using hlo::Dimensions;
using hlo::DotAttributes;
using hlo::Opcode;
using hlo::Value;

struct DotCase {
  const char* name;
  Dimensions lhs, rhs;
  DotAttributes attributes;  // lhs batch, rhs batch, lhs contracting, rhs contracting
};

DotAttributes Dot(Dimensions lb, Dimensions rb, Dimensions lc, Dimensions rc) {
  return {std::move(lb), std::move(rb), std::move(lc), std::move(rc), {}};
}

const DotCase kCases[] = {
    {"tiny", {3, 4}, {4, 5}, Dot({}, {}, {1}, {0})},
    {"vectors", {7}, {7}, Dot({}, {}, {0}, {0})},
    {"matrix_vector", {200, 130}, {130}, Dot({}, {}, {1}, {0})},
    {"vector_matrix", {130}, {130, 200}, Dot({}, {}, {0}, {0})},
    {"outer", {40}, {50}, Dot({}, {}, {}, {})},
    {"plain", {65, 70}, {70, 50}, Dot({}, {}, {1}, {0})},
    {"lhs_transposed", {70, 65}, {70, 50}, Dot({}, {}, {0}, {0})},
    {"rhs_transposed", {65, 70}, {50, 70}, Dot({}, {}, {1}, {1})},
    {"both_transposed", {70, 65}, {50, 70}, Dot({}, {}, {0}, {1})},
    {"both_transposed_row", {70, 1}, {50, 70}, Dot({}, {}, {0}, {1})},
    {"few_rows_rhs_transposed", {3, 70}, {50, 70}, Dot({}, {}, {1}, {1})},
    {"few_columns_of_lhs", {70, 3}, {50, 70}, Dot({}, {}, {0}, {1})},
    {"row_rhs_transposed", {70}, {50, 70}, Dot({}, {}, {0}, {1})},
    {"few_rows_batch", {6, 2, 40}, {6, 21, 40}, Dot({0}, {0}, {2}, {2})},
    {"few_rows_two_contracted", {5, 5, 20}, {30, 5, 20}, Dot({}, {}, {1, 2}, {1, 2})},
    {"large", {300, 200}, {200, 310}, Dot({}, {}, {1}, {0})},
    {"tall", {3000, 20}, {20, 17}, Dot({}, {}, {1}, {0})},
    {"wide", {5, 64}, {64, 4000}, Dot({}, {}, {1}, {0})},
    // Lines 2 KB apart.
    {"rhs_lines_collide", {20, 120}, {120, 512}, Dot({}, {}, {1}, {0})},
    {"lhs_lines_collide", {110, 512}, {110, 15}, Dot({}, {}, {0}, {0})},
    {"batch", {6, 33, 40}, {6, 40, 21}, Dot({0}, {0}, {2}, {1})},
    {"batch_one_row", {6, 1, 40}, {6, 40, 21}, Dot({0}, {0}, {2}, {1})},
    {"attention_scores", {2, 17, 3, 24}, {2, 19, 3, 24}, Dot({0, 2}, {0, 2}, {3}, {3})},
    {"attention_values", {2, 3, 17, 19}, {2, 19, 3, 24}, Dot({0, 1}, {0, 2}, {3}, {1})},
    {"batch_minor", {20, 30, 4}, {30, 25, 4}, Dot({2}, {2}, {1}, {0})},
    {"two_contracted", {12, 5, 20}, {5, 20, 30}, Dot({}, {}, {1, 2}, {0, 1})},
    {"two_contracted_swapped", {12, 5, 20}, {20, 5, 30}, Dot({}, {}, {1, 2}, {1, 0})},
    {"two_contracted_reordered", {12, 5, 20}, {5, 20, 30}, Dot({}, {}, {2, 1}, {1, 0})},
    {"split_free", {5, 20, 12}, {20, 30}, Dot({}, {}, {1}, {0})},
    {"split_both", {5, 20, 12}, {7, 20, 6}, Dot({}, {}, {1}, {1})},
    {"size_one_contracted", {30, 1}, {1, 40}, Dot({}, {}, {1}, {0})},
    {"empty_contracted", {3, 0}, {0, 4}, Dot({}, {}, {1}, {0})},
    {"empty", {0, 3}, {3, 4}, Dot({}, {}, {1}, {0})},
};

class DotTest : public ::testing::TestWithParam<DotCase> {};

Literal Check(const DotCase& c, ElementType operand_type, ElementType result_type) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Shape lhs(operand_type, c.lhs), rhs(operand_type, c.rhs);
  Value dot =
      builder.DotGeneral(builder.Parameter(lhs), builder.Parameter(rhs), c.attributes, result_type);
  Literal a = RandomLiteral(lhs, 1), b = RandomLiteral(rhs, 2);
  std::string description;
  auto got = RunLibraryCall(*dot, {a, b}, &description);
  EXPECT_EQ(got.size(), 1u) << c.name;
  EXPECT_TRUE(Near(got[0], NaiveDot(*dot, a, b), Tolerance(result_type)))
      << c.name << " " << description << " " << hlo::ShortName(result_type);
  return got[0];
}

TEST_P(DotTest, EveryType) {
  for (ElementType type :
       {ElementType::kPred, ElementType::kS8, ElementType::kU8, ElementType::kS16,
        ElementType::kU16, ElementType::kS32, ElementType::kU32, ElementType::kS64,
        ElementType::kU64, ElementType::kF16, ElementType::kBF16, ElementType::kF32,
        ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
    Check(GetParam(), type, type);
  }
}

TEST_P(DotTest, WiderResult) {
  Check(GetParam(), ElementType::kBF16, ElementType::kF32);
  Check(GetParam(), ElementType::kF16, ElementType::kF32);
  Check(GetParam(), ElementType::kS8, ElementType::kS32);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DotTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Dot, SeveralThreadsRunOneCall) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kBF16}) {
    Shape shape(type, {120, 120});
    Value dot = builder.MatMul(builder.Parameter(shape), builder.Parameter(shape));
    Literal a = RandomLiteral(shape, 1), b = RandomLiteral(shape, 2);
    auto call = BindLibraryCall(*dot);
    auto expected = RunLibraryCall(*dot, {a, b});
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          auto got = RunLibraryCall(*dot, {a, b});
          wrong += !(got[0] == expected[0]);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << hlo::ShortName(type);
  }
}

// Many short calls at once: each takes a work area from the table of the library and gives it back.
// Complex, because small real products need none.
TEST(Dot, SeveralThreadsTakeWorkAreas) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Shape shape(ElementType::kC64, {16, 16});
  Value dot = builder.MatMul(builder.Parameter(shape), builder.Parameter(shape));
  auto call = BindLibraryCall(*dot);
  std::atomic<int> wrong{0};
  auto multiply = [&](int seed) {
    Literal a = RandomLiteral(shape, seed), b = RandomLiteral(shape, seed + 1);
    auto expected = RunLibraryCall(*dot, {a, b})[0];
    const void* operands[] = {a.bytes(), b.bytes()};
    Literal result(shape);
    void* results[] = {result.mutable_bytes()};
    RunOptions options;
    for (int i = 0; i < 100000; ++i) {
      call->Run({ThreadPool::Default(), options, nullptr}, operands, results);
      wrong += !(result == expected);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(multiply, 10 * t);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Dot, WorksInAForkedChild) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kBF16}) {
    Shape shape(type, {200, 200});
    Value dot = builder.MatMul(builder.Parameter(shape), builder.Parameter(shape));
    Literal a = RandomLiteral(shape, 1), b = RandomLiteral(shape, 2);
    auto expected = RunLibraryCall(*dot, {a, b});
    pid_t pid = fork();
    if (pid == 0) {
      alarm(30);
      _exit(RunLibraryCall(*dot, {a, b})[0] == expected[0] ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << hlo::ShortName(type);
  }
}

// A body of contraction and epilogue, as a composite and as the list that CanFuseEpilogue takes.
struct EpilogueCase {
  const char* name;
  // Builds on the dot of [m, k] x [k, n]; `extra` gives parameters.
  Value (*build)(Builder&, Value dot, const std::function<Value(Dimensions)>& extra);
  std::function<double(double, int64_t, int64_t, const std::vector<std::vector<Number>>&)> expected;
  bool fuses = true;
};

constexpr int64_t kM = 90, kK = 33, kN = 70;

const EpilogueCase kEpilogues[] = {
    {"bias",
     [](Builder& b, Value dot, const auto& extra) {
       return b.Add(dot, b.BroadcastInDim(extra({kN}), {kM, kN}, {1}));
     },
     [](double x, int64_t, int64_t j, const auto& e) { return x + e[0][j].real(); }},
    {"bias_relu_residual_scale",
     [](Builder& b, Value dot, const auto& extra) {
       Value biased = b.Add(b.BroadcastInDim(extra({kN}), {kM, kN}, {1}), dot);
       Value relu = b.Maximum(biased, b.Zeros(dot->shape()));
       Value sum = b.Subtract(extra({kM, kN}), relu);
       return b.Multiply(sum, b.Full(dot->shape(), 0.5));
     },
     [](double x, int64_t i, int64_t j, const auto& e) {
       return (e[1][i * kN + j].real() - std::max(x + e[0][j].real(), 0.0)) * 0.5;
     }},
    {"tanh", [](Builder& b, Value dot, const auto&) { return b.Tanh(dot); },
     [](double x, int64_t, int64_t, const auto&) { return std::tanh(x); }},
    {"negated_logistic",
     [](Builder& b, Value dot, const auto&) { return b.Logistic(b.Negate(dot)); },
     [](double x, int64_t, int64_t, const auto&) { return 1 / (1 + std::exp(x)); }},
    {"row_scale",
     [](Builder& b, Value dot, const auto& extra) {
       return b.Divide(dot, b.BroadcastInDim(extra({}), {kM, kN}, {}));
     },
     [](double x, int64_t, int64_t, const auto& e) { return x / e[0][0].real(); }},
    {"per_row",
     [](Builder& b, Value dot, const auto& extra) {
       return b.Add(dot, b.BroadcastInDim(extra({kM}), {kM, kN}, {0}));
     },
     [](double x, int64_t i, int64_t, const auto& e) { return x + e[0][i].real(); }},
    {"used_twice", [](Builder& b, Value dot, const auto&) { return b.Multiply(dot, dot); },
     [](double x, int64_t, int64_t, const auto&) { return x * x; }, false},
    {"exponential", [](Builder& b, Value dot, const auto&) { return b.Exp(dot); },
     [](double x, int64_t, int64_t, const auto&) { return std::exp(x); }, false},
};

void CheckEpilogue(const EpilogueCase& c, ElementType type) {
  hlo::Module module;
  hlo::Computation* body = module.AddComputation("body");
  Builder inside(body);
  std::vector<Shape> shapes = {Shape(type, {kM, kK}), Shape(type, {kK, kN})};
  Value lhs = inside.Parameter(shapes[0]), rhs = inside.Parameter(shapes[1]);
  Value dot = inside.MatMul(lhs, rhs);
  Value root = c.build(inside, dot, [&](Dimensions dimensions) {
    shapes.emplace_back(type, dimensions);
    return inside.Parameter(shapes.back());
  });
  body->set_results({root});
  std::vector<const hlo::Instruction*> epilogue;
  for (const auto& i : body->instructions()) {
    if (i.get() != dot && i->opcode() != Opcode::kParameter) epilogue.push_back(i.get());
  }
  EXPECT_EQ(CanFuseEpilogue(*dot, epilogue), c.fuses) << c.name;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  std::vector<Value> operands;
  std::vector<Literal> literals;
  std::vector<std::vector<Number>> extras;
  for (size_t i = 0; i < shapes.size(); ++i) {
    operands.push_back(builder.Parameter(shapes[i]));
    literals.push_back(RandomLiteral(shapes[i], i + 3));
    if (i >= 2) extras.push_back(Numbers(literals[i]));
  }
  Value composite = builder.Create(Opcode::kComposite, operands,
                                   hlo::CompositeAttributes{"cpu.dot", {}, 0}, {body});
  auto got = RunLibraryCall(*composite, literals);
  ASSERT_EQ(got.size(), c.fuses ? 1u : 0u) << c.name;
  if (!c.fuses) return;
  std::vector<Number> expected = NaiveDot(*dot, literals[0], literals[1]);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      Number& x = expected[i * kN + j];
      x = c.expected(x.real(), i, j, extras);
    }
  }
  EXPECT_TRUE(Near(got[0], expected, Tolerance(type))) << c.name << " " << hlo::ShortName(type);
}

TEST(DotEpilogue, EachForm) {
  for (const EpilogueCase& c : kEpilogues) {
    for (ElementType type : {ElementType::kF32, ElementType::kBF16, ElementType::kF16}) {
      CheckEpilogue(c, type);
    }
  }
}

// A composite whose right operand is converted in it, with a scale for each column.
struct ConvertCase {
  ElementType stored, read;
  const char* lines;
};

constexpr ConvertCase kConverts[] = {
    {ElementType::kS8, ElementType::kF32, "rhs of s8"},
    {ElementType::kS8, ElementType::kBF16, "rhs of s8"},
    {ElementType::kS8, ElementType::kF16, "rhs of s8"},
    {ElementType::kBF16, ElementType::kF32, "rhs of bf16"},
    {ElementType::kF16, ElementType::kF32, "rhs of f16"},
    {ElementType::kF32, ElementType::kBF16, "rhs rounded to bf16"},
};

void CheckConvert(const ConvertCase& c, int64_t m, bool transposed) {
  hlo::Module module;
  hlo::Computation* body = module.AddComputation("body");
  Builder inside(body);
  const hlo::Dimensions sizes = transposed ? hlo::Dimensions{70, 300} : hlo::Dimensions{300, 70};
  const std::vector<Shape> shapes = {Shape(c.read, {m, 300}), Shape(c.stored, sizes),
                                     Shape(c.read, {70})};
  std::vector<Value> parameters;
  for (const Shape& shape : shapes) parameters.push_back(inside.Parameter(shape));
  Value matrix = inside.Convert(parameters[1], c.read);
  Value dot =
      inside.DotGeneral(parameters[0], matrix, Dot({}, {}, {1}, {transposed ? 1 : 0}), c.read);
  ASSERT_TRUE(ReadsThroughConvert(*dot));
  body->set_results({inside.Multiply(dot, inside.BroadcastInDim(parameters[2], {m, 70}, {1}))});
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  std::vector<Value> operands;
  std::vector<Literal> literals;
  for (const Shape& shape : shapes) {
    operands.push_back(builder.Parameter(shape));
    literals.push_back(RandomLiteral(shape, literals.size() + 1));
  }
  Value composite = builder.Create(Opcode::kComposite, operands,
                                   hlo::CompositeAttributes{"cpu.dot", {}, 0}, {body});
  std::string description;
  const auto got = RunLibraryCall(*composite, literals, &description);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(description.find(c.lines), std::string::npos) << description;
  Literal converted(matrix->shape());
  ConvertRow(literals[1].bytes(), c.stored, converted.mutable_bytes(), c.read, 70 * 300);
  std::vector<Number> expected = NaiveDot(*dot, literals[0], converted);
  const auto scales = Numbers(literals[2]);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] *= scales[i % 70];
  EXPECT_TRUE(Near(got[0], expected, Tolerance(c.read))) << description;
}

TEST(DotConvert, ReadsTheMatrixWhereItLies) {
  if (!RunsRows()) GTEST_SKIP() << "no AVX2";
  for (const ConvertCase& c : kConverts) {
    CheckConvert(c, 1, true);
    CheckConvert(c, 8, true);
    CheckConvert(c, 1, false);
    CheckConvert(c, 2, false);
  }
}

TEST(DotConvert, NotWhereItWouldNotPay) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder b(module.entry());
  const auto reads = [&](int64_t m, ElementType stored, ElementType read, int64_t contracted,
                         int64_t columns = 64) {
    Value lhs = b.Parameter(Shape(read, {m, 64}));
    const Dimensions sizes = contracted == 0 ? Dimensions{64, columns} : Dimensions{columns, 64};
    Value matrix = b.Convert(b.Parameter(Shape(stored, sizes)), read);
    return ReadsThroughConvert(*b.DotGeneral(lhs, matrix, Dot({}, {}, {1}, {contracted}), read));
  };
  EXPECT_EQ(reads(1, ElementType::kS8, ElementType::kF32, 1), RunsRows());
  EXPECT_FALSE(reads(64, ElementType::kS8, ElementType::kF32, 1)) << "many rows";
  EXPECT_EQ(reads(1, ElementType::kS8, ElementType::kF32, 0), RunsRows());
  EXPECT_FALSE(reads(8, ElementType::kS8, ElementType::kF32, 0)) << "many rows, not transposed";
  EXPECT_FALSE(reads(1, ElementType::kS8, ElementType::kF32, 0, 10)) << "short lines";
  EXPECT_EQ(reads(1, ElementType::kS8, ElementType::kF32, 1, 10), RunsRows());
  EXPECT_FALSE(reads(1, ElementType::kS8, ElementType::kS32, 1)) << "integers";
  EXPECT_FALSE(reads(1, ElementType::kF16, ElementType::kBF16, 1)) << "rounded twice";
  EXPECT_FALSE(reads(1, ElementType::kS8, ElementType::kF64, 1)) << "wider than f32";
}

TEST(DotEpilogue, ReluKeepsNaN) {
  const auto module = hlo::ReadStablehloText(R"(
func.func private @body(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
  %3 = stablehlo.maximum %0, %2 : tensor<16x16xf32>
  func.return %3 : tensor<16x16xf32>
}
func.func public @main(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.composite "cpu.dot" %x, %y {decomposition = @body} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %0 : tensor<16x16xf32>
})");
  const Shape shape(ElementType::kF32, {16, 16});
  Literal a = RandomLiteral(shape, 1);
  a.mutable_data<float>()[3] = std::nanf("");
  auto got = RunLibraryCall(*module->entry()->result(), {a, RandomLiteral(shape, 2)});
  ASSERT_EQ(got.size(), 1u);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(got[0].data<float>()[i])) << i;
  for (int i = 16; i < 256; ++i) EXPECT_GE(got[0].data<float>()[i], 0.0f) << i;
}

}  // namespace
}  // namespace cpu
