#include "cpu/collective/host_identity.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "hlo/error.h"

namespace cpu {
namespace {

std::string FirstLine(const char* path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::string LinkTarget(const char* path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path, target, sizeof target);
  return size > 0 ? std::string(target, size) : std::string();
}

// Empty for families other than IPv4 and IPv6.
std::string TextOf(const sockaddr* address) {
  char text[NI_MAXHOST];
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
    return {};
  }
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

// The address of one interface, or of the first that is up and no loopback; IPv4 before IPv6.
std::string InterfaceAddress(const char* name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family) continue;
      const bool wanted = name != nullptr
                              ? std::strcmp(i->ifa_name, name) == 0
                              : (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
      if (wanted) return TextOf(i->ifa_addr);
    }
  }
  return {};
}

// Connecting a datagram socket sends nothing; it makes the system choose the way.
std::string AddressTowards(const char* host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, "9", &hints, &found) != 0) return {};
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int socket_file = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_file < 0) return {};
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::string text;
  if (connect(socket_file, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    text = TextOf(reinterpret_cast<sockaddr*>(&address));
  }
  close(socket_file);
  return text;
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

std::string HostIdentity() {
  const char* shares = std::getenv("TORCH_XLA_SHARED_MEMORY");
  const bool alone = shares != nullptr && std::strcmp(shares, "0") == 0;
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name);
  return std::string(name) + " " + FirstLine("/proc/sys/kernel/random/boot_id") + " " +
         LinkTarget("/proc/self/ns/net") + " " + LinkTarget("/proc/self/ns/pid") + " user " +
         std::to_string(getuid()) + (alone ? " process " + std::to_string(getpid()) : "");
}

std::string HostAddress() {
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0') {
    std::string address = InterfaceAddress(name);
    if (!address.empty()) return address;
    throw hlo::Error("GLOO_SOCKET_IFNAME is '" + std::string(name) +
                     "', but no network interface of that name has an address");
  }
  std::string address;
  if (const char* master = std::getenv("MASTER_ADDR"); master != nullptr && *master != '\0') {
    address = AddressTowards(master);
  }
  // The master itself may call itself localhost.
  if (address.empty() || IsLoopback(address)) {
    const std::string outside = InterfaceAddress(nullptr);
    if (!outside.empty()) address = outside;
  }
  return address.empty() ? "127.0.0.1" : address;
}

}  // namespace cpu
