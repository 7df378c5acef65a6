#include "pjrt/boundary/profiler_extension.h"

#include "pjrt/boundary/boundary.h"

struct PLUGIN_Profiler_Error {
  int code;
  std::string message;
};

struct PLUGIN_Profiler {
  std::unique_ptr<pjrt::boundary::DeviceProfiler> profiler = pjrt::boundary::NewDeviceProfiler();
  bool is_running = false;
  bool is_collected = false;
  std::string bytes;  // what CollectData showed
};

namespace pjrt::boundary {
namespace {

void Create(PLUGIN_Profiler_Create_Args& args) { args.profiler = new PLUGIN_Profiler; }

void Destroy(PLUGIN_Profiler_Destroy_Args& args) { delete args.profiler; }

void Start(PLUGIN_Profiler_Start_Args& args) {
  PLUGIN_Profiler& handle = Require(args.profiler, "profiler");
  if (handle.is_running) throw hlo::Error("the profiler has been started already");
  handle.profiler->Start();
  handle.is_running = true;
  handle.is_collected = false;
}

void Stop(PLUGIN_Profiler_Stop_Args& args) {
  PLUGIN_Profiler& handle = Require(args.profiler, "profiler");
  if (!handle.is_running) return;
  handle.is_running = false;
  handle.profiler->Stop();
}

// The size, and memory of ours; a second call also fills the caller's.
void CollectData(PLUGIN_Profiler_CollectData_Args& args) {
  PLUGIN_Profiler& handle = Require(args.profiler, "profiler");
  if (handle.is_running) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition, "the profiler has not been stopped");
  }
  if (!handle.is_collected) handle.bytes = handle.profiler->Collect();
  handle.is_collected = true;
  args.buffer_size_in_bytes = handle.bytes.size();
  if (args.buffer == nullptr) {
    args.buffer = reinterpret_cast<uint8_t*>(handle.bytes.data());
  } else {
    std::memcpy(args.buffer, handle.bytes.data(), handle.bytes.size());
  }
}

template <typename Args, void (*function)(Args&)>
PLUGIN_Profiler_Error* ProfilerEntry(Args* args) noexcept {
  try {
    function(Require(args, "the argument struct"));
    return nullptr;
  } catch (...) {
    const FailurePtr failure = CurrentFailure();
    return new PLUGIN_Profiler_Error{static_cast<int>(failure->code()), failure->what()};
  }
}

void ErrorDestroy(PLUGIN_Profiler_Error_Destroy_Args* args) { delete args->error; }

void ErrorMessage(PLUGIN_Profiler_Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

PLUGIN_Profiler_Error* ErrorCode(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}

PLUGIN_Profiler_Api* ProfilerApi() {
  static PLUGIN_Profiler_Api api = {
      sizeof(PLUGIN_Profiler_Api),
      nullptr,
      &ErrorDestroy,
      &ErrorMessage,
      &ErrorCode,
      &ProfilerEntry<PLUGIN_Profiler_Create_Args, Create>,
      &ProfilerEntry<PLUGIN_Profiler_Destroy_Args, Destroy>,
      &ProfilerEntry<PLUGIN_Profiler_Start_Args, Start>,
      &ProfilerEntry<PLUGIN_Profiler_Stop_Args, Stop>,
      &ProfilerEntry<PLUGIN_Profiler_CollectData_Args, CollectData>,
  };
  return &api;
}

}  // namespace

PJRT_Profiler_Extension ProfilerExtension(PJRT_Extension_Base* next) {
  return {{sizeof(PJRT_Profiler_Extension), PJRT_Extension_Type_Profiler, next}, ProfilerApi(), 0};
}

}  // namespace pjrt::boundary
