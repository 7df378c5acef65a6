// Starting programs on the server.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "remote/client/buffer.h"
#include "remote/client/executable.h"

struct PJRT_ExecuteContext {};

namespace pjrt::boundary {
namespace {

namespace wire = remote::wire;

std::vector<PJRT_Device*> DevicesOf(const PJRT_LoadedExecutable& executable,
                                    const PJRT_LoadedExecutable_Execute_Args& args) {
  std::vector<PJRT_Device*> devices = executable.devices;
  if (args.execute_device != nullptr) {
    devices = {args.execute_device};
  } else if (devices.empty()) {
    devices = {executable.program->client->addressable_handles.at(0)};
  }
  if (devices.size() != args.num_devices) {
    throw hlo::Error("the executable runs on " + std::to_string(devices.size()) +
                     " devices, but arguments for " + std::to_string(args.num_devices) +
                     " are given");
  }
  return devices;
}

void AddArguments(const PJRT_LoadedExecutable_Execute_Args& args, const PJRT_Client& client,
                  wire::Execute& call) {
  call.mutable_arguments()->Reserve(static_cast<int>(args.num_devices * args.num_args));
  for (size_t d = 0; d < args.num_devices; ++d) {
    for (size_t i = 0; i < args.num_args; ++i) {
      PJRT_Buffer& buffer = Require(args.argument_lists[d][i], "an argument");
      if (buffer.client.get() != &client) {
        throw hlo::Error("argument " + std::to_string(i) + " belongs to another client");
      }
      call.add_arguments(buffer.Get());
    }
  }
}

// The arguments that the execution consumes, or may consume as far as the client knows.
std::vector<PJRT_Buffer*> Donated(const PJRT_LoadedExecutable_Execute_Args& args,
                                  const wire::Executable& program, const wire::Execute& call) {
  std::vector<bool> donated(args.num_args, !program.has_donations());
  for (uint32_t index : program.donations().consumed()) {
    if (index < args.num_args) donated[index] = true;
  }
  for (uint32_t index : call.non_donatable()) {
    if (index < args.num_args) donated[index] = false;
  }
  std::vector<PJRT_Buffer*> buffers;
  for (size_t d = 0; d < args.num_devices; ++d) {
    for (size_t i = 0; i < args.num_args; ++i) {
      if (donated[i]) buffers.push_back(args.argument_lists[d][i]);
    }
  }
  return buffers;
}

// What the server would find wrong later is said at once where the client knows it.
void CheckArguments(const PJRT_LoadedExecutable_Execute_Args& args, const wire::Executable& program,
                    const std::vector<PJRT_Buffer*>& donated) {
  if (!program.has_donations()) return;
  if (program.donations().parameters() != args.num_args) {
    throw hlo::Error("the program '" + program.name() + "' takes " +
                     std::to_string(program.donations().parameters()) + " arguments, but " +
                     std::to_string(args.num_args) + " are given");
  }
  std::unordered_map<const PJRT_Buffer*, int> uses;
  if (!donated.empty()) {
    for (size_t d = 0; d < args.num_devices; ++d) {
      for (size_t i = 0; i < args.num_args; ++i) ++uses[args.argument_lists[d][i]];
    }
  }
  for (const PJRT_Buffer* buffer : donated) {
    if (uses[buffer] == 1) continue;
    throw hlo::Error("a buffer of " + buffer->shape.ToString() + " is donated to the program '" +
                     program.name() + "' and given as another argument too");
  }
}

void TakeResults(wire::Results& came, remote::CompletedResults& completed) {
  for (int i = 0; i < came.places_size() && i < came.contents_size(); ++i) {
    completed.contents[came.places(i)] = std::move(*came.mutable_contents(i));
  }
  for (int i = 0; i < came.located_size() && i < came.offsets_size(); ++i) {
    completed.offsets[came.located(i)] = came.offsets(i);
  }
}

// An execution on one device that is on its way.
struct Launched {
  PJRT_Device& device;
  uint64_t first_result;  // its number; those of the others follow
  CompletionPtr done;
  std::shared_ptr<remote::CompletedResults> completed;
};

// Buffers of what it will give. `wanted` are the results that come with the execution's end.
void MakeResults(const PJRT_LoadedExecutable& executable, const std::vector<uint32_t>& wanted,
                 const Launched& launched, PJRT_Buffer** results) {
  const remote::ServedProgram& program = executable.Get();
  for (size_t i = 0; i < program.results.size(); ++i) {
    PJRT_Memory* memory = nullptr;
    if (i < program.result_memory_kinds.names.size()) {
      memory =
          launched.device.memory_of_kind(program.message.result_memory_kinds(static_cast<int>(i)));
    }
    auto* result = new PJRT_Buffer(launched.device, memory, program.results[i],
                                   launched.first_result + i, launched.done);
    results[i] = result;
    result->program = executable.program;
    result->place = static_cast<uint32_t>(i);
    result->is_wanted = std::find(wanted.begin(), wanted.end(), i) != wanted.end();
    result->completed = launched.completed;
  }
}

}  // namespace

void ExecuteContext_Create(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext;
}
void ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args& args) { delete args.context; }

