#include "hlo/module.h"

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/hash.h"

namespace hlo {
namespace {

// How far a walk has come with a node.
enum class State : uint8_t { kNew, kOpen, kDone };

// Of any nodes.
template <typename Node>
class StatesInMap {
 public:
  State& operator[](const Node* node) { return states_[node]; }

 private:
  std::unordered_map<const Node*, State> states_;
};

// Of nodes that know their place among `count`.
template <typename PlaceOf>
class StatesInList {
 public:
  StatesInList(PlaceOf place_of, size_t count) : place_of_(place_of), states_(count) {}
  template <typename Node>
  State& operator[](const Node* node) {
    return states_[place_of_(node)];
  }

 private:
  PlaceOf place_of_;
  std::vector<State> states_;
};

// Depth-first post-order over a graph without recursion (programs are thousands of instructions
// deep). `successors(node)` gives what must come before `node`; `emit(node)` is called once for
// each node that `roots` reach, after its successors. Returns a node on a cycle, or null.
template <typename Node, typename Successors, typename Emit, typename States = StatesInMap<Node>>
class PostOrder {
 public:
  PostOrder(Successors successors, Emit emit, States states = {})
      : successors_(successors), emit_(emit), states_(std::move(states)) {}

  const Node* Visit(const Node* root) {
    if (!Enter(root)) return nullptr;
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      const auto& successors = successors_(node);
      if (next == successors.size()) {
        states_[node] = State::kDone;
        emit_(node);
        stack_.pop_back();
        continue;
      }
      const Node* successor = successors[next++];
      if (states_[successor] == State::kOpen) return successor;
      Enter(successor);
    }
    return nullptr;
  }

 private:
  bool Enter(const Node* node) {
    State& state = states_[node];
    if (state != State::kNew) return false;
    state = State::kOpen;
    stack_.emplace_back(node, 0);
    return true;
  }

  Successors successors_;
  Emit emit_;
  States states_;
  std::vector<std::pair<const Node*, size_t>> stack_;
};

const InstructionList& OperandsOf(const Instruction* instruction) {
  return instruction->operands();
}

// What a computation computes, each instruction once, operands first: its parameters, then all that
// its side effects and results need, in their order. Independent of the order of the list, except
// for side effects, and of dead instructions.
std::vector<const Instruction*> CanonicalOrder(const Computation& computation) {
  std::vector<const Instruction*> order;
  auto emit = [&](const Instruction* instruction) { order.push_back(instruction); };
  PostOrder<Instruction, decltype(&OperandsOf), decltype(emit)> walk(&OperandsOf, emit);
  for (const Instruction* parameter : computation.parameters()) walk.Visit(parameter);
  for (const auto& instruction : computation.instructions()) {
    if (instruction->HasSideEffect()) walk.Visit(instruction.get());
  }
  for (const Instruction* result : computation.results()) walk.Visit(result);
  return order;
}

std::unordered_map<const Instruction*, size_t> Number(
    const std::vector<const Instruction*>& order) {
  std::unordered_map<const Instruction*, size_t> numbers;
  numbers.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) numbers.emplace(order[i], i);
  return numbers;
}

// Remembers the hash of each computation, as many instructions share one.
class ComputationHasher {
 public:
  size_t Hash(const Computation& computation) {
    auto found = hashes_.find(&computation);
    if (found != hashes_.end()) return found->second;
    auto order = CanonicalOrder(computation);
    auto numbers = Number(order);
    size_t hash = order.size();
    for (const Instruction* instruction : order) {
      hash = CombineHash(hash, HashInstruction(*instruction, numbers));
    }
    for (const Instruction* result : computation.results()) {
      hash = CombineHash(hash, numbers.at(result));
    }
    hashes_.emplace(&computation, hash);
    return hash;
  }

 private:
  size_t HashInstruction(const Instruction& instruction,
                         const std::unordered_map<const Instruction*, size_t>& numbers) {
    size_t hash = static_cast<size_t>(instruction.opcode());
    hash = CombineHash(hash, instruction.shape().Hash());
    hash = CombineHash(hash, HashAttributes(instruction.attributes()));
    hash = CombineHash(hash, instruction.operand_count());
    for (const Instruction* operand : instruction.operands()) {
      hash = CombineHash(hash, numbers.at(operand));
    }
    for (const Computation* called : instruction.called_computations()) {
      hash = CombineHash(hash, Hash(*called));
    }
    return hash;
  }

