#include "pjrt/plugin/executable.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <set>

#include "cpu/pipeline.h"
#include "cpu/sealed_parts.h"
#include "hlo/text_reader.h"
#include "hlo/verifier.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/wire/option_names.h"
#include "process/sha256.h"

namespace pjrt::plugin {
namespace {

std::unique_ptr<hlo::Module> ParseProgram(std::string_view format, std::string_view code) {
  if (format != "mlir") {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "programs in the format '" + std::string(format) +
                         "' are not read; send 'mlir' (StableHLO, as bytecode or text)");
  }
  return hlo::ReadStablehlo(std::as_bytes(std::span(code)));
}

// What this plugin cannot run on `num_devices`.
void CheckOptions(const CompileOptions& options, int64_t num_devices) {
  if (options.tupled_arguments) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "tupled arguments are not supported");
  }
  if (options.num_devices() > num_devices) {
    throw hlo::Error("the program is for " + std::to_string(options.num_devices()) +
                     " devices, but there are " + std::to_string(num_devices));
  }
  for (int64_t id : options.device_assignment) {
    if (id < 0 || id >= num_devices) {
      throw hlo::Error("the device assignment " + hlo::ToString(options.device_assignment) +
                       " names device " + std::to_string(id) + ", but there are " +
                       std::to_string(num_devices));
    }
  }
  if (options.num_partitions > 1) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "programs partitioned over several devices are not implemented");
  }
}

std::vector<Donation> DonationsOf(const hlo::Module& module) {
  std::vector<Donation> donations(module.entry()->parameters().size(), Donation::kNone);
  for (int64_t parameter : module.buffer_donors) donations.at(parameter) = Donation::kMay;
  for (const hlo::InputOutputAlias& alias : module.input_output_aliases) {
    donations.at(alias.parameter) = alias.must_alias ? Donation::kMust : Donation::kMay;
  }
  return donations;
}

constexpr std::string_view kKind = "serialized executable of this plugin, format 2";

// "8,120". Throws hlo::Error.
std::set<int64_t> ParseSizes(std::string_view text) {
  std::set<int64_t> sizes;
  for (const char *next = text.data(), *end = next + text.size(); next != end;) {
    int64_t size = 0;
    const auto [after, error] = std::from_chars(next, end, size);
    if (error != std::errc() || (after != end && *after != ',')) {
      throw hlo::Error("sizes that vary are numbers with commas between them, not '" +
                       std::string(text) + "'");
    }
    sizes.insert(size);
    next = after == end ? end : after + 1;
  }
  return sizes;
}

cpu::CompileOptions EngineOptions(const CompileOptions& options) {
  cpu::CompileOptions engine_options;
  engine_options.num_replicas = options.num_replicas;
  engine_options.num_partitions = options.num_partitions;
  const auto varying = options.overrides.find(kVaryingSizesOption);
  if (varying != options.overrides.end()) {
    engine_options.varying_sizes = ParseSizes(varying->second);
  }
  return engine_options;
}

Donation ParseDonation(char byte) {
  if (byte < 0 || byte > static_cast<char>(Donation::kMust)) {
    throw hlo::Error("the serialized executable contradicts itself");
  }
  return static_cast<Donation>(byte);
}

// Whoever keeps programs may take equal fingerprints for equal programs.
std::string FingerprintOf(const CompiledProgram& program, std::string_view code) {
  return process::ToHex(process::Sha256OfParts({PlatformVersion(), program.compile_options, code}));
}

// Of a program that nothing is known to be equal to. Processes of two containers may have one
// number.
std::string NewFingerprint() {
  static std::atomic<int64_t> last = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string number =
      std::to_string(getpid()) + " " + std::to_string(++last) + " " + std::to_string(now);
  return process::ToHex(process::Sha256OfParts({PlatformVersion(), "module", number}));
}

}  // namespace

std::shared_ptr<const CompiledProgram> CompiledProgram::Compile(const PJRT_Program& source,
                                                                std::string_view options,
                                                                int64_t num_devices,
                                                                std::optional<int64_t> rank) {
  const std::string_view code(&Require(source.code, "program code"), source.code_size);
  const std::string_view format(source.format, source.format_size);
  auto program = std::make_shared<CompiledProgram>();
  program->code_ = code;
  program->CompileFor(ParseProgram(format, code), options, num_devices, rank);
  program->fingerprint = FingerprintOf(*program, program->code_);
  return program;
}

std::shared_ptr<const CompiledProgram> CompiledProgram::Compile(std::unique_ptr<hlo::Module> module,
                                                                std::string_view options,
                                                                int64_t num_devices,
                                                                std::optional<int64_t> rank) {
  // As a reader of its bytes leaves it.
  module->RemoveUnreachableComputations();
  module->SortComputations();
  if (cpu::VerifiesByDefault()) hlo::VerifyModule(*module);
  auto program = std::make_shared<CompiledProgram>();
  program->CompileFor(std::move(module), options, num_devices, rank);
  program->fingerprint = NewFingerprint();
  return program;
}

