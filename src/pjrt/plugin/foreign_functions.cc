// The FFI extension: handlers that others have compiled, for programs that call them.
#include "pjrt/plugin/foreign_functions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "cpu/foreign_handlers.h"
#include "pjrt/boundary/boundary.h"

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

// Whether handlers for this platform expect a device's memory. Any other runs in this process, as
// the engine does.
bool IsOfDevices(std::string_view platform) {
  constexpr std::array<std::string_view, 5> kPlatforms = {"cuda", "gpu", "rocm", "sycl", "tpu"};
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::ranges::any_of(kPlatforms, [&](std::string_view other) {
    return std::ranges::equal(platform, other, same);
  });
}

// A function may have a handler for each platform, under one name.
void RegisterHandler(PJRT_FFI_Register_Handler_Args& args) {
  if (args.platform_name != nullptr && IsOfDevices({args.platform_name, args.platform_name_size})) {
    return;
  }
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
