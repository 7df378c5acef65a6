// Executables bound to a client's devices, and their execution.
#include <algorithm>
#include <optional>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/plugin/foreign_functions.h"
#include "pjrt/plugin/profiler.h"
#include "pjrt/plugin/result_memory.h"
#include "process/clock.h"
#include "process/fork.h"

PJRT_LoadedExecutable::PJRT_LoadedExecutable(
    PJRT_Client& owner, std::shared_ptr<const pjrt::plugin::CompiledProgram> loaded)
    : client(owner.shared_from_this()),
      program(std::move(loaded)),
      portable(program->options.portable),
      num_replicas(program->options.num_replicas),
      num_partitions(program->options.num_partitions),
      device_ids(program->options.device_assignment) {
  if (portable) device_ids.clear();
  if (!portable && device_ids.empty()) {
    const int64_t needed = num_replicas * num_partitions;
    const bool local = needed <= static_cast<int64_t>(client->addressable_handles.size());
    const auto& handles = local ? client->addressable_handles : client->device_handles;
    for (int64_t i = 0; i < needed; ++i) {
      device_ids.push_back(i < static_cast<int64_t>(handles.size()) ? handles[i]->description->id
                                                                    : i);
    }
  }
  for (size_t i = 0; i < device_ids.size(); ++i) {
    PJRT_Device& device = client->device(device_ids[i]);
    if (!device.addressable()) continue;
    const auto index = static_cast<int64_t>(i);
    logical_ids.push_back(
        {static_cast<int>(index / num_partitions), static_cast<int>(index % num_partitions)});
    devices.push_back(&device);
  }
  if (program->communicates) CheckCollectives(*program);
}

// Replicas are the world's ranks.
void PJRT_LoadedExecutable::CheckCollectives(const pjrt::plugin::CompiledProgram& loaded) const {
  const int64_t processes = client->topology.num_processes;
  if (processes == 1) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the program '" + loaded.name +
                         "' has collectives between devices of one process, which are not "
                         "implemented; run one process for each device");
  }
  bool everybody = num_replicas == processes && num_partitions == 1;
  for (size_t i = 0; everybody && i < device_ids.size(); ++i) {
    everybody = device_ids[i] == static_cast<int64_t>(i);
  }
  if (everybody) return;
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "the program '" + loaded.name + "' has collectives and the device assignment " +
                       hlo::ToString(device_ids) + "; it must have one replica on each of the " +
                       std::to_string(processes) + " devices, in their order");
}

std::shared_ptr<const pjrt::plugin::CompiledProgram> PJRT_LoadedExecutable::Get() const {
  std::lock_guard lock(mutex);
  if (program == nullptr) throw hlo::Error("the executable has been deleted");
  return program;
}

namespace pjrt::boundary {

using namespace plugin;

const ProgramDevices& DevicesOf(const PJRT_LoadedExecutable& executable) { return executable; }

void Client_Compile(PJRT_Client_Compile_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  const PJRT_Program program = Complete(Require(args.program, "program"));
  const std::string_view options(args.compile_options, args.compile_options_size);
  const auto num_devices = static_cast<int64_t>(client.devices.size());
  args.executable = new PJRT_LoadedExecutable(
      client, CompiledProgram::Compile(program, options, num_devices, client.rank()));
}

void Client_Load(PJRT_Client_Load_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  args.loaded_executable =
      new PJRT_LoadedExecutable(client, Require(args.executable, "executable").program);
}

void Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  const std::string_view bytes(args.serialized_executable, args.serialized_executable_size);
  std::string_view options;
  if (args.overridden_serialized_compile_options != nullptr) {
    options = {args.overridden_serialized_compile_options,
               args.overridden_serialized_compile_options_size};
  }
  args.loaded_executable = new PJRT_LoadedExecutable(
      client,
      CompiledProgram::Deserialize(bytes, options, static_cast<int64_t>(client.devices.size())));
}

void LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args& args) { delete args.executable; }

void LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{Require(args.loaded_executable, "loaded executable").Get()};
}

void LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args& args) {
  PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  std::shared_ptr<const CompiledProgram> released;
  std::lock_guard lock(executable.mutex);
  released.swap(executable.program);
}

void LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  std::lock_guard lock(executable.mutex);
  args.is_deleted = executable.program == nullptr;
}

void LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  const PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  std::string assignment;
  if (!executable.portable) {
    assignment = SerializeDeviceAssignment(executable.num_replicas, executable.num_partitions,
                                           executable.device_ids);
  }
  HandOut(std::move(assignment), args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_device_assignment, args.serialized_device_assignment_deleter);
}

void LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  const auto program = Require(args.executable, "executable").Get();
  args.executable_fingerprint = program->fingerprint.data();
  args.executable_fingerprint_size = program->fingerprint.size();
}

