// From a module to an executable: the stages in order are in Compile, Finish and BuildProgram.
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "cpu/buffer_assignment.h"
#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/executable.h"
#include "cpu/host.h"
#include "cpu/kernel_cache.h"
#include "cpu/memory.h"
#include "cpu/pipeline.h"
#include "cpu/schedule.h"
#include "cpu/sealed_parts.h"
#include "cpu/step_emission.h"
#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "process/library_identity.h"

namespace cpu {
namespace {

constexpr std::string_view kKind = "executable of the CPU engine, format 3";

std::string Without(const PassNames& disabled) {
  std::string text;
  for (const std::string& name : disabled) text += (text.empty() ? " without " : ",") + name;
  return text;
}

// All that the code depends on beside the program and the engine.
std::string ToText(const CompileOptions& options) {
  return "replicas=" + std::to_string(options.num_replicas) +
         " partitions=" + std::to_string(options.num_partitions) + Without(options.disabled_passes);
}

// What a program takes and gives.
struct Interface {
  std::vector<hlo::Shape> parameters, results;
  std::vector<int64_t> aliases;  // for each result: the parameter whose buffer it takes, or -1
};

Interface InterfaceOf(const hlo::Module& module) {
  Interface interface;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    interface.parameters.push_back(parameter->shape());
  }
  for (const hlo::Instruction* result : module.entry()->results()) {
    interface.results.push_back(result->shape());
  }
  interface.aliases.assign(interface.results.size(), -1);
  for (const hlo::InputOutputAlias& alias : module.input_output_aliases) {
    if (interface.parameters[alias.parameter].byte_size() ==
        interface.results[alias.output].byte_size()) {
      interface.aliases[alias.output] = alias.parameter;
    }
  }
  return interface;
}

// The kernels by the module's instructions; refers to `code`.
KernelTable KernelsOf(const hlo::Module& module, const GeneratedCode& code) {
  const std::vector<const hlo::Instruction*> users = KernelInstructions(module);
  if (users.size() != code.kernel_of_instruction.size()) {
    throw hlo::Error("the executable's code does not belong to its program");
  }
  std::unordered_map<const hlo::Instruction*, int32_t> numbers;
  for (size_t i = 0; i < users.size(); ++i) numbers[users[i]] = code.kernel_of_instruction[i];
  return [numbers = std::move(numbers),
          &code](const hlo::Instruction& instruction) -> const CompiledKernel& {
    return code.kernels.at(numbers.at(&instruction));
  };
}

std::unique_ptr<StepSequence> BuildProgram(const hlo::Computation& computation,
                                           const std::vector<int64_t>& aliases,
                                           const KernelTable& kernels) {
  const Schedule schedule = MakeSchedule(computation, aliases);
  std::vector<BoundStep> steps =
      BindSteps(schedule, [&](const hlo::Computation& called, const std::vector<int64_t>& own) {
        return BuildProgram(called, own, kernels);
      });
  BufferAssignment buffers = AssignBuffers(computation, schedule, aliases, ScratchBytes(steps));
  return EmitSteps(computation, schedule, std::move(buffers), std::move(steps), kernels);
}

class CompiledExecutable : public Executable {
 public:
  // `module` is fused; `code` holds its kernels, which `program` calls.
  CompiledExecutable(std::unique_ptr<hlo::Module> module, GeneratedCode code, Interface interface,
                     std::unique_ptr<StepSequence> program, const CompileOptions& options)
      : options_(options),
        module_(std::move(module)),
        code_(std::move(code)),
        interface_(std::move(interface)),
        program_(std::move(program)) {}

  const std::vector<hlo::Shape>& parameter_shapes() const override { return interface_.parameters; }
  const std::vector<hlo::Shape>& result_shapes() const override { return interface_.results; }
  const std::vector<int64_t>& aliased_parameters() const override { return interface_.aliases; }

  void Run(std::span<const void* const> arguments, std::span<void* const> results,
           const RunOptions& options) const override {
    if (arguments.size() != interface_.parameters.size() ||
        results.size() != interface_.results.size()) {
      throw hlo::Error("the program takes " + std::to_string(interface_.parameters.size()) +
                       " buffers and gives " + std::to_string(interface_.results.size()) +
                       ", not " + std::to_string(arguments.size()) + " and " +
                       std::to_string(results.size()));
    }
    ThreadPool& threads = options.threads ? *options.threads : ThreadPool::Default();
    // The pool's again afterwards: an executable that rests holds no memory for values.
    const Block arena(static_cast<size_t>(program_->arena_bytes));
    // Arguments are written to only where they are results too.
    auto* writable = const_cast<void* const*>(arguments.data());
    program_->Run({writable, arguments.size()}, results, static_cast<std::byte*>(arena.data()),
                  threads, options);
  }

