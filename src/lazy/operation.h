// Operation: what a node does, interned: a lowering with its attributes and the shapes of its
// operands. It knows its result shapes. Two nodes that do the same thing to the same shapes point
// at the same Operation, so that recording an operation seen before is one table lookup, and
// comparing graphs compares pointers.
//
// Operations and shapes are kept as long as somebody refers to them. Operations that nobody refers
// to any more are kept for the next step that records them; when there are more than
// TORCH_XLA_OPERATIONS_KEPT (65536) of them all, those go that have not been recorded lately.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/shape.h"
#include "process/fork.h"

namespace lazy {

// Shapes are interned: while somebody holds a shape, equal shapes have its address. A ShapeRef is
// good while its holder lives: an operation (so every node of it), a Data, a SharedShape.
using ShapeRef = const hlo::Shape*;

// Holds an interned shape.
class SharedShape {
 public:
  SharedShape() = default;
  // Of a shape that somebody holds; null: holds nothing.
  explicit SharedShape(ShapeRef shape);
  SharedShape(const SharedShape& other) : SharedShape(other.shape_) {}
  SharedShape(SharedShape&& other) noexcept : shape_(std::exchange(other.shape_, nullptr)) {}
  SharedShape& operator=(SharedShape other) noexcept {
    std::swap(shape_, other.shape_);
    return *this;
  }
  ~SharedShape();

  ShapeRef get() const { return shape_; }
  const hlo::Shape& operator*() const { return *shape_; }
  const hlo::Shape* operator->() const { return shape_; }
  bool operator==(const SharedShape&) const = default;

 private:
  ShapeRef shape_ = nullptr;
};
SharedShape InternShape(const hlo::Shape& shape);
// How many are held.
size_t InternedShapeCount();

class EagerForm;  // of the layer that knows the framework

// What all operations of one lowering function share.
struct OperationKind {
  std::string name;                         // "aten::add"
  std::atomic<int64_t>* counter = nullptr;  // "xla::add"
  // How the framework computes it by itself (interpreter.h); null: it does not. Lives for ever.
  const EagerForm* eager_form = nullptr;
};

class Operation {
 public:
  virtual ~Operation();
  Operation(const Operation&) = delete;

  const OperationKind& kind() const { return *kind_; }
  uint64_t hash() const { return hash_; }
  // In order of creation; different operations have different numbers, also after one was given up.
  uint64_t number() const { return number_; }
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
  Operation(const OperationKind* kind, uint64_t hash, std::vector<ShapeRef> operand_shapes);

  // Runs Lower once on parameters of the operand shapes to learn the result shapes. Throws
  // hlo::Error.
  void InferResultShapes();
  // `shape` may be null.
  void AddResultShape(const SharedShape& shape);

 private:
  friend class OperationTable;
  friend class OperationReference;
  const OperationKind* kind_;
  uint64_t hash_;
  uint64_t number_ = 0;
  // Held, each as often as it stands there.
  std::vector<ShapeRef> operand_shapes_;
  std::vector<ShapeRef> result_shapes_;

  // References taken and given back: as many when nobody refers to it. Two numbers, so that
  // recording, which takes one under the table's lock, pays no atomic addition for it.
  mutable uint64_t taken_ = 0;                  // under the table's lock
  mutable std::atomic<uint64_t> returned_ = 0;  // one less for a reference taken by copying one
  mutable uint64_t taken_before_ = 0;           // when unused operations were last given up
};

// Keeps an operation: nodes do, and whoever goes by operations without nodes.
class OperationReference {
 public:
  OperationReference() = default;
  // To an operation that somebody keeps.
  explicit OperationReference(const Operation* operation) : operation_(operation) {
    if (operation_ != nullptr) operation_->returned_.fetch_sub(1, std::memory_order_relaxed);
  }
  OperationReference(const OperationReference& other) : OperationReference(other.operation_) {}
  OperationReference(OperationReference&& other) noexcept
      : operation_(std::exchange(other.operation_, nullptr)) {}
  OperationReference& operator=(OperationReference other) noexcept {
    std::swap(operation_, other.operation_);
    return *this;
  }
  ~OperationReference() {
    if (operation_ != nullptr) operation_->returned_.fetch_add(1, std::memory_order_release);
  }

  const Operation* get() const { return operation_; }
  const Operation* operator->() const { return operation_; }
  const Operation& operator*() const { return *operation_; }

 private:
  friend class OperationTable;
  const Operation* operation_ = nullptr;
};

// The operations of one kind, found by hash. Safe to use from several threads. Never destroyed,
// because nodes outlive static objects.
class OperationTable {
 public:
  OperationTable();
  OperationTable(const OperationTable&) = delete;

  // Returns the operation for which `equal(operation, key)`; makes it with `make(key)` if there is
  // none.
  template <typename Key>
  OperationReference Find(uint64_t hash, const Key& key,
                          bool (*equal)(const Operation&, const Key&),
                          std::unique_ptr<Operation> (*make)(const Key&)) {
    {
      std::lock_guard lock(mutex_);
      if (const Operation* found = Probe(hash, key, equal)) return Take(found);
    }
    std::unique_ptr<Operation> made = make(key);  // may throw, may record
    OperationReference reference;
    {
      std::lock_guard lock(mutex_);
      const Operation* found = Probe(hash, key, equal);
      reference = Take(found != nullptr ? found : Insert(std::move(made)));
    }
    GiveUpUnusedIfMany();
    return reference;
  }

  // How many there are, of all kinds.
  static size_t TotalCount();
  // Gives up all that nobody refers to and that were not recorded since the last call.
  static void GiveUpUnused();

 private:
  struct All;
  static void GiveUpUnusedIfMany();
  // Under mutex_.
  static OperationReference Take(const Operation* operation) {
    ++operation->taken_;
    OperationReference reference;
    reference.operation_ = operation;
    return reference;
  }
  // Takes those to be given up off the table, to be destroyed after unlocking.
  std::vector<std::unique_ptr<Operation>> TakeUnused();
  void Place(const Operation* operation);

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
