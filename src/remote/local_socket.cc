#include "remote/local_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "hlo/error.h"
#include "process/fork.h"
#include "remote/address.h"

namespace remote {
namespace {

constexpr int kBacklog = SOMAXCONN;
// A listener that takes nobody in is no server.
constexpr timeval kConnectTime = {10, 0};

hlo::Error CannotListen(const std::string& address, const std::string& why) {
  return hlo::Error(hlo::ErrorCode::kAlreadyExists,
                    "the runtime server cannot listen on '" + address + "': " + why);
}

hlo::Error NobodyListens(int error) {
  return hlo::Error(hlo::ErrorCode::kUnavailable, std::strerror(error));
}

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.front() != '/' || path.size() >= sizeof address.sun_path) {
    throw hlo::Error("the path '" + path +
                     "' of the runtime server's socket must be absolute and of less than " +
                     std::to_string(sizeof address.sun_path) +
                     " bytes; TORCH_XLA_RUNTIME_DIR names a folder");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

void CheckFolderOf(const std::string& path) {
  CheckOwnFolder(path.substr(0, std::max<size_t>(path.rfind('/'), 1)));
}

Descriptor NewClientSocket(int family, const OnSocket& on_socket) {
  const process::NoFork no_fork;
  Descriptor own(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!own) return own;
  if (on_socket) on_socket(own.get());
  setsockopt(own.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTime, sizeof kConnectTime);
  return own;
}

bool Answers(const sockaddr_un& address) {
  const Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

Listener ListenOnPath(const std::string& path) {
  const sockaddr_un address = SocketAddress(path);
  CheckFolderOf(path);
  const std::string name = "unix:" + path;
  Listener listener;
  listener.lock = Descriptor(
      open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!listener.lock) throw CannotListen(name, std::strerror(errno));
  if (flock(listener.lock.get(), LOCK_EX | LOCK_NB) != 0 || Answers(address)) {
    throw CannotListen(name, "the address is in use");
  }
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) throw CannotListen(name, "there is a file of that name");
    unlink(path.c_str());
  }
  Descriptor own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!own || bind(own.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(own.get(), kBacklog) != 0) {
    throw CannotListen(name, std::strerror(errno));
  }
  listener.path = path;
  listener.sockets.push_back(std::move(own));
  return listener;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses Resolve(const std::string& address) {
  const auto [host, port] = ParseAddress(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "the host of '" + address + "' is not known: " + gai_strerror(error));
  }
  return Addresses(found, freeaddrinfo);
}

in_port_t& PortOf(sockaddr* address) {
  return address->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

// Nothing, without an error, where this host lacks that kind of address.
Descriptor ListenOnOne(addrinfo& entry, const std::string& name) {
  Descriptor own(socket(entry.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!own) return {};
  const int yes = 1;
  setsockopt(own.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (entry.ai_family == AF_INET6) {
    setsockopt(own.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  }
  if (bind(own.get(), entry.ai_addr, entry.ai_addrlen) != 0 || listen(own.get(), kBacklog) != 0) {
    if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) return {};
    throw CannotListen(name, errno == EADDRINUSE ? "the address is in use" : std::strerror(errno));
  }
  return own;
}

Listener ListenOnPort(const std::string& address) {
  const Addresses addresses = Resolve(address);
  Listener listener;
  for (addrinfo* entry = addresses.get(); entry != nullptr; entry = entry->ai_next) {
    if (listener.port != 0) PortOf(entry->ai_addr) = htons(static_cast<uint16_t>(listener.port));
    Descriptor own = ListenOnOne(*entry, address);
    if (!own) continue;
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    getsockname(own.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    listener.port = ntohs(PortOf(reinterpret_cast<sockaddr*>(&bound)));
    listener.sockets.push_back(std::move(own));
  }
  if (listener.sockets.empty()) throw CannotListen(address, "it is not this host's");
  return listener;
}

std::string Text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  auto* generic = reinterpret_cast<sockaddr*>(const_cast<sockaddr_storage*>(&address));
  const void* host =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  inet_ntop(address.ss_family, host, text, sizeof text);
  return std::string(text) + " " + std::to_string(ntohs(PortOf(generic)));
}

Descriptor ConnectToPort(const std::string& address, const OnSocket& on_socket) {
  const Addresses addresses = Resolve(address);
  int error = ECONNREFUSED;
  for (const addrinfo* entry = addresses.get(); entry != nullptr; entry = entry->ai_next) {
    Descriptor own = NewClientSocket(entry->ai_family, on_socket);
    if (own && connect(own.get(), entry->ai_addr, entry->ai_addrlen) == 0) {
      const int yes = 1;
      setsockopt(own.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      return own;
    }
    error = errno;
  }
  throw NobodyListens(error);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Listener Listen(const std::string& address) {
  const auto path = SocketPath(address);
  if (path) return ListenOnPath(*path);
  // The port that the system chose for one address may be in use on another.
  const bool any = ParseAddress(address).port == "0";
  for (int attempt = 0;; ++attempt) {
    try {
      return ListenOnPort(address);
    } catch (const hlo::Error&) {
      if (!any || attempt == 20) throw;
    }
  }
}

void StopListening(Listener& listener) {
  if (!listener.path.empty()) unlink(listener.path.c_str());
  listener = Listener();
}

Descriptor Connect(const std::string& address, const OnSocket& on_socket) {
  const auto path = SocketPath(address);
  if (!path) return ConnectToPort(address, on_socket);
  const sockaddr_un target = SocketAddress(*path);
  Descriptor own = NewClientSocket(AF_UNIX, on_socket);
  if (!own || connect(own.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) {
    throw NobodyListens(errno);
  }
  CheckFolderOf(*path);
  return own;
}

bool IsOwnPeer(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         size == sizeof peer && peer.uid == geteuid();
}

std::string EndsOf(int connection, bool of_server) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
    throw NobodyListens(errno);
  }
  return of_server ? Text(peer) + " " + Text(own) : Text(own) + " " + Text(peer);
}

}  // namespace remote
