// Instruction: one operation of a computation, in SSA form.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hlo/shape.h"
#include "hlo/short_list.h"
#include "process/small_memory.h"

namespace hlo {

class Computation;
class Instruction;

using InstructionList = ShortList<Instruction*>;

// A line of a program, and the one that called it. Never destroyed.
struct SourceFrame {
  std::string file, function;
  int32_t line = 0;
  const SourceFrame* caller = nullptr;
};

// Where an instruction comes from, for people: shown in errors, dumps and profiles, never part of
// what is computed or hashed.
struct Metadata {
  // The framework's operation, "aten::add", behind the sections of the program that it is in, if
  // they are known: "Net/Linear[0]/aten::add".
  std::string op_name;
  std::string source_file;
  int32_t source_line = 0;
  const SourceFrame* frame = nullptr;  // null: nobody keeps who called whom

  // The same of another operation.
  Metadata WithOperation(std::string_view name) const {
    Metadata other = *this;
    other.op_name.replace(op_name.rfind('/') + 1, std::string::npos, name);
    return other;
  }
  // Without the sections.
  std::string_view operation() const {
    return std::string_view(op_name).substr(op_name.rfind('/') + 1);
  }
};

// Metadata that instructions share: what a pass makes of one, and what was recorded together, says
// the same of itself.
class SharedMetadata {
 public:
  SharedMetadata() = default;
  SharedMetadata(Metadata metadata)  // NOLINT: whoever has metadata of its own need not know
      : metadata_(std::make_shared<const Metadata>(std::move(metadata))) {}

  const Metadata& operator*() const { return metadata_ == nullptr ? kNone : *metadata_; }
  const Metadata* operator->() const { return &**this; }

 private:
  static const Metadata kNone;

  std::shared_ptr<const Metadata> metadata_;  // null: none
};

// Attributes that an instruction shares with its copies. Most instructions have none, and no memory
// for them.
class SharedAttributes {
 public:
  SharedAttributes() = default;
  template <typename T>
    requires(!std::same_as<std::remove_cvref_t<T>, SharedAttributes> &&
             std::constructible_from<Attributes, T>)
  SharedAttributes(T&& attributes)  // NOLINT: whoever has attributes of its own need not know
      : attributes_(Shared(Attributes(std::forward<T>(attributes)))) {}

  const Attributes& operator*() const { return attributes_ == nullptr ? kNone : *attributes_; }
  bool operator==(const SharedAttributes& other) const;

 private:
  static const Attributes kNone;

  static std::shared_ptr<const Attributes> Shared(Attributes attributes);

  std::shared_ptr<const Attributes> attributes_;  // null: NoAttributes
};

// An instruction with several results (while, sort, variadic reduce, batch_norm_training, …) has a
// tuple shape, and get_tuple_element instructions pick them; tuples appear nowhere else except
// for kTuple itself and parameters of programs that use them. Control flow is StableHLO's: `while`
// takes N operands, and its condition and body are computations of N parameters and 1 and N
// results. Nothing is captured: what a region of `while`, `if`, `case` or `reduce` uses from
// outside is passed explicitly. For `if` and `case` the operands after the predicate go to every
// branch as its parameters; for `while` a captured value becomes a loop-carried one that the body
// returns unchanged.
class Instruction : public process::SmallObject {
 public:
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  ElementType element_type() const { return shape_.element_type(); }
  const Dimensions& dimensions() const { return shape_.dimensions(); }

  const InstructionList& operands() const { return operands_; }
  Instruction* operand(size_t i) const { return operands_[i]; }
  size_t operand_count() const { return operands_.size(); }
  // Instructions of the same computation that have this as an operand, each once, in no meaningful
  // order.
  const InstructionList& users() const { return users_; }

  // reduce, sort, map, scatter, all_reduce, …: [body]; while: [condition, body]; if: [true branch,
  // false branch]; case: its branches; select_and_scatter: [select, scatter]; call, composite:
  // [callee].
  const std::vector<Computation*>& called_computations() const { return called_computations_; }

  const Attributes& attributes() const { return *attributes_; }
  const SharedAttributes& shared_attributes() const { return attributes_; }
  // The attributes as the type that the opcode has; throws std::bad_variant_access for another.
  template <typename T>
  const T& as() const {
    return std::get<T>(*attributes_);
  }

  const Metadata& metadata() const { return *metadata_; }
  const SharedMetadata& shared_metadata() const { return metadata_; }
  void set_metadata(SharedMetadata metadata) { metadata_ = std::move(metadata); }

  Computation* parent() const { return parent_; }
  // Unique in the module, increasing with creation.
  int64_t id() const { return id_; }

  // Rewrites; they keep both sides' users current.
  void ReplaceOperand(size_t index, Instruction* value);
  // Every use in this computation, its results included, except a use by `value` itself: so an
  // instruction can be wrapped in another.
  void ReplaceAllUsesWith(Instruction* value);

  bool IsConstant() const { return opcode_ == Opcode::kConstant; }
  const Literal& literal() const { return as<ConstantAttributes>().value; }
  int64_t tuple_index() const { return as<TupleIndexAttributes>().index; }
  int64_t parameter_number() const { return as<ParameterAttributes>().number; }

  // True if it must stay although nothing uses it: infeed, outfeed, send, recv, custom calls with
  // side effects, collectives.
  bool HasSideEffect() const;
  // One line: "%3 = f32[2] add(%1, %2)".
  std::string ToString() const;

 private:
  friend class Computation;
  Instruction() = default;
  void AddUser(Instruction* user);
  void RemoveUser(Instruction* user);

  Opcode opcode_{};
  Shape shape_;
  InstructionList operands_;
  InstructionList users_;
  std::vector<Computation*> called_computations_;
  SharedAttributes attributes_;
  SharedMetadata metadata_;
  Computation* parent_ = nullptr;
  int64_t id_ = 0;
  size_t place_ = 0;  // in the computation's list, as Computation::NumberPlaces has left it
};

}  // namespace hlo