  std::unordered_map<const Computation*, size_t> hashes_;
};

// Remembers the pairs found equal.
class ComputationComparer {
 public:
  bool Same(const Computation& a, const Computation& b) {
    if (&a == &b) return true;
    auto known = same_.find(&a);
    if (known != same_.end() && known->second.contains(&b)) return true;
    auto order_a = CanonicalOrder(a), order_b = CanonicalOrder(b);
    if (order_a.size() != order_b.size() || a.results().size() != b.results().size()) return false;
    auto numbers_a = Number(order_a), numbers_b = Number(order_b);
    auto same_values = [&](const auto& x, const auto& y) {
      return std::ranges::equal(x, y, [&](const Instruction* p, const Instruction* q) {
        return numbers_a.at(p) == numbers_b.at(q);
      });
    };
    for (size_t i = 0; i < order_a.size(); ++i) {
      if (!SameOperation(*order_a[i], *order_b[i])) return false;
      if (!same_values(order_a[i]->operands(), order_b[i]->operands())) return false;
    }
    if (!same_values(a.results(), b.results())) return false;
    same_[&a].insert(&b);
    return true;
  }

 private:
  bool SameOperation(const Instruction& a, const Instruction& b) {
    return a.opcode() == b.opcode() && a.shape() == b.shape() &&
           a.shared_attributes() == b.shared_attributes() &&
           std::ranges::equal(a.called_computations(), b.called_computations(),
                              [this](const auto* x, const auto* y) { return Same(*x, *y); });
  }

  std::unordered_map<const Computation*, std::unordered_set<const Computation*>> same_;
};

// Copies computations into another module, each once.
class ComputationCloner {
 public:
  // New computations go in front of `before`, or last.
  explicit ComputationCloner(Module& target, const Computation* before = nullptr)
      : target_(target), before_(before) {}

  Computation* Clone(const Computation& source) {
    auto found = clones_.find(&source);
    if (found != clones_.end()) return found->second;
    // Callees first, so that the target keeps callees before callers.
    for (const auto& instruction : source.instructions()) {
      for (const Computation* called : instruction->called_computations()) Clone(*called);
    }
    Computation* clone = target_.AddComputation(source.name(), before_);
    clones_.emplace(&source, clone);
    clone->set_results(CopyInstructions(source, *clone, nullptr));
    return clone;
  }

  // With `arguments`, they replace the parameters; without, the parameters are copied.
  std::vector<Instruction*> CopyInstructions(const Computation& source, Computation& target,
                                             const std::vector<Instruction*>* arguments) {
    bool same_module = source.module() == target.module();
    std::unordered_map<const Instruction*, Instruction*> copies;
    if (arguments) {
      for (size_t i = 0; i < arguments->size(); ++i) {
        copies.emplace(source.parameter(i), (*arguments)[i]);
      }
    }
    // By number: the target may be the source itself and grow.
    for (size_t i = 0, count = source.instructions().size(); i < count; ++i) {
      const Instruction* instruction = source.instructions()[i].get();
      if (copies.contains(instruction)) continue;
      InstructionList operands;
      operands.reserve(instruction->operand_count());
      for (const Instruction* operand : instruction->operands()) {
        operands.push_back(copies.at(operand));
      }
      std::vector<Computation*> called = instruction->called_computations();
      if (!same_module) {
        for (Computation*& computation : called) computation = Clone(*computation);
      }
      Instruction* copy = target.Add(instruction->opcode(), instruction->shape(),
                                     std::move(operands), instruction->shared_attributes(), called);
      copy->set_metadata(instruction->shared_metadata());
      copies.emplace(instruction, copy);
    }
    std::vector<Instruction*> results;
    for (const Instruction* result : source.results()) results.push_back(copies.at(result));
    return results;
  }

 private:
  Module& target_;
  const Computation* before_;
  std::unordered_map<const Computation*, Computation*> clones_;
};

[[noreturn]] void ThrowCycle(const std::string& what) {
  throw Error(ErrorCode::kInternal, what + " depends on itself");
}

}  // namespace

