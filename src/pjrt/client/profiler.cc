#include "pjrt/client/profiler.h"

#include "pjrt/wire/proto.h"

namespace pjrt {
namespace {

const PLUGIN_Profiler_Api* ApiOf(const Plugin& plugin) {
  const auto* extension = plugin.extension<PJRT_Profiler_Extension>(PJRT_Extension_Type_Profiler);
  return extension == nullptr ? nullptr : extension->profiler_api;
}

// A tensorflow.ProfileOptions: all that the devices tell, with the programs.
std::string Options() {
  ProtoWriter options;
  options.Varint(2, 2);  // host_tracer_level
  options.Varint(3, 1);  // device_tracer_level
  options.Varint(5, 1);  // version
  options.Varint(7, 1);  // enable_hlo_proto
  return options.bytes();
}

template <typename Args>
Args NewArgs() {
  Args args{};
  args.struct_size = sizeof args;
  return args;
}

}  // namespace

bool Profiler::IsOfferedBy(const Plugin& plugin) { return ApiOf(plugin) != nullptr; }

Profiler::Profiler(const Plugin& plugin) : api_(ApiOf(plugin)) {
  if (api_ == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the PJRT plugin '" + plugin.path() + "' offers no profiler");
  }
  const std::string options = Options();
  auto args = NewArgs<PLUGIN_Profiler_Create_Args>();
  args.options = options.data();
  args.options_size = options.size();
  Check(api_->create(&args));
  profiler_ = args.profiler;
}

Profiler::~Profiler() {
  auto args = NewArgs<PLUGIN_Profiler_Destroy_Args>();
  args.profiler = profiler_;
  try {
    Check(api_->destroy(&args));
  } catch (const hlo::Error&) {
    // There is nobody to tell.
  }
}

void Profiler::Start() {
  auto args = NewArgs<PLUGIN_Profiler_Start_Args>();
  args.profiler = profiler_;
  Check(api_->start(&args));
}

void Profiler::Stop() {
  auto args = NewArgs<PLUGIN_Profiler_Stop_Args>();
  args.profiler = profiler_;
  Check(api_->stop(&args));
}

// Most plugins show memory of theirs at once; the interface also has them say the size first.
std::string Profiler::Collect() {
  auto args = NewArgs<PLUGIN_Profiler_CollectData_Args>();
  args.profiler = profiler_;
  Check(api_->collect_data(&args));
  if (args.buffer != nullptr) {
    return {reinterpret_cast<const char*>(args.buffer), args.buffer_size_in_bytes};
  }
  std::string bytes(args.buffer_size_in_bytes, '\0');
  if (bytes.empty()) return bytes;
  args.buffer = reinterpret_cast<uint8_t*>(bytes.data());
  Check(api_->collect_data(&args));
  return bytes;
}

// Consumes the error.
void Profiler::Check(PLUGIN_Profiler_Error* error) const {
  if (error == nullptr) return;
  auto message = NewArgs<PLUGIN_Profiler_Error_Message_Args>();
  message.error = error;
  api_->error_message(&message);
  std::string text = "the plugin's profiler: ";
  text.append(message.message, message.message_size);
  auto code = NewArgs<PLUGIN_Profiler_Error_GetCode_Args>();
  code.error = error;
  (void)api_->error_get_code(&code);
  auto destroy = NewArgs<PLUGIN_Profiler_Error_Destroy_Args>();
  destroy.error = error;
  api_->error_destroy(&destroy);
  const bool is_known = code.code > 0 && code.code <= PJRT_Error_Code_UNAUTHENTICATED;
  throw hlo::Error(is_known ? static_cast<hlo::ErrorCode>(code.code) : hlo::ErrorCode::kUnknown,
                   text);
}

}  // namespace pjrt
