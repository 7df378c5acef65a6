// The runtime server: lets processes use a plugin's devices over gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pjrt/client/named_value.h"

namespace remote {

struct ServerOptions {
  std::string address;  // "localhost:51011"; port 0: any
  std::string plugin_path;
  pjrt::NamedValues plugin_options;
  // Files, PEM. Other addresses than the loopback ones must have all three.
  std::string certificate, key;
  std::string token;  // what clients must know; empty: nothing
  int64_t most_sessions = 64;
};

class Server {
 public:
  // Serves when it returns. Throws hlo::Error: what the plugin says, an address that is in use, or
  // one that other hosts reach without TLS and a token.
  explicit Server(const ServerOptions& options);
  // Ends all sessions.
  ~Server();

  int port() const;
  int64_t num_sessions() const;  // at present
  int64_t num_sessions_so_far() const;

 private:
  class Service;
  struct Running;
  std::unique_ptr<Running> running_;
};

}  // namespace remote
