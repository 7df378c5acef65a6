// Factorizations are checked by what they promise: the product of the factors is the matrix.
#include <gtest/gtest.h>

#include "hlo/evaluator.h"
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
            Literal b =
                RandomLiteral(Shape(type, left ? Dimensions{3, 7, 4} : Dimensions{3, 4, 7}), 9);
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

TEST(LinearAlgebra, LuFactorsMultiplyToThePermutedMatrix) {
  constexpr int64_t kM = 5, kN = 4;
  for (ElementType type : kTypes) {
    Literal a = RandomLiteral(Shape(type, {3, kM, kN}), 3);
    auto lu = Call(Target(type, "getrf", "getrf"), {a},
                   {a.shape(), Shape(ElementType::kS32, {3, kN}), Shape(ElementType::kS32, {3})});
    for (int64_t b = 0; b < 3; ++b) {
      Matrix factors = Part(lu[0], b, kM * kN), l(kM * kN), u(kN * kN);
      for (int64_t i = 0; i < kM; ++i) {
        for (int64_t j = 0; j < kN; ++j) {
          if (j < i) l[i * kN + j] = factors[i * kN + j];
          if (j == i) l[i * kN + j] = 1;
          if (j >= i) u[i * kN + j] = factors[i * kN + j];
        }
      }
      Matrix permuted = Part(a, b, kM * kN);
      for (int64_t i = 0; i < kN; ++i) {
        int64_t pivot = lu[1].data<int32_t>()[b * kN + i] - 1;
        for (int64_t j = 0; j < kN; ++j) std::swap(permuted[i * kN + j], permuted[pivot * kN + j]);
      }
      ExpectNear(Multiply(l, u, kM, kN, kN), permuted, type, "lu");
      EXPECT_EQ(lu[2].data<int32_t>()[b], 0);
    }
  }
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
