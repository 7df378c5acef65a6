// Factorizations are checked by what they promise: the product of the factors is the matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "hlo/error.h"
#include "hlo/evaluator.h"
#include "hlo/number_conversion.h"
#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::AttributeDictionary;
using hlo::Builder;
using hlo::Dimensions;
using hlo::Value;

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF64, ElementType::kC64,
                                  ElementType::kC128};

using Matrix = std::vector<Number>;  // row-major

Matrix Part(const Literal& literal, int64_t index, int64_t elements) {
  auto all = Numbers(literal);
  return Matrix(all.begin() + index * elements, all.begin() + (index + 1) * elements);
}

Matrix Multiply(const Matrix& a, const Matrix& b, int64_t m, int64_t k, int64_t n) {
  Matrix c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

Matrix Adjoint(const Matrix& a, int64_t m, int64_t n) {
  Matrix c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[j * m + i] = std::conj(a[i * n + j]);
  }
  return c;
}

void ExpectNear(const Matrix& got, const Matrix& expected, ElementType type, const char* what) {
  double tolerance = Tolerance(type) * 20, worst = 0;
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  EXPECT_LE(worst, tolerance) << what << " " << hlo::ShortName(type);
}

std::string Target(ElementType type, std::string real, std::string complex) {
  const char* letter = type == ElementType::kF32   ? "s"
                       : type == ElementType::kF64 ? "d"
                       : type == ElementType::kC64 ? "c"
                                                   : "z";
  return std::string("lapack_") + letter + (hlo::IsComplex(type) ? complex : real) + "_ffi";
}

AttributeDictionary Letters(std::vector<std::pair<const char*, char>> letters) {
  AttributeDictionary dictionary;
  for (auto [name, letter] : letters) {
    dictionary[name].value = int64_t{letter};
    dictionary[name].element_type = ElementType::kU8;
  }
  return dictionary;
}

std::vector<Literal> Call(const std::string& target, const std::vector<Literal>& operands,
                          const std::vector<Shape>& results, AttributeDictionary dictionary = {}) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  std::vector<Value> values;
  for (const Literal& operand : operands) values.push_back(builder.Parameter(operand.shape()));
  hlo::CustomCallAttributes attributes;
  attributes.target = target;
  attributes.api_version = 4;
  attributes.dictionary = std::move(dictionary);
  Shape shape = results.size() == 1 ? results[0] : Shape::Tuple(results);
  Value call = builder.CustomCall(values, shape, attributes);
  auto got = RunLibraryCall(*call, operands);
  EXPECT_EQ(got.size(), results.size()) << target;
  return got;
}

// Hermitian and positive definite.
Literal PositiveDefinite(ElementType type, int64_t batch, int64_t n) {
  Literal random = RandomLiteral(Shape(type, {batch, n, n}), 5);
  Literal result(random.shape());
  for (int64_t b = 0; b < batch; ++b) {
    Matrix a = Part(random, b, n * n), product = Multiply(a, Adjoint(a, n, n), n, n, n);
    for (int64_t i = 0; i < n; ++i) product[i * n + i] += static_cast<double>(n);
    hlo::DispatchNative(type, [&]<typename T>() {
      T* out = result.mutable_data<T>().data() + b * n * n;
      for (int64_t i = 0; i < n * n; ++i) {
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
          out[i] = static_cast<T>(product[i].real());
        } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                             std::is_same_v<T, std::complex<double>>) {
          out[i] = T(product[i]);
        }
      }
    });
  }
  return result;
}

