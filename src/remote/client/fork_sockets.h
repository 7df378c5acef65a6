// The sockets of gRPC's channels in forked children. A child has them too, and while it lives the
// server would see no end of a session whose client has died.
#pragma once

#include <string>

namespace remote {

// Without memory these do nothing: that is better than an end of the process.
//
// From now on forked children give up their copies of a socket that is open. Its number stays taken
// there, since the channel that nobody can use any more would close it.
void GiveUpInChildren(int socket) noexcept;

// Likewise for all sockets that are connected with `peer`, as gRPC calls it:
// "ipv4:127.0.0.1:51011". For channels that make their sockets themselves: what forks between the
// socket and this call, which has to wait for the server's first answer, keeps its copy. Such a
// server sees the end of the client when it has not answered for --lost-after.
void GiveUpInChildren(const std::string& peer) noexcept;

}  // namespace remote