void ExecuteContext_Create(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext;
}
void ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args& args) { delete args.context; }

namespace {

bool CallerWaits(const PJRT_ExecuteOptions& options) {
  for (const auto* e = options.extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_CallerWaits) return true;
  }
  return false;
}

// One execution on one device, from its launch to its end.
class Launch : public Placement, public std::enable_shared_from_this<Launch> {
 public:
  // `place`: the device's among those of the execution.
  Launch(std::shared_ptr<const CompiledProgram> program, PJRT_Device& device,
         PJRT_LogicalDeviceIds ids, const PJRT_ExecuteOptions& options, size_t place)
      : program_(std::move(program)),
        device_(device),
        launch_id_(options.launch_id),
        result_memory_(options, place),
        caller_waits_(CallerWaits(options)),
        done_(std::make_shared<Completion>()) {
    options_.replica_id = ids.replica;
    options_.partition_id = ids.partition;
    options_.device_ordinal = static_cast<int32_t>(device.description->id);
    // The context may be gone when the program runs.
    if (options.context != nullptr) foreign_data_ = options.context->foreign_data;
  }

  // Checks the arguments, and changes nothing.
  void Check(PJRT_Buffer* const* arguments, size_t num_arguments,
             const std::vector<bool>& keep) const;
  // Takes the arguments' values, the donated ones away from their buffers.
  void TakeArguments(PJRT_Buffer* const* arguments, const std::vector<bool>& keep);
  // Their values come with the run.
  std::vector<std::unique_ptr<PJRT_Buffer>> MakeResults();
  // Waits for the arguments, runs, completes the results.
  void Run() noexcept;
  // Instead of Run.
  void Fail(FailurePtr failure) noexcept { Finish(std::move(failure)); }

  std::shared_ptr<Allocation> Place(size_t result) override;

  const CompletionPtr& done() const { return done_; }
  // True if it needs no waiting and has been seen to take little time: less than another thread
  // takes to wake up; or, where the caller waits for it, less than others may be kept waiting.
  bool IsQuick() const {
    constexpr int64_t kQuickNanoseconds = 10'000, kQuickToWaitFor = 1'000'000;
    return !program_->communicates &&
           program_->last_run_nanoseconds < (caller_waits_ ? kQuickToWaitFor : kQuickNanoseconds) &&
           std::all_of(
               arguments_.begin(), arguments_.end(),
               [](const ContentsPtr& argument) { return argument->ready->is_set(); });
  }

 private:
  void RunProgram();
  void Finish(FailurePtr failure) noexcept;
  std::shared_ptr<Allocation> ResultAllocation(size_t result);
  std::vector<void*> PlaceResults();

  std::shared_ptr<const CompiledProgram> program_;
  PJRT_Device& device_;
  int launch_id_;  // the caller's number of it, for profiles
  ResultMemory result_memory_;
  bool caller_waits_;
  cpu::RunOptions options_;
  std::vector<cpu::ForeignData> foreign_data_;
  std::vector<bool> donated_;
  // Where the results lie, and until that is decided the arguments that are one way to do so.
  process::Mutex places_mutex_;
  std::vector<ContentsPtr> arguments_;
  std::vector<ContentsPtr> results_;
  bool has_ended_ = false;
  std::vector<bool> asked_for_;  // results of which somebody knows the address; empty: none
  CompletionPtr done_;
};

void Launch::Check(PJRT_Buffer* const* arguments, size_t num_arguments,
                   const std::vector<bool>& keep) const {
  const std::vector<hlo::Shape>& parameters = program_->parameters();
  if (num_arguments != parameters.size()) {
    throw hlo::Error("the program '" + program_->name + "' takes " +
                     std::to_string(parameters.size()) + " arguments, but " +
                     std::to_string(num_arguments) + " are given");
  }
  std::vector<const PJRT_Buffer*> donated;
  for (size_t i = 0; i < num_arguments; ++i) {
    const auto which = [i] { return "argument " + std::to_string(i); };
    if (arguments[i] == nullptr) throw hlo::Error(which() + " is null");
    const PJRT_Buffer& buffer = *arguments[i];
    // JAX passes bytes of nothing as the tokens that order side effects.
    const bool is_token = parameters[i].is_token() && buffer.shape.byte_size() == 0;
    if (buffer.shape != parameters[i] && !is_token) {
      throw hlo::Error(which() + " of the program '" + program_->name + "' is " +
                       buffer.shape.ToString() + ", but must be " + parameters[i].ToString());
    }
    if (buffer.client.get() != device_.client) {
      throw hlo::Error(which() + " belongs to another client");
    }
    if (&buffer.device != &device_) {
      throw hlo::Error(which() + " is on " + buffer.device.description->debug_string +
                       ", but the program runs on " + device_.description->debug_string);
    }
    if (buffer.IsDeleted()) {
      throw hlo::Error(which() + " of the program '" + program_->name +
                       "' has been deleted or donated");
    }
    if (program_->donations[i] == Donation::kNone) continue;
    if (!keep[i]) {
      donated.push_back(&buffer);
    } else if (program_->donations[i] == Donation::kMust) {
      throw hlo::Error(which() + " must be donated: the program writes a result into it");
    }
  }
  for (const PJRT_Buffer* buffer : donated) {
    if (std::count(arguments, arguments + num_arguments, buffer) > 1) {
      throw hlo::Error("a buffer of " + buffer->shape.ToString() + " is donated to the program '" +
                       program_->name + "' and given as another argument too");
    }
  }
}

