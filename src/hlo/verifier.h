// Checks that a module is well formed: order, users, shapes (by shape_inference.h), called
// computations' signatures, aliases. Run on everything that comes from outside and, in tests, after
// every pass.
#pragma once

#include "hlo/error.h"
#include "hlo/module.h"

namespace hlo {

// Of one instruction of the module.
class VerificationError : public Error {
 public:
  VerificationError(ErrorCode code, const std::string& message, const Instruction& instruction)
      : Error(code, message), instruction_(&instruction) {}
  const Instruction* instruction() const { return instruction_; }

 private:
  const Instruction* instruction_;
};

// Throws Error that names the computation and the instruction.
void VerifyModule(const Module& module);

}  // namespace hlo