TEST(LinearAlgebra, CholeskyAndTriangularSolveMatchTheEvaluator) {
  for (ElementType type : kTypes) {
    Literal a = PositiveDefinite(type, 3, 7);
    for (bool lower : {true, false}) {
      hlo::Module module;
      module.set_entry(module.AddComputation("main"));
      Builder builder(module.entry());
      Value value = builder.Parameter(a.shape());
      Value cholesky = builder.Cholesky(value, lower);
      auto got = RunLibraryCall(*cholesky, {a});
      ASSERT_EQ(got.size(), 1u);
      auto expected = hlo::EvaluateInstruction(*cholesky, {a});
      EXPECT_TRUE(Near(got[0], expected[0], Tolerance(type))) << hlo::ShortName(type);
      for (bool left : {true, false}) {
        for (bool unit : {true, false}) {
          for (auto transpose : {hlo::Transpose::kNoTranspose, hlo::Transpose::kTranspose,
                                 hlo::Transpose::kAdjoint}) {
            for (const int64_t count : {2, 4}) {  // few real ones are substituted one by one
              Literal b = RandomLiteral(
                  Shape(type, left ? Dimensions{3, 7, count} : Dimensions{3, count, 7}), 9);
              Value solve = builder.TriangularSolve(value, builder.Parameter(b.shape()),
                                                    {left, lower, unit, transpose});
              auto x = RunLibraryCall(*solve, {a, b});
              ASSERT_EQ(x.size(), 1u);
              auto y = hlo::EvaluateInstruction(*solve, {a, b});
              EXPECT_TRUE(Near(x[0], y[0], Tolerance(type) * 10)) << solve->ToString();
            }
          }
        }
      }
    }
  }
}

TEST(LinearAlgebra, CholeskyOfAnIndefiniteMatrixIsNaN) {
  Literal a = Literal::FromVector<double>({1, 0, 0, -1, 4, 0, 0, 9}, {2, 2, 2});
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  auto got = RunLibraryCall(*builder.Cholesky(builder.Parameter(a.shape()), true), {a});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(got[0].data<double>()[i])) << i;
  EXPECT_EQ(got[0].data<double>()[4], 2);
  EXPECT_EQ(got[0].data<double>()[7], 3);
}

// In the first pivot, in another one, and in what only comes into one. A factor of blocks, too.
TEST(LinearAlgebra, CholeskyOfNanIsNan) {
  for (ElementType type : kTypes) {
    for (const int64_t n : {1, 6, 70}) {
      for (const int64_t place : {int64_t{0}, n * n - 1, (n - 1) * n}) {
        for (bool lower : {true, false}) {
          SCOPED_TRACE(std::string(hlo::ShortName(type)) + " " + std::to_string(n) + " " +
                       std::to_string(place));
          Literal a = PositiveDefinite(type, 1, n);
          hlo::DispatchNative(type, [&]<typename T>() {
            const auto nan = hlo::ConvertNumber<T>(std::numeric_limits<double>::quiet_NaN());
            a.mutable_data<T>()[place] = a.mutable_data<T>()[place % n * n + place / n] = nan;
          });
          hlo::Module module;
          module.set_entry(module.AddComputation("main"));
          Builder builder(module.entry());
          auto got = RunLibraryCall(*builder.Cholesky(builder.Parameter(a.shape()), lower), {a});
          hlo::DispatchNative(type, [&]<typename T>() {
            for (const T& x : got[0].data<T>()) {
              EXPECT_TRUE(std::isnan(std::real(hlo::ConvertNumber<std::complex<double>>(x))));
            }
          });
        }
      }
    }
  }
}

// LAPACK multiplies columns by the reciprocals of pivots and norms.
TEST(LinearAlgebra, FactorsKeepNan) {
  for (ElementType type : kTypes) {
    for (const char* routine : {"getrf", "geqrf"}) {
      const int64_t n = 5;
      Literal a = Literal::Splat(Shape(type, {n, n}), Literal::FromDouble(type, NAN));
      std::vector<Shape> results = {a.shape(), Shape(type, {n})};
      if (routine == std::string("getrf")) {
        results = {a.shape(), Shape(ElementType::kS32, {n}), Shape(ElementType::kS32, {})};
      }
      const auto got = Call(Target(type, routine, routine), {a}, results);
      hlo::DispatchNative(type, [&]<typename T>() {
        for (const T& x : got[0].data<T>()) {
          const auto number = hlo::ConvertNumber<std::complex<double>>(x);
          EXPECT_TRUE(std::isnan(number.real()) || std::isnan(number.imag()))
              << routine << " " << hlo::ShortName(type);
        }
      });
    }
  }
}