void CompiledProgram::CompileFor(std::unique_ptr<hlo::Module> module,
                                 std::string_view serialized_options, int64_t num_devices,
                                 std::optional<int64_t> rank) {
  compile_options = serialized_options;
  options = ParseCompileOptions(serialized_options);
  CheckOptions(options, num_devices);
  cpu::CompileOptions engine_options = EngineOptions(options);
  engine_options.rank = rank;
  donations = DonationsOf(*module);
  name = module->name();
  executable = cpu::Compile(std::move(module), engine_options);
  Describe();
}

const std::string& CompiledProgram::code() const {
  if (code_.empty()) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the program was handed over as a module, so its code is not there; a program "
                     "that is to be serialized is compiled from bytecode or text");
  }
  return code_;
}

std::string CompiledProgram::Serialize() const {
  const std::string engine = executable->Serialize();
  const std::string_view donation_bytes(reinterpret_cast<const char*>(donations.data()),
                                        donations.size());
  return cpu::SealParts(kKind, {name, code(), compile_options, donation_bytes, engine});
}

std::shared_ptr<const CompiledProgram> CompiledProgram::Deserialize(std::string_view bytes,
                                                                    std::string_view options,
                                                                    int64_t num_devices) {
  const std::vector<std::string_view> parts = cpu::OpenSealed(kKind, bytes, 5);
  auto program = std::make_shared<CompiledProgram>();
  program->name = parts[0];
  program->code_ = parts[1];
  program->compile_options = options.empty() ? parts[2] : options;
  program->options = ParseCompileOptions(program->compile_options);
  CheckOptions(program->options, num_devices);
  for (const char donation : parts[3]) program->donations.push_back(ParseDonation(donation));
  program->executable = cpu::LoadExecutable(parts[4], EngineOptions(program->options));
  if (program->donations.size() != program->parameters().size()) {
    throw hlo::Error("the serialized executable contradicts itself");
  }
  program->Describe();
  program->fingerprint = FingerprintOf(*program, program->code_);
  return program;
}

void CompiledProgram::Describe() {
  communicates = executable->communicates();
  for (const hlo::Shape& shape : results()) {
    AddResult(shape);
    result_descriptions.push_back(std::make_shared<const BufferDescription>(shape));
    result_layouts.Add(LayoutText(shape.rank()));
    result_memory_kinds.Add(kMemoryKind);
  }
  for (const hlo::Shape& shape : parameters()) {
    parameter_layouts.Add(LayoutText(shape.rank()));
    parameter_memory_kinds.Add(kMemoryKind);
  }
}

}  // namespace pjrt::plugin

namespace pjrt::boundary {

using namespace plugin;
namespace {

const CompiledProgram& ProgramOf(const PJRT_Executable* executable) {
  return *Require(executable, "executable").program;
}

}  // namespace

const ProgramDescription& DescriptionOf(const PJRT_Executable& executable) {
  return *executable.program;
}

void Executable_Destroy(PJRT_Executable_Destroy_Args& args) { delete args.executable; }

void Executable_NumReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = ProgramOf(args.executable).options.num_replicas;
}

void Executable_NumPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = ProgramOf(args.executable).options.num_partitions;
}

void Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = ProgramOf(args.executable).executable->code_bytes();
}

void Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented, "costs of programs are not analysed");
}

void Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const CompiledProgram& program = ProgramOf(args.executable);
  auto sum = [](const std::vector<hlo::Shape>& shapes) {
    int64_t bytes = 0;
    for (const hlo::Shape& shape : shapes) bytes += shape.byte_size();
    return bytes;
  };
  int64_t aliased = 0;
  const std::vector<int64_t>& aliases = program.executable->aliased_parameters();
  for (size_t i = 0; i < aliases.size(); ++i) {
    if (aliases[i] >= 0) aliased += program.results()[i].byte_size();
  }
  args.generated_code_size_in_bytes = program.executable->code_bytes();
  args.argument_size_in_bytes = sum(program.parameters());
  args.output_size_in_bytes = sum(program.results());
  args.alias_size_in_bytes = aliased;
  args.temp_size_in_bytes = program.executable->arena_bytes();
  args.host_generated_code_size_in_bytes = 0;
  args.host_argument_size_in_bytes = 0;
  args.host_output_size_in_bytes = 0;
  args.host_alias_size_in_bytes = 0;
  args.host_temp_size_in_bytes = 0;
  args.total_size_in_bytes =
      args.argument_size_in_bytes + args.output_size_in_bytes - aliased + args.temp_size_in_bytes;
  args.peak_memory_in_bytes = args.total_size_in_bytes;
  args.total_allocation_bytes = args.total_size_in_bytes;
  args.indefinite_allocations = 0;
  args.peak_unpadded_heap_bytes = args.temp_size_in_bytes;
}

// The program as it was compiled from: what the engine makes of it has no MLIR form.
void Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  FillProgram(ProgramOf(args.executable).code(), "mlir", Require(args.program, "program"));
}

void Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  HandOut(ProgramOf(args.executable).Serialize(), args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_executable, args.serialized_executable_deleter);
}

}  // namespace pjrt::boundary
