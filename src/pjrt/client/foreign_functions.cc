#include "pjrt/client/foreign_functions.h"

#include "hlo/error.h"
#include "pjrt/c_api.h"

namespace pjrt {

void RegisterForeignFunction(const Plugin& plugin, std::string_view target, void* handler,
                             std::string_view platform) {
  const auto* extension = plugin.extension<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI);
  if (extension == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the PJRT plugin '" + plugin.path() + "' takes no foreign functions");
  }
  PJRT_FFI_Register_Handler_Args args{.struct_size = sizeof args,
                                      .target_name = target.data(),
                                      .target_name_size = target.size(),
                                      .handler = handler,
                                      .platform_name = platform.data(),
                                      .platform_name_size = platform.size(),
                                      .traits = 0};
  if (PJRT_Error* error = extension->register_handler(&args)) plugin.Throw(error);
}

}  // namespace pjrt
