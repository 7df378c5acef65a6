#include "pjrt/boundary/error.h"

#include <new>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

namespace pjrt::boundary {
namespace {

struct ErrorHandle : PJRT_Error {
  explicit ErrorHandle(Failure failure);
  Failure failure;
};

const ErrorHandle& Get(const PJRT_Error* error) { return *static_cast<const ErrorHandle*>(error); }

// For when there is no memory to say so; made when the library is loaded, and never freed.
const FailurePtr& OutOfMemoryFailure() {
  static const auto* failure = new FailurePtr(std::make_shared<Failure>(
      hlo::ErrorCode::kResourceExhausted, "out of memory while reporting an error"));
  return *failure;
}

PJRT_Error* OutOfMemory() {
  static auto* error = new ErrorHandle(*OutOfMemoryFailure());
  return error;
}

void Destroy(PJRT_Error* error) {
  if (error != OutOfMemory()) delete static_cast<ErrorHandle*>(error);
}

void VisitPayload(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void* user_arg) {
  for (const auto& [key, value] : Get(error).failure.payload()) {
    visitor(key.data(), key.size(), value.data(), value.size(), user_arg);
  }
}

constexpr PJRT_Error_FunctionTable kErrorFunctions = {
    .struct_size = sizeof(PJRT_Error_FunctionTable),
    .instance_size = sizeof(PJRT_Error),
    .extension_start = nullptr,
    .destroy = Destroy,
    .message =
        [](const PJRT_Error* error, const char** message, size_t* size) {
          *message = Get(error).failure.what();
          *size = std::strlen(*message);
        },
    .get_code =
        [](const PJRT_Error* error) {
          return static_cast<PJRT_Error_Code>(Get(error).failure.code());
        },
    .for_each_payload = VisitPayload,
};

ErrorHandle::ErrorHandle(Failure failure)
    : PJRT_Error{&kErrorFunctions}, failure(std::move(failure)) {}

[[maybe_unused]] const PJRT_Error* const out_of_memory_made_early = OutOfMemory();

}  // namespace

FailurePtr CurrentFailure() noexcept {
  try {
    try {
      throw;
    } catch (const Failure& error) {
      return std::make_shared<Failure>(error);
    } catch (const hlo::Error& error) {
      return std::make_shared<Failure>(error.code(), error.what());
    } catch (const std::bad_alloc&) {
      return std::make_shared<Failure>(hlo::ErrorCode::kResourceExhausted, "out of memory");
    } catch (const std::exception& error) {
      return std::make_shared<Failure>(hlo::ErrorCode::kInternal, error.what());
    } catch (...) {
      return std::make_shared<Failure>(hlo::ErrorCode::kInternal, "unknown exception");
    }
  } catch (...) {
    return OutOfMemoryFailure();
  }
}

PJRT_Error* NewError(const Failure* failure) noexcept {
  if (failure == nullptr) return nullptr;
  try {
    return new ErrorHandle(*failure);
  } catch (...) {
    return OutOfMemory();
  }
}

PJRT_Error* CurrentError() noexcept { return NewError(CurrentFailure().get()); }

FailurePtr FailureFrom(PJRT_Error_Code code, const char* message, size_t message_size,
                       const PJRT_NamedValue* payload, size_t payload_size) {
  if (code <= PJRT_Error_Code_OK || code > PJRT_Error_Code_UNAUTHENTICATED) {
    throw hlo::Error("error code " + std::to_string(code) + " is no error");
  }
  Failure::Payload entries;
  for (size_t i = 0; i < payload_size; ++i) {
    if (payload[i].type != PJRT_NamedValue_kString) continue;
    entries[std::string(payload[i].name, payload[i].name_size)] =
        std::string(payload[i].string_value, payload[i].value_size);
  }
  return std::make_shared<Failure>(static_cast<hlo::ErrorCode>(code),
                                   std::string(message, message_size), std::move(entries));
}

void Error_Destroy(PJRT_Error_Destroy_Args* args) noexcept {
  if (args->error != nullptr) Destroy(args->error);
}

void Error_Message(PJRT_Error_Message_Args* args) noexcept {
  kErrorFunctions.message(args->error, &args->message, &args->message_size);
}

void Error_GetCode(PJRT_Error_GetCode_Args& args) {
  args.code = kErrorFunctions.get_code(&Require(args.error, "error"));
}

void Error_ForEachPayload(PJRT_Error_ForEachPayload_Args& args) {
  VisitPayload(&Require(args.error, "error"), args.visitor, args.user_arg);
}

}  // namespace pjrt::boundary
