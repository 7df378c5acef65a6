#include "remote/client/endpoint.h"

#include <unistd.h>

#include <cstdlib>

#include "hlo/error.h"
#include "remote/address.h"
#include "remote/messages.h"

namespace remote {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double SecondsFrom(const char* name, double otherwise) {
  const std::string text = Environment(name);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(seconds >= 0.1 && seconds <= 1e6)) {
    throw hlo::Error(std::string(name) + "='" + text + "' is no number of seconds");
  }
  return seconds;
}

}  // namespace

Endpoint Endpoint::FromEnvironment() {
  Endpoint endpoint;
  endpoint.address = Environment("PJRT_REMOTE_ADDRESS");
  if (endpoint.address.empty()) endpoint.address = DefaultAddress();
  const std::string certificate = Environment("PJRT_REMOTE_CERTIFICATE");
  if (!certificate.empty()) {
    endpoint.certificate = ReadFile(certificate, "the certificate PJRT_REMOTE_CERTIFICATE");
  }
  endpoint.tls = !endpoint.certificate.empty() || !IsLocal(endpoint.address);
  std::string token = Environment("PJRT_REMOTE_TOKEN_FILE");
  if (token.empty() && !endpoint.tls && access(OwnTokenFile().c_str(), F_OK) == 0) {
    CheckOwnFolder(OwnFolder());
    token = OwnTokenFile();
  }
  if (!token.empty()) endpoint.token = ReadToken(token);
  endpoint.lost_after_seconds = SecondsFrom("PJRT_REMOTE_LOST_AFTER", kLostAfterSeconds);
  return endpoint;
}

}  // namespace remote
