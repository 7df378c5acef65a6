// The library's exported symbols: the client, which is a PJRT plugin, and the server, as
// torch_xla/runtime_server.py calls it.
#include <algorithm>
#include <cstring>
#include <exception>

#include "pjrt/boundary/functions.h"
#include "remote/address.h"
#include "remote/server/server.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const PJRT_Api* GetPjrtApi() { return &pjrt::boundary::Api(); }

struct RuntimeServerOptions {
  const char* address;  // "unix:PATH" or "HOST:PORT"
  const char* plugin_path;
  const PJRT_NamedValue* plugin_options;
  size_t num_plugin_options;
  const char* certificate_file;  // this and the next two: empty if there is none
  const char* key_file;
  const char* token_file;
  int64_t most_sessions;
  double lost_after_seconds;
};

// Null after a failure, whose text is then in `error`, terminated.
EXPORTED remote::Server* RuntimeServer_Start(const RuntimeServerOptions* given, char* error,
                                             size_t error_size) {
  try {
    remote::ServerOptions options;
    options.address = given->address;
    options.plugin_path = given->plugin_path;
    options.plugin_options = pjrt::FromC(given->plugin_options, given->num_plugin_options);
    options.certificate = given->certificate_file;
    options.key = given->key_file;
    if (*given->token_file != '\0') options.token = remote::ReadToken(given->token_file);
    options.most_sessions = given->most_sessions;
    options.lost_after_seconds = given->lost_after_seconds;
    return new remote::Server(options);
  } catch (const std::exception& failure) {
    const size_t bytes = std::min(std::strlen(failure.what()), error_size - 1);
    std::memcpy(error, failure.what(), bytes);
    error[bytes] = '\0';
    return nullptr;
  }
}

EXPORTED int RuntimeServer_Port(const remote::Server* server) { return server->port(); }

EXPORTED int64_t RuntimeServer_Sessions(const remote::Server* server) {
  return server->num_sessions();
}

EXPORTED int64_t RuntimeServer_SessionsSoFar(const remote::Server* server) {
  return server->num_sessions_so_far();
}

EXPORTED void RuntimeServer_Stop(remote::Server* server) { delete server; }
