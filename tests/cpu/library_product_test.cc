#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <vector>

#include "cpu/library/panel_product.h"
#include "cpu/library/product.h"
#include "cpu/library/row_product.h"
#include "cpu/memory.h"
#include "library_testing.h"

namespace cpu {
namespace {

constexpr FloatKernel kKernels[] = {FloatKernel::kSgemm,      FloatKernel::kMatmul,
                                    FloatKernel::kBlas,       FloatKernel::kPanels,
                                    FloatKernel::kWidePanels, FloatKernel::kRows};

// A matrix that lies by rows or by columns, with room after each line; the room holds NaN, which
// nobody may read into a result.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, bool transposed, int64_t room, uint32_t seed)
      : row(transposed ? 1 : columns + room), column(transposed ? rows + room : 1) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    values.assign((transposed ? columns : rows) * (transposed ? column : row), nan);
    auto numbers =
        testing::RandomLiteral(hlo::Shape(hlo::ElementType::kF32, {rows, columns}), seed);
    const auto data = numbers.data<float>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) at(i, j) = data[i * columns + j];
    }
  }
  float& at(int64_t i, int64_t j) { return values[i * row + j * column]; }

  int64_t row, column;
  std::vector<float> values;
};

// Nothing if the kernel does not serve such a product.
std::vector<float> Multiply(FloatKernel kernel, int64_t m, int64_t n, int64_t k, const Matrix& a,
                            const Matrix& b) {
  const int64_t ldc = n + 3;
  const Product p{.m = m,
                  .n = n,
                  .k = k,
                  .a_row = a.row,
                  .a_column = a.column,
                  .b_row = b.row,
                  .b_column = b.column,
                  .ldc = ldc};
  if (!Serves(kernel, p)) return {};
  auto routine = MakeFloatRoutine(kernel);
  routine->Prepare(p);
  std::vector<float> c(m * ldc, 7);
  routine->Run(p, a.values.data(), b.values.data(), c.data());
  std::vector<float> result;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      if (j < n) {
        result.push_back(c[i * ldc + j]);
      } else {
        EXPECT_EQ(c[i * ldc + j], 7) << "written beside the result";
      }
    }
  }
  return result;
}

// The sizes end inside and at the edges of tiles, panels and blocks.
TEST(Product, EveryKernelInEveryForm) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},    {6, 16, 256},  {7, 17, 257},  {13, 33, 5},
                                   {5, 8, 300},  {64, 31, 64},  {481, 20, 30}, {485, 16, 513},
                                   {8, 48, 512}, {9, 49, 1025}, {2, 96, 7},    {521, 50, 9},
                                   {3, 47, 1},   {12, 63, 24}};
  for (const auto& [m, n, k] : kSizes) {
    for (int form = 0; form < 4; ++form) {
      Matrix a(m, k, (form & 2) != 0, form == 1 ? 512 - k % 512 : 1, 1);
      Matrix b(k, n, (form & 1) != 0, form == 0 ? 512 - n : 1, 2);
      std::vector<double> expected(m * n);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t l = 0; l < k; ++l) {
          for (int64_t j = 0; j < n; ++j) expected[i * n + j] += double{a.at(i, l)} * b.at(l, j);
        }
      }
      for (FloatKernel kernel : kKernels) {
        const auto got = Multiply(kernel, m, n, k, a, b);
        if (got.empty()) continue;
        double worst = 0;
        for (int64_t i = 0; i < m * n; ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
        EXPECT_LT(worst, 1e-6 * static_cast<double>(k) + 1e-6)
            << static_cast<char>(kernel) << " " << m << " " << n << " " << k << " form " << form;
      }
    }
  }
}

TEST(Product, PanelsGiveTheSameBitsInEveryForm) {
  if (!Runs(FloatKernel::kPanels)) GTEST_SKIP() << "no AVX2";
  const int64_t m = 70, n = 50, k = 600;
  for (FloatKernel kernel : {FloatKernel::kPanels, FloatKernel::kWidePanels}) {
    if (!Runs(kernel)) continue;
    std::vector<std::vector<float>> results;
    for (int form = 0; form < 4; ++form) {
      results.push_back(Multiply(kernel, m, n, k, Matrix(m, k, (form & 2) != 0, 4, 1),
                                 Matrix(k, n, (form & 1) != 0, 9, 2)));
      EXPECT_EQ(results.back(), results.front()) << static_cast<char>(kernel) << form;
    }
  }
}

