#include "remote/client/executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/serialized.h"
#include "remote/client/blob.h"

namespace remote {

ServedProgram::ServedProgram(std::shared_ptr<PJRT_Client> owner, uint64_t number,
                             wire::Executable described)
    : client(std::move(owner)), number(number), message(std::move(described)) {
  name = message.name();
  fingerprint = message.fingerprint();
  compile_options = message.options();
  for (const wire::Shape& result : message.results()) {
    AddResult(results.emplace_back(FromMessage(result)));
  }
  for (const std::string& kind : message.parameter_memory_kinds()) parameter_memory_kinds.Add(kind);
  for (const std::string& kind : message.result_memory_kinds()) result_memory_kinds.Add(kind);
  for (const std::string& layout : message.parameter_layouts()) parameter_layouts.Add(layout);
  for (const std::string& layout : message.result_layouts()) result_layouts.Add(layout);
}

void ServedProgram::Want(uint32_t place) const {
  std::lock_guard lock(mutex_);
  if (wanted_.size() == kMostSmallResults) return;
  if (std::find(wanted_.begin(), wanted_.end(), place) == wanted_.end()) wanted_.push_back(place);
}

std::vector<uint32_t> ServedProgram::wanted() const {
  std::lock_guard lock(mutex_);
  return wanted_;
}

ServedProgram::~ServedProgram() { client->connection->FreeExecutable(number); }

}  // namespace remote

PJRT_LoadedExecutable::PJRT_LoadedExecutable(std::shared_ptr<const remote::ServedProgram> loaded)
    : program(std::move(loaded)) {
  for (uint32_t place : program->message.devices()) {
    devices.push_back(program->client->device_handles.at(place));
  }
  const auto& ids = program->message.logical_ids();
  for (int i = 0; i + 1 < ids.size(); i += 2) logical_ids.push_back({ids[i], ids[i + 1]});
}

const remote::ServedProgram& PJRT_LoadedExecutable::Get() const {
  if (deleted) throw hlo::Error("the executable has been deleted");
  return *program;
}

namespace pjrt::boundary {
namespace {

namespace wire = remote::wire;
using remote::ServedProgram;

PJRT_LoadedExecutable* Compile(PJRT_Client& client, std::string_view code, std::string_view format,
                               std::string_view options) {
  const uint64_t number = client.connection->NewNumbers();
  wire::Request request;
  wire::Compile& call = *request.mutable_compile();
  call.set_executable(number);
  call.set_format(format.data(), format.size());
  call.set_options(options.data(), options.size());
  if (code.size() <= remote::kMostPieceBytes) {
    call.set_code(code.data(), code.size());
  } else {
    call.set_blob(remote::SendBlob(*client.connection, code));
  }
  wire::Reply reply;
  try {
    reply = client.connection->Ask(std::move(request));
  } catch (const hlo::Error&) {
    client.connection->FreeExecutable(number);
    throw;
  }
  return new PJRT_LoadedExecutable(std::make_shared<ServedProgram>(
      client.shared_from_this(), number, std::move(*reply.mutable_executable())));
}

const ServedProgram& ProgramOf(const PJRT_Executable* executable) {
  return *Require(executable, "executable").program;
}

wire::Request DescribeRequest(const ServedProgram& program, wire::Describe::What what) {
  wire::Request request;
  request.mutable_describe()->set_executable(program.number);
  request.mutable_describe()->set_what(what);
  return request;
}

remote::Text AskText(const ServedProgram& program, wire::Describe::What what) {
  return remote::AskText(*program.client->connection, DescribeRequest(program, what));
}

}  // namespace

void Client_Compile(PJRT_Client_Compile_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  const PJRT_Program program = Complete(Require(args.program, "program"));
  const std::string_view format(program.format, program.format_size);
  if (format.empty()) throw hlo::Error("the program's format is not given");
  args.executable = Compile(client, {&Require(program.code, "program code"), program.code_size},
                            format, {args.compile_options, args.compile_options_size});
}

void Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  std::string_view options;
  if (args.overridden_serialized_compile_options != nullptr) {
    options = {args.overridden_serialized_compile_options,
               args.overridden_serialized_compile_options_size};
  }
  args.loaded_executable =
      Compile(client, {args.serialized_executable, args.serialized_executable_size}, "", options);
}

