#include "aten/captured_steps.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "aten/generator.h"
#include "aten/tensor.h"
#include "lazy/data.h"
#include "lazy/graph.h"
#include "lazy/storage.h"
#include "lazy/sync_mutex.h"

namespace torch_xla {
namespace {

uint64_t HashOf(const CapturedSteps& steps) {
  return hlo::CombineHash(hlo::CombineHash(steps.operand_count, lazy::HashAttribute(steps.steps)),
                          lazy::HashAttribute(steps.results));
}

// Only the key of random numbers is a scalar with a dimension; one that a capture made is zeros
// (RandomState). Numbers that were drawn before the capture stay the same in each call of it.
bool IsDrawnAnew(const lazy::Node& node, KeysOfWork keys) {
  if (node.role() != lazy::Node::Role::kScalar || node.shape(0)->rank() != 1) return false;
  return keys == KeysOfWork::kAllAnew ||
         std::ranges::all_of(node.scalar(), [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

std::vector<lazy::Value> CapturedWork::ConstantsForCall(lazy::Device* device) const {
  std::vector<lazy::Value> values;
  for (const lazy::Value& constant : constants) {
    if (!constant.node) {
      values.push_back(RandomState(std::nullopt, ToTorchDevice(device)));
    } else if (constant.node->role() == lazy::Node::Role::kIndex) {
      values.push_back({lazy::Node::MakeIndex(constant.node->index()), 0});
    } else {
      values.push_back(constant);
    }
  }
  return values;
}

CapturedWork KeepWork(std::span<const lazy::Value> originals, const std::vector<lazy::Value>& roots,
                      KeysOfWork keys) {
  std::lock_guard lock(lazy::SyncMutex());
  lazy::Graph graph(roots);
  CapturedWork work;
  std::unordered_map<const lazy::Node*, uint32_t> position;
  for (uint32_t i = 0; i < originals.size(); ++i) position[originals[i].node.get()] = i;
  auto count = static_cast<uint32_t>(originals.size());
  for (lazy::Node* node : graph.nodes()) {
    if (node->role() == lazy::Node::Role::kOperation || position.contains(node)) continue;
    position[node] = count++;
    work.constants.push_back(IsDrawnAnew(*node, keys)
                                 ? lazy::Value()
                                 : lazy::Value{lazy::Reference<lazy::Node>(node), 0});
  }
  auto steps = std::make_shared<CapturedSteps>();
  steps->operand_count = count;
  auto place = [&](const lazy::Value& value) {
    return CapturedValue{position.at(value.node.get()), value.index};
  };
  for (const lazy::Node* node : graph.nodes()) {
    if (node->role() != lazy::Node::Role::kOperation) continue;
    CapturedStep step{lazy::OperationReference(node->operation()), {}};
    for (const lazy::Value& operand : node->operands()) step.operands.push_back(place(operand));
    position[node] = count++;
    steps->steps.push_back(std::move(step));
  }
  for (const lazy::Value& root : roots) steps->results.push_back(place(root));
  steps->hash = HashOf(*steps);
  work.steps.steps = std::move(steps);
  return work;
}

Values LowerSteps(Builder& b, std::span<const Value> operands, const CapturedSteps& captured) {
  std::vector<Values> values;
  for (Value operand : operands) values.push_back({operand});
  auto value_at = [&](CapturedValue place) { return values[place.position][place.index]; };
  for (const CapturedStep& step : captured.steps) {
    Values inputs;
    for (CapturedValue place : step.operands) inputs.push_back(value_at(place));
    values.push_back(step.operation->Lower(b, inputs));
  }
  Values results;
  for (CapturedValue place : captured.results) results.push_back(value_at(place));
  return results;
}

Values CallGraph(Builder& b, Values operands, StepsReference reference) {
  return LowerSteps(b, operands, *reference.steps);
}

}  // namespace torch_xla
