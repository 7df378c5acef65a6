#include "remote/client/endpoint.h"

#include <cstdlib>

#include "remote/address.h"

namespace remote {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Endpoint Endpoint::FromEnvironment() {
  Endpoint endpoint;
  endpoint.address = Environment("PJRT_REMOTE_ADDRESS");
  if (endpoint.address.empty()) endpoint.address = kDefaultAddress;
  const std::string certificate = Environment("PJRT_REMOTE_CERTIFICATE");
  if (!certificate.empty()) {
    endpoint.certificate = ReadFile(certificate, "the certificate PJRT_REMOTE_CERTIFICATE");
  }
  const std::string token = Environment("PJRT_REMOTE_TOKEN_FILE");
  if (!token.empty()) endpoint.token = ReadToken(token);
  endpoint.tls = !endpoint.certificate.empty() || !IsLoopback(endpoint.address);
  return endpoint;
}

}  // namespace remote