// Panels are filled up with zeros: what is not finite stays in its row and column.
TEST(Product, NotFiniteNumbersStayInTheirRowsAndColumns) {
  const int64_t m = 8, n = 18, k = 40;
  const float infinity = std::numeric_limits<float>::infinity();
  for (FloatKernel kernel : kKernels) {
    for (bool transposed : {false, true}) {
      Matrix a(m, k, false, 1, 1), b(k, n, transposed, 1, 2);
      a.at(7, 39) = infinity;
      b.at(3, 17) = std::numeric_limits<float>::quiet_NaN();
      const auto got = Multiply(kernel, m, n, k, a, b);
      if (got.empty()) continue;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const float x = got[i * n + j];
          EXPECT_EQ(std::isnan(x), j == 17) << i << " " << j;
          EXPECT_EQ(std::isinf(x), j != 17 && i == 7) << i << " " << j;
        }
      }
    }
  }
}

TEST(Product, TheTableNamesKernelsThatRun) {
  for (int64_t m : {1, 3, 20, 100, 1000}) {
    for (int64_t n : {1, 30, 300, 1024}) {
      for (int64_t k : {1, 100, 1024}) {
        for (int form = 0; form < 4; ++form) {
          const Product p{.m = m,
                          .n = n,
                          .k = k,
                          .a_row = (form & 2) != 0 ? 1 : k,
                          .a_column = (form & 2) != 0 ? m : 1,
                          .b_row = (form & 1) != 0 ? 1 : n,
                          .b_column = (form & 1) != 0 ? k : 1,
                          .ldc = n};
          const FloatKernel kernel = QuickestFloatKernel(p);
          EXPECT_TRUE(Serves(kernel, p));
          EXPECT_FALSE(MakeFloatRoutine(kernel)->Name(p).empty());
        }
      }
    }
  }
}

// Lines of a type, and what numbers they stand for.
struct Lines {
  LineType type;
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

template <typename T, typename Value>
Lines MakeLines(LineType type, const std::vector<T>& stored, Value value) {
  Lines lines{
      .type = type, .bytes = std::vector<std::byte>(stored.size() * sizeof(T)), .values = {}};
  std::memcpy(lines.bytes.data(), stored.data(), lines.bytes.size());
  for (const T& x : stored) lines.values.push_back(static_cast<double>(value(x)));
  return lines;
}

std::vector<Lines> LinesOfEveryType(int64_t count) {
  const hlo::Shape shape(hlo::ElementType::kF32, {count});
  const auto literal = testing::RandomLiteral(shape, 3);
  const auto data = literal.data<float>();
  const std::vector<float> floats(data.begin(), data.end());
  std::vector<hlo::BFloat16> bf16;
  std::vector<hlo::Float16> f16;
  std::vector<int8_t> s8;
  for (float x : floats) {
    bf16.emplace_back(x);
    f16.emplace_back(x);
    s8.push_back(static_cast<int8_t>(std::lround(x * 128 - 0.5f)));
  }
  const auto same = [](auto x) { return static_cast<float>(x); };
  return {MakeLines(LineType::kFloat, floats, same),
          MakeLines(LineType::kRounded, floats,
                    [](float x) { return static_cast<float>(hlo::BFloat16(x)); }),
          MakeLines(LineType::kBFloat16, bf16, same), MakeLines(LineType::kFloat16, f16, same),
          MakeLines(LineType::kInt8, s8, same)};
}

// The sizes end inside and at the edges of tiles, quarters and depths. True if all is right.
bool RowsAreRight(bool transposed) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},    {2, 40, 1}, {1, 5, 16},    {2, 3, 31},
                                   {3, 6, 1025}, {4, 8, 33}, {5, 13, 48},   {9, 4, 100},
                                   {16, 7, 530}, {6, 2, 7},  {1, 50, 8200}, {3, 4200, 9}};
  for (const auto& [m, n, k] : kSizes) {
    // A single line, as it lies in memory, is the lines of its transposed form as well.
    const int64_t ldc = n + 2, line = k == 1 && n > 1 ? 1 : (transposed ? k : n) + 3;
    const Matrix a(m, k, false, 1, 1);
    const Product p{.m = m,
                    .n = n,
                    .k = k,
                    .a_row = a.row,
                    .a_column = 1,
                    .b_row = transposed ? 1 : line,
                    .b_column = transposed ? line : 1,
                    .ldc = ldc};
    for (const Lines& lines : LinesOfEveryType(transposed ? n * line : std::max(k * line, n))) {
      std::vector<float> c(m * ldc, 7);
      MakeRowRoutine(lines.type)->Run(p, a.values.data(), lines.bytes.data(), c.data());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < ldc; ++j) {
          double expected = j < n ? 0 : 7, size = 1;
          for (int64_t l = 0; j < n && l < k; ++l) {
            const double term =
                double{a.values[i * a.row + l]} * lines.values[l * p.b_row + j * p.b_column];
            expected += term;
            size += std::abs(term);
          }
          if (!(std::abs(c[i * ldc + j] - expected) <= 1e-6 * size)) {
            ADD_FAILURE() << MakeRowRoutine(lines.type)->Name(p) << " " << m << " " << n << " " << k
                          << " at " << i << " " << j << ": " << c[i * ldc + j] << ", not "
                          << expected;
            return false;
          }
        }
      }
    }
  }
  return true;
}

