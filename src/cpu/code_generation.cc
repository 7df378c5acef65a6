#include "cpu/code_generation.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "cpu/control_flow.h"
#include "cpu/dump.h"
#include "cpu/jit.h"
#include "cpu/kernel_kind.h"
#include "cpu/llvm_object.h"
#include "process/fork.h"
#include "process/limits.h"

namespace cpu {
namespace {

// Equal keys have equal code.
size_t KernelHash(const hlo::Instruction& instruction) {
  return hlo::HashComputation(*instruction.called_computations()[0]) * 31 +
         std::hash<std::string>()(instruction.as<hlo::CompositeAttributes>().name);
}

bool SameKernel(const hlo::Instruction& a, const hlo::Instruction& b) {
  return a.attributes() == b.attributes() &&
         hlo::SameComputation(*a.called_computations()[0], *b.called_computations()[0]);
}

}  // namespace

std::vector<const hlo::Instruction*> KernelInstructions(const hlo::Module& module) {
  std::vector<const hlo::Instruction*> result;
  // A region that several instructions share is visited for each: a program that was serialized has
  // as many of it.
  auto visit = [&](auto& self, const hlo::Computation* computation) -> void {
    for (const auto& instruction : computation->instructions()) {
      if (NeedsKernel(*instruction)) {
        result.push_back(instruction.get());
        continue;
      }
      if (!CallsSteps(instruction->opcode())) continue;
      for (const hlo::Computation* called : instruction->called_computations()) {
        self(self, called);
      }
    }
  };
  visit(visit, module.entry());
  return result;
}

GeneratedCode GenerateCode(const hlo::Module& module, const Dump& dump) {
  GeneratedCode code;
  std::vector<const hlo::Instruction*> unique;
  std::unordered_multimap<size_t, int32_t> by_hash;
  for (const hlo::Instruction* instruction : KernelInstructions(module)) {
    const size_t hash = KernelHash(*instruction);
    int32_t number = -1;
    auto [begin, end] = by_hash.equal_range(hash);
    for (auto it = begin; it != end && number < 0; ++it) {
      if (SameKernel(*unique[it->second], *instruction)) number = it->second;
    }
    if (number < 0) {
      number = static_cast<int32_t>(unique.size());
      unique.push_back(instruction);
      by_hash.emplace(hash, number);
    }
    code.kernel_of_instruction.push_back(number);
  }
  code.kernels.resize(unique.size());
  if (unique.empty()) return code;
  // Each thread emits its share in a context of its own.
  const size_t threads =
      std::clamp<size_t>(std::min<size_t>(unique.size() / 2, process::UsableCpus()), 1, 8);
  code.objects.resize(threads);
  std::vector<std::exception_ptr> errors(threads);
  auto emit = [&](size_t thread) noexcept {
    const process::NoForkOfCaller no_fork;
    try {
      const LlvmObject<llvm::LLVMContext> context;
      const LlvmObject<llvm::Module> ir("kernels", *context);
      llvm::Module& target = *ir;
      PrepareModule(target);
      for (size_t i = thread; i < unique.size(); i += threads) {
        CompiledKernel& kernel = code.kernels[i];
        kernel.name = "kernel_" + std::to_string(i);
        const KernelInfo info = KindOf(*unique[i])->emit(target, kernel.name, *unique[i]);
        kernel.units = info.units;
        kernel.unit_cost = info.unit_cost;
      }
      dump.Kernels(static_cast<int>(thread), target);
      code.objects[thread] = EmitObject(target);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    size_t next = 1;
    try {
      for (; next < threads; ++next) workers.emplace_back(emit, next);
    } catch (const std::exception&) {
      // A share whose thread cannot be started is this thread's too.
    }
    for (; next < threads; ++next) emit(next);
    emit(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return code;
}

std::string GeneratedCode::SerializeTable() const {
  std::ostringstream out;
  out.precision(17);
  out << kernels.size() << ' ' << kernel_of_instruction.size() << '\n';
  for (const CompiledKernel& kernel : kernels) {
    out << kernel.name << ' ' << kernel.units << ' ' << kernel.unit_cost << '\n';
  }
  for (int32_t number : kernel_of_instruction) out << number << ' ';
  return out.str();
}

GeneratedCode GeneratedCode::ParseTable(const std::string& bytes) {
  std::istringstream in(bytes);
  GeneratedCode code;
  size_t kernels = 0, instructions = 0;
  in >> kernels >> instructions;
  if (!in || kernels > bytes.size() || instructions > bytes.size()) {
    throw hlo::Error("the executable's table of kernels is corrupt");
  }
  code.kernels.resize(kernels);
  for (CompiledKernel& kernel : code.kernels) in >> kernel.name >> kernel.units >> kernel.unit_cost;
  code.kernel_of_instruction.resize(instructions);
  for (int32_t& number : code.kernel_of_instruction) {
    in >> number;
    if (number < 0 || number >= static_cast<int64_t>(kernels)) in.setstate(std::ios::failbit);
  }
  if (!in) throw hlo::Error("the executable's table of kernels is corrupt");
  return code;
}

}  // namespace cpu