// Returns when the request is on its way. What the server finds wrong with it is the failure of the
// results.
void LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  const PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  const remote::ServedProgram& program = executable.Get();
  PJRT_Client& client = *program.client;
  PJRT_ExecuteOptions options{};
  if (args.options != nullptr) options = Complete(*args.options);
  if (options.num_send_ops != 0 || options.num_recv_ops != 0) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "programs on a runtime server do not exchange data with the host while they "
                     "run");
  }
  const std::vector<PJRT_Device*> devices = DevicesOf(executable, args);

  const size_t num_results = program.results.size();
  wire::Request request;
  wire::Execute& call = *request.mutable_execute();
  call.set_executable(program.number);
  call.set_num_devices(static_cast<uint32_t>(devices.size()));
  call.set_launch(options.launch_id);
  for (size_t i = 0; i < options.num_non_donatable_input_indices; ++i) {
    call.add_non_donatable(static_cast<uint32_t>(options.non_donatable_input_indices[i]));
  }
  if (args.execute_device != nullptr) call.set_device(args.execute_device->place);
  AddArguments(args, client, call);
  const std::vector<uint32_t> wanted = program.wanted();
  call.mutable_wanted()->Assign(wanted.begin(), wanted.end());
  // Numbers are cheap: those of an execution that fails are not used again.
  const uint64_t first = client.connection->NewNumbers(num_results * devices.size());
  call.set_first_result(first);

  const std::vector<PJRT_Buffer*> donated = Donated(args, program.message, call);
  CheckArguments(args, program.message, donated);
  std::vector<CompletionPtr> done;
  std::vector<remote::Connection::Handler> handlers;
  std::vector<std::shared_ptr<remote::CompletedResults>> completed;
  for (size_t d = 0; d < devices.size(); ++d) {
    done.push_back(std::make_shared<Completion>());
    completed.push_back(std::make_shared<remote::CompletedResults>());
    handlers.push_back(
        [results = completed[d], tell = CompletionHandler(done[d])](wire::Reply& reply) {
          if (!reply.has_error()) TakeResults(*reply.mutable_results(), *results);
          tell(reply);
        });
  }
  for (PJRT_Buffer* buffer : donated) buffer->MayBeDonated();
  client.connection->Call(std::move(request), std::move(handlers));
  if (program.message.has_donations()) {
    for (PJRT_Buffer* buffer : donated) buffer->Delete();
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    const Launched launched{*devices[d], first + d * num_results, done[d], completed[d]};
    MakeResults(executable, wanted, launched, args.output_lists[d]);
    if (args.device_complete_events != nullptr) {
      args.device_complete_events[d] = NewEvent(done[d]);
    }
  }
}

}  // namespace pjrt::boundary
