#include "hlo/verifier.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/shape_inference.h"

namespace hlo {
namespace {

size_t CountDistinct(const InstructionList& values) {
  constexpr size_t kFew = 8;
  if (values.size() > kFew) {
    return std::unordered_set<const Instruction*>(values.begin(), values.end()).size();
  }
  size_t count = 0;
  for (auto it = values.begin(); it != values.end(); ++it) {
    count += std::find(values.begin(), it, *it) == it;
  }
  return count;
}

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  void Verify() {
    for (const auto& computation : module_.computations()) {
      VerifyComputation(*computation);
      checked_.insert(computation.get());
    }
    if (!module_.entry()) Fail("module " + module_.name() + " has no entry");
    if (!checked_.contains(module_.entry())) Fail("the entry is not one of the module's");
    VerifyAliases();
  }

 private:
  [[noreturn]] static void Fail(const std::string& what) { throw Error(what); }

  // Names the computation and the instruction.
  [[noreturn]] static void Fail(const Instruction& instruction, const std::string& what) {
    std::string where = "in @" + instruction.parent()->name() + ", " + instruction.ToString();
    const Metadata& metadata = instruction.metadata();
    if (!metadata.op_name.empty()) where += " (" + metadata.op_name + ")";
    if (!metadata.source_file.empty()) {
      where += " at " + metadata.source_file + ":" + std::to_string(metadata.source_line);
    }
    throw VerificationError(ErrorCode::kInvalidArgument, where + ": " + what, instruction);
  }

  void VerifyComputation(const Computation& computation) {
    std::unordered_set<const Instruction*> defined;
    defined.reserve(computation.instructions().size());
    size_t parameters = 0;
    for (const auto& instruction : computation.instructions()) {
      VerifyOperands(*instruction, defined);
      VerifyCalled(*instruction);
      VerifyShape(*instruction);
      defined.insert(instruction.get());
      parameters += instruction->opcode() == Opcode::kParameter;
    }
    // Users, after all are known to be instructions of this computation.
    for (const auto& instruction : computation.instructions()) VerifyUsers(*instruction, defined);
    VerifyParameters(computation, defined, parameters);
    for (const Instruction* result : computation.results()) {
      if (!defined.contains(result)) {
        Fail("a result of @" + computation.name() + " is not one of its instructions");
      }
      if (result->shape().is_tuple()) {
        Fail(*result, "a computation's results must not be tuples");
      }
    }
  }

  void VerifyOperands(const Instruction& instruction,
                      const std::unordered_set<const Instruction*>& defined) {
    for (size_t i = 0; i < instruction.operand_count(); ++i) {
      const Instruction* operand = instruction.operand(i);
      if (defined.contains(operand)) continue;
      Fail("in @" + instruction.parent()->name() + ", operand " + std::to_string(i) + " of %" +
           std::to_string(instruction.id()) + " " + std::string(Name(instruction.opcode())) +
           " is defined later or in another computation");
    }
  }

  void VerifyUsers(const Instruction& instruction,
                   const std::unordered_set<const Instruction*>& defined) {
    const InstructionList& users = instruction.users();
    if (CountDistinct(users) != users.size()) Fail(instruction, "a user is listed twice");
    for (const Instruction* user : users) {
      if (!defined.contains(user)) Fail(instruction, "a user is of another computation");
      if (std::ranges::find(user->operands(), &instruction) == user->operands().end()) {
        Fail(instruction, "%" + std::to_string(user->id()) + " is listed as a user but is none");
      }
    }
    expected_uses_ += users.size();
    actual_uses_ += CountDistinct(instruction.operands());
  }

  void VerifyParameters(const Computation& computation,
                        const std::unordered_set<const Instruction*>& defined, size_t count) {
    // Every listed user uses, so equal sums mean that every use is listed.
    if (expected_uses_ != actual_uses_) {
      Fail("in @" + computation.name() + ", an instruction misses one of its users");
    }
    expected_uses_ = actual_uses_ = 0;
    if (count != computation.parameters().size()) {
      Fail("@" + computation.name() + " has parameter instructions that it does not list");
    }
    for (size_t i = 0; i < count; ++i) {
      const Instruction* parameter = computation.parameter(i);
      if (!defined.contains(parameter) ||
          parameter->parameter_number() != static_cast<int64_t>(i)) {
        Fail("@" + computation.name() + "'s parameters are not numbered 0 to " +
             std::to_string(count - 1));
      }
    }
  }

  void VerifyCalled(const Instruction& instruction) {
    for (const Computation* called : instruction.called_computations()) {
      if (!checked_.contains(called)) {
        Fail("in @" + instruction.parent()->name() + ", %" + std::to_string(instruction.id()) +
             " " + std::string(Name(instruction.opcode())) +
             " calls a computation that does not precede its own in the module");
      }
    }
  }

  void VerifyShape(const Instruction& instruction) {
    std::vector<const Shape*> shapes;
    for (const Instruction* operand : instruction.operands()) shapes.push_back(&operand->shape());
    try {
      InferShape(instruction.opcode(), shapes, instruction.attributes(),
                 instruction.called_computations(), instruction.shape());
    } catch (const Error& error) {
      throw VerificationError(error.code(),
                              "in @" + instruction.parent()->name() + ", %" +
                                  std::to_string(instruction.id()) + ": " + error.what(),
                              instruction);
    }
  }

  void VerifyAliases() {
    auto results = static_cast<int64_t>(module_.entry()->results().size());
    auto parameters = static_cast<int64_t>(module_.entry()->parameters().size());
    auto check = [](int64_t index, int64_t count, const char* what) {
      if (index >= 0 && index < count) return;
      Fail("an input-output alias or donor names " + std::string(what) + " " +
           std::to_string(index) + " of " + std::to_string(count));
    };
    std::unordered_set<int64_t> outputs, given;
    for (const InputOutputAlias& alias : module_.input_output_aliases) {
      check(alias.output, results, "result");
      check(alias.parameter, parameters, "parameter");
      if (!outputs.insert(alias.output).second || !given.insert(alias.parameter).second) {
        Fail("a result or parameter is in two input-output aliases");
      }
    }
    for (int64_t donor : module_.buffer_donors) check(donor, parameters, "parameter");
  }

  const Module& module_;
  std::unordered_set<const Computation*> checked_;
  size_t expected_uses_ = 0, actual_uses_ = 0;
};

}  // namespace

void VerifyModule(const Module& module) { Verifier(module).Verify(); }

}  // namespace hlo