TEST(LinearAlgebra, QrFactorsMultiplyToTheMatrix) {
  constexpr int64_t kM = 6, kN = 4;
  for (ElementType type : kTypes) {
    Literal a = RandomLiteral(Shape(type, {2, kM, kN}), 3);
    auto qr = Call(Target(type, "geqrf", "geqrf"), {a}, {a.shape(), Shape(type, {2, kN})});
    auto q = Call(Target(type, "orgqr", "ungqr"), {qr[0], qr[1]}, {a.shape()});
    for (int64_t b = 0; b < 2; ++b) {
      Matrix r = Part(qr[0], b, kM * kN);
      r.resize(kN * kN);
      for (int64_t i = 0; i < kN; ++i) {
        for (int64_t j = 0; j < i; ++j) r[i * kN + j] = 0;
      }
      Matrix qb = Part(q[0], b, kM * kN);
      ExpectNear(Multiply(qb, r, kM, kN, kN), Part(a, b, kM * kN), type, "qr");
      Matrix identity(kN * kN);
      for (int64_t i = 0; i < kN; ++i) identity[i * kN + i] = 1;
      ExpectNear(Multiply(Adjoint(qb, kM, kN), qb, kN, kM, kN), identity, type, "q*q");
    }
    // Q applied to the reduced Q's adjoint side gives back the same as multiplying by it.
    AttributeDictionary left;
    left["left"].value = true;
    left["transpose"].value = true;
    auto rotated = Call(Target(type, "ormqr", "unmqr"), {qr[0], qr[1], a}, {a.shape()}, left);
    Matrix upper = Part(rotated[0], 0, kM * kN), r = Part(qr[0], 0, kM * kN);
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        if (i > j) r[i * kN + j] = 0;
      }
    }
    ExpectNear(upper, r, type, "ormqr");
  }
}

// Small matrices are factored by loops, larger ones by LAPACK.
void ExpectFactors(int64_t m, int64_t n) {
  for (ElementType type : kTypes) {
    Literal a = RandomLiteral(Shape(type, {3, m, n}), 3);
    auto lu = Call(Target(type, "getrf", "getrf"), {a},
                   {a.shape(), Shape(ElementType::kS32, {3, n}), Shape(ElementType::kS32, {3})});
    for (int64_t b = 0; b < 3; ++b) {
      Matrix factors = Part(lu[0], b, m * n), l(m * n), u(n * n);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          if (j < i) l[i * n + j] = factors[i * n + j];
          if (j == i) l[i * n + j] = 1;
          if (j >= i) u[i * n + j] = factors[i * n + j];
        }
      }
      Matrix permuted = Part(a, b, m * n);
      for (int64_t i = 0; i < n; ++i) {
        int64_t pivot = lu[1].data<int32_t>()[b * n + i] - 1;
        for (int64_t j = 0; j < n; ++j) std::swap(permuted[i * n + j], permuted[pivot * n + j]);
      }
      ExpectNear(Multiply(l, u, m, n, n), permuted, type, "lu");
      EXPECT_EQ(lu[2].data<int32_t>()[b], 0);
    }
  }
}

TEST(LinearAlgebra, LuFactorsMultiplyToThePermutedMatrix) {
  ExpectFactors(5, 4);
  ExpectFactors(12, 9);
}

TEST(LinearAlgebra, SingularValues) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}}) {
    int64_t k = std::min(m, n);
    for (ElementType type : kTypes) {
      for (const char* routine : {"gesdd", "gesvd"}) {
        for (char mode : {'S', 'A', 'N'}) {
          int64_t uc = mode == 'S' ? k : m, vr = mode == 'S' ? k : n;
          Literal a = RandomLiteral(Shape(type, {2, m, n}), 3);
          auto svd = Call(Target(type, routine, routine), {a},
                          {a.shape(), Shape(hlo::RealType(type), {2, k}), Shape(type, {2, m, uc}),
                           Shape(type, {2, vr, n}), Shape(ElementType::kS32, {2})},
                          Letters({{"mode", mode}}));
          EXPECT_EQ(svd[4].data<int32_t>()[1], 0);
          if (mode == 'N') continue;
          for (int64_t b = 0; b < 2; ++b) {
            Matrix u = Part(svd[2], b, m * uc), s = Part(svd[1], b, k), us(m * k);
            Matrix vt = Part(svd[3], b, vr * n);
            vt.resize(k * n);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < k; ++j) us[i * k + j] = u[i * uc + j] * s[j];
            }
            ExpectNear(Multiply(us, vt, m, k, n), Part(a, b, m * n), type, routine);
          }
        }
      }
    }
  }
}

