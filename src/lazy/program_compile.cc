#include "lazy/program_compile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "hlo/text_writer.h"
#include "lazy/cudnn_attention.h"
#include "lazy/metrics.h"
#include "lazy/settings.h"
#include "lazy/span.h"
#include "pjrt/wire/option_names.h"
#include "process/limits.h"

namespace lazy {
namespace {

// What the device holds, in bytes; 0 if nobody knows.
int64_t MemoryLimit(Device* device) {
  try {
    if (auto limit = device->pjrt_device().memory_stats().bytes_limit) return *limit;
  } catch (const hlo::Error&) {
    // Not every plugin says.
  }
  if (device->client().platform_name() != "cpu") return 0;
  static const int64_t limit = process::MemoryLimit();
  return limit;
}

// Before anything is compiled for results that no execution could hold.
void CheckResultsFit(Device* device, const Graph& graph) {
  int64_t limit = MemoryLimit(device);
  if (limit <= 0) return;
  int64_t total = 0;
  for (const Value& result : graph.results()) {
    const hlo::Shape& shape = result.shape();
    int64_t bytes = shape.byte_size();
    total += bytes;
    if (bytes <= limit && total <= limit) continue;
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "out of memory: the results of the recorded operations, among them " +
                         shape.ToString() + " of " + result.node->operation()->kind().name +
                         ", need " + std::to_string(total) + " bytes and the device has " +
                         std::to_string(limit));
  }
}

// A program in which no other process takes part is this device's own.
pjrt::CompileOptions OptionsFor(Device* device, const hlo::Module& module) {
  pjrt::CompileOptions options;
  options.overrides = CustomCompileOptions();
  options.device_assignment = {device->pjrt_device().id()};
  const Runtime& runtime = Runtime::Get();
  if (runtime.world_size() > 1 && module.Contains(&hlo::IsOfWorld)) {
    options.num_replicas = runtime.world_size();
    options.device_assignment = runtime.world_devices();
  }
  return options;
}

// Each once.
std::vector<OperationReference> OperationsOf(const Graph& graph) {
  std::vector<const Operation*> operations;
  for (const Node* node : graph.nodes()) operations.push_back(node->operation());
  std::sort(operations.begin(), operations.end());
  operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
  return {operations.begin(), operations.end()};
}

// What a program takes of the host's memory: what describes it, and its code.
int64_t BytesOf(const hlo::Module& module) {
  // As measured of the engine's programs, small ones and large ones, beside their code.
  constexpr int64_t kBytesOfProgram = 16 << 10, kBytesOfInstruction = 2 << 10;
  int64_t bytes = kBytesOfProgram;
  for (const auto& computation : module.computations()) {
    bytes += static_cast<int64_t>(computation->instructions().size()) * kBytesOfInstruction;
    for (const auto& instruction : computation->instructions()) {
      if (instruction->opcode() == hlo::Opcode::kConstant)
        bytes += instruction->shape().byte_size();
    }
  }
  return bytes;
}
int64_t BytesOf(const CachedProgram& program) {
  auto bytes = static_cast<int64_t>(program.signature.size() * sizeof(uint64_t));
  try {
    bytes += std::max<int64_t>(0, program.executable->executable().generated_code_bytes());
  } catch (const hlo::Error&) {
    // Not every plugin says.
  }
  return bytes;
}

// As the environment asked at the first compilation: another thread may be changing it by now.
void AppendToHloFile(const hlo::Module& module) {
  static const std::string path = [] {
    const char* given = std::getenv("XLA_SAVE_HLO_FILE");
    return std::string(given != nullptr ? given : "");
  }();
  FILE* file = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
  if (file == nullptr) return;
  const std::string text = hlo::WriteStablehloText(module);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

// Where the platform's compiler has kernels that a program has to ask for, with these.
std::unique_ptr<pjrt::LoadedExecutable> CompileForPlatform(pjrt::Client& client,
                                                           std::unique_ptr<hlo::Module> module,
                                                           const pjrt::CompileOptions& options,
                                                           const PlaceInCache& place) {
  if (client.platform_name() != "cuda") {
    return CompileOrLoad(client, std::move(module), options, place);
  }
  std::unique_ptr<pjrt::LoadedExecutable> executable;
  CudnnAttention::OfDevices().Compile(std::move(module), [&](std::unique_ptr<hlo::Module> ready) {
    executable = CompileOrLoad(client, std::move(ready), options, place);
  });
  return executable;
}

std::string Joined(const std::set<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace

std::string ProgramName(const Graph& graph) {
  const std::string given = GraphName();
  return (given.empty() ? "SyncTensorsGraph" : given) + "." + std::to_string(graph.nodes().size());
}

void LoweredProgram::Compile() {
  const int64_t bytes = BytesOf(*module);
  program->executable = CompileForPlatform(*client, std::move(module), options, place);
  program->bytes = bytes + BytesOf(*program);
}

LoweredProgram LowerProgram(Device* device, const Graph& graph, std::vector<uint64_t> signature,
                            Specialization specialization, const std::set<int64_t>& varying_sizes) {
  CheckResultsFit(device, graph);
  LoweredProgram lowered{&device->client(), nullptr, {}, {}, std::make_shared<CachedProgram>()};
  {
    Span span("xla::lower");
    ValueChecks checks;
    lowered.module = graph.Lower(ProgramName(graph), specialization.varies, &checks);
    if (!checks.empty()) {
      lowered.program->checks = std::make_shared<const ValueChecks>(std::move(checks));
    }
  }
  AppendToHloFile(*lowered.module);
  lowered.options = OptionsFor(device, *lowered.module);
  lowered.place = CurrentPlaceInCache(device->client(), lowered.options);
  // After its place in the cache was found: it computes the same without.
  if (!varying_sizes.empty()) {
    lowered.options.overrides[pjrt::kVaryingSizesOption] = Joined(varying_sizes);
  }
  lowered.program->signature = std::move(signature);
  lowered.program->specialization = std::move(specialization);
  lowered.program->operations = OperationsOf(graph);
  return lowered;
}

void KeepProgram(uint64_t hash, const std::shared_ptr<const CachedProgram>& program) {
  static auto* dynamic = Counter("DynamicCompile");
  if (program->specialization.varying_count() > 0) Count(dynamic);
  ProgramCache::Get().Insert(hash, program);
}

}  // namespace lazy
