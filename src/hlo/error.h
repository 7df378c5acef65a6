// The one exception type of the layers below torch. Codes are absl's and PJRT's numbers, so that
// the C boundary passes them through unchanged.
#pragma once

#include <stdexcept>
#include <string>

namespace hlo {

enum class ErrorCode : int {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Error(const std::string& message) : Error(ErrorCode::kInvalidArgument, message) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace hlo
