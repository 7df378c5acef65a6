#include "cpu/collective/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "hlo/error.h"
#include "process/fork.h"

namespace cpu {
namespace {

// The open sockets, for a forked child to close.
struct OpenSockets {
  process::Mutex mutex;
  std::set<int> files;
  static OpenSockets& Get() {
    static auto* sockets = new OpenSockets;
    return *sockets;
  }
};

void CloseInChild() {
  OpenSockets& sockets = OpenSockets::Get();
  for (int file : sockets.files) close(file);
  sockets.files.clear();
}

void Register(int file) {
  static constexpr process::ForkHooks kHooks{.child = &CloseInChild};
  static const bool added = (process::AtFork(kHooks), true);
  (void)added;
  OpenSockets& sockets = OpenSockets::Get();
  std::lock_guard lock(sockets.mutex);
  sockets.files.insert(file);
}

[[noreturn]] void ThrowSystemError(const std::string& what, int error) {
  throw hlo::Error(hlo::ErrorCode::kUnavailable,
                   "network for collectives: " + what + ": " + std::strerror(error));
}

std::unique_ptr<addrinfo, void (*)(addrinfo*)> Resolve(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable,
                     "network for collectives: address " + address + ": " + gai_strerror(failure));
  }
  return {found, freeaddrinfo};
}

Socket Open(const addrinfo& address) {
  const process::NoFork no_fork;  // the child closes what is registered
  const int file = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) ThrowSystemError("socket", errno);
  return Socket(file);
}

void SendAtOnce(int file) {
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Socket::Socket(int file) : file_(file), process_(getpid()) { Register(file); }

Socket::Socket(Socket&& other) noexcept
    : file_(std::exchange(other.file_, -1)), process_(other.process_) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  Close();
  file_ = std::exchange(other.file_, -1);
  process_ = other.process_;
  return *this;
}

Socket::~Socket() { Close(); }

void Socket::Close() {
  // A forked child has closed it already, and the number may be another file's by now.
  if (file_ >= 0 && getpid() == process_) {
    OpenSockets& sockets = OpenSockets::Get();
    std::lock_guard lock(sockets.mutex);
    sockets.files.erase(file_);
    close(file_);
  }
  file_ = -1;
}

Socket Socket::Listen(const std::string& address) {
  auto target = Resolve(address, 0);
  Socket socket = Open(*target);
  if (bind(socket.file_, target->ai_addr, target->ai_addrlen) != 0 ||
      listen(socket.file_, SOMAXCONN) != 0) {
    ThrowSystemError("listening at " + address, errno);
  }
  return socket;
}

Socket Socket::Connect(const std::string& address, int port) {
  auto target = Resolve(address, port);
  Socket socket = Open(*target);
  if (connect(socket.file_, target->ai_addr, target->ai_addrlen) != 0 && errno != EINPROGRESS) {
    ThrowSystemError("connecting to " + address + " port " + std::to_string(port), errno);
  }
  SendAtOnce(socket.file_);
  return socket;
}

void Socket::CheckConnected() const {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) ThrowSystemError("connecting", error);
}

Socket Socket::Accept() const {
  const process::NoFork no_fork;
  while (true) {
    const int file = accept4(file_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file >= 0) {
      SendAtOnce(file);
      return Socket(file);
    }
    if (errno == EAGAIN) return {};
    // Whoever gave up while waiting, or cannot be reached, is no failure of ours.
    const bool is_theirs = errno == ECONNABORTED || errno == EPROTO || errno == EPERM ||
                           errno == EHOSTUNREACH || errno == ENETUNREACH || errno == EHOSTDOWN;
    if (errno != EINTR && !is_theirs) ThrowSystemError("accept", errno);
  }
}

int Socket::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string Socket::PeerAddress() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST];
  if (getpeername(file_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "?";
  }
  return text;
}

void Socket::Persist(std::chrono::seconds retry) const {
  const int on = 1, probe = 60, probes = 100;
  setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof probe);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPINTVL, &probe, sizeof probe);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  // The longest pause before something is sent again; Linux knows it from 6.15 on, headers later.
  constexpr int kLongestPause = 44;
  const int pause = static_cast<int>(std::clamp<int64_t>(retry.count(), 1, 120)) * 1000;
  setsockopt(file_, IPPROTO_TCP, kLongestPause, &pause, sizeof pause);
}

}  // namespace cpu
