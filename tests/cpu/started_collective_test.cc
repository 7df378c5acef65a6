// Collectives start as soon as their operands are there, and are awaited where they are used.
#include <gtest/gtest.h>

#include "cpu/executable.h"
#include "hlo/builder.h"

namespace cpu {
namespace {

hlo::Value AllReduce(hlo::Builder& b, hlo::Value x) {
  hlo::Computation* add = b.ScalarCombiner(hlo::Opcode::kAdd, x->element_type());
  return b.Create(hlo::Opcode::kAllReduce, {x}, hlo::CollectiveAttributes{}, {add});
}

size_t Find(const std::string& text, const std::string& part, size_t from = 0) {
  const size_t place = text.find(part, from);
  EXPECT_NE(place, std::string::npos) << "no '" << part << "' in\n" << text;
  return place;
}

// A backward pass of three layers: each layer's gradient travels while the next is computed, though
// the program asks for them at its end.
TEST(StartedCollective, GradientsTravelDuringBackward) {
  const hlo::Shape matrix(hlo::ElementType::kF32, {64, 64});
  hlo::Module module("backward");
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder b(entry);
  auto dot = [&](hlo::Value x, hlo::Value y) {
    hlo::DotAttributes attributes;
    attributes.lhs_contracting_dimensions = {1};
    attributes.rhs_contracting_dimensions = {0};
    return b.Create(hlo::Opcode::kDotGeneral, {x, y}, attributes);
  };
  hlo::Value error = b.Parameter(matrix);
  std::vector<hlo::Value> inputs, weights, gradients, results;
  for (int layer = 0; layer < 3; ++layer) {
    inputs.push_back(b.Parameter(matrix));
    weights.push_back(b.Parameter(matrix));
  }
  for (int layer = 0; layer < 3; ++layer) {
    gradients.push_back(dot(inputs[layer], error));
    error = dot(error, weights[layer]);
  }
  for (hlo::Value gradient : gradients) results.push_back(AllReduce(b, gradient));
  for (int layer = 0; layer < 3; ++layer)
    results[layer] = b.Subtract(weights[layer], results[layer]);
  results.push_back(error);
  entry->set_results(results);

  CompileOptions options;
  options.num_replicas = 2;
  const std::string steps = Compile(module, options)->ToString();
  size_t place = 0;
  for (int layer = 0; layer < 2; ++layer) {
    place = Find(steps, "start " + std::to_string(layer), place);
    place = Find(steps, " x [64, 64](", place);
  }
  EXPECT_LT(place, Find(steps, "await 0"));
  EXPECT_LT(Find(steps, "await 0"), Find(steps, "await 1"));
}

}  // namespace
}  // namespace cpu
