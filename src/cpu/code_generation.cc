#include "cpu/code_generation.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "cpu/control_flow.h"
#include "cpu/dump.h"
#include "cpu/emit/extent.h"
#include "cpu/jit.h"
#include "cpu/kernel_cache.h"
#include "cpu/kernel_kind.h"
#include "cpu/kernel_recipe.h"
#include "cpu/kernel_signature.h"
#include "cpu/llvm_object.h"
#include "hlo/error.h"
#include "process/block_signals.h"
#include "process/fork.h"
#include "process/limits.h"

namespace cpu {
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

namespace {

// A kernel of a module, before it has code: for all its instructions that are the same.
struct Wanted {
  const hlo::Instruction* composite;
  std::string signature;  // empty: none
  RecipeKey recipe;       // without a text: nothing varies
  // The same with equal sizes as one, which emission takes them for; without a text where there are
  // none.
  RecipeKey recipe_of_values = {};

  // Of the code that emission comes to.
  const RecipeKey& emitted() const { return recipe.is_told_by_values ? recipe : recipe_of_values; }
};

// What varies of each kernel: what programs before had otherwise, and `known`.
std::vector<VaryingNumbers> VaryingOf(const std::vector<std::optional<KernelSignature>>& signatures,
                                      SlotsFor slots, const std::set<int64_t>& known,
                                      KernelCache& cache) {
  if (slots == SlotsFor::kWhatVaries) return cache.Varying(signatures, known);
  std::vector<VaryingNumbers> varying(signatures.size());
  if (slots == SlotsFor::kNothing) return varying;
  for (size_t i = 0; i < signatures.size(); ++i) {
    if (signatures[i]) varying[i] = AllNumbers(*signatures[i]);
  }
  return varying;
}

std::vector<Wanted> FindKernels(const hlo::Module& module, KernelCache& cache, SlotsFor slots,
                                const std::set<int64_t>& varying_sizes, GeneratedCode& code) {
  const std::vector<const hlo::Instruction*> instructions = KernelInstructions(module);
  std::vector<std::optional<KernelSignature>> signatures;
  for (const hlo::Instruction* instruction : instructions) {
    signatures.push_back(SignatureOf(*instruction));
  }
  const std::vector<VaryingNumbers> varying = VaryingOf(signatures, slots, varying_sizes, cache);
  std::vector<Wanted> kernels;
  std::unordered_map<std::string, int32_t> by_signature;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const std::string text = signatures[i] ? signatures[i]->ToString() : "";
    auto number = static_cast<int32_t>(kernels.size());
    if (signatures[i]) number = by_signature.emplace(text, number).first->second;
    code.kernel_of_instruction.push_back(number);
    if (number < static_cast<int32_t>(kernels.size())) continue;
    Wanted& wanted = kernels.emplace_back(instructions[i], text);
    if (varying[i].empty()) continue;
    wanted.recipe = RecipeKeyOf(*signatures[i], varying[i]);
    if (wanted.recipe.is_told_by_values) continue;
    const VaryingNumbers values = OfEqualValues(*signatures[i], varying[i]);
    wanted.recipe_of_values = RecipeKeyOf(*signatures[i], values);
  }
  code.kernels.resize(kernels.size());
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    code.kernels[i].name = "kernel_" + std::to_string(i);
  }
  return kernels;
}

void Add(KernelCache& cache, const std::string& signature, const CompiledKernel& kernel) {
  if (!signature.empty()) cache.Add(signature, {kernel.code, kernel.info});
}

// In a module of its own: its bytes depend on nothing else.
void Emit(const Wanted& wanted, int64_t number, const Dump& dump, llvm::LLVMContext& context,
          KernelCache& cache, CompiledKernel& kernel) {
  const LlvmObject<llvm::Module> ir("kernel", context);
  llvm::Module& target = *ir;
  PrepareModule(target);
  const KernelKind& kind = *KindOf(*wanted.composite);
  // Library routines call comparators without slots.
  const bool has_slots = kind.step != KernelKind::Step::kComparator;
  const std::vector<int64_t>& varying = wanted.recipe.sizes;
  KernelSizes sizes(has_slots ? std::set(varying.begin(), varying.end()) : std::set<int64_t>());
  kernel.info = kind.emit(target, KernelCode::kSymbol, *wanted.composite, sizes);
  dump.Kernel(number, target);
  kernel.code = cache.Code(Bitcode(target), [&] { return EmitObject(target); });
  const RecipeKey& key = wanted.emitted();
  if (key.text.empty()) return;
  auto recipe = KernelRecipe::Of(*wanted.composite, sizes, key.sizes, kernel.code);
  if (recipe != nullptr) cache.Add(key, std::move(recipe));
}

