// Computation: a list of instructions with parameters and results. Module: a program, that is,
// computations, one of which is the entry.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hlo/instruction.h"

namespace hlo {

class Module;

class Computation {
 public:
  ~Computation();
  const std::string& name() const { return name_; }
  Module* module() const { return module_; }

  // In an order in which every operand precedes its users.
  const std::vector<std::unique_ptr<Instruction>>& instructions() const { return instructions_; }
  // Ordered by number.
  const std::vector<Instruction*>& parameters() const { return parameters_; }
  Instruction* parameter(size_t i) const { return parameters_[i]; }
  // What it returns; an instruction may occur more than once. None is a tuple.
  const std::vector<Instruction*>& results() const { return results_; }
  Instruction* result(size_t i = 0) const { return results_[i]; }
  void set_results(std::vector<Instruction*> results) { results_ = std::move(results); }
  void set_result(size_t i, Instruction* value) { results_[i] = value; }

  // Appends. Nothing is checked here: Builder infers and checks, VerifyModule checks again.
  Instruction* Add(Opcode opcode, Shape shape, InstructionList operands,
                   SharedAttributes attributes = {}, std::vector<Computation*> called = {});

  // Rewrites that added instructions at the end call this before anyone relies on the order; it
  // keeps the relative order where it can.
  void SortTopologically();
  // Drops instructions that reach no result and have no side effect (parameters stay); returns how
  // many.
  int64_t RemoveDeadInstructions();
  // Takes out an instruction without users that is not a result; throws Error (kInternal)
  // otherwise. Later parameters are renumbered when it is a parameter.
  void Remove(Instruction* instruction);

 private:
  friend class Module;
  friend class Instruction;
  Computation(Module* module, std::string name);

  // Tells each instruction its place, so that walks can mark it in a list. True if operands come
  // before their users. Throws Error (kInternal) if an operand is of another computation.
  bool NumberPlaces();

  Module* module_;
  std::string name_;
  std::vector<std::unique_ptr<Instruction>> instructions_;
  std::vector<Instruction*> parameters_;
  std::vector<Instruction*> results_;
};

// The entry's result `output` may (or must) be written into the entry's parameter `parameter`,
// whose buffer the caller then loses (MLIR: tf.aliasing_output on the argument).
struct InputOutputAlias {
  int64_t output = 0;
  int64_t parameter = 0;
  bool must_alias = false;
  bool operator==(const InputOutputAlias&) const = default;
};

class Module {
 public:
  explicit Module(std::string name = "main");
  Module(Module&&) = delete;  // computations point at their module
  ~Module();

  const std::string& name() const { return name_; }
  // Callees before callers; the entry last in a well-formed module.
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  // Last, or in front of `before`: a callee is placed in front of its caller. (Builder::Region does
  // that.)
  Computation* AddComputation(std::string name, const Computation* before = nullptr);
  Computation* entry() const { return entry_; }
  void set_entry(Computation* computation) { entry_ = computation; }
  // Drops computations that the entry does not reach.
  void RemoveUnreachableComputations();
  // Reorders so that callees precede callers.
  void SortComputations();

  std::vector<InputOutputAlias> input_output_aliases;
  std::vector<int64_t> buffer_donors;  // parameters that may be given up without a partner
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;

  std::unique_ptr<Module> Clone() const;
  // Whether an instruction of that kind is anywhere in it.
  bool Contains(bool (*kind)(Opcode)) const;
  // Equal for modules that compute the same: structure, shapes, attributes, aliases; not names or
  // metadata.
  size_t Hash() const;
  // The short form of Instruction::ToString, for debugging. StableHLO text is text_writer.h.
  std::string ToString() const;

 private:
  friend class Computation;
  friend class Builder;
  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  int64_t next_id_ = 0;
  // Builder::ScalarCombiner's memory.
  std::map<std::pair<Opcode, ElementType>, Computation*> scalar_combiners_;
};

// Copies `source`'s instructions to the end of `target` with `arguments` for its parameters;
// returns what its results became. Called computations are shared when the module is the same and
// cloned otherwise. (Inlining, and moving code between modules.)
std::vector<Instruction*> InlineComputation(const Computation& source, Computation& target,
                                            const std::vector<Instruction*>& arguments);

// Hash and equality of what two computations compute (structure, not names).
size_t HashComputation(const Computation& computation);
bool SameComputation(const Computation& a, const Computation& b);

}  // namespace hlo