TEST(LinearAlgebra, HermitianEigenvalues) {
  constexpr int64_t kN = 5;
  for (ElementType type : kTypes) {
    Literal a = PositiveDefinite(type, 2, kN);
    for (char uplo : {'L', 'U'}) {
      auto e = Call(Target(type, "syevd", "heevd"), {a},
                    {a.shape(), Shape(hlo::RealType(type), {2, kN}), Shape(ElementType::kS32, {2})},
                    Letters({{"mode", 'V'}, {"uplo", uplo}}));
      for (int64_t b = 0; b < 2; ++b) {
        Matrix v = Part(e[0], b, kN * kN), w = Part(e[1], b, kN), vw = v;
        for (int64_t i = 0; i < kN * kN; ++i) vw[i] *= w[i % kN];
        ExpectNear(Multiply(Part(a, b, kN * kN), v, kN, kN, kN), vw, type, "eigh");
      }
    }
  }
}

TEST(LinearAlgebra, Eigenvalues) {
  constexpr int64_t kN = 5;
  for (ElementType type : kTypes) {
    ElementType complex = hlo::IsComplex(type) ? type : hlo::ComplexType(type);
    Literal a = RandomLiteral(Shape(type, {2, kN, kN}), 7);
    std::vector<Shape> results(hlo::IsComplex(type) ? 1 : 2, Shape(type, {2, kN}));
    results.insert(results.end(), 2, Shape(complex, {2, kN, kN}));
    results.emplace_back(ElementType::kS32, Dimensions{2});
    auto e = Call(Target(type, "geev", "geev"), {a}, results,
                  Letters({{"compute_left", 'V'}, {"compute_right", 'V'}}));
    size_t first = hlo::IsComplex(type) ? 1 : 2;
    for (int64_t b = 0; b < 2; ++b) {
      Matrix w = Part(e[0], b, kN);
      if (first == 2) {
        Matrix imaginary = Part(e[1], b, kN);
        for (int64_t i = 0; i < kN; ++i) w[i] += Number(0, 1) * imaginary[i];
      }
      Matrix ab = Part(a, b, kN * kN);
      Matrix right = Part(e[first + 1], b, kN * kN), scaled = right;
      for (int64_t i = 0; i < kN * kN; ++i) scaled[i] *= w[i % kN];
      ExpectNear(Multiply(ab, right, kN, kN, kN), scaled, type, "right vectors");
      Matrix left = Adjoint(Part(e[first], b, kN * kN), kN, kN), left_scaled = left;
      for (int64_t i = 0; i < kN * kN; ++i) left_scaled[i] *= w[i / kN];
      ExpectNear(Multiply(left, ab, kN, kN, kN), left_scaled, type, "left vectors");
    }
  }
}

TEST(LinearAlgebra, Schur) {
  constexpr int64_t kN = 5;
  for (ElementType type : kTypes) {
    Literal a = RandomLiteral(Shape(type, {2, kN, kN}), 7);
    std::vector<Shape> results = {a.shape(), a.shape()};
    results.insert(results.end(), hlo::IsComplex(type) ? 1 : 2, Shape(type, {2, kN}));
    results.insert(results.end(), 2, Shape(ElementType::kS32, {2}));
    auto s =
        Call(Target(type, "gees", "gees"), {a}, results, Letters({{"mode", 'V'}, {"sort", 'N'}}));
    for (int64_t b = 0; b < 2; ++b) {
      Matrix t = Part(s[0], b, kN * kN), z = Part(s[1], b, kN * kN);
      Matrix product = Multiply(Multiply(z, t, kN, kN, kN), Adjoint(z, kN, kN), kN, kN, kN);
      ExpectNear(product, Part(a, b, kN * kN), type, "schur");
    }
  }
}

TEST(LinearAlgebra, ReductionsKeepTheEigenvaluesSum) {
  constexpr int64_t kN = 5;
  auto trace = [](const Matrix& a) {
    Number sum = 0;
    for (int64_t i = 0; i < kN; ++i) sum += a[i * kN + i];
    return sum;
  };
  for (ElementType type : kTypes) {
    Literal a = PositiveDefinite(type, 2, kN);
    ElementType real = hlo::RealType(type);
    AttributeDictionary range;
    range["low"].value = int64_t{1};
    range["high"].value = kN;
    auto h = Call(Target(type, "gehrd", "gehrd"), {a},
                  {a.shape(), Shape(type, {2, kN - 1}), Shape(ElementType::kS32, {2})}, range);
    auto t = Call(Target(type, "sytrd", "hetrd"), {a},
                  {a.shape(), Shape(real, {2, kN}), Shape(real, {2, kN - 1}),
                   Shape(type, {2, kN - 1}), Shape(ElementType::kS32, {2})},
                  Letters({{"uplo", 'L'}}));
    for (int64_t b = 0; b < 2; ++b) {
      Number expected = trace(Part(a, b, kN * kN));
      EXPECT_NEAR(trace(Part(h[0], b, kN * kN)).real(), expected.real(), Tolerance(type) * 100);
      Number sum = 0;
      for (Number d : Part(t[1], b, kN)) sum += d;
      EXPECT_NEAR(sum.real(), expected.real(), Tolerance(type) * 100);
    }
  }
}

