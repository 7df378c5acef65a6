#include "cpu/library/bind.h"
namespace cpu {
std::unique_ptr<LibraryCall> BindLinearAlgebra(const hlo::Instruction&) { return nullptr; }
std::unique_ptr<LibraryCall> BindTopK(const hlo::Instruction&) { return nullptr; }
std::unique_ptr<LibraryCall> BindFft(const hlo::Instruction&) { return nullptr; }
}  // namespace cpu
