#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/executable.h"
#include "cpu/host.h"
#include "cpu/jit.h"
#include "cpu/memory.h"
#include "cpu/pipeline.h"
#include "cpu/program_builder.h"
#include "cpu/sealed_parts.h"
#include "hlo/bytecode.h"
#include "hlo/verifier.h"
#include "process/library_identity.h"

namespace cpu {
namespace {

constexpr std::string_view kKind = "executable of the CPU engine, format 2";

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

class CompiledExecutable : public Executable {
 public:
  // `module` is fused; `code` holds its kernels.
  CompiledExecutable(std::unique_ptr<hlo::Module> module, GeneratedCode code,
                     const CompileOptions& options)
      : options_(options),
        module_(std::move(module)),
        code_(std::move(code)),
        loaded_(code_.objects) {
    const hlo::Computation& entry = *module_->entry();
    for (const hlo::Instruction* parameter : entry.parameters()) {
      parameter_shapes_.push_back(parameter->shape());
    }
    for (const hlo::Instruction* result : entry.results())
      result_shapes_.push_back(result->shape());
    aliases_.assign(result_shapes_.size(), -1);
    for (const hlo::InputOutputAlias& alias : module_->input_output_aliases) {
      if (parameter_shapes_[alias.parameter].byte_size() ==
          result_shapes_[alias.output].byte_size()) {
        aliases_[alias.output] = alias.parameter;
      }
    }
    Bind();
  }

  const std::vector<hlo::Shape>& parameter_shapes() const override { return parameter_shapes_; }
  const std::vector<hlo::Shape>& result_shapes() const override { return result_shapes_; }
  const std::vector<int64_t>& aliased_parameters() const override { return aliases_; }

  void Run(std::span<const void* const> arguments, std::span<void* const> results,
           const RunOptions& options) const override {
    if (arguments.size() != parameter_shapes_.size() || results.size() != result_shapes_.size()) {
      throw hlo::Error("the program takes " + std::to_string(parameter_shapes_.size()) +
                       " buffers and gives " + std::to_string(result_shapes_.size()) + ", not " +
                       std::to_string(arguments.size()) + " and " + std::to_string(results.size()));
    }
    ThreadPool& threads = options.threads ? *options.threads : ThreadPool::Default();
    Block arena = TakeArena();
    // Arguments are written to only where they are results too.
    auto* writable = const_cast<void* const*>(arguments.data());
    program_->Run({writable, arguments.size()}, results, static_cast<std::byte*>(arena.data()),
                  threads, options);
    GiveBack(std::move(arena));
  }

  bool communicates() const override { return module_->Contains(&hlo::IsCollective); }

  int64_t arena_bytes() const override { return program_->arena_bytes; }
  int64_t code_bytes() const override { return loaded_.bytes(); }
  std::string ToString() const override { return program_->ToString() + module_->ToString(); }

  std::string Serialize() const override {
    const std::string engine = EngineFingerprint(), options = ToText(options_),
                      program = hlo::WriteBytecode(*module_), table = code_.SerializeTable();
    std::vector<std::string_view> parts = {engine, options, program, table};
    parts.insert(parts.end(), code_.objects.begin(), code_.objects.end());
    return SealParts(kKind, parts);
  }

 private:
  void Bind() {
    for (CompiledKernel& kernel : code_.kernels) {
      kernel.function = reinterpret_cast<KernelFunction>(loaded_.Find(kernel.name));
      if (!kernel.function) throw hlo::Error("the executable lacks the code of " + kernel.name);
    }
    std::unordered_map<const hlo::Instruction*, int32_t> numbers;
    std::vector<const hlo::Instruction*> users = KernelInstructions(*module_);
    if (users.size() != code_.kernel_of_instruction.size()) {
      throw hlo::Error("the executable's code does not belong to its program");
    }
    for (size_t i = 0; i < users.size(); ++i) numbers[users[i]] = code_.kernel_of_instruction[i];
    program_ = BuildProgram(*module_->entry(), aliases_,
                            [&](const hlo::Instruction& instruction) -> const CompiledKernel& {
                              return code_.kernels.at(numbers.at(&instruction));
                            });
  }

  Block TakeArena() const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (arenas_.empty()) return Block(static_cast<size_t>(program_->arena_bytes));
    Block block = std::move(arenas_.back());
    arenas_.pop_back();
    return block;
  }
  // Kept for the next run unless large: then other executables may want the memory.
  void GiveBack(Block block) const {
    constexpr size_t kKeep = 1 << 20;
    if (block.bytes() > kKeep) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (arenas_.size() < 4) arenas_.push_back(std::move(block));
  }

  const CompileOptions options_;
  std::unique_ptr<hlo::Module> module_;
  GeneratedCode code_;
  LoadedCode loaded_;
  std::vector<hlo::Shape> parameter_shapes_, result_shapes_;
  std::vector<int64_t> aliases_;
  std::unique_ptr<Program> program_;
  mutable std::mutex mutex_;
  mutable std::vector<Block> arenas_;
};

}  // namespace

std::unique_ptr<Executable> Compile(const hlo::Module& module, const CompileOptions& options) {
  PipelineOptions pipeline;
  pipeline.single_device = options.num_replicas * options.num_partitions == 1;
  pipeline.disabled = PassesDisabledByEnvironment();
  for (const std::string& list : options.disabled_passes) {
    pipeline.disabled.merge(ParsePassNames(list));
  }
  std::unique_ptr<hlo::Module> work = module.Clone();
  Dump dump;
  dump.Input(*work);
  RunPipeline(*work, pipeline,
              [&](const PassRun& run, const hlo::Module& after) { dump.AfterPass(run, after); });
  GeneratedCode code = GenerateCode(*work, dump);
  auto executable = std::make_unique<CompiledExecutable>(std::move(work), std::move(code), options);
  if (dump) dump.Program(executable->ToString());
  return executable;
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
  code.objects.assign(parts.begin() + 4, parts.end());
  return std::make_unique<CompiledExecutable>(std::move(module), std::move(code), options);
}

std::string EngineFingerprint() {
  static const auto* fingerprint = new std::string(
      "torch_xla-cpu 2 " + process::LibraryIdentity(reinterpret_cast<void*>(&EngineFingerprint)) +
      " " + Host().name + " " + Host().features + Without(PassesDisabledByEnvironment()));
  return *fingerprint;
}

}  // namespace cpu
