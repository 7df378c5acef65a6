#include "lazy/operation.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <new>
#include <string_view>
#include <unordered_set>

#include "lazy/metrics.h"
#include "lazy/op.h"
#include "lazy/refusal.h"
#include "process/fork.h"

namespace lazy {

namespace {

std::atomic<const Refusal*> the_refusal{nullptr};

struct InternedShape : hlo::Shape {
  explicit InternedShape(const hlo::Shape& shape) : hlo::Shape(shape) {}
  mutable std::atomic<int64_t> holders{0};
};

// Finds by a shape that is not interned.
struct ShapeHash {
  using is_transparent = void;
  size_t operator()(const hlo::Shape& shape) const { return shape.Hash(); }
};
struct ShapesEqual {
  using is_transparent = void;
  bool operator()(const hlo::Shape& a, const hlo::Shape& b) const { return a == b; }
};

// Never destroyed: nodes outlive static objects.
struct Shapes {
  process::Mutex mutex;
  std::unordered_set<InternedShape, ShapeHash, ShapesEqual> set;  // node-based: addresses stay
  static Shapes& Get() {
    static auto* shapes = new Shapes;
    return *shapes;
  }
};

const InternedShape& Interned(ShapeRef shape) { return *static_cast<const InternedShape*>(shape); }

void Hold(ShapeRef shape) {
  if (shape != nullptr) Interned(shape).holders.fetch_add(1, std::memory_order_relaxed);
}

// The last one lets go under the lock, so that nobody finds the shape meanwhile.
void LetGo(ShapeRef shape) {
  if (shape == nullptr) return;
  std::atomic<int64_t>& holders = Interned(shape).holders;
  int64_t count = holders.load(std::memory_order_relaxed);
  while (count > 1) {
    if (holders.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return;
  }
  Shapes& shapes = Shapes::Get();
  std::lock_guard lock(shapes.mutex);
  if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) shapes.set.erase(Interned(shape));
}

}  // namespace

SharedShape InternShape(const hlo::Shape& shape) {
  Shapes& shapes = Shapes::Get();
  std::lock_guard lock(shapes.mutex);
  auto found = shapes.set.find(shape);
  if (found == shapes.set.end()) found = shapes.set.emplace(shape).first;
  return SharedShape(&*found);
}

SharedShape::SharedShape(ShapeRef shape) : shape_(shape) { Hold(shape); }
SharedShape::~SharedShape() { LetGo(shape_); }

size_t InternedShapeCount() {
  Shapes& shapes = Shapes::Get();
  std::lock_guard lock(shapes.mutex);
  return shapes.set.size();
}

void SetRefusal(const Refusal* refusal) { the_refusal.store(refusal, std::memory_order_release); }

Operation::Operation(const OperationKind* kind, uint64_t hash, std::vector<ShapeRef> operand_shapes)
    : kind_(kind), hash_(hash), operand_shapes_(std::move(operand_shapes)) {
  for (ShapeRef shape : operand_shapes_) Hold(shape);
}

Operation::~Operation() {
  for (ShapeRef shape : operand_shapes_) LetGo(shape);
  for (ShapeRef shape : result_shapes_) LetGo(shape);
}

void Operation::AddResultShape(const SharedShape& shape) {
  result_shapes_.push_back(shape.get());
  Hold(shape.get());
}

void Operation::InferResultShapes() {
  const Refusal* const refusal = the_refusal.load(std::memory_order_acquire);
  hlo::Module scratch("infer");
  hlo::Computation* computation = scratch.AddComputation("main");
  scratch.set_entry(computation);
  hlo::Builder builder(computation);
  std::vector<hlo::Value> parameters;
  for (ShapeRef shape : operand_shapes_) parameters.push_back(builder.Parameter(*shape));
  std::vector<hlo::Value> results;
  try {
    if (refusal != nullptr) refusal->CheckTypes(*this);
    results = Lower(builder, parameters);
  } catch (const hlo::Error&) {
    if (refusal != nullptr) refusal->Explain(*this);
    throw;
  }
  for (hlo::Value result : results) {
    AddResultShape(result == nullptr ? SharedShape() : InternShape(result->shape()));
  }
  if (refusal != nullptr) refusal->CheckEmpty(*this);
}

// All tables of the process.
struct OperationTable::All {
  process::Mutex mutex;
  std::vector<OperationTable*> tables;
  std::atomic<size_t> count{0};
  std::atomic<size_t> next_give_up{Kept() / 2};

