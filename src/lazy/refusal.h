// What the framework refuses, asked where an operation is recorded for the first time.
#pragma once

namespace lazy {

class Operation;

class Refusal {
 public:
  virtual ~Refusal() = default;
  // Throws hlo::Error if the framework has no kernel for the types of the operands.
  virtual void CheckTypes(const Operation& operation) const = 0;
  // Of an operation that its lowering takes, and whose results' shapes are known: throws what the
  // framework throws for operands of no elements.
  virtual void CheckEmpty(const Operation& operation) const = 0;
  // Of an operation that its lowering or CheckTypes refuses: throws what the framework throws.
  // Returns if it throws nothing.
  virtual void Explain(const Operation& operation) const = 0;
};

// Set by the layer that knows the framework. Lives for ever.
void SetRefusal(const Refusal* refusal);

}  // namespace lazy
