#include "lazy/value_check.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lazy/location.h"

namespace lazy {
namespace {

thread_local CheckRecorder* current_recorder = nullptr;

std::string OriginOf(const Node* node) {
  if (node == nullptr) return "";
  const std::string name = "\n(" + node->operation()->kind().name;
  constexpr const char* kWhen = "; values are checked when the program has run";
  if (const SourceLocation* location = LocationOf(node)) {
    return name + ", recorded at " + location->file + ":" + std::to_string(location->line) +
           " in " + location->function + kWhen + ")";
  }
  return name + kWhen + ", and XLA_IR_DEBUG=1 says at which line it was recorded)";
}

hlo::Error ErrorOf(const ValueCheck& check, uint64_t number) {
  std::string text = check.words;
  if (const size_t place = text.find("{}"); place != std::string::npos) {
    const auto value = std::bit_cast<int64_t>(number + std::bit_cast<uint64_t>(check.zero));
    text.replace(place, 2, std::to_string(value));
  }
  return hlo::Error(check.code, text + check.origin);
}

}  // namespace

bool ValuesAreChecked() {
  static const bool are_checked = [] {
    const char* word = std::getenv("TORCH_XLA_CHECK_VALUES");
    const std::string_view text = word == nullptr ? "" : word;
    return text != "0" && text != "false";
  }();
  return are_checked;
}

void RaiseFailed(const ValueChecks& checks, std::span<const uint64_t> numbers) {
  for (size_t i = 0; i < checks.size(); ++i) {
    if (numbers[i] >= checks[i].limit) throw ErrorOf(checks[i], numbers[i]);
  }
}

CheckRecorder::CheckRecorder(const hlo::Computation* computation, ValueChecks* checks)
    : computation_(computation),
      checks_(checks),
      before_(std::exchange(current_recorder, ValuesAreChecked() ? this : nullptr)) {}

CheckRecorder::~CheckRecorder() { current_recorder = before_; }

CheckRecorder* CheckRecorder::For(const hlo::Builder& builder) {
  if (current_recorder == nullptr) return nullptr;
  return current_recorder->computation_ == builder.computation() ? current_recorder : nullptr;
}

void CheckRecorder::Add(hlo::Builder& builder, hlo::Value number, ValueCheck check) {
  check.origin = OriginOf(node_);
  const auto same = std::ranges::find(*checks_, check);
  if (same == checks_->end()) {
    checks_->push_back(std::move(check));
    numbers_.push_back(number);
    return;
  }
  hlo::Value& largest = numbers_[static_cast<size_t>(same - checks_->begin())];
  largest = builder.Maximum(largest, number);
}

hlo::Value CheckRecorder::Numbers(hlo::Builder& builder) const {
  if (numbers_.empty()) return nullptr;
  std::vector<hlo::Value> vectors;
  for (hlo::Value number : numbers_) vectors.push_back(builder.Reshape(number, {1}));
  return vectors.size() == 1 ? vectors[0] : builder.Concatenate(vectors, 0);
}

}  // namespace lazy
