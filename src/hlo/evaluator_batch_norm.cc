// batch_norm_training, batch_norm_inference, batch_norm_grad, by the formulas of their
// specification.
#include <cmath>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

using Reals = std::vector<double>;

// Sums over everything but the feature dimension.
struct Features {
  int64_t count;  // features
  int64_t inner;  // elements after the feature dimension
  int64_t size;   // elements in all

  Features(const Shape& shape, int64_t index)
      : count(shape.dimension(index)), inner(1), size(shape.num_elements()) {
    for (int64_t i = index + 1; i < shape.rank(); ++i) inner *= shape.dimension(i);
  }
  int64_t Of(int64_t position) const { return position / inner % count; }
  double PerFeature() const { return static_cast<double>(size) / static_cast<double>(count); }

  template <typename F>
  Reals Mean(F&& f) const {
    Reals sums(count, 0.0);
    for (int64_t i = 0; i < size; ++i) sums[Of(i)] += f(i, Of(i));
    for (double& sum : sums) sum /= PerFeature();
    return sums;
  }
};

Leaves Training(const Instruction& instruction, const Leaves& operands) {
  const auto& attributes = instruction.as<BatchNormAttributes>();
  Features features(operands[0].shape(), attributes.feature_index);
  Reals x = ReadAs<double>(operands[0]), scale = ReadAs<double>(operands[1]);
  Reals offset = ReadAs<double>(operands[2]);
  Reals mean = features.Mean([&](int64_t i, int64_t) { return x[i]; });
  Reals variance =
      features.Mean([&](int64_t i, int64_t f) { return (x[i] - mean[f]) * (x[i] - mean[f]); });
  for (int64_t i = 0; i < features.size; ++i) {
    int64_t f = features.Of(i);
    x[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + attributes.epsilon) * scale[f] + offset[f];
  }
  const auto& shapes = instruction.shape().tuple_shapes();
  return {WriteAs(shapes[0], x), WriteAs(shapes[1], mean), WriteAs(shapes[2], variance)};
}

Leaves Inference(const Instruction& instruction, const Leaves& operands) {
  const auto& attributes = instruction.as<BatchNormAttributes>();
  Features features(operands[0].shape(), attributes.feature_index);
  Reals x = ReadAs<double>(operands[0]), scale = ReadAs<double>(operands[1]);
  Reals offset = ReadAs<double>(operands[2]), mean = ReadAs<double>(operands[3]);
  Reals variance = ReadAs<double>(operands[4]);
  for (int64_t i = 0; i < features.size; ++i) {
    int64_t f = features.Of(i);
    x[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + attributes.epsilon) * scale[f] + offset[f];
  }
  return {WriteAs(instruction.shape(), x)};
}

Leaves Gradient(const Instruction& instruction, const Leaves& operands) {
  const auto& attributes = instruction.as<BatchNormAttributes>();
  Features features(operands[0].shape(), attributes.feature_index);
  Reals x = ReadAs<double>(operands[0]), scale = ReadAs<double>(operands[1]);
  Reals mean = ReadAs<double>(operands[2]), variance = ReadAs<double>(operands[3]);
  Reals gradient = ReadAs<double>(operands[4]);
  Reals mean_gradient = features.Mean([&](int64_t i, int64_t) { return gradient[i]; });
  Reals mean_product =
      features.Mean([&](int64_t i, int64_t f) { return gradient[i] * (x[i] - mean[f]); });
  Reals scale_gradient(features.count), offset_gradient(features.count);
  for (int64_t f = 0; f < features.count; ++f) {
    double deviation = std::sqrt(variance[f] + attributes.epsilon);
    scale_gradient[f] = mean_product[f] * features.PerFeature() / deviation;
    offset_gradient[f] = mean_gradient[f] * features.PerFeature();
  }
  for (int64_t i = 0; i < features.size; ++i) {
    int64_t f = features.Of(i);
    double with_epsilon = variance[f] + attributes.epsilon;
    double centered =
        gradient[i] - mean_gradient[f] - (x[i] - mean[f]) * mean_product[f] / with_epsilon;
    x[i] = scale[f] / std::sqrt(with_epsilon) * centered;
  }
  const auto& shapes = instruction.shape().tuple_shapes();
  return {WriteAs(shapes[0], x), WriteAs(shapes[1], scale_gradient),
          WriteAs(shapes[2], offset_gradient)};
}

}  // namespace

Leaves EvaluateBatchNorm(const Instruction& instruction, const Leaves& operands) {
  switch (instruction.opcode()) {
    case Opcode::kBatchNormTraining:
      return Training(instruction, operands);
    case Opcode::kBatchNormInference:
      return Inference(instruction, operands);
    default:
      return Gradient(instruction, operands);
  }
}

}  // namespace hlo::evaluation