TEST(LinearAlgebra, TridiagonalSolve) {
  constexpr int64_t kN = 6;
  for (ElementType type : kTypes) {
    for (int64_t off : {kN, kN - 1}) {
      Literal lower = RandomLiteral(Shape(type, {2, off}), 1);
      Literal upper = RandomLiteral(Shape(type, {2, off}), 2);
      Literal diagonal = RandomLiteral(Shape(type, {2, kN}), 3);
      Literal b = RandomLiteral(Shape(type, {2, kN, 3}), 4);
      auto x = Call(Target(type, "gtsv", "gtsv"), {lower, diagonal, upper, b},
                    {lower.shape(), diagonal.shape(), upper.shape(), b.shape(),
                     Shape(ElementType::kS32, {2})});
      for (int64_t i = 0; i < 2; ++i) {
        Matrix a(kN * kN), d = Part(diagonal, i, kN), l = Part(lower, i, off),
                           u = Part(upper, i, off);
        for (int64_t j = 0; j < kN; ++j) {
          a[j * kN + j] = d[j];
          if (j > 0) a[j * kN + j - 1] = l[j - (off == kN ? 0 : 1)];
          if (j + 1 < kN) a[j * kN + j + 1] = u[j];
        }
        Matrix got = Multiply(a, Part(x[3], i, kN * 3), kN, kN, 3);
        Matrix expected = Part(b, i, kN * 3);
        double worst = 0;
        for (size_t k = 0; k < got.size(); ++k) {
          worst = std::max(worst, std::abs(got[k] - expected[k]));
        }
        EXPECT_LE(worst, Tolerance(type) * 1000) << hlo::ShortName(type);
      }
    }
  }
}

// a as it is, or as its transpose or adjoint says.
Literal Symmetrized(const Literal& random, int64_t n, bool hermitian) {
  Literal result(random.shape());
  int64_t batch = random.shape().dimension(0);
  hlo::DispatchNative(random.shape().element_type(), [&]<typename T>() {
    const T* in = random.data<T>().data();
    T* out = result.mutable_data<T>().data();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          T mirrored = in[(b * n + j) * n + i];
          if constexpr (std::is_same_v<T, std::complex<float>> ||
                        std::is_same_v<T, std::complex<double>>) {
            if (hermitian) mirrored = std::conj(mirrored);
          }
          out[(b * n + i) * n + j] = static_cast<T>(in[(b * n + i) * n + j] + mirrored);
        }
      }
    }
  });
  return result;
}

TEST(LinearAlgebra, SymmetricIndefiniteSystems) {
  constexpr int64_t kN = 5, kColumns = 3;
  for (ElementType type : kTypes) {
    for (bool hermitian : {false, true}) {
      bool letter_h = hermitian && hlo::IsComplex(type);
      Literal a = Symmetrized(RandomLiteral(Shape(type, {2, kN, kN}), 3), kN, hermitian);
      Literal b = RandomLiteral(Shape(type, {2, kN, kColumns}), 4);
      AttributeDictionary lower = Letters({{"uplo", 'L'}});
      auto ld = Call(Target(type, "sytrf", letter_h ? "hetrf" : "sytrf"), {a},
                     {a.shape(), Shape(ElementType::kS32, {2, kN}), Shape(ElementType::kS32, {2})},
                     lower);
      auto x = Call(Target(type, "sytrs", letter_h ? "hetrs" : "sytrs"), {ld[0], ld[1], b},
                    {b.shape()}, lower);
      for (int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(ld[2].data<int32_t>()[i], 0);
        Matrix product =
            Multiply(Part(a, i, kN * kN), Part(x[0], i, kN * kColumns), kN, kN, kColumns);
        ExpectNear(product, Part(b, i, kN * kColumns), type, "ldl");
      }
    }
  }
}

