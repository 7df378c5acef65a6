// The runtime server: lets processes use a plugin's devices over gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pjrt/client/named_value.h"
#include "remote/messages.h"

namespace remote {

struct ServerOptions {
  std::string address;  // "unix:PATH", or "localhost:51011"; port 0: any
  std::string plugin_path;
  pjrt::NamedValues plugin_options;
  // Files, PEM: for TLS, without which only local addresses are served.
  std::string certificate, key;
  // What clients must know; a Unix socket needs none, since only processes of this user reach it.
  std::string token;
  int64_t most_sessions = 64;
  // With TLS: for how long a client's host may be silent, or the client be stopped, before it is
  // held for lost. At local addresses the kernel tells when a client has ended.
  double lost_after_seconds = kLostAfterSeconds;
};

class Server {
 public:
  // Serves when it returns. Throws hlo::Error: what the plugin says, an address that is in use, one
  // that other hosts reach without TLS, or one of TCP without a token.
  explicit Server(const ServerOptions& options);
  // Ends all sessions.
  ~Server();

  int port() const;              // 0 of a Unix socket
  int64_t num_sessions() const;  // at present
  int64_t num_sessions_so_far() const;

 private:
  class Service;
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace remote
