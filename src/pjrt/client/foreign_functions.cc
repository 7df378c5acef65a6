#include "pjrt/client/foreign_functions.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "hlo/error.h"
#include "pjrt/c_api.h"
#include "process/fork.h"

namespace pjrt {
namespace {

struct ForeignFunction {
  std::string target;
  void* handler;
  std::string platform;

  bool operator==(const ForeignFunction&) const = default;
};

void Register(const Plugin& plugin, const ForeignFunction& function) {
  const auto* extension = plugin.extension<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI);
  if (extension == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the PJRT plugin '" + plugin.path() + "' takes no foreign functions");
  }
  PJRT_FFI_Register_Handler_Args args{.struct_size = sizeof args,
                                      .target_name = function.target.data(),
                                      .target_name_size = function.target.size(),
                                      .handler = function.handler,
                                      .platform_name = function.platform.data(),
                                      .platform_name_size = function.platform.size(),
                                      .traits = 0};
  if (PJRT_Error* error = extension->register_handler(&args)) plugin.Throw(error);
}

// Where a program calls what a plugin has not taken, compiling it says so.
void TryToRegister(const Plugin& plugin, const ForeignFunction& function) {
  try {
    Register(plugin, function);
  } catch (const hlo::Error&) {
  }
}

struct Known {
  process::Mutex mutex;
  std::vector<ForeignFunction> functions;
  std::vector<const Plugin*> plugins;
  static Known& Get() {
    static auto* known = new Known;
    return *known;
  }
};

}  // namespace

void RegisterForeignFunction(const Plugin& plugin, std::string_view target, void* handler,
                             std::string_view platform) {
  const ForeignFunction function{std::string(target), handler, std::string(platform)};
  Known& known = Known::Get();
  std::lock_guard lock(known.mutex);
  Register(plugin, function);
  for (const Plugin* other : known.plugins) {
    if (other != &plugin) TryToRegister(*other, function);
  }
  if (std::ranges::find(known.functions, function) == known.functions.end()) {
    known.functions.push_back(function);
  }
}

void RegisterKnownForeignFunctions(const Plugin& plugin) {
  Known& known = Known::Get();
  std::lock_guard lock(known.mutex);
  for (const ForeignFunction& function : known.functions) TryToRegister(plugin, function);
  known.plugins.push_back(&plugin);
}

}  // namespace pjrt
