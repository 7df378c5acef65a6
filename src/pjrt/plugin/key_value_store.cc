#include "pjrt/plugin/key_value_store.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "pjrt/boundary/error.h"
#include "process/fork.h"

namespace pjrt::plugin {

using namespace boundary;
namespace {

// Callbacks make their errors through this.
PJRT_CallbackError make_error = [](PJRT_Error_Code code, const char* message,
                                   size_t size) -> PJRT_Error* {
  try {
    return NewError(FailureFrom(code, message, size).get());
  } catch (...) {
    return CurrentError();
  }
};

// Takes the error over; null for none.
std::unique_ptr<hlo::Error> Taken(PJRT_Error* error, const std::string& what) {
  if (error == nullptr) return nullptr;
  const char* message = nullptr;
  size_t size = 0;
  error->vtable->message(error, &message, &size);
  auto taken = std::make_unique<hlo::Error>(
      static_cast<hlo::ErrorCode>(error->vtable->get_code(error)),
      "the key-value store failed at " + what + ": " + std::string(message, size));
  error->vtable->destroy(error);
  return taken;
}

}  // namespace

cpu::KeyValueStore StoreFrom(const PJRT_Client_Create_Args& args) {
  cpu::KeyValueStore store;
  if (args.kv_get_callback == nullptr || args.kv_put_callback == nullptr) return store;
  store.put = [put = args.kv_put_callback, user_arg = args.kv_put_user_arg](
                  const std::string& key, const std::string& value) {
    PJRT_KeyValuePutCallback_Args call{};
    call.struct_size = sizeof call;
    call.key = key.data();
    call.key_size = key.size();
    call.value = value.data();
    call.value_size = value.size();
    call.callback_error = &make_error;
    call.user_arg = user_arg;
    const process::MayFork elsewhere;
    if (auto error = Taken(put(&call), "putting '" + key + "'")) throw *error;
  };
  store.get = [get = args.kv_get_callback, user_arg = args.kv_get_user_arg](
                  const std::string& key,
                  std::chrono::milliseconds timeout) -> std::optional<std::string> {
    PJRT_KeyValueGetCallback_Args call{};
    call.struct_size = sizeof call;
    call.key = key.data();
    call.key_size = key.size();
    call.timeout_in_ms =
        static_cast<int>(std::clamp<int64_t>(timeout.count(), 1, std::numeric_limits<int>::max()));
    call.callback_error = &make_error;
    call.user_arg = user_arg;
    const process::MayFork elsewhere;
    if (auto error = Taken(get(&call), "getting '" + key + "'")) {
      if (error->code() == hlo::ErrorCode::kDeadlineExceeded ||
          error->code() == hlo::ErrorCode::kNotFound) {
        return std::nullopt;
      }
      throw *error;
    }
    std::string value(call.value, call.value_size);
    if (call.value_deleter_callback != nullptr) call.value_deleter_callback(call.value);
    return value;
  };
  return store;
}

}  // namespace pjrt::plugin
