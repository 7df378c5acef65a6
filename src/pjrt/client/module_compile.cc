#include "pjrt/client/module_compile.h"

#include <string>
#include <string_view>

#include "hlo/module_identity.h"
#include "pjrt/client/call.h"
#include "pjrt/module_extension.h"

namespace pjrt {
namespace {

// Of a plugin of this build; null of others.
const PJRT_Module_Extension* ExtensionOf(const Plugin& plugin) {
  const auto* extension = plugin.extension<PJRT_Module_Extension>(PJRT_Extension_Type_Module);
  const bool is_ours =
      extension != nullptr && std::string_view(extension->identity) == hlo::ModuleIdentity();
  return is_ours ? extension : nullptr;
}

}  // namespace

bool TakesModules(const Plugin& plugin) {
  return ExtensionOf(plugin) != nullptr && !FormatIsForced();
}

std::unique_ptr<LoadedExecutable> CompileModule(Client& client, std::unique_ptr<hlo::Module> module,
                                                const CompileOptions& options) {
  const Plugin& plugin = client.plugin();
  if (!TakesModules(plugin)) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the plugin " + plugin.path() + " takes no modules of this build");
  }
  const std::string serialized_options = options.Serialize();
  Arguments<PJRT_Module_Compile_Args> args;
  args->client = client.handle();
  const std::string_view identity = hlo::ModuleIdentity();
  args->identity = identity.data();
  args->identity_size = identity.size();
  args->module = module.release();
  args->compile_options = serialized_options.data();
  args->compile_options_size = serialized_options.size();
  if (PJRT_Error* error = ExtensionOf(plugin)->compile(args.get())) plugin.Throw(error);
  return std::make_unique<LoadedExecutable>(client.shared_from_this(),
                                            OwnedLoadedExecutable(plugin, args->executable));
}

int64_t CompiledLoops(const Plugin& plugin) {
  const PJRT_Module_Extension* extension = ExtensionOf(plugin);
  return extension != nullptr ? extension->compiled_loops() : 0;
}

}  // namespace pjrt
