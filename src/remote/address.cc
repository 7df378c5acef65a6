#include "remote/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "hlo/error.h"
#include "remote/local_socket.h"

namespace remote {
namespace {

constexpr std::string_view kSocketPrefix = "unix:";
// Whoever connects gets something against which guesses can be tried.
constexpr size_t kLeastTokenBytes = 16;
constexpr size_t kMostTokenBytes = 4096;

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return false;
}

hlo::Error Denied(const std::string& text) {
  return hlo::Error(hlo::ErrorCode::kPermissionDenied, text);
}

}  // namespace

std::string OwnFolder() {
  const char* chosen = std::getenv("TORCH_XLA_RUNTIME_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return "/tmp/torch_xla-" + std::to_string(geteuid());
}

std::string OwnTokenFile() { return OwnFolder() + "/token"; }

std::string DefaultAddress() { return std::string(kSocketPrefix) + OwnFolder() + "/server.sock"; }

std::optional<std::string> SocketPath(const std::string& address) {
  if (!address.starts_with(kSocketPrefix)) return {};
  return address.substr(kSocketPrefix.size());
}

HostAndPort ParseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    throw hlo::Error("'" + address +
                     "' is no address of a runtime server; it must be HOST:PORT, such as "
                     "localhost:51011, or unix:PATH");
  }
  return {host, port};
}

bool IsLocal(const std::string& address) {
  if (SocketPath(address)) return true;
  const auto [host, port] = ParseAddress(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, "the host of the runtime server's address '" +
                                                    address +
                                                    "' is not known: " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (!IsLoopback(entry->ai_addr)) return false;
  }
  return true;
}

std::string CommandFor(const std::string& address) {
  const std::string command = "python -m torch_xla.runtime_server";
  if (const auto path = SocketPath(address)) return command + " --socket " + *path;
  return command + " --port " + address.substr(address.rfind(':') + 1);
}

void CheckOwnFolder(const std::string& folder) {
  struct stat status = {};
  if (lstat(folder.c_str(), &status) != 0) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, "the folder '" + folder +
                                                    "' of the runtime server's socket cannot be "
                                                    "looked at: " +
                                                    std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    throw Denied("the folder '" + folder +
                 "' of the runtime server's socket must be a folder of this user's own that no "
                 "other may enter (chmod 700); TORCH_XLA_RUNTIME_DIR names another one");
  }
}

namespace {

hlo::Error CannotRead(const std::string& path, const std::string& what) {
  return hlo::Error(hlo::ErrorCode::kNotFound, what + " cannot be read from '" + path + "'");
}

}  // namespace

std::string ReadFile(const std::string& path, const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || text.empty()) throw CannotRead(path, what);
  return text;
}

std::string ReadToken(const std::string& path) {
  constexpr char kSpace[] = " \t\r\n";
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  // Of the file that is open, which nobody can replace any more.
  if (!file || fstat(file.get(), &status) != 0)
    throw CannotRead(path, "the runtime server's token");
  if (!S_ISREG(status.st_mode) || (status.st_uid != geteuid() && status.st_uid != 0) ||
      (status.st_mode & 077) != 0) {
    throw Denied("the token in '" + path +
                 "' must be in a file of this user's own that no other may read or write "
                 "(chmod 600)");
  }
  std::string text(kMostTokenBytes, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) throw CannotRead(path, "the runtime server's token");
  text.resize(size);
  const size_t begin = text.find_first_not_of(kSpace);
  const size_t end = text.find_last_not_of(kSpace);
  if (begin == std::string::npos) throw hlo::Error("the token in '" + path + "' is empty");
  text = text.substr(begin, end - begin + 1);
  if (text.size() < kLeastTokenBytes) {
    throw hlo::Error("the token in '" + path + "' has " + std::to_string(text.size()) +
                     " bytes and could be guessed; make one with: openssl rand -hex 32");
  }
  return text;
}

}  // namespace remote