void Launch::TakeArguments(PJRT_Buffer* const* arguments, const std::vector<bool>& keep) {
  const size_t count = program_->parameters().size();
  for (size_t i = 0; i < count; ++i) {
    donated_.push_back(program_->donations[i] != Donation::kNone && !keep[i]);
    ContentsPtr contents = donated_[i] ? arguments[i]->Release() : arguments[i]->Get();
    if (contents == nullptr) contents = arguments[i]->Get();  // lost to another thread: throws
    arguments_.push_back(std::move(contents));
  }
}

std::vector<std::unique_ptr<PJRT_Buffer>> Launch::MakeResults() {
  std::vector<std::unique_ptr<PJRT_Buffer>> buffers;
  arguments_.reserve(program_->parameters().size());  // TakeArguments needs no memory
  donated_.reserve(program_->parameters().size());
  results_.reserve(program_->results().size());
  buffers.reserve(program_->results().size());
  for (const auto& description : program_->result_descriptions) {
    results_.push_back(std::allocate_shared<Contents>(
        process::SmallAllocator<Contents>(),
        Contents{done_, nullptr, weak_from_this(), results_.size()}));
    buffers.push_back(std::make_unique<PJRT_Buffer>(device_, description, results_.back()));
  }
  return buffers;
}

// In place where the donated argument's bytes are there and this launch's alone; nobody else can
// come to hold them.
std::shared_ptr<Allocation> Launch::ResultAllocation(size_t result) {
  const int64_t parameter = program_->executable->aliased_parameters()[result];
  if (parameter >= 0 && donated_[parameter]) {
    const ContentsPtr& argument = arguments_[parameter];
    if (argument->ready->is_set() && argument.use_count() == 1 &&
        argument->allocation.use_count() == 1 && argument->allocation->writable()) {
      return argument->allocation;
    }
  }
  const auto bytes = static_cast<size_t>(program_->results()[result].byte_size());
  std::shared_ptr<Allocation> lent = result_memory_.Take(bytes);
  if (lent != nullptr) return lent;
  return std::allocate_shared<Allocation>(process::SmallAllocator<Allocation>(), bytes);
}

std::shared_ptr<Allocation> Launch::Place(size_t result) {
  std::lock_guard lock(places_mutex_);
  std::shared_ptr<Allocation>& place = results_[result]->allocation;
  if (has_ended_) return place;
  asked_for_.resize(results_.size());
  asked_for_[result] = true;
  if (place == nullptr) place = ResultAllocation(result);
  return place;
}

std::vector<void*> Launch::PlaceResults() {
  std::lock_guard lock(places_mutex_);
  std::vector<void*> places;
  places.reserve(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    std::shared_ptr<Allocation>& place = results_[i]->allocation;
    if (place == nullptr) place = ResultAllocation(i);
    places.push_back(place->data());
    result_memory_.Tell(i, *place);
  }
  return places;
}

void Launch::RunProgram() {
  for (const ContentsPtr& argument : arguments_) {
    argument->ready->Wait();
    if (argument->ready->failure() != nullptr) throw *argument->ready->failure();
  }
  std::vector<const void*> inputs;
  inputs.reserve(arguments_.size());
  for (const ContentsPtr& argument : arguments_) inputs.push_back(argument->allocation->data());
  const std::vector<void*> outputs = PlaceResults();
  cpu::RunOptions options = options_;
  options.foreign_data = foreign_data_;
  if (program_->communicates) options.communicator = device_.client->communicator();
  std::optional<ProgramRun> run;
  if (RunsAreRecorded()) {
    run.emplace();
    run->program = program_;
    run->device_id = device_.description->id;
    run->launch_id = launch_id_;
    options.step_times = &run->steps;
  }
  const int64_t begin = process::NowNanoseconds();
  program_->executable->Run(inputs, outputs, options);
  const int64_t end = process::NowNanoseconds();
  program_->last_run_nanoseconds = end - begin;
  if (run) {
    run->start_ns = begin;
    run->end_ns = end;
    RecordRun(std::move(*run));
  }
}