Computation::Computation(Module* module, std::string name)
    : module_(module), name_(std::move(name)) {}
Computation::~Computation() = default;

Instruction* Computation::Add(Opcode opcode, Shape shape, InstructionList operands,
                              SharedAttributes attributes, std::vector<Computation*> called) {
  auto& instruction = instructions_.emplace_back(std::unique_ptr<Instruction>(new Instruction()));
  instruction->opcode_ = opcode;
  instruction->shape_ = std::move(shape);
  instruction->operands_ = std::move(operands);
  instruction->attributes_ = std::move(attributes);
  instruction->called_computations_ = std::move(called);
  instruction->parent_ = this;
  instruction->id_ = module_->next_id_++;
  const InstructionList& values = instruction->operands_;
  for (size_t i = 0; i < values.size(); ++i) {
    // The latest user is this instruction if the operand came up before.
    auto& users = values[i]->users_;
    if (users.empty() || users.back() != instruction.get()) values[i]->AddUser(instruction.get());
  }
  if (opcode == Opcode::kParameter) {
    auto by_number = [](const Instruction* a, const Instruction* b) {
      return a->parameter_number() < b->parameter_number();
    };
    parameters_.insert(std::ranges::upper_bound(parameters_, instruction.get(), by_number),
                       instruction.get());
  }
  return instruction.get();
}

bool Computation::NumberPlaces() {
  for (size_t i = 0; i < instructions_.size(); ++i) instructions_[i]->place_ = i;
  auto require_own = [this](const Instruction* value) {
    if (value->parent_ == this) return;
    throw Error(ErrorCode::kInternal,
                "computation " + name_ + " uses instructions of another computation");
  };
  std::ranges::for_each(results_, require_own);
  bool sorted = true;
  for (const auto& instruction : instructions_) {
    for (const Instruction* operand : instruction->operands_) {
      require_own(operand);
      sorted &= operand->place_ < instruction->place_;
    }
  }
  return sorted;
}

void Computation::SortTopologically() {
  if (NumberPlaces()) return;
  std::vector<size_t> order;  // places
  order.reserve(instructions_.size());
  auto emit = [&](const Instruction* instruction) { order.push_back(instruction->place_); };
  auto place_of = [](const Instruction* instruction) { return instruction->place_; };
  PostOrder<Instruction, decltype(&OperandsOf), decltype(emit), StatesInList<decltype(place_of)>>
      walk(&OperandsOf, emit, {place_of, instructions_.size()});
  for (const auto& instruction : instructions_) {
    if (const Instruction* cycle = walk.Visit(instruction.get())) ThrowCycle(cycle->ToString());
  }
  std::vector<std::unique_ptr<Instruction>> sorted;
  sorted.reserve(order.size());
  for (size_t place : order) sorted.push_back(std::move(instructions_[place]));
  instructions_ = std::move(sorted);
}

int64_t Computation::RemoveDeadInstructions() {
  NumberPlaces();
  enum class Life : uint8_t { kDead, kLive, kLiveAndOfLiveUsers };
  std::vector<Life> lives(instructions_.size());
  std::vector<const Instruction*> pending;
  auto mark = [&](const Instruction* instruction) {
    Life& life = lives[instruction->place_];
    if (life != Life::kDead) return;
    life = Life::kLive;
    pending.push_back(instruction);
  };
  auto mark_operands = [&] {
    while (!pending.empty()) {
      const Instruction* instruction = pending.back();
      pending.pop_back();
      for (const Instruction* operand : instruction->operands_) mark(operand);
    }
  };
  std::ranges::for_each(results_, mark);
  std::ranges::for_each(parameters_, mark);
  mark_operands();
  auto is_dead = [&](const Instruction* instruction) {
    return lives[instruction->place_] == Life::kDead;
  };
  // Of the rest only, as a call's side effects are looked for in all that it calls.
  for (const auto& instruction : instructions_) {
    if (is_dead(instruction.get()) && instruction->HasSideEffect()) mark(instruction.get());
  }
  mark_operands();
  if (std::ranges::find(lives, Life::kDead) == lives.end()) return 0;
  for (const auto& instruction : instructions_) {
    if (!is_dead(instruction.get())) continue;
    for (Instruction* operand : instruction->operands_) {
      Life& life = lives[operand->place_];
      // Once for each, as many of one's users may be dead.
      if (life != Life::kLive) continue;
      life = Life::kLiveAndOfLiveUsers;
      operand->users_.EraseIf(is_dead);
    }
  }
  return static_cast<int64_t>(std::erase_if(
      instructions_, [&](const auto& instruction) { return is_dead(instruction.get()); }));
}

