// CapturedSteps: recorded operations as one list, from operands to results: what an operation that
// stands for a whole function, or has one as its body, keeps of it as its attribute.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "aten/lowering.h"
#include "lazy/device.h"
#include "lazy/node.h"
#include "lazy/op.h"

namespace torch_xla {

// A place in the list of values: first the operands, then each step's results.
struct CapturedValue {
  uint32_t position = 0, index = 0;
  bool operator==(const CapturedValue&) const = default;
  uint64_t Hash() const { return hlo::CombineHash(position, index); }
};

struct CapturedStep {
  lazy::OperationReference operation;
  std::vector<CapturedValue> operands;
  // Operations are interned.
  bool operator==(const CapturedStep& other) const {
    return operation.get() == other.operation.get() && operands == other.operands;
  }
  uint64_t Hash() const {
    return hlo::CombineHash(operation->hash(), lazy::HashAttribute(operands));
  }
};

struct CapturedSteps {
  uint64_t hash = 0;  // of the rest
  size_t operand_count = 0;
  std::vector<CapturedStep> steps;
  std::vector<CapturedValue> results;
  bool operator==(const CapturedSteps&) const = default;
};

// The attribute. Captures of one function for other indices are of equal steps, and so of one
// program: indices are operands.
struct StepsReference {
  std::shared_ptr<const CapturedSteps> steps;
  bool operator==(const StepsReference& other) const {
    return steps == other.steps || *steps == *other.steps;
  }
  uint64_t Hash() const { return steps->hash; }
};

// Recorded work from placeholders to its results. The steps' operands are the placeholders' values
// and then the constants: what else the work reads.
struct CapturedWork {
  StepsReference steps;
  std::vector<lazy::Value> constants;  // null: a key of random numbers
  // The constants as operands of a call: keys are drawn, and each use of an index has a leaf of its
  // own.
  std::vector<lazy::Value> ConstantsForCall(lazy::Device* device) const;
};

// Which keys of random numbers each call draws anew: those that a capture made, or all.
enum class KeysOfWork : uint8_t { kOfCapture, kAllAnew };

// Takes the lock of syncs. Each of `originals` is the value of one placeholder, or another leaf
// that calls give anew.
CapturedWork KeepWork(std::span<const lazy::Value> originals, const std::vector<lazy::Value>& roots,
                      KeysOfWork keys = KeysOfWork::kOfCapture);

// Lowers the steps one by one.
Values LowerSteps(Builder& b, std::span<const Value> operands, const CapturedSteps& steps);

// The lowering of a call.
Values CallGraph(Builder& b, Values operands, StepsReference reference);

}  // namespace torch_xla
