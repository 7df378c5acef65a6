#include "lazy/value_check.h"

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

}  // namespace

bool ValueCheck::SaysTheSame(const ValueCheck& other) const {
  return limit == other.limit && zero == other.zero && code == other.code && words == other.words &&
         origin == other.origin;
}

std::optional<hlo::Error> FailureOf(const ValueCheck& check, uint64_t number) {
  if (number < check.limit) return std::nullopt;
  std::string text = check.words;
  if (const size_t place = text.find("{}"); place != std::string::npos) {
    const auto value = std::bit_cast<int64_t>(number + std::bit_cast<uint64_t>(check.zero));
    text.replace(place, 2, std::to_string(value));
  }
  return hlo::Error(check.code, text + check.origin);
}

bool ValuesAreChecked() {
  static const bool are_checked = [] {
    const char* word = std::getenv("TORCH_XLA_CHECK_VALUES");
    const std::string_view text = word == nullptr ? "" : word;
    return text != "0" && text != "false";
  }();
  return are_checked;
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
  check.nodes.push_back(node_ == nullptr ? 0 : node_->position);
  const uint32_t thread = node_ == nullptr ? 0 : node_->thread();
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (threads_[i] != thread || !(*checks_)[i].SaysTheSame(check)) continue;
    numbers_[i] = builder.Maximum(numbers_[i], number);
    (*checks_)[i].nodes.push_back(check.nodes.front());
    return;
  }
  checks_->push_back(std::move(check));
  numbers_.push_back(number);
  threads_.push_back(thread);
}

hlo::Value CheckRecorder::Numbers(hlo::Builder& builder) const {
  if (numbers_.empty()) return nullptr;
  std::vector<hlo::Value> vectors;
  for (hlo::Value number : numbers_) vectors.push_back(builder.Reshape(number, {1}));
  return vectors.size() == 1 ? vectors[0] : builder.Concatenate(vectors, 0);
}

}  // namespace lazy
