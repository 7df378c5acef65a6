// Node: one recorded operation of the graph that the next sync will run, or a leaf of it: data on
// the device, a number or an index.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lazy/operation.h"
#include "lazy/reference.h"

namespace lazy {

class Node;
class Data;  // a buffer on a device: data.h

// One result of a node.
struct Value {
  Reference<Node> node;
  uint32_t index = 0;

  explicit operator bool() const { return static_cast<bool>(node); }
  bool operator==(const Value& other) const = default;
  inline ShapeRef shape_ref() const;
  const hlo::Shape& shape() const { return *shape_ref(); }
};

class Node : public Counted<Node> {
 public:
  enum class Role : uint8_t { kOperation, kData, kScalar, kIndex };

  static Reference<Node> Make(OperationReference operation, std::span<const Value> operands);
  // A leaf whose value is a buffer; `data` is kept alive.
  static Reference<Node> MakeData(Reference<Data> data, ShapeRef shape);
  // A number that is passed to the program at run time, so that changing it compiles nothing.
  // `bytes` holds it in `type`'s representation (at most 16 bytes).
  static Reference<Node> MakeScalar(hlo::ElementType type, const void* bytes);
  static Reference<Node> MakeScalar(ShapeRef shape, const void* bytes);  // up to rank 1
  // An integer of the user's program that says where and not how much: a slice's start, a selected
  // index, a shift. A program has it as a constant until another value comes
  // (specialization.h). Each use of an index has a leaf of its own, so that which uses are of one
  // value is no part of a graph's structure.
  static Reference<Node> MakeIndex(int64_t index);

  Role role() const { return role_; }
  const Operation* operation() const { return operation_.get(); }
  ShapeRef shape(uint32_t index) const { return operation_->result_shape(index); }
  std::span<const Value> operands() const {
    return {reinterpret_cast<const Value*>(this + 1), operand_count_};
  }
  const Reference<Data>& data() const { return data_; }
  const std::array<std::byte, 16>& scalar() const { return scalar_; }
  int64_t index() const;  // of kIndex
  // The thread that made it: the last bits of its number (thread_number.h).
  uint32_t thread() const { return thread_; }
  static uint32_t ThisThread();
  // Whether exports take any size of a dimension of the data that it comes from
  // (programs_of_any_size.h).
  bool has_open_sizes() const;
  // For dumps: the operation's attributes, an index's value.
  std::string AttributesText() const;

  // Results that a sync has computed while another thread recorded work on the node, whose own
  // operands may be gone. All under the lock of syncs.
  void SetComputed(uint32_t index, Value data);
  const Value* computed(uint32_t index) const;  // null: recorded work still
  // Operands that have been computed become data.
  void TakeComputedOperands();

  // Scratch of the graph cut (graph.cc), valid under its lock while `visit` is the cut's number:
  // the node's place in the order, and how many references to it lie inside the graph.
  uint64_t visit = 0;
  uint32_t position = 0;
  uint32_t internal_references = 0;

  void Destroy();

 private:
  Node(Role role, OperationReference operation, uint32_t operand_count);
  ~Node();
  std::span<Value> mutable_operands() {
    return {reinterpret_cast<Value*>(this + 1), operand_count_};
  }

  OperationReference operation_;
  Reference<Data> data_;
  std::unique_ptr<std::vector<Value>> computed_;  // by index, without values for the others
  std::array<std::byte, 16> scalar_{};
  uint32_t operand_count_;
  uint32_t thread_ : 23;
  uint32_t has_open_sizes_ : 1;
  Role role_;
};

inline ShapeRef Value::shape_ref() const { return node->shape(index); }

}  // namespace lazy