std::vector<Literal> LeastSquares(ElementType type, const char* driver, const Literal& a,
                                  const Literal& b) {
  const Shape& shape = a.shape();
  int64_t k = std::min(shape.dimension(1), shape.dimension(2));
  AttributeDictionary rcond;
  rcond["rcond"].value = 1e-5;
  return Call(Target(type, driver, driver), {a, b},
              {b.shape(), Shape(ElementType::kS32, {2}), Shape(hlo::RealType(type), {2, k}),
               Shape(ElementType::kS32, {2})},
              rcond);
}

TEST(LinearAlgebra, LeastSquaresLeaveAResidualThatTheMatrixDoesNotReach) {
  constexpr int64_t kM = 6, kN = 4, kColumns = 2;
  for (ElementType type : kTypes) {
    Literal a = RandomLiteral(Shape(type, {2, kM, kN}), 3);
    Literal b = RandomLiteral(Shape(type, {2, kM, kColumns}), 4);
    for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"}) {
      auto x = LeastSquares(type, driver, a, b);
      for (int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(x[1].data<int32_t>()[i], kN) << driver;
        EXPECT_EQ(x[3].data<int32_t>()[i], 0) << driver;
        Matrix solution = Part(x[0], i, kM * kColumns), ab = Part(a, i, kM * kN);
        solution.resize(kN * kColumns);
        Matrix residual = Multiply(ab, solution, kM, kN, kColumns);
        Matrix right = Part(b, i, kM * kColumns);
        for (size_t j = 0; j < right.size(); ++j) residual[j] -= right[j];
        Matrix reached = Multiply(Adjoint(ab, kM, kN), residual, kN, kM, kColumns);
        ExpectNear(reached, Matrix(reached.size()), type, driver);
      }
    }
  }
}

TEST(LinearAlgebra, LeastSquaresSeeTheRank) {
  constexpr int64_t kM = 3, kN = 5;
  for (ElementType type : kTypes) {
    Literal a(Shape(type, {2, kM, kN}));  // of ones: rank 1, a singular value of sqrt(15)
    Literal b(Shape(type, {2, kN, 1}));
    hlo::DispatchNative(type, [&]<typename T>() {
      for (T& x : a.mutable_data<T>()) x = T(1);
      for (T& x : b.mutable_data<T>()) x = T(1);
    });
    for (const char* driver : {"gelsy", "gelsd", "gelss"}) {
      auto x = LeastSquares(type, driver, a, b);
      for (int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(x[1].data<int32_t>()[i], 1) << driver;
        ExpectNear(Part(x[0], i, kN), Matrix(kN, Number(1.0 / kN)), type, driver);
        if (driver == std::string("gelsy")) continue;
        EXPECT_NEAR(Part(x[2], i, kM)[0].real(), std::sqrt(15.0), Tolerance(type) * 20) << driver;
      }
    }
  }
}

// A call of a routine as it should be.
struct CallForm {
  std::string target;
  std::vector<Shape> operands, results;
  AttributeDictionary attributes;
  std::vector<std::string> free = {};  // changes of shapes that it takes

  // What is said when it is bound; empty if it is.
  std::string Refusal() const {
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder builder(module.entry());
    std::vector<Value> values;
    for (const Shape& shape : operands) values.push_back(builder.Parameter(shape));
    hlo::CustomCallAttributes call;
    call.target = target;
    call.api_version = 4;
    call.dictionary = attributes;
    const Shape shape = results.size() == 1 ? results[0] : Shape::Tuple(results);
    try {
      return BindLibraryCall(*builder.CustomCall(values, shape, call)) ? "" : "unknown";
    } catch (const hlo::Error& error) {
      return error.what();
    }
  }
};