const ProgramDescription& DescriptionOf(const PJRT_Executable& executable) {
  return *executable.program;
}
const ProgramDevices& DevicesOf(const PJRT_LoadedExecutable& executable) { return executable; }

void Executable_Destroy(PJRT_Executable_Destroy_Args& args) { delete args.executable; }

void Executable_NumReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = ProgramOf(args.executable).message.replicas();
}

void Executable_NumPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = ProgramOf(args.executable).message.partitions();
}

void Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = ProgramOf(args.executable).message.code_bytes();
}

void Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  PJRT_Executable& executable = Require(args.executable, "executable");
  if (executable.cost_handles.empty()) {
    const ServedProgram& program = *executable.program;
    const wire::Reply reply =
        program.client->connection->Ask(DescribeRequest(program, wire::Describe::COST_ANALYSIS));
    executable.costs = remote::FromMessage(reply.values().values());
    executable.cost_handles = ToC(executable.costs);
  }
  args.num_properties = executable.cost_handles.size();
  args.properties = executable.cost_handles.data();
}

void Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const auto& stats = ProgramOf(args.executable).message.memory_stats();
  int64_t* const fields[] = {
      &args.generated_code_size_in_bytes, &args.argument_size_in_bytes,
      &args.output_size_in_bytes,         &args.alias_size_in_bytes,
      &args.temp_size_in_bytes,           &args.host_generated_code_size_in_bytes,
      &args.host_argument_size_in_bytes,  &args.host_output_size_in_bytes,
      &args.host_alias_size_in_bytes,     &args.host_temp_size_in_bytes,
      &args.peak_memory_in_bytes,         &args.total_size_in_bytes};
  if (static_cast<size_t>(stats.size()) < std::size(fields)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the server's plugin does not say how much memory programs need");
  }
  for (size_t i = 0; i < std::size(fields); ++i) *fields[i] = stats[static_cast<int>(i)];
  args.total_allocation_bytes = args.total_size_in_bytes;
  args.indefinite_allocations = 0;
  args.peak_unpadded_heap_bytes = args.temp_size_in_bytes;
}

void Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  PJRT_Program& out = Require(args.program, "program");
  const remote::Text program =
      AskText(ProgramOf(args.executable), wire::Describe::OPTIMIZED_PROGRAM);
  const char* format = program.format == "mlir"              ? "mlir"
                       : program.format == "hlo_with_config" ? "hlo_with_config"
                                                             : "hlo";
  FillProgram(program.text, format, out);
}

void Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  HandOut(AskText(ProgramOf(args.executable), wire::Describe::SERIALIZED).text,
          args.serialized_bytes, args.serialized_bytes_size, args.serialized_executable,
          args.serialized_executable_deleter);
}

void LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args& args) { delete args.executable; }

void LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  PJRT_LoadedExecutable& loaded = Require(args.loaded_executable, "loaded executable");
  loaded.Get();
  args.executable = new PJRT_Executable{loaded.program, {}, {}};
}

void LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args& args) {
  Require(args.executable, "executable").deleted = true;
}

void LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = Require(args.executable, "executable").deleted;
}

void LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  const PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  HandOut(executable.program->message.device_assignment(), args.serialized_bytes,
          args.serialized_bytes_size, args.serialized_device_assignment,
          args.serialized_device_assignment_deleter);
}

void LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  const std::string& text = Require(args.executable, "executable").Get().fingerprint;
  args.executable_fingerprint = text.data();
  args.executable_fingerprint_size = text.size();
}

}  // namespace pjrt::boundary
