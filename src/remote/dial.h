// The client's way to a server on this machine.
#pragma once

#include <string>

#include "remote/local_socket.h"

namespace remote {

// A connection to the server at a local address, which has proven itself, and which takes this
// process for what it is: gRPC may begin. At a Unix socket the kernel tells each side the other's
// user; on TCP both prove that they know the token. Until the server has proven itself, nothing but
// a random number has been sent.
//
// It waits for the server, up to 20 s.
//
// Throws hlo::Error: kUnavailable if nobody listens, and kUnauthenticated for another's server.
Descriptor Dial(const std::string& address, const std::string& token,
                const OnSocket& on_socket = {});

}  // namespace remote