  bool communicates() const override { return module_->Contains(&hlo::IsCollective); }

  int64_t arena_bytes() const override { return program_->arena_bytes; }
  int64_t code_bytes() const override { return code_.code_bytes(); }
  std::string ToString() const override { return program_->ToString() + module_->ToString(); }

  std::string Serialize() const override {
    const std::string engine = EngineFingerprint(), options = ToText(options_),
                      program = hlo::WriteBytecode(*module_), table = code_.SerializeTable();
    std::vector<std::string_view> parts = {engine, options, program, table};
    const std::vector<std::string_view> objects = code_.Objects();
    parts.insert(parts.end(), objects.begin(), objects.end());
    return SealParts(kKind, parts);
  }

 private:
  const CompileOptions options_;
  std::unique_ptr<hlo::Module> module_;
  const GeneratedCode code_;
  const Interface interface_;
  const std::unique_ptr<StepSequence> program_;
};

PipelineOptions PipelineOptionsOf(const CompileOptions& options) {
  PipelineOptions pipeline;
  pipeline.single_device = options.num_replicas * options.num_partitions == 1;
  pipeline.disabled = PassesDisabledByEnvironment();
  for (const std::string& name : options.disabled_passes) {
    pipeline.disabled.merge(ParsePassNames(name));
  }
  return pipeline;
}

// As the environment was at the first compilation.
bool SizesAreConstants() {
  static const bool exact = [] {
    const char* dynamic = std::getenv("TORCH_XLA_DYNAMIC");
    return dynamic != nullptr && std::string_view(dynamic) == "exact";
  }();
  return exact;
}

SlotsFor SlotsOf(const CompileOptions& options) {
  if (options.all_sizes_vary) return SlotsFor::kAllSizes;
  return SizesAreConstants() ? SlotsFor::kNothing : SlotsFor::kWhatVaries;
}

// The stages that follow the generation of code, whether that was now or in another process.
std::unique_ptr<Executable> Finish(std::unique_ptr<hlo::Module> module, GeneratedCode code,
                                   const CompileOptions& options) {
  Interface interface = InterfaceOf(*module);
  std::unique_ptr<StepSequence> program =
      BuildProgram(*module->entry(), interface.aliases, KernelsOf(*module, code));
  return std::make_unique<CompiledExecutable>(std::move(module), std::move(code),
                                              std::move(interface), std::move(program), options);
}

}  // namespace

std::unique_ptr<Executable> Compile(std::unique_ptr<hlo::Module> module,
                                    const CompileOptions& options) {
  Dump dump(options.rank);
  dump.Input(*module);
  RunPipeline(*module, PipelineOptionsOf(options),
              [&](const PassRun& run, const hlo::Module& after) { dump.AfterPass(run, after); });
  GeneratedCode code = GenerateCode(*module, dump, KernelCache::OfProcess(), SlotsOf(options),
                                    options.varying_sizes);
  std::unique_ptr<Executable> executable = Finish(std::move(module), std::move(code), options);
  if (dump) dump.Program(executable->ToString());
  return executable;
}

std::unique_ptr<Executable> Compile(const hlo::Module& module, const CompileOptions& options) {
  return Compile(module.Clone(), options);
}

std::unique_ptr<Executable> LoadExecutable(std::string_view bytes, const CompileOptions& options) {
  const std::vector<std::string_view> parts = OpenSealed(kKind, bytes, 4);
  const auto require = [](std::string_view theirs, const std::string& ours) {
    if (theirs == ours) return;
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the executable was compiled for '" + std::string(theirs) +
                         "', and this is '" + ours + "'; compile the program again");
  };
  require(parts[0], EngineFingerprint());
  require(parts[1], ToText(options));
  auto* program = reinterpret_cast<const std::byte*>(parts[2].data());
  std::unique_ptr<hlo::Module> module = hlo::ReadBytecode({program, parts[2].size()});
  GeneratedCode code = GeneratedCode::ParseTable(std::string(parts[3]));
  LoadObjects(*module, {parts.begin() + 4, parts.end()}, code, KernelCache::OfProcess());
  return Finish(std::move(module), std::move(code), options);
}

std::string EngineFingerprint() {
  static const auto* fingerprint = new std::string(
      "torch_xla-cpu 2 " + process::LibraryIdentity(reinterpret_cast<void*>(&EngineFingerprint)) +
      " " + Host().name + " " + Host().features + Without(PassesDisabledByEnvironment()) +
      (SizesAreConstants() ? " with constant sizes" : ""));
  return *fingerprint;
}

}  // namespace cpu
