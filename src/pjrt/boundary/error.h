// PJRT_Error as this plugin makes them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hlo/error.h"
#include "pjrt/c_api.h"

namespace pjrt::boundary {

// Why some work failed; shared by all who wait for it. An exception, so that waiting rethrows it.
class Failure : public hlo::Error {
 public:
  using Payload = std::map<std::string, std::string>;
  Failure(hlo::ErrorCode code, const std::string& message, Payload payload = {})
      : hlo::Error(code, message), payload_(std::move(payload)) {}
  const Payload& payload() const { return payload_; }

 private:
  Payload payload_;
};
using FailurePtr = std::shared_ptr<const Failure>;  // null: success

// Within a catch clause: the exception as a PJRT_Error that the caller owns, and as a Failure.
PJRT_Error* CurrentError() noexcept;
FailurePtr CurrentFailure() noexcept;

// Null for null.
PJRT_Error* NewError(const Failure* failure) noexcept;

// From a code that a caller gives (0 is no error: throws) and a text.
FailurePtr FailureFrom(PJRT_Error_Code code, const char* message, size_t message_size,
                       const PJRT_NamedValue* payload = nullptr, size_t payload_size = 0);

}  // namespace pjrt::boundary
