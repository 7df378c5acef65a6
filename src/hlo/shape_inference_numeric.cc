// Shapes of batch normalisation, linear algebra, Fourier transforms and random numbers.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// Operand `i` must be a vector with one element for each feature.
void RequireFeatureVector(const ShapeCheck& check, size_t i, int64_t features) {
  const Shape& shape = check.operand(i);
  check.Require(shape.element_type() == check.operand(0).element_type() && shape.rank() == 1 &&
                    SameDimension(shape.dimension(0), features),
                [&] {
                  return "operand " + std::to_string(i) + " must be a vector of " +
                         std::to_string(features) + " elements of the first operand's type";
                });
}

Shape InferBatchNorm(const ShapeCheck& check) {
  size_t count = check.opcode == Opcode::kBatchNormTraining ? 3 : 5;
  check.RequireOperands(count);
  const Shape& x = check.operand(0);
  int64_t index = check.as<BatchNormAttributes>().feature_index;
  check.Require(IsFloat(x.element_type()), "the operand must be floating-point");
  check.RequireDimension(index, x.rank(), "feature_index");
  int64_t features = x.dimension(index);
  bool gradient = check.opcode == Opcode::kBatchNormGrad;
  for (size_t i = 1; i < (gradient ? 4 : count); ++i) RequireFeatureVector(check, i, features);
  Shape vector(x.element_type(), {features});
  if (check.opcode == Opcode::kBatchNormTraining) return Shape::Tuple({x, vector, vector});
  if (!gradient) return x;
  check.Require(CompatibleShapes(check.operand(4), x), "grad_output must have the operand's shape");
  return Shape::Tuple({x, vector, vector});
}

bool IsSquare(const Shape& a) {
  return a.rank() >= 2 && SameDimension(a.dimension(a.rank() - 2), a.dimension(a.rank() - 1));
}

Shape InferCholesky(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& a = check.operand(0);
  check.as<CholeskyAttributes>();
  check.Require(IsFloat(a.element_type()) || IsComplex(a.element_type()),
                "the matrices must be floating-point or complex");
  check.Require(IsSquare(a), "the last two dimensions must be those of square matrices");
  return a;
}

Shape InferTriangularSolve(const ShapeCheck& check) {
  check.RequireOperands(2);
  const Shape &a = check.operand(0), &b = check.operand(1);
  const auto& solve = check.as<TriangularSolveAttributes>();
  check.Require(IsFloat(a.element_type()) || IsComplex(a.element_type()),
                "the matrices must be floating-point or complex");
  check.Require(a.element_type() == b.element_type() && a.rank() == b.rank(),
                "a and b must have the same element type and rank");
  check.Require(IsSquare(a), "the last two dimensions of a must be those of square matrices");
  for (int64_t i = 0; i + 2 < a.rank(); ++i) {
    check.Require(SameDimension(a.dimension(i), b.dimension(i)),
                  "the batch dimensions of a and b must agree");
  }
  int64_t side = solve.left_side ? b.rank() - 2 : b.rank() - 1;
  check.Require(SameDimension(b.dimension(side), a.dimension(a.rank() - 1)), [&] {
    return "dimension " + std::to_string(side) + " of b must be the order of a";
  });
  return b;
}

Shape InferFft(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  const auto& fft = check.as<FftAttributes>();
  auto count = static_cast<int64_t>(fft.length.size());
  check.Require(count >= 1 && count <= 3, "fft_length must have 1 to 3 entries");
  check.Require(x.rank() >= count,
                "the operand must have a dimension for each entry of fft_length");
  ElementType type = x.element_type();
  bool real_input = fft.type == FftType::kRfft;
  check.Require(
      real_input ? type == ElementType::kF32 || type == ElementType::kF64 : IsComplex(type),
      real_input ? "RFFT takes f32 or f64" : "it takes complex numbers");
  Dimensions dimensions = x.dimensions();
  for (int64_t i = 0; i < count; ++i) {
    int64_t dimension = x.rank() - count + i, length = fft.length[i];
    bool half = fft.type == FftType::kIrfft && i == count - 1;
    int64_t expected = half ? length / 2 + 1 : length;
    check.Require(SameDimension(x.dimension(dimension), expected), [&] {
      return "dimension " + std::to_string(dimension) + " must have the size " +
             std::to_string(expected);
    });
  }
  if (fft.type == FftType::kIrfft) {
    dimensions.back() = fft.length.back();
    return Shape(RealType(type), std::move(dimensions));
  }
  if (!real_input) return x;
  dimensions.back() = fft.length.back() / 2 + 1;
  return Shape(ComplexType(type), std::move(dimensions));
}

Shape InferRng(const ShapeCheck& check) {
  check.RequireOperands(3);
  const Shape& given = check.RequireGiven();
  const Shape &a = check.operand(0), &shape = check.operand(2);
  bool normal = check.as<RngAttributes>().distribution == RngDistribution::kNormal;
  check.Require(a.is_scalar() && a == check.operand(1), "a and b must be scalars of the same type");
  ElementType type = a.element_type();
  check.Require(IsFloat(type) || (!normal && (IsInteger(type) || type == ElementType::kPred)),
                "UNIFORM makes floating-point numbers, integers or preds, NORMAL floating-point "
                "numbers");
  check.Require(IsInteger(shape.element_type()) && shape.rank() == 1 &&
                    SameDimension(shape.dimension(0), given.rank()),
                "the shape operand must be a vector with an integer for each result dimension");
  return given.WithElementType(type);
}

Shape InferRngBitGenerator(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& state = check.operand(0);
  const Shape& given = check.RequireGiven();
  check.Require(given.is_tuple() && given.tuple_shapes().size() == 2,
                "its result is the tuple (state, bits)");
  const Shape& bits = given.tuple_shapes()[1];
  check.Require(bits.is_array() && (IsInteger(bits.element_type()) || IsFloat(bits.element_type())),
                "the bits must be an integer or floating-point tensor");
  auto algorithm = check.as<RngBitGeneratorAttributes>().algorithm;
  // Four u32 words or two u32s are JAX's spelling of the same states.
  int64_t bytes = state.is_array() && !state.is_dynamic() ? state.byte_size() : -1;
  bool fits = state.rank() == 1 && (state.element_type() == ElementType::kU64 ||
                                    state.element_type() == ElementType::kU32);
  if (algorithm == RngAlgorithm::kThreeFry) {
    fits &= bytes == 16;
  } else {
    fits &= bytes == 16 || bytes == 24;
  }
  check.Require(fits, algorithm == RngAlgorithm::kThreeFry
                          ? "THREE_FRY's state is u64[2]"
                          : "PHILOX's (and DEFAULT's) state is u64[2] or u64[3]");
  return Shape::Tuple({state, bits});
}

}  // namespace

Shape InferNumeric(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kCholesky:
      return InferCholesky(check);
    case Opcode::kTriangularSolve:
      return InferTriangularSolve(check);
    case Opcode::kFft:
      return InferFft(check);
    case Opcode::kRng:
      return InferRng(check);
    case Opcode::kRngBitGenerator:
      return InferRngBitGenerator(check);
    default:
      return InferBatchNorm(check);
  }
}

}  // namespace hlo