// Throws if emission comes to something else.
void Check(const Wanted& wanted, const CachedKernel& found, KernelCache& cache) {
  const LlvmObject<llvm::LLVMContext> context;
  context->setDiscardValueNames(true);  // as in the code that was found
  CompiledKernel emitted;
  Emit(wanted, 0, Dump(), *context, cache, emitted);
  const bool is_same =
      emitted.code->object() == found.code->object() && emitted.info.units == found.info.units &&
      emitted.info.unit_cost == found.info.unit_cost && emitted.info.slots == found.info.slots;
  if (is_same) return;
  throw hlo::Error(
      hlo::ErrorCode::kInternal,
      "a kernel's recipe leads to other code than its emission: " + wanted.composite->ToString());
}

// Takes what the cache has of a kernel. False if that is nothing.
bool Find(KernelCache& cache, const Wanted& wanted, CompiledKernel& kernel) {
  if (wanted.signature.empty()) return false;
  std::optional<CachedKernel> found = cache.Find(wanted.signature);
  if (!found && !wanted.recipe.text.empty()) {
    found = cache.Find(wanted.emitted());
    if (found && cache.checks_recipes()) Check(wanted, *found, cache);
    // Of sizes that are equal by chance emission would come to other code.
    if (!found && !wanted.recipe.is_told_by_values) found = cache.Find(wanted.recipe);
    if (!found) return false;
    cache.Add(wanted.signature, *found);
  }
  if (!found) return false;
  kernel.code = std::move(found->code);
  kernel.info = std::move(found->info);
  return true;
}

// As they were when the process, or the child that it is, first asked: that reads files.
size_t UsableCpus() {
  static std::atomic<int64_t> known = 0;  // the process above the number
  const int64_t pid = getpid(), seen = known;
  if (seen >> 32 == pid) return static_cast<size_t>(seen & 0xffffffff);
  const int64_t cpus = process::UsableCpus();
  known = pid << 32 | cpus;
  return static_cast<size_t>(cpus);
}

