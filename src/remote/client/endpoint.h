// Which runtime server a client uses.
#pragma once

#include <string>

namespace remote {

struct Endpoint {
  std::string address;      // "localhost:51011"
  std::string certificate;  // PEM, of who signed the server's; empty: the system's
  std::string token;        // empty: none
  bool tls = false;

  // From PJRT_REMOTE_ADDRESS, PJRT_REMOTE_CERTIFICATE and PJRT_REMOTE_TOKEN_FILE. Other hosts are
  // spoken to over TLS only. Throws hlo::Error for what cannot be.
  static Endpoint FromEnvironment();
};

}  // namespace remote