void Computation::Remove(Instruction* instruction) {
  if (!instruction->users_.empty() || std::ranges::find(results_, instruction) != results_.end()) {
    throw Error(ErrorCode::kInternal,
                "an instruction that is still used was removed: " + instruction->ToString());
  }
  auto found = std::find_if(instructions_.rbegin(), instructions_.rend(),
                            [&](const auto& owned) { return owned.get() == instruction; });
  if (found == instructions_.rend()) {
    throw Error(ErrorCode::kInternal,
                "an instruction was removed from a computation that does not "
                "have it: " +
                    instruction->ToString());
  }
  for (Instruction* operand : instruction->operands_) operand->RemoveUser(instruction);
  if (instruction->opcode() == Opcode::kParameter) {
    std::erase(parameters_, instruction);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i]->attributes_ = ParameterAttributes{static_cast<int64_t>(i)};
    }
  }
  instructions_.erase(std::next(found).base());
}

Module::Module(std::string name) : name_(std::move(name)) {}
Module::~Module() = default;

Computation* Module::AddComputation(std::string name, const Computation* before) {
  auto position = computations_.end();
  if (before != nullptr) {
    position = std::ranges::find_if(
        computations_, [&](const auto& computation) { return computation.get() == before; });
  }
  std::unique_ptr<Computation> computation(new Computation(this, std::move(name)));
  return computations_.insert(position, std::move(computation))->get();
}

namespace {

// Who calls whom in a module, in few lists: programs of hundreds of computations are put in order
// after most passes.
class CallGraph {
 public:
  explicit CallGraph(const std::vector<std::unique_ptr<Computation>>& computations) {
    computations_.reserve(computations.size());
    for (const auto& computation : computations) computations_.push_back(computation.get());
    std::ranges::sort(computations_, std::less<>());
    ends_.reserve(computations_.size());
    for (const Computation* computation : computations_) {
      for (const auto& instruction : computation->instructions()) {
        const auto& called = instruction->called_computations();
        called_.insert(called_.end(), called.begin(), called.end());
      }
      ends_.push_back(called_.size());
    }
  }

  // Below size(); the module's order is no part of it.
  size_t NumberOf(const Computation* computation) const {
    const auto place = std::ranges::lower_bound(computations_, computation, std::less<>());
    if (place == computations_.end() || *place != computation) {
      throw Error(ErrorCode::kInternal, "a module uses a computation of another module");
    }
    return static_cast<size_t>(place - computations_.begin());
  }
  size_t size() const { return computations_.size(); }

  // Callees before callers, for what `roots` reach.
  std::vector<const Computation*> CalleesFirst(std::span<const Computation* const> roots) const {
    std::vector<const Computation*> order;
    order.reserve(size());
    auto callees = [&](const Computation* computation) { return CalledBy(computation); };
    auto emit = [&](const Computation* computation) { order.push_back(computation); };
    auto number_of = [&](const Computation* computation) { return NumberOf(computation); };
    PostOrder<Computation, decltype(callees), decltype(emit), StatesInList<decltype(number_of)>>
        walk(callees, emit, {number_of, size()});
    for (const Computation* root : roots) {
      if (const Computation* cycle = walk.Visit(root)) ThrowCycle("computation " + cycle->name());
    }
    return order;
  }

 private:
  std::span<const Computation* const> CalledBy(const Computation* computation) const {
    const size_t number = NumberOf(computation), first = number == 0 ? 0 : ends_[number - 1];
    return std::span(called_).subspan(first, ends_[number] - first);
  }

  std::vector<const Computation*> computations_;  // in order of their addresses
  std::vector<const Computation*> called_;        // by one after the other
  std::vector<size_t> ends_;                      // of each one's in `called_`
};

}  // namespace