// Calls `work` for each of `count` numbers, on as many threads as pay, each with a context of its
// own: to make one for each kernel takes a part of the kernel's time that shows.
void ForEach(size_t count, bool has_names,
             const std::function<void(llvm::LLVMContext&, size_t)>& work) {
  if (count == 0) return;
  const size_t threads = std::clamp<size_t>(std::min(count / 2, UsableCpus()), 1, 8);
  std::vector<std::exception_ptr> errors(threads);
  std::atomic<size_t> next = 0;
  auto run = [&](size_t thread) noexcept {
    const process::NoForkOfCaller no_fork;
    try {
      const LlvmObject<llvm::LLVMContext> context;
      context->setDiscardValueNames(!has_names);
      for (size_t i = next++; i < count; i = next++) work(*context, i);
    } catch (...) {
      errors[thread] = std::current_exception();
      next = count;  // the others end, too
    }
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    try {
      const process::BlockSignals blocked;
      for (size_t i = 1; i < threads; ++i) workers.emplace_back(run, i);
    } catch (const std::exception&) {
      // Those that there are do what one whose thread cannot be started would have.
    }
    run(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void NumberObjects(GeneratedCode& code) {
  std::unordered_map<const KernelCode*, int32_t> numbers;
  for (const CompiledKernel& kernel : code.kernels) {
    const auto next = static_cast<int32_t>(numbers.size());
    code.object_of_kernel.push_back(numbers.emplace(kernel.code.get(), next).first->second);
  }
}

// The kernels that have an object first, in the order of the objects.
std::vector<const KernelCode*> Codes(const GeneratedCode& code) {
  std::vector<const KernelCode*> codes;
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    if (code.object_of_kernel[i] == static_cast<int32_t>(codes.size())) {
      codes.push_back(code.kernels[i].code.get());
    }
  }
  return codes;
}

}  // namespace

GeneratedCode GenerateCode(const hlo::Module& module, const Dump& dump, KernelCache& cache,
                           SlotsFor slots, const std::set<int64_t>& varying_sizes) {
  GeneratedCode code;
  const std::vector<Wanted> kernels = FindKernels(module, cache, slots, varying_sizes, code);
  std::vector<size_t> missing;
  // Those that are kept by their signature have slots for no more than what has varied.
  const bool kept = slots != SlotsFor::kAllSizes;
  for (size_t i = 0; i < kernels.size(); ++i) {
    // A dump shows all code, the one that is there already as well.
    if (dump || !kept || !Find(cache, kernels[i], code.kernels[i])) missing.push_back(i);
  }
  // Names are for those who read a dump.
  ForEach(missing.size(), bool(dump), [&](llvm::LLVMContext& context, size_t k) {
    const size_t i = missing[k];
    Emit(kernels[i], static_cast<int64_t>(i), dump, context, cache, code.kernels[i]);
    if (kept) Add(cache, kernels[i].signature, code.kernels[i]);
  });
  NumberObjects(code);
  return code;
}

void LoadObjects(const hlo::Module& module, const std::vector<std::string_view>& objects,
                 GeneratedCode& code, KernelCache& cache) {
  const std::vector<const hlo::Instruction*> users = KernelInstructions(module);
  if (users.size() != code.kernel_of_instruction.size()) {
    throw hlo::Error("the executable's code does not belong to its program");
  }
  std::vector<const hlo::Instruction*> user_of(code.kernels.size());
  for (size_t i = 0; i < users.size(); ++i) user_of[code.kernel_of_instruction[i]] = users[i];
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    CompiledKernel& kernel = code.kernels[i];
    const auto number = static_cast<size_t>(code.object_of_kernel[i]);
    if (number >= objects.size() || user_of[i] == nullptr) {
      throw hlo::Error("the executable lacks the code of " + kernel.name);
    }
    // By its bytes alone: what whoever wrote the executable says of it is for this executable.
    kernel.code = cache.Load(std::string(objects[number]));
  }
}

std::vector<std::string_view> GeneratedCode::Objects() const {
  std::vector<std::string_view> objects;
  for (const KernelCode* code : Codes(*this)) objects.push_back(code->object());
  return objects;
}

int64_t GeneratedCode::code_bytes() const {
  int64_t bytes = 0;
  for (const KernelCode* code : Codes(*this)) bytes += code->bytes();
  return bytes;
}

std::string GeneratedCode::SerializeTable() const {
  std::ostringstream out;
  out.precision(17);
  out << kernels.size() << ' ' << kernel_of_instruction.size() << '\n';
  for (size_t i = 0; i < kernels.size(); ++i) {
    const CompiledKernel& kernel = kernels[i];
    out << kernel.name << ' ' << object_of_kernel[i] << ' ' << kernel.info.units << ' '
        << kernel.info.unit_cost << ' ' << kernel.info.slots.size();
    for (int64_t slot : kernel.info.slots) out << ' ' << slot;
    out << '\n';
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
  code.object_of_kernel.resize(kernels);
  for (size_t i = 0; i < kernels; ++i) {
    CompiledKernel& kernel = code.kernels[i];
    size_t slots = 0;
    in >> kernel.name >> code.object_of_kernel[i] >> kernel.info.units >> kernel.info.unit_cost >>
        slots;
    if (!in || slots > bytes.size()) in.setstate(std::ios::failbit);
    kernel.info.slots.resize(in ? slots : 0);
    for (int64_t& slot : kernel.info.slots) in >> slot;
  }
  code.kernel_of_instruction.resize(instructions);
  for (int32_t& number : code.kernel_of_instruction) {
    in >> number;
    if (number < 0 || number >= static_cast<int64_t>(kernels)) in.setstate(std::ios::failbit);
  }
  if (!in) throw hlo::Error("the executable's table of kernels is corrupt");
  return code;
}

}  // namespace cpu
