#include "pjrt/client/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "pjrt/client/call.h"
#include "pjrt/client/foreign_functions.h"

namespace pjrt {
namespace {

constexpr int kOldestMinor = 29;

// RTLD_LOCAL: each plugin carries its own copies of libraries that must not meet.
const PJRT_Api* OpenTable(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, "there is no PJRT plugin at '" + path + "'");
  }
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    throw hlo::Error("'" + path + "' cannot be loaded as a PJRT plugin: " + dlerror());
  }
  auto get_api = reinterpret_cast<PJRT_GetPjrtApi>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    dlclose(library);
    throw hlo::Error("'" + path + "' is a library but no PJRT plugin: it exports no GetPjrtApi");
  }
  const PJRT_Api* api = get_api();
  if (api == nullptr) {
    throw hlo::Error("the PJRT plugin '" + path + "' returned no function table");
  }
  return api;
}

void CheckVersion(const std::string& path, const PJRT_Api& api) {
  const PJRT_Api_Version& version = api.pjrt_api_version;
  const std::string theirs =
      std::to_string(version.major_version) + "." + std::to_string(version.minor_version);
  if (version.major_version != PJRT_API_MAJOR) {
    throw hlo::Error("the PJRT plugin '" + path + "' speaks version " + theirs +
                     " of the interface; only major version " + std::to_string(PJRT_API_MAJOR) +
                     " is understood");
  }
  if (version.minor_version < kOldestMinor) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the PJRT plugin '" + path + "' speaks version " + theirs +
                         " of the interface, which is too old: at least " +
                         std::to_string(PJRT_API_MAJOR) + "." + std::to_string(kOldestMinor) +
                         " is needed; install a newer plugin");
  }
}

// The mutex also makes "once per process" true of what a plugin does while it initializes.
struct LoadedPlugins {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Plugin>> by_path;
};

LoadedPlugins& Loaded() {
  static auto* loaded = new LoadedPlugins;  // plugins outlive static destructors
  return *loaded;
}

}  // namespace

Plugin& Plugin::Load(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path canonical = std::filesystem::canonical(path, ignored);
  const std::string key = canonical.empty() ? path : canonical.string();
  LoadedPlugins& loaded = Loaded();
  std::lock_guard lock(loaded.mutex);
  auto found = loaded.by_path.find(key);
  if (found != loaded.by_path.end()) return *found->second;
  const PJRT_Api* api = OpenTable(key);
  CheckVersion(key, *api);
  std::unique_ptr<Plugin> plugin(new Plugin(key, api));
  plugin->Initialize();
  RegisterKnownForeignFunctions(*plugin);
  return *(loaded.by_path[key] = std::move(plugin));
}

void Plugin::Initialize() {
  if (has(&PJRT_Api::PJRT_Plugin_Initialize)) {
    Arguments<PJRT_Plugin_Initialize_Args> args;
    PJRT_INVOKE(*this, Plugin_Initialize, args);
  }
  if (!has(&PJRT_Api::PJRT_Plugin_Attributes)) return;
  Arguments<PJRT_Plugin_Attributes_Args> args;
  PJRT_INVOKE(*this, Plugin_Attributes, args);
  attributes_ = FromC(args->attributes, args->num_attributes);
  auto version = attributes_.find("stablehlo_current_version");
  if (version == attributes_.end()) return;
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&version->second)) {
    stablehlo_version_ = *numbers;
  }
}

std::optional<int64_t> Plugin::xla_version() const {
  auto found = attributes_.find("xla_version");
  if (found == attributes_.end() || !std::holds_alternative<int64_t>(found->second)) return {};
  return std::get<int64_t>(found->second);
}

std::vector<PJRT_Extension_Type> Plugin::extensions() const {
  std::vector<PJRT_Extension_Type> types;
  for (auto* e = api_->extension_start; e != nullptr; e = e->next) types.push_back(e->type);
  return types;
}

const PJRT_Extension_Base* Plugin::FindExtension(PJRT_Extension_Type type,
                                                 size_t least_size) const {
  for (const PJRT_Extension_Base* e = api_->extension_start; e != nullptr; e = e->next) {
    if (e->type == type && e->struct_size >= least_size) return e;
  }
  return nullptr;
}

void Plugin::ThrowMissing(const char* name) const {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented, "the PJRT plugin '" + path_ + "' (version 0." +
                                                       std::to_string(minor_version()) +
                                                       ") has no " + name);
}

std::optional<hlo::Error> Plugin::ToError(PJRT_Error* error) const {
  if (error == nullptr) return {};
  Arguments<PJRT_Error_Message_Args> message;
  message->error = error;
  api_->PJRT_Error_Message(message.get());
  std::string text(message->message, message->message_size);

  Arguments<PJRT_Error_GetCode_Args> code;
  code->error = error;
  auto number = hlo::ErrorCode::kUnknown;
  if (PJRT_Error* nested = api_->PJRT_Error_GetCode(code.get())) {
    Arguments<PJRT_Error_Destroy_Args> destroy;
    destroy->error = nested;
    api_->PJRT_Error_Destroy(destroy.get());
  } else if (code->code > PJRT_Error_Code_OK && code->code <= PJRT_Error_Code_UNAUTHENTICATED) {
    number = static_cast<hlo::ErrorCode>(code->code);
  }

  Arguments<PJRT_Error_Destroy_Args> destroy;
  destroy->error = error;
  api_->PJRT_Error_Destroy(destroy.get());
  return hlo::Error(number, text);
}

void Plugin::Throw(PJRT_Error* error) const { throw *ToError(error); }

}  // namespace pjrt
