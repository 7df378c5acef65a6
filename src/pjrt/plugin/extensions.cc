// The chain of extensions that the engine offers.
#include "pjrt/boundary/extensions.h"

#include <memory>
#include <string_view>
#include <utility>

#include "cpu/kernel_cache.h"
#include "hlo/error.h"
#include "hlo/module.h"
#include "hlo/module_identity.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/profiler_extension.h"
#include "pjrt/module_extension.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/plugin/foreign_functions.h"

namespace pjrt::boundary {
namespace {

void Module_Compile(PJRT_Module_Compile_Args& args) {
  if (std::string_view(args.identity, args.identity_size) != hlo::ModuleIdentity()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the module is of another build; send its bytecode");
  }
  std::unique_ptr<hlo::Module> module(static_cast<hlo::Module*>(args.module));
  if (module == nullptr) throw hlo::Error("module is null");
  PJRT_Client& client = Require(args.client, "client");
  const std::string_view options(args.compile_options, args.compile_options_size);
  const auto num_devices = static_cast<int64_t>(client.devices.size());
  args.executable = new PJRT_LoadedExecutable(
      client,
      plugin::CompiledProgram::Compile(std::move(module), options, num_devices, client.rank()));
}

int64_t CompiledLoops() { return cpu::KernelCache::OfProcess().statistics().compiled; }

}  // namespace

PJRT_Extension_Base* Extensions() {
  static PJRT_Profiler_Extension profiler = ProfilerExtension(nullptr);
  static PJRT_MemoryDescriptions_Extension memories = MemoryDescriptionsExtension(&profiler.base);
  static PJRT_Layouts_Extension layouts = LayoutsExtension(&memories.base);
  static PJRT_FFI_Extension foreign = ForeignFunctionsExtension(&layouts.base);
  static PJRT_ResultMemory_Extension results{};
  results.base = {sizeof results, PJRT_Extension_Type_ResultMemory, &foreign.base};
  static PJRT_CallerWaits_Extension waits{
      {sizeof waits, PJRT_Extension_Type_CallerWaits, &results.base}};
  static PJRT_Module_Extension modules{{sizeof modules, PJRT_Extension_Type_Module, &waits.base},
                                       hlo::ModuleIdentity(),
                                       &Entry<PJRT_Module_Compile_Args, Module_Compile>,
                                       &CompiledLoops};
  return &modules.base;
}

}  // namespace pjrt::boundary
