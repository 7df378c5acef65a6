// Which runtime server a client uses.
#pragma once

#include <string>

namespace remote {

struct Endpoint {
  std::string address;      // "unix:PATH", or "localhost:51011"
  std::string certificate;  // PEM, of who signed the server's; empty: the system's
  std::string token;        // empty: none
  bool tls = false;
  double lost_after_seconds = 0;  // with TLS, of silence

  // From PJRT_REMOTE_ADDRESS, PJRT_REMOTE_CERTIFICATE, PJRT_REMOTE_TOKEN_FILE and
  // PJRT_REMOTE_LOST_AFTER. Without a token file the token is that of this user's own servers,
  // which only a server that proves to know it profits from; other hosts are spoken to over TLS
  // only, and get none but the one that is named. Throws hlo::Error for what cannot be.
  static Endpoint FromEnvironment();
};

}  // namespace remote
