// Operation: what a node does, interned: a lowering with its attributes and the shapes of its
// operands. It knows its result shapes. Two nodes that do the same thing to the same shapes point
// at the same Operation, so that recording an operation seen before is one table lookup, and
// comparing graphs compares pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "hlo/shape.h"
#include "process/fork.h"

namespace lazy {

// Shapes are interned: equal shapes have equal addresses for the life of the process.
using ShapeRef = const hlo::Shape*;
ShapeRef InternShape(const hlo::Shape& shape);

// What all operations of one lowering function share.
struct OperationKind {
  std::string name;                         // "aten::add"
  std::atomic<int64_t>* counter = nullptr;  // "xla::add"
};

class Operation {
 public:
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;

  const OperationKind& kind() const { return *kind_; }
  uint64_t hash() const { return hash_; }
  // Dense, in order of creation; different operations have different numbers.
  uint32_t number() const { return number_; }
  std::span<const ShapeRef> operand_shapes() const { return operand_shapes_; }
  // nullptr: this result does not exist (a gradient that nobody asked for).
  std::span<const ShapeRef> result_shapes() const { return result_shapes_; }
  ShapeRef result_shape(uint32_t index) const { return result_shapes_[index]; }

  // Appends the operation's instructions; one value for each result, nullptr where its shape is.
  virtual std::vector<hlo::Value> Lower(hlo::Builder& builder,
                                        std::span<const hlo::Value> operands) const = 0;
  // "dim=1, keepdim=false"-like text of the attributes, for dumps.
  virtual std::string AttributesText() const { return ""; }

 protected:
  Operation(const OperationKind* kind, uint64_t hash, std::vector<ShapeRef> operand_shapes)
      : kind_(kind), hash_(hash), operand_shapes_(std::move(operand_shapes)) {}

  // Runs Lower once on parameters of the operand shapes to learn the result shapes. Throws
  // hlo::Error.
  void InferResultShapes();
  void set_result_shapes(std::vector<ShapeRef> shapes) { result_shapes_ = std::move(shapes); }

 private:
  friend class OperationTable;
  const OperationKind* kind_;
  uint64_t hash_;
  uint32_t number_ = 0;
  std::vector<ShapeRef> operand_shapes_;
  std::vector<ShapeRef> result_shapes_;
};

// The operations of one kind, found by hash. Safe to use from several threads.
class OperationTable {
 public:
  // Returns the operation for which `equal(operation, key)`; makes it with `make(key)` if there is
  // none.
  template <typename Key>
  const Operation* Find(uint64_t hash, const Key& key, bool (*equal)(const Operation&, const Key&),
                        std::unique_ptr<Operation> (*make)(const Key&)) {
    {
      std::lock_guard lock(mutex_);
      if (const Operation* found = Probe(hash, key, equal)) return found;
    }
    std::unique_ptr<Operation> made = make(key);  // may throw, may record
    std::lock_guard lock(mutex_);
    if (const Operation* found = Probe(hash, key, equal)) return found;
    return Insert(std::move(made));
  }

 private:
  template <typename Key>
  const Operation* Probe(uint64_t hash, const Key& key,
                         bool (*equal)(const Operation&, const Key&)) const {
    if (slots_.empty()) return nullptr;
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      const Operation* operation = slots_[i];
      if (operation == nullptr) return nullptr;
      if (operation->hash() == hash && equal(*operation, key)) return operation;
    }
  }
  const Operation* Insert(std::unique_ptr<Operation> operation);

  process::Mutex mutex_;
  std::vector<const Operation*> slots_;  // a power of two, open addressing
  std::vector<std::unique_ptr<Operation>> operations_;
};

}  // namespace lazy
