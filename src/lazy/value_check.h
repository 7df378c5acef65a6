// Values that eager looks at when an operation runs, such as indices that may be out of bounds.
// Here the operation is long recorded when they are known. So a lowering adds a check of them to
// its program: whatever is checked is reduced to one number, all numbers are one more result of the
// program, and the host judges them when it is there (check_queue.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "lazy/node.h"

namespace lazy {

// What is checked has passed if its number is below `limit`.
struct ValueCheck {
  uint64_t limit = 1;
  int64_t zero = 0;  // the value that the number 0 stands for
  hlo::ErrorCode code = hlo::ErrorCode::kInvalidArgument;
  std::string words;            // eager's; "{}" is the value
  std::string origin;           // for people: the operation, and its line where that is known
  std::vector<uint32_t> nodes;  // the places of the operations in the graph

  // Whether one number may serve both.
  bool SaysTheSame(const ValueCheck& other) const;
};
using ValueChecks = std::vector<ValueCheck>;

// False with TORCH_XLA_CHECK_VALUES=0, which is read once.
bool ValuesAreChecked();

// The error of a check whose number is this, in eager's words; nothing where it has passed.
std::optional<hlo::Error> FailureOf(const ValueCheck& check, uint64_t number);

// While it lives, what this thread lowers into a computation adds its checks; not what it lowers
// into regions of loops and branches, whose values are not the computation's: these have recorders
// of their own. Nothing is added if values are not checked.
class CheckRecorder {
 public:
  CheckRecorder(const hlo::Computation* computation, ValueChecks* checks);
  ~CheckRecorder();
  CheckRecorder(const CheckRecorder&) = delete;

  // Where this builder's checks go; null if nowhere.
  static CheckRecorder* For(const hlo::Builder& builder);

  // Whose lowering follows. Checks of one thread that differ in nothing become one. The program may
  // serve graphs of several threads: then each of them is told.
  void set_node(const Node* node) { node_ = node; }
  // `number` is u64[].
  void Add(hlo::Builder& builder, hlo::Value number, ValueCheck check);
  // One for each check.
  std::span<const hlo::Value> numbers() const { return numbers_; }
  // All numbers, in the order of the checks; null if there are none.
  hlo::Value Numbers(hlo::Builder& builder) const;

 private:
  const hlo::Computation* computation_;
  ValueChecks* checks_;
  CheckRecorder* before_;
  const Node* node_ = nullptr;
  std::vector<hlo::Value> numbers_;
  std::vector<uint32_t> threads_;  // which recorded what is checked
};

}  // namespace lazy