void Launch::Run() noexcept {
  FailurePtr failure;
  try {
    RunProgram();
  } catch (...) {
    failure = CurrentFailure();
  }
  Finish(std::move(failure));
}

void Launch::Finish(FailurePtr failure) noexcept {
  {
    std::lock_guard lock(places_mutex_);
    has_ended_ = true;
    arguments_.clear();  // who waits for the results may count on their memory
    for (size_t i = 0; failure != nullptr && i < results_.size(); ++i) {
      if (asked_for_.empty() || !asked_for_[i]) results_[i]->allocation = nullptr;
    }
  }
  done_->Set(std::move(failure));
}

std::vector<bool> InputsToKeep(const PJRT_ExecuteOptions& options, size_t num_args) {
  std::vector<bool> keep(num_args, false);
  for (size_t i = 0; i < options.num_non_donatable_input_indices; ++i) {
    const int64_t index = options.non_donatable_input_indices[i];
    if (index < 0 || index >= static_cast<int64_t>(num_args)) {
      throw hlo::Error("non-donatable input " + std::to_string(index) + " is not below " +
                       std::to_string(num_args));
    }
    keep[index] = true;
  }
  return keep;
}

// The devices that an execution is for, and which replica and partition each one is.
std::vector<std::pair<PJRT_Device*, PJRT_LogicalDeviceIds>> DevicesOf(
    const PJRT_LoadedExecutable& executable, const PJRT_LoadedExecutable_Execute_Args& args) {
  std::vector<std::pair<PJRT_Device*, PJRT_LogicalDeviceIds>> devices;
  const PJRT_LogicalDeviceIds first{};
  if (args.execute_device != nullptr) {
    auto found =
        std::find(executable.devices.begin(), executable.devices.end(), args.execute_device);
    if (!executable.portable && found == executable.devices.end()) {
      throw hlo::Error("the executable was not compiled for " +
                       args.execute_device->description->debug_string);
    }
    devices.emplace_back(
        args.execute_device,
        executable.portable ? first : executable.logical_ids[found - executable.devices.begin()]);
  } else if (executable.portable) {
    devices.emplace_back(executable.client->addressable_handles[0], first);
  } else {
    for (size_t i = 0; i < executable.devices.size(); ++i) {
      devices.emplace_back(executable.devices[i], executable.logical_ids[i]);
    }
  }
  if (devices.size() != args.num_devices) {
    throw hlo::Error("the executable runs on " + std::to_string(devices.size()) +
                     " devices, but arguments for " + std::to_string(args.num_devices) +
                     " are given");
  }
  return devices;
}

// The results are the caller's already: whatever goes wrong from here on is their failure.
void Start(const std::shared_ptr<Launch>& launch, PJRT_Device& device) noexcept {
  try {
    if (!device.client->asynchronous || (launch->IsQuick() && device.queue.idle())) {
      launch->Run();
    } else {
      device.queue.Push([launch] { launch->Run(); });
    }
  } catch (...) {
    launch->Fail(CurrentFailure());
  }
}

}  // namespace

void LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  const PJRT_LoadedExecutable& executable = Require(args.executable, "executable");
  const std::shared_ptr<const CompiledProgram> program = executable.Get();
  PJRT_ExecuteOptions options{};
  if (args.options != nullptr) options = Complete(*args.options);
  if (options.num_send_ops != 0 || options.num_recv_ops != 0) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "programs do not exchange data with the host while they run");
  }
  const std::vector<bool> keep = InputsToKeep(options, args.num_args);
  const auto devices = DevicesOf(executable, args);

  // All that can be wrong is found before anything changes.
  std::vector<std::shared_ptr<Launch>> launches;
  std::vector<std::vector<std::unique_ptr<PJRT_Buffer>>> results;
  std::vector<std::unique_ptr<PJRT_Event>> events;
  for (size_t d = 0; d < devices.size(); ++d) {
    const auto [device, ids] = devices[d];
    // Not one block with what counts its references, which results keep.
    launches.push_back(std::shared_ptr<Launch>(new Launch(program, *device, ids, options, d)));
    launches[d]->Check(args.argument_lists[d], args.num_args, keep);
    results.push_back(launches[d]->MakeResults());
    events.emplace_back(NewEvent(launches[d]->done()));
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    launches[d]->TakeArguments(args.argument_lists[d], keep);
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    for (size_t i = 0; i < results[d].size(); ++i) {
      args.output_lists[d][i] = results[d][i].release();
    }
    if (args.device_complete_events != nullptr) {
      args.device_complete_events[d] = events[d].release();
    }
    Start(launches[d], *devices[d].first);
    launches[d] = nullptr;
  }
}

}  // namespace pjrt::boundary
