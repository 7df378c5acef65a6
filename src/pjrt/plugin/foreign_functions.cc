// The FFI extension: handlers that others have compiled, for programs that call them.
#include "pjrt/plugin/foreign_functions.h"

#include <string_view>

#include "cpu/foreign_handlers.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/plugin/execute_context.h"

namespace pjrt::boundary {
namespace {

void TypeRegister(PJRT_FFI_Type_Register_Args& args) {
  args.type_id = cpu::RegisterForeignType(
      std::string_view(&Require(args.type_name, "type name"), args.type_name_size), args.type_id);
}

void UserDataAdd(PJRT_FFI_UserData_Add_Args& args) {
  Require(args.context, "context")
      .foreign_data.push_back({args.user_data.type_id, args.user_data.data});
}

// Whatever platform the handler is for: it runs in this process, as the engine does.
void RegisterHandler(PJRT_FFI_Register_Handler_Args& args) {
  cpu::RegisterForeignHandler(
      std::string_view(&Require(args.target_name, "target name"), args.target_name_size),
      reinterpret_cast<cpu::ffi::Handler*>(args.handler));
}

}  // namespace

PJRT_FFI_Extension ForeignFunctionsExtension(PJRT_Extension_Base* next) {
  return {{sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, next},
          &Entry<PJRT_FFI_Type_Register_Args, TypeRegister>,
          &Entry<PJRT_FFI_UserData_Add_Args, UserDataAdd>,
          &Entry<PJRT_FFI_Register_Handler_Args, RegisterHandler>};
}

}  // namespace pjrt::boundary
