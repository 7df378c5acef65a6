#include "lazy/node.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <new>  // IWYU pragma: keep: objects are made in memory that is there
#include <vector>

#include "lazy/data.h"
#include "lazy/location.h"
#include "lazy/op.h"
#include "lazy/programs_of_any_size.h"
#include "lazy/recording_time.h"
#include "lazy/thread_number.h"
#include "process/small_memory.h"

namespace lazy {
namespace {

// The operation of leaves: no operands, one result of a given shape.
class LeafOperation final : public Operation {
 public:
  LeafOperation(const OperationKind* kind, uint64_t hash, ShapeRef shape)
      : Operation(kind, hash, {}) {
    AddResultShape(SharedShape(shape));
  }
  std::vector<hlo::Value> Lower(hlo::Builder&, std::span<const hlo::Value>) const override {
    throw hlo::Error(hlo::ErrorCode::kInternal, "a leaf of the graph has no lowering");
  }
};

OperationReference InternLeaf(const OperationKind* kind, OperationTable& table, ShapeRef shape) {
  struct Key {
    const OperationKind* kind;
    uint64_t hash;
    ShapeRef shape;
  };
  Key key{kind, reinterpret_cast<uintptr_t>(shape) >> 4, shape};
  return table.Find<Key>(
      key.hash, key, [](const Operation& o, const Key& k) { return o.result_shape(0) == k.shape; },
      [](const Key& k) -> std::unique_ptr<Operation> {
        return std::make_unique<LeafOperation>(k.kind, k.hash, k.shape);
      });
}

OperationReference DataOperation(ShapeRef shape) {
  static OperationKind kind{"xla::device_data", OperationCounter("xla::device_data")};
  static auto* table = new OperationTable;
  return InternLeaf(&kind, *table, shape);
}

OperationReference ScalarOperation(ShapeRef shape) {
  static OperationKind kind{"prim::Constant", OperationCounter("prim::Constant")};
  static auto* table = new OperationTable;
  return InternLeaf(&kind, *table, shape);
}

// Numbers are the commonest leaves, and of few types.
OperationReference NumberOperation(hlo::ElementType type) {
  constexpr auto kLast = static_cast<size_t>(hlo::ElementType::kTuple);
  static const auto* operations = [] {
    auto* made = new std::array<OperationReference, kLast>;
    for (size_t i = 0; i < kLast; ++i) {
      const auto number = static_cast<hlo::ElementType>(i);
      if (!hlo::IsNative(number)) continue;
      (*made)[i] = ScalarOperation(InternShape(hlo::Shape::Scalar(number)).get());
    }
    return made;
  }();
  if (hlo::IsNative(type)) return (*operations)[static_cast<size_t>(type)];
  return ScalarOperation(InternShape(hlo::Shape::Scalar(type)).get());
}

OperationReference IndexOperation() {
  static OperationKind kind{"xla::index", OperationCounter("xla::index")};
  static const auto* operation = [] {
    const SharedShape shape = InternShape(hlo::Shape::Scalar(hlo::ElementType::kS64));
    return new OperationReference(InternLeaf(&kind, *new OperationTable, shape.get()));
  }();
  return *operation;
}

// A node's operands lie behind it.
size_t BytesOf(size_t operand_count) { return sizeof(Node) + operand_count * sizeof(Value); }

}  // namespace

Node::Node(Role role, OperationReference operation, uint32_t operand_count)
    : operation_(std::move(operation)),
      operand_count_(operand_count),
      thread_(ThisThread()),
      has_open_sizes_(0),
      role_(role) {}
Node::~Node() = default;

Reference<Node> Node::Make(OperationReference operation, std::span<const Value> operands) {
  Node* node = new (process::AllocateSmall(BytesOf(operands.size())))
      Node(Role::kOperation, std::move(operation), static_cast<uint32_t>(operands.size()));
  Value* out = node->mutable_operands().data();
  for (const Value& operand : operands) new (out++) Value(operand);
  if (HasOpenSizes()) [[unlikely]] {
    const auto is_open = [](const Value& operand) { return operand.node->has_open_sizes(); };
    node->has_open_sizes_ = std::ranges::any_of(operands, is_open) ? 1 : 0;
  }
  return Reference<Node>(node);
}

Reference<Node> Node::MakeData(Reference<Data> data, ShapeRef shape) {
  Node* node = new (process::AllocateSmall(BytesOf(0))) Node(Role::kData, DataOperation(shape), 0);
  node->data_ = std::move(data);
  return Reference<Node>(node);
}

Reference<Node> Node::MakeScalar(hlo::ElementType type, const void* bytes) {
  static_assert(sizeof(std::complex<double>) <= sizeof(scalar_));
  Node* node =
      new (process::AllocateSmall(BytesOf(0))) Node(Role::kScalar, NumberOperation(type), 0);
  std::memcpy(node->scalar_.data(), bytes, hlo::ByteWidth(type));
  return Reference<Node>(node);
}

Reference<Node> Node::MakeScalar(ShapeRef shape, const void* bytes) {
  size_t size = shape->byte_size();
  if (size > sizeof(scalar_)) {
    throw hlo::Error(hlo::ErrorCode::kInternal,
                     "a scalar of shape " + shape->ToString() + " is too large to be inlined");
  }
  Node* node =
      new (process::AllocateSmall(BytesOf(0))) Node(Role::kScalar, ScalarOperation(shape), 0);
  std::memcpy(node->scalar_.data(), bytes, size);
  return Reference<Node>(node);
}

Reference<Node> Node::MakeIndex(int64_t index) {
  Node* node = new (process::AllocateSmall(BytesOf(0))) Node(Role::kIndex, IndexOperation(), 0);
  std::memcpy(node->scalar_.data(), &index, sizeof(index));
  return Reference<Node>(node);
}

uint32_t Node::ThisThread() { return static_cast<uint32_t>(ThreadNumber()) & 0x7fffff; }

bool Node::has_open_sizes() const {
  return role_ == Role::kData ? data_->has_any_size() : has_open_sizes_ != 0;
}

int64_t Node::index() const {
  int64_t index;
  std::memcpy(&index, scalar_.data(), sizeof(index));
  return index;
}

std::string Node::AttributesText() const {
  return role_ == Role::kIndex ? std::to_string(index()) : operation_->AttributesText();
}

void Node::SetComputed(uint32_t index, Value data) {
  if (computed_ == nullptr) computed_ = std::make_unique<std::vector<Value>>();
  if (computed_->size() <= index) computed_->resize(index + 1);
  (*computed_)[index] = std::move(data);
}

const Value* Node::computed(uint32_t index) const {
  if (computed_ == nullptr || index >= computed_->size() || !(*computed_)[index]) return nullptr;
  return &(*computed_)[index];
}

void Node::TakeComputedOperands() {
  for (Value& operand : mutable_operands()) {
    // A copy: the node that holds it may go away.
    if (const Value* data = operand.node->computed(operand.index)) operand = Value(*data);
  }
}

// Chains of nodes are as long as a program's step: they are taken apart in a loop, not by
// recursion.
void Node::Destroy() {
  // Without the call that a library's thread-local variables take else.
  [[gnu::tls_model("initial-exec")]] constinit thread_local std::vector<Node*>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(this);
    return;
  }
  std::vector<Node*> work;
  pending = &work;
  for (Node* node = this; node != nullptr;) {
    if (locations_are_kept.load(std::memory_order_relaxed)) ForgetLocation(node);
    const size_t bytes = BytesOf(node->operand_count_);
    for (Value& operand : node->mutable_operands()) operand.~Value();
    node->~Node();
    process::FreeSmall(node, bytes);
    node = work.empty() ? nullptr : work.back();
    if (node != nullptr) work.pop_back();
  }
  pending = nullptr;
}

Reference<Node> MakeNode(OperationReference operation, std::span<const Value> operands) {
  const RecordingTime timed;
  operation->kind().counter->fetch_add(1, std::memory_order_relaxed);
  Reference<Node> node = Node::Make(std::move(operation), operands);
  if (locations_are_kept.load(std::memory_order_relaxed)) NoteLocation(node.get(), operands);
  return node;
}

}  // namespace lazy