// Every routine, with two matrices of 4x3, or 3x3.
std::vector<CallForm> CallForms(ElementType type) {
  const ElementType real = hlo::RealType(type), kS32 = ElementType::kS32;
  const bool is_complex = hlo::IsComplex(type);
  const ElementType complex = is_complex ? type : hlo::ComplexType(type);
  const auto shape = [](ElementType t, Dimensions last) {
    last.insert(last.begin(), 2);
    return Shape(t, last);
  };
  const Shape a = shape(type, {4, 3}), square = shape(type, {3, 3}), info = shape(kS32, {});
  const Shape large = shape(type, {4, 4}), vector = shape(type, {3}), reals = shape(real, {3});
  const Shape vectors = shape(complex, {3, 3}), pivots = shape(kS32, {3});
  std::vector<Shape> values(is_complex ? 1 : 2, vector);
  const auto joined = [](std::vector<Shape> x, const std::vector<Shape>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  const auto target = [&](const char* name, const char* of_complex) {
    return Target(type, name, of_complex);
  };
  AttributeDictionary left, right, rows;
  left["left"].value = left["transpose"].value = right["transpose"].value = true;
  right["left"].value = false;
  rows["low"].value = int64_t{1};
  rows["high"].value = int64_t{3};
  const AttributeDictionary lower = Letters({{"uplo", 'L'}});
  std::vector<CallForm> forms = {
      {target("geqrf", "geqrf"), {a}, {a, vector}, {}},
      {target("geqp3", "geqp3"), {a, pivots}, {a, pivots, vector}, {}},
      {target("orgqr", "ungqr"), {a, vector}, {a}, {}, {"operand 1 dimension 1 less"}},
      {target("ormqr", "unmqr"),
       {a, vector, large},
       {large},
       left,
       {"operand 0 dimension 2 more", "operand 1 dimension 1 less"}},
      {target("ormqr", "unmqr"),
       {a, vector, shape(type, {5, 4})},
       {shape(type, {5, 4})},
       right,
       {"operand 0 dimension 2 more", "operand 1 dimension 1 less"}},
      {target("potrf", "potrf"), {square}, {square, info}, lower},
      {target("getrf", "getrf"), {a}, {a, pivots, info}, {}},
      {target("syevd", "heevd"),
       {square},
       {square, reals, info},
       Letters({{"mode", 'V'}, {"uplo", 'L'}})},
      {target("geev", "geev"),
       {square},
       joined(values, {vectors, vectors, info}),
       Letters({{"compute_left", 'V'}, {"compute_right", 'N'}})},
      {target("gees", "gees"),
       {square},
       joined({square, square}, joined(values, {info, info})),
       Letters({{"mode", 'V'}, {"sort", 'N'}})},
      {target("gehrd", "gehrd"), {square}, {square, shape(type, {2}), info}, rows},
      {target("sytrd", "hetrd"),
       {square},
       {square, reals, shape(real, {2}), shape(type, {2}), info},
       lower},
      {target("gtsv", "gtsv"),
       {vector, shape(type, {4}), vector, a},
       {vector, shape(type, {4}), vector, a, info},
       {}},
      {target("sytrf", is_complex ? "hetrf" : "sytrf"), {square}, {square, pivots, info}, lower},
      {target("sytrf", "sytrf"), {square}, {square, pivots, info}, lower},
      {target("sytrs", "hetrs"),
       {square, pivots, shape(type, {3, 2})},
       {shape(type, {3, 2})},
       lower},
      {target("trsm", "trsm"),
       {square, shape(type, {3, 2})},
       {shape(type, {3, 2})},
       Letters({{"side", 'L'}, {"uplo", 'L'}, {"trans_x", 'N'}, {"diag", 'N'}})},
      {target("trsm", "trsm"),
       {square, a},
       {a},
       Letters({{"side", 'R'}, {"uplo", 'U'}, {"trans_x", 'C'}, {"diag", 'U'}})}};
  for (const char* routine : {"gesdd", "gesvd"}) {
    const std::string name = target(routine, routine);
    const auto mode = [](char letter) { return Letters({{"mode", letter}}); };
    forms.push_back({name, {a}, {a, reals, large, square, info}, mode('A')});
    forms.push_back({name, {a}, {a, reals, a, square, info}, mode('S')});
    forms.push_back({name,
                     {a},
                     {a, reals, a, square, info},
                     mode('N'),
                     {"result 2 dimension 2 less", "result 2 dimension 2 more",
                      "result 3 dimension 1 less", "result 3 dimension 1 more"}});
  }
  for (const char* routine : {"gels", "gelsy", "gelsd", "gelss"}) {
    forms.push_back({target(routine, routine), {a, large}, {large, info, reals, info}, {}});
  }
  return forms;
}

// Calls `changed` with `form` after each change of one shape, and what that was.
void ChangeEachShape(const CallForm& form,
                     const std::function<void(const CallForm&, const std::string&)>& changed) {
  for (const bool is_operand : {true, false}) {
    const auto& shapes = is_operand ? form.operands : form.results;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = (is_operand ? "operand " : "result ") + std::to_string(i);
      const auto change = [&](const Shape& shape, const std::string& how) {
        CallForm other = form;
        (is_operand ? other.operands : other.results)[i] = shape;
        changed(other, name + how);
      };
      const Dimensions sizes = shapes[i].dimensions();
      for (size_t d = 0; d < sizes.size(); ++d) {
        for (const int64_t difference : {-1, 1}) {
          Dimensions wrong = sizes;
          wrong[d] += difference;
          change(Shape(shapes[i].element_type(), wrong),
                 " dimension " + std::to_string(d) + (difference < 0 ? " less" : " more"));
        }
      }
      Dimensions longer = sizes, shorter(sizes.begin(), sizes.end() - 1);
      longer.insert(longer.begin(), 1);
      change(Shape(shapes[i].element_type(), longer), " of a higher rank");
      change(Shape(shapes[i].element_type(), shorter), " of a lower rank");
      for (const ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kC64,
                                     ElementType::kC128, ElementType::kS32, ElementType::kPred}) {
        if (type == shapes[i].element_type() || (is_operand && i == 0)) continue;
        change(Shape(type, sizes), " as " + std::string(hlo::ShortName(type)));
      }
    }
    CallForm fewer = form, more = form;
    (is_operand ? fewer.operands : fewer.results).pop_back();
    if (form.results.size() > 1 || is_operand) {
      if (!fewer.operands.empty()) changed(fewer, is_operand ? "fewer operands" : "fewer results");
    }
    (is_operand ? more.operands : more.results).push_back(shapes.back());
    changed(more, is_operand ? "more operands" : "more results");
  }
}