TEST(Product, RowsTimesLinesOfEveryType) {
  if (!RunsRows()) GTEST_SKIP() << "no AVX2";
  EXPECT_TRUE(RowsAreRight(true));
  EXPECT_TRUE(RowsAreRight(false));
}

// What rounds to bf16 in registers: ties to even, the largest numbers to infinity, and NaN of any
// bits stays one.
TEST(Product, RowsRoundAsConversionsDo) {
  if (!RunsRows()) GTEST_SKIP() << "no AVX2";
  for (uint32_t bits :
       {0x3f808000u, 0x3f818000u, 0x3f808001u, 0x3f807fffu, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u,
        0x7fffffffu, 0xffffffffu, 0x7f800001u, 0x00000001u, 0x80008000u}) {
    const float number = std::bit_cast<float>(bits), one = 1;
    const Product p{
        .m = 1, .n = 1, .k = 1, .a_row = 1, .a_column = 1, .b_row = 1, .b_column = 1, .ldc = 1};
    float rounded = 0;
    MakeRowRoutine(LineType::kRounded)->Run(p, &one, &number, &rounded);
    const auto expected = static_cast<float>(hlo::BFloat16(number));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(rounded)) << std::hex << bits;
    } else {
      EXPECT_EQ(rounded, expected) << std::hex << bits;
    }
  }
}

Product OfDenseRows(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .a_row = k, .a_column = 1, .b_row = n, .b_column = 1, .ldc = n};
}

// A product of few rows and a large matrix is bound by memory: there the table has no say.
TEST(Product, RowsServeWhereMemoryIsRead) {
  if (!RunsRows()) GTEST_SKIP() << "no AVX2";
  Product p = OfDenseRows(1, 768, 768);
  std::swap(p.b_row, p.b_column);
  EXPECT_EQ(QuickestFloatKernel(p), FloatKernel::kRows);
  std::swap(p.b_row, p.b_column);
  EXPECT_EQ(QuickestFloatKernel(p), FloatKernel::kRows);
  p.m = 4;
  EXPECT_NE(QuickestFloatKernel(p), FloatKernel::kRows);
  p = OfDenseRows(1, 4, 100000);
  EXPECT_NE(QuickestFloatKernel(p), FloatKernel::kRows) << "short lines";
  p = OfDenseRows(1, 512, 100000);
  EXPECT_NE(QuickestFloatKernel(p), FloatKernel::kRows) << "long sums of f32";
}

TEST(Product, RowsServeOneSum) {
  if (!RunsRows()) GTEST_SKIP() << "no AVX2";
  for (int64_t k : {600, 70000}) {
    Product p = OfDenseRows(1, 1, k);
    EXPECT_EQ(QuickestFloatKernel(p), FloatKernel::kRows);
    p.b_row = 3;
    EXPECT_NE(QuickestFloatKernel(p), FloatKernel::kRows) << "numbers that are not neighbours";
  }
}

// In a process of its own, since code is generated once. Matrices that are worth copying first need
// none of what oneDNN multiplies smaller ones by, which takes 12 to 30 ms to generate.
TEST(Product, LargeMatricesPrepareNoCodeOfSmallOnes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto prepares_quickly = [] {
    const auto routine = MakeFloatRoutine(FloatKernel::kSgemm);
    const std::clock_t start = std::clock();  // of the processor
    routine->Prepare(OfDenseRows(1024, 1024, 1024));
    return std::clock() - start < CLOCKS_PER_SEC / 200;
  };
  EXPECT_EXIT(_Exit(prepares_quickly() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

#if defined(__x86_64__)
// In a process of its own, since the variable is read once.
TEST(Product, RowsAreRightWithinTheCap) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("TORCH_XLA_CPU_ISA", "AVX2", 1);
  EXPECT_EXIT(_Exit(!RunsRows() || (RowsAreRight(true) && RowsAreRight(false)) ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
  unsetenv("TORCH_XLA_CPU_ISA");
}

TEST(Product, TheCapKeepsPanelsOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("TORCH_XLA_CPU_ISA", "sse41", 1);
  EXPECT_EXIT(
      _Exit(Runs(FloatKernel::kPanels) || Runs(FloatKernel::kWidePanels) || RunsRows() ? 1 : 0),
      ::testing::ExitedWithCode(0), "");
  setenv("TORCH_XLA_CPU_ISA", "AVX2", 1);
  EXPECT_EXIT(_Exit(Runs(FloatKernel::kPanels) == (__builtin_cpu_supports("avx2") != 0) &&
                            !Runs(FloatKernel::kWidePanels)
                        ? 0
                        : 1),
              ::testing::ExitedWithCode(0), "");
  unsetenv("TORCH_XLA_CPU_ISA");
}
#endif

}  // namespace
}  // namespace cpu
