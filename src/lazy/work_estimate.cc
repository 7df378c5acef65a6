#include "lazy/work_estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ranges>
#include <string>
#include <unordered_map>

namespace lazy {
namespace {

// How the work grows with the sizes.
enum class Growth {
  kElements,     // with the elements of operands and results
  kDraws,        // as well, and of many numbers each is dearer
  kMatrices,     // the multiplications of a product of two matrices
  kConvolution,  // those of a convolution
  kTriples,      // with three indices of which each operand and result has two, at most
  kPairs,        // each element with each of its row
  kSteps,        // the multiplications of recurrent layers, and their steps, one after the other
  kUnbounded,
};

struct Class {
  const char* part;  // of the kind's name
  Growth growth;
  double ns;  // for each, in f32
};

// As measured, with room for the slower shapes. The first that fits.
constexpr Class kClasses[] = {
    {"polynomial", Growth::kUnbounded, 0},  // the degree is data
    // By the reference evaluator.
    {"draw_with_replacement", Growth::kPairs, 200},
    {"draw_without_replacement", Growth::kElements, 2'000},
    {"aten::permutation", Growth::kElements, 2'000},
    {"aten::bernoulli", Growth::kDraws, 100},
    {"aten::integers", Growth::kDraws, 150},
    {"aten::uniform", Growth::kDraws, 100},
    {"aten::normal", Growth::kDraws, 1'000},
    {"log_normal", Growth::kDraws, 1'000},
    {"exponential", Growth::kDraws, 500},
    {"cauchy", Growth::kDraws, 500},
    {"geometric", Growth::kDraws, 500},
    {"random_leaky_relu", Growth::kDraws, 300},
    {"poisson", Growth::kElements, 50'000},
    {"binomial", Growth::kElements, 50'000},
    {"standard_gamma", Growth::kElements, 50'000},
    {"dirichlet", Growth::kElements, 50'000},
    {"dropout", Growth::kElements, 10},
    // Products.
    {"conv", Growth::kConvolution, 0.1},
    {"cdist", Growth::kTriples, 5},
    {"pdist", Growth::kTriples, 5},
    {"aten::_trilinear", Growth::kTriples, 0.05},
    {"solve", Growth::kTriples, 0.05},
    {"factor", Growth::kTriples, 0.02},  // of Cholesky, L U, L D L*, and inverses from them
    {"reflectors", Growth::kTriples, 0.03},
    {"orgqr", Growth::kTriples, 0.03},
    {"rotate", Growth::kTriples, 0.03},
    {"symmetric_eigenvalues", Growth::kTriples, 0.2},
    {"singular_values", Growth::kTriples, 0.4},
    {"matrix_exp", Growth::kTriples, 0.2},
    {"cumm", Growth::kElements, 5},  // no product
    {"gamma", Growth::kElements, 300},
    {"recurrent_layers", Growth::kSteps, 0.03},
    {"mm", Growth::kMatrices, 0.03},
    {"mv", Growth::kElements, 1},
    {"addr", Growth::kElements, 1},
    // Orders and searches.
    {"bucketize", Growth::kElements, 60},
    {"searchsorted", Growth::kElements, 60},
    {"hist", Growth::kElements, 60},
    {"sort", Growth::kElements, 100},
    {"topk", Growth::kElements, 100},
    {"kthvalue", Growth::kElements, 100},
    {"median", Growth::kElements, 50},
    {"aten::arg", Growth::kElements, 6},
    // Windows, transforms and sums.
    {"fft", Growth::kElements, 100},
    {"pool", Growth::kElements, 40},
    {"upsample", Growth::kElements, 15},
    {"grid_sampler", Growth::kElements, 15},
    {"segment_reduce", Growth::kElements, 20},
    {"logcumsumexp", Growth::kElements, 60},
    {"vector_norm", Growth::kElements, 10},
    {"aten::norm.", Growth::kElements, 10},
    {"aten::var", Growth::kElements, 10},
    {"aten::std", Growth::kElements, 10},
    // Functions.
    {"zeta", Growth::kElements, 300},
    {"bessel", Growth::kElements, 100},
    {"airy", Growth::kElements, 100},
    {"::i0", Growth::kElements, 60},
    {"special_i", Growth::kElements, 60},
    {"ndtri", Growth::kElements, 60},
    {"erfinv", Growth::kElements, 60},
    {"erfcx", Growth::kElements, 60},
    {"gcd", Growth::kElements, 60},
    {"lcm", Growth::kElements, 60},
    {"pow", Growth::kElements, 4},
    {"mish", Growth::kElements, 5},
    {"acos", Growth::kElements, 5},
    {"asin", Growth::kElements, 5},
    {"atan", Growth::kElements, 2},
    {"::tan", Growth::kElements, 2},
    {"prod", Growth::kElements, 3},
    {"nonzero", Growth::kElements, 4},
    {"index", Growth::kElements, 2},
    {"scatter", Growth::kElements, 2},
    {"gather", Growth::kElements, 2},
    {"embedding", Growth::kElements, 2},
    // What is left is arithmetic, and moves of bytes.
    {"", Growth::kElements, 0.7},
};

const Class& ClassOf(const OperationKind& kind) {
  static auto* classes = new std::unordered_map<const OperationKind*, const Class*>;
  const Class*& known = (*classes)[&kind];
  if (known == nullptr) {
    known = std::ranges::find_if(
        kClasses, [&](const Class& some) { return kind.name.find(some.part) != kind.name.npos; });
  }
  return *known;
}

double ElementsOf(ShapeRef shape) {
  double elements = 1;
  for (int64_t size : shape->dimensions()) elements *= static_cast<double>(size);
  return elements;
}

// What operands and results are in all.
struct Amount {
  hlo::ElementType type = hlo::ElementType::kInvalid;  // of the first one, if there is any
  double elements = 0, bytes = 0;

  static Amount Of(const Operation& operation) {
    Amount amount;
    for (const auto& shapes : {operation.operand_shapes(), operation.result_shapes()}) {
      for (ShapeRef shape : shapes) {
        if (shape != nullptr) amount.Add(*shape);
      }
    }
    return amount;
  }

 private:
  void Add(const hlo::Shape& shape) {
    const double count = ElementsOf(&shape);
    if (type == hlo::ElementType::kInvalid) type = shape.element_type();
    elements += count;
    bytes += shape.is_array() ? count * static_cast<double>(hlo::ByteWidth(shape.element_type()))
                              : static_cast<double>(shape.byte_size());
  }
};

// Of each element of the last matrix but one, or batch of matrices, with each column of the last.
double MatrixMultiplications(const Operation& operation) {
  double first = 0;
  for (ShapeRef shape : operation.operand_shapes() | std::views::reverse) {
    if (shape->rank() < 2) continue;
    if (first != 0) return first * ElementsOf(shape);
    first = static_cast<double>(shape->dimensions().back());
  }
  return first;
}

// Of each element of the larger of input and output, with the window's elements in the channels
// that it sees; the gradients are two convolutions. In space they are five times as slow.
double ConvolutionMultiplications(const Operation& operation) {
  const bool is_backward = operation.kind().name.find("backward") != std::string::npos;
  const auto operands = operation.operand_shapes();
  const size_t weight = is_backward ? 2 : 1;
  if (operands.size() <= weight || operands[weight]->dimensions().empty()) return 0;
  double most = std::max(ElementsOf(operands[0]), is_backward ? ElementsOf(operands[1]) : 0);
  for (ShapeRef shape : operation.result_shapes()) {
    if (shape != nullptr && !is_backward) most = std::max(most, ElementsOf(shape));
  }
  const auto channels = static_cast<double>(operands[weight]->dimensions()[0]);
  const double window = ElementsOf(operands[weight]) / std::max(channels, 1.0);
  return (is_backward ? 2 : 1) * (operands[0]->rank() > 4 ? 5 : 1) * most * window;
}

// Of each step of each sequence with the weights. The operands: the input, whose last dimension is
// a step's; states, [layers times directions, batch, width]; the parameters, matrices and vectors;
// of a backward, what is kept, blocks, and gradients.
double RecurrentMultiplications(const Operation& operation) {
  constexpr double kOfStep = 1e6;  // as long as a step's own operations take
  const auto operands = operation.operand_shapes();
  const bool is_backward = operation.kind().name.find("backward") != std::string::npos;
  const auto inputs = static_cast<double>(operands[0]->dimensions().back());
  const double elements = ElementsOf(operands[0]) / inputs;
  const auto is_block = [](ShapeRef shape) { return shape->rank() > 2; };
  double weights = 0;
  for (ShapeRef shape : operands | std::views::drop(1) | std::views::drop_while(is_block) |
                            std::views::take_while(std::not_fn(is_block))) {
    weights += shape->rank() == 2 ? ElementsOf(shape) : 0;
  }
  const hlo::Dimensions& state = operands[1]->dimensions();
  const double steps = elements / static_cast<double>(state[1]) * static_cast<double>(state[0]);
  return (is_backward ? 2 : 1) * (elements * weights + kOfStep * steps);
}

double RowPairs(const Operation& operation, double elements) {
  double most = 1;
  for (ShapeRef shape : operation.operand_shapes()) {
    for (int64_t size : shape->dimensions()) most = std::max(most, static_cast<double>(size));
  }
  return elements * most;
}

// Beside f32.
double SlownessOfProducts(hlo::ElementType type) {
  if (type == hlo::ElementType::kF32) return 1;
  return hlo::BitWidth(type) >= 64 && !hlo::IsInteger(type) ? 8 : 100;
}
double SlownessOfFunctions(hlo::ElementType type) {
  if (hlo::IsComplex(type)) return 60;
  return type == hlo::ElementType::kF64 ? 3 : 1;
}

// The evaluator keeps what few numbers are made by, and all values that many go through.
constexpr double kFewDraws = 512, kSlownessOfManyDraws = 8;

// How often the class's time passes.
double CountOf(const Operation& operation, Growth growth, const Amount& amount) {
  const auto [type, elements, bytes] = amount;
  if (type == hlo::ElementType::kInvalid) return 0;
  switch (growth) {
    case Growth::kElements:
      return SlownessOfFunctions(type) * elements;
    case Growth::kDraws:
      return (elements > kFewDraws ? kSlownessOfManyDraws : 1) * elements *
             SlownessOfFunctions(type);
    case Growth::kMatrices:
      return SlownessOfProducts(type) * MatrixMultiplications(operation);
    case Growth::kConvolution:
      return SlownessOfProducts(type) * ConvolutionMultiplications(operation);
    case Growth::kTriples:
      return SlownessOfProducts(type) * std::pow(elements, 1.5);
    case Growth::kPairs:
      return RowPairs(operation, elements);
    case Growth::kSteps:
      return SlownessOfProducts(type) * RecurrentMultiplications(operation);
    case Growth::kUnbounded:
      return std::numeric_limits<double>::infinity();
  }
  return 0;
}

}  // namespace

double WorkOf(const Operation& operation) {
  constexpr double kNsPerNode = 2'000, kNsPerByte = 0.15;
  const Amount amount = Amount::Of(operation);
  const Class& some = ClassOf(operation.kind());
  const double count = CountOf(operation, some.growth, amount);
  if (std::isinf(count)) return count;
  return kNsPerNode + kNsPerByte * amount.bytes + some.ns * count;
}

}  // namespace lazy