TEST(LinearAlgebra, CallsOfOtherShapesAreRefused) {
  for (ElementType type : kTypes) {
    for (const CallForm& form : CallForms(type)) {
      EXPECT_EQ(form.Refusal(), "") << form.target;
      ChangeEachShape(form, [&](const CallForm& other, const std::string& how) {
        const bool is_free = std::ranges::find(form.free, how) != form.free.end();
        const std::string refusal = other.Refusal();
        EXPECT_EQ(refusal.empty(), is_free) << form.target << ": " << how << "; " << refusal;
        EXPECT_EQ(refusal.find(form.target) == std::string::npos, is_free) << refusal;
      });
    }
  }
}

TEST(LinearAlgebra, CallsOfOtherAttributesAreRefused) {
  for (const CallForm& form : CallForms(ElementType::kF32)) {
    for (const auto& [name, value] : form.attributes) {
      if (name == "low" || name == "high") continue;
      for (const int64_t wrong : {int64_t{'O'}, int64_t{'L'} + 256, int64_t{0}}) {
        CallForm other = form;
        other.attributes[name].value = wrong;
        EXPECT_NE(other.Refusal().find(form.target), std::string::npos) << form.target << name;
      }
    }
  }
  const auto reduction = [](int64_t low, int64_t high) {
    CallForm form;
    for (const CallForm& other : CallForms(ElementType::kF64)) {
      if (other.target == "lapack_dgehrd_ffi") form = other;
    }
    form.attributes["low"].value = low;
    form.attributes["high"].value = high;
    return form.Refusal();
  };
  EXPECT_EQ(reduction(2, 3), "");
  EXPECT_NE(reduction(0, 3), "");
  EXPECT_NE(reduction(1, 4), "");
  EXPECT_NE(reduction(3, 2), "");
  EXPECT_NE(reduction((int64_t{1} << 32) + 1, 3), "");
}

TEST(LinearAlgebra, UnknownTargetsDoNotBind) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Shape shape(ElementType::kF32, {2, 2});
  for (const char* target : {"lapack_snothing_ffi", "lapack_dgeqrf_ffi", "other"}) {
    hlo::CustomCallAttributes attributes;
    attributes.target = target;
    EXPECT_EQ(BindLibraryCall(*builder.CustomCall({builder.Parameter(shape)}, shape, attributes)),
              nullptr)
        << target;
  }
}

}  // namespace
}  // namespace cpu