  static All& Get() {
    static auto* all = new All;
    return *all;
  }
  static size_t Kept() {
    static const size_t kept = [] {
      const char* text = std::getenv("TORCH_XLA_OPERATIONS_KEPT");
      const long value = text != nullptr ? std::atol(text) : 0;
      return static_cast<size_t>(value > 0 ? value : 65536);
    }();
    return kept;
  }
};

OperationTable::OperationTable() {
  All& all = All::Get();
  std::lock_guard lock(all.mutex);
  all.tables.push_back(this);
}

const Operation* OperationTable::Insert(std::unique_ptr<Operation> operation) {
  static std::atomic<uint64_t> next_number{1};
  operation->number_ = next_number.fetch_add(1);
  operations_.push_back(std::move(operation));
  All::Get().count.fetch_add(1, std::memory_order_relaxed);
  if (2 * operations_.size() > slots_.size()) {
    slots_.assign(slots_.empty() ? 8 : 2 * slots_.size(), nullptr);
    for (const auto& o : operations_) Place(o.get());
  } else {
    Place(operations_.back().get());
  }
  return operations_.back().get();
}

void OperationTable::Place(const Operation* operation) {
  size_t i = operation->hash() & (slots_.size() - 1);
  while (slots_[i] != nullptr) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = operation;
}

std::vector<std::unique_ptr<Operation>> OperationTable::TakeUnused() {
  std::lock_guard lock(mutex_);
  auto is_used = [](const std::unique_ptr<Operation>& o) {
    const bool was_recorded = o->taken_ != std::exchange(o->taken_before_, o->taken_);
    return was_recorded || o->taken_ != o->returned_.load(std::memory_order_acquire);
  };
  auto unused = std::partition(operations_.begin(), operations_.end(), is_used);
  std::vector<std::unique_ptr<Operation>> taken(std::make_move_iterator(unused),
                                                std::make_move_iterator(operations_.end()));
  operations_.erase(unused, operations_.end());
  if (taken.empty()) return taken;
  size_t size = 8;
  while (size < 2 * operations_.size()) size *= 2;
  slots_ = std::vector<const Operation*>(size, nullptr);
  for (const auto& o : operations_) Place(o.get());
  All::Get().count.fetch_sub(taken.size(), std::memory_order_relaxed);
  return taken;
}

size_t OperationTable::TotalCount() { return All::Get().count.load(std::memory_order_relaxed); }

void OperationTable::GiveUpUnused() {
  All& all = All::Get();
  std::vector<OperationTable*> tables;
  {
    std::lock_guard lock(all.mutex);
    tables = all.tables;
  }
  // Outside the lock: a captured graph that goes with its operation lets others go.
  for (OperationTable* table : tables) table->TakeUnused();
}

void OperationTable::GiveUpUnusedIfMany() {
  All& all = All::Get();
  size_t next = all.next_give_up.load(std::memory_order_relaxed);
  if (TotalCount() <= next) return;
  // By one thread, and seldom enough to cost little.
  if (!all.next_give_up.compare_exchange_strong(next, SIZE_MAX)) return;
  try {
    GiveUpUnused();
  } catch (const std::bad_alloc&) {  // the next time, then
  }
  // What goes then are those that are not recorded while so many others are made.
  all.next_give_up = TotalCount() + All::Kept() / 2;
}

std::atomic<int64_t>* OperationCounter(const std::string& name) { return Counter(name); }

std::string LoweringName(const char* pretty_function) {
  // "… [with auto f = torch_xla::{anonymous}::MaxPool2d; …]" or "… [f = &torch_xla::MaxPool2d]"
  std::string_view text(pretty_function);
  size_t start = text.find("f = ");
  std::string_view name = start == text.npos ? text : text.substr(start + 4);
  // Template arguments hold the name of the lowering that an adaptor wraps: Elementwise<Add,
  // …>::Lower.
  if (size_t open = name.find('<'); open != name.npos) name = name.substr(open + 1);
  size_t end = name.find_first_of(";,]>(<");
  // "(anonymous namespace)" contains a parenthesis that does not end the name.
  while (end != name.npos && name[end] == '(' && name.substr(end).starts_with("(anonymous")) {
    end = name.find_first_of(";,]>(<", end + 1);
  }
  name = name.substr(0, end);
  if (size_t colon = name.rfind("::"); colon != name.npos) name = name.substr(colon + 2);
  while (!name.empty() && (name[0] == '&' || name[0] == '*')) name.remove_prefix(1);
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (std::isupper(c) && i > 0 && (std::islower(name[i - 1]) || std::isdigit(name[i - 1]))) {
      out += '_';
    }
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

}  // namespace lazy
