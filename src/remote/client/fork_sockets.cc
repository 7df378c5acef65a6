#include "remote/client/fork_sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>

#include "process/fork.h"

namespace remote {
namespace {

// A number may be another file's by the time of a fork: gRPC closes its sockets unasked.
using OpenSocket = std::tuple<int, dev_t, ino_t>;

std::optional<OpenSocket> Identify(int file) {
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISSOCK(status.st_mode)) return {};
  return OpenSocket(file, status.st_dev, status.st_ino);
}

struct Registry {
  process::Mutex mutex;
  std::set<OpenSocket> sockets;
  static Registry& Get() {
    static auto* registry = new Registry;
    return *registry;
  }
};

void GiveUp() {
  std::set<OpenSocket>& sockets = Registry::Get().sockets;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const OpenSocket& socket : sockets) {
    const int file = std::get<int>(socket);
    if (Identify(file) != socket) continue;
    if (nothing >= 0) {
      dup3(nothing, file, O_CLOEXEC);
    } else {
      close(file);
    }
  }
  if (nothing >= 0) close(nothing);
  sockets.clear();
}

// What gRPC calls the other end, or nothing for what is not connected by TCP.
std::string PeerOf(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family == AF_INET6) {
    const in6_addr inner = reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&inner)) {
      const in_port_t port = reinterpret_cast<sockaddr_in6&>(address).sin6_port;
      address = {};
      auto& plain = reinterpret_cast<sockaddr_in&>(address);
      plain.sin_family = AF_INET;
      plain.sin_port = port;
      std::memcpy(&plain.sin_addr, inner.s6_addr + 12, 4);
      size = sizeof plain;
    }
  }
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  if (address.ss_family == AF_INET) return std::string("ipv4:") + host + ":" + port;
  if (address.ss_family == AF_INET6) return std::string("ipv6:[") + host + "]:" + port;
  return "";
}

// "ipv6:%5B::1%5D:80", as some versions of gRPC write it.
std::string WithBrackets(std::string peer) {
  for (const auto& [code, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = peer.find(code); at != std::string::npos) peer.replace(at, 3, bracket);
  }
  return peer;
}

}  // namespace

void GiveUpInChildren(int socket) noexcept try {
  static constexpr process::ForkHooks kHooks{.child = &GiveUp};
  static const bool added = (process::AtFork(kHooks), true);
  (void)added;
  const std::optional<OpenSocket> open = Identify(socket);
  if (!open) return;
  Registry& registry = Registry::Get();
  std::lock_guard lock(registry.mutex);
  std::erase_if(registry.sockets,
                [](const OpenSocket& known) { return Identify(std::get<int>(known)) != known; });
  registry.sockets.insert(*open);
} catch (const std::exception&) {
}

void GiveUpInChildren(const std::string& peer) noexcept try {
  const std::string wanted = WithBrackets(peer);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int file = std::atoi(entry.path().filename().c_str());
    if (Identify(file) && PeerOf(file) == wanted) GiveUpInChildren(file);
  }
} catch (const std::exception&) {
}

}  // namespace remote
