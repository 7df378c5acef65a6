// Addresses of runtime servers: "unix:PATH", a socket for processes of one user, or "HOST:PORT".
#pragma once

#include <optional>
#include <string>

namespace remote {

// The folder of this user's sockets and of the token that local servers ask for: what
// TORCH_XLA_RUNTIME_DIR names, else one in /tmp. It may not exist yet.
std::string OwnFolder();
std::string OwnTokenFile();
// A socket in that folder.
std::string DefaultAddress();

// The path of "unix:PATH"; nothing for other addresses.
std::optional<std::string> SocketPath(const std::string& address);

struct HostAndPort {
  std::string host, port;
};
// Throws hlo::Error for what is no "HOST:PORT".
HostAndPort ParseAddress(const std::string& address);

// True if only this host reaches the address: it is a socket's, or every address that the name
// stands for is a loopback one. Throws hlo::Error as ParseAddress, and for names not known.
bool IsLocal(const std::string& address);

// How the user starts a server there.
std::string CommandFor(const std::string& address);

// Throws hlo::Error(kPermissionDenied) unless the folder is this user's and no other may enter it.
void CheckOwnFolder(const std::string& folder);

// The whole of a file. Throws hlo::Error(kNotFound) that says what it should have held.
std::string ReadFile(const std::string& path, const std::string& what);
// The same without white space at the ends. Throws hlo::Error for a file that others may read or
// write, and for a token that could be guessed.
std::string ReadToken(const std::string& path);

}  // namespace remote