void Module::RemoveUnreachableComputations() {
  if (!entry_) return;
  const CallGraph calls(computations_);
  std::vector<bool> reached(calls.size());
  for (const Computation* computation : calls.CalleesFirst({{entry_}})) {
    reached[calls.NumberOf(computation)] = true;
  }
  const auto is_reached = [&](const Computation* computation) {
    return reached[calls.NumberOf(computation)];
  };
  std::erase_if(scalar_combiners_, [&](const auto& entry) { return !is_reached(entry.second); });
  std::erase_if(computations_,
                [&](const auto& computation) { return !is_reached(computation.get()); });
}

void Module::SortComputations() {
  std::vector<const Computation*> roots;
  roots.reserve(computations_.size());
  for (const auto& computation : computations_) {
    if (computation.get() != entry_) roots.push_back(computation.get());
  }
  if (entry_) roots.push_back(entry_);
  const CallGraph calls(computations_);
  const std::vector<const Computation*> order = calls.CalleesFirst(roots);
  std::vector<std::unique_ptr<Computation>> by_number(calls.size());
  for (auto& computation : computations_) {
    by_number[calls.NumberOf(computation.get())] = std::move(computation);
  }
  computations_.clear();
  for (const Computation* computation : order) {
    computations_.push_back(std::move(by_number[calls.NumberOf(computation)]));
  }
}

std::unique_ptr<Module> Module::Clone() const {
  auto clone = std::make_unique<Module>(name_);
  clone->input_output_aliases = input_output_aliases;
  clone->buffer_donors = buffer_donors;
  clone->num_replicas = num_replicas;
  clone->num_partitions = num_partitions;
  ComputationCloner cloner(*clone);
  for (const auto& computation : computations_) {
    Computation* copy = cloner.Clone(*computation);
    if (computation.get() == entry_) clone->entry_ = copy;
  }
  for (const auto& [key, computation] : scalar_combiners_) {
    clone->scalar_combiners_[key] = cloner.Clone(*computation);
  }
  return clone;
}

bool Module::Contains(bool (*kind)(Opcode)) const {
  for (const auto& computation : computations_) {
    for (const auto& instruction : computation->instructions()) {
      if (kind(instruction->opcode())) return true;
    }
  }
  return false;
}

size_t Module::Hash() const {
  size_t hash = entry_ ? ComputationHasher().Hash(*entry_) : 0;
  for (const InputOutputAlias& alias : input_output_aliases) {
    hash = CombineHash(hash, static_cast<size_t>(alias.output));
    hash = CombineHash(hash, static_cast<size_t>(alias.parameter));
    hash = CombineHash(hash, alias.must_alias);
  }
  hash = CombineHash(hash, input_output_aliases.size());
  for (int64_t donor : buffer_donors) hash = CombineHash(hash, static_cast<size_t>(donor));
  hash = CombineHash(hash, static_cast<size_t>(num_replicas));
  return CombineHash(hash, static_cast<size_t>(num_partitions));
}

std::string Module::ToString() const {
  std::string text = "module " + name_ + "\n";
  for (const auto& computation : computations_) {
    text += (computation.get() == entry_ ? "\nentry @" : "\n@") + computation->name() + " {\n";
    for (const auto& instruction : computation->instructions()) {
      text += "  " + instruction->ToString() + "\n";
    }
    text += "  return";
    for (const Instruction* result : computation->results()) {
      text += " %" + std::to_string(result->id());
    }
    text += "\n}\n";
  }
  return text;
}

std::vector<Instruction*> InlineComputation(const Computation& source, Computation& target,
                                            const std::vector<Instruction*>& arguments) {
  if (arguments.size() != source.parameters().size()) {
    throw Error(ErrorCode::kInternal, "computation " + source.name() + " of " +
                                          std::to_string(source.parameters().size()) +
                                          " parameters was inlined with " +
                                          std::to_string(arguments.size()) + " arguments");
  }
  return ComputationCloner(*target.module(), &target).CopyInstructions(source, target, &arguments);
}

size_t HashComputation(const Computation& computation) {
  return ComputationHasher().Hash(computation);
}

bool SameComputation(const Computation& a, const Computation& b) {
  return ComputationComparer().Same(a, b);
}

}  // namespace hlo
