#include "cpu/collective/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "hlo/error.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;

// The open sockets, for a forked child to close.
struct Registry {
  std::mutex mutex;
  std::set<int> files;
  static Registry& Get() {
    static auto* registry = new Registry;
    return *registry;
  }
};

void CloseInChild() {
  Registry& registry = Registry::Get();
  new (&registry.mutex) std::mutex;  // the thread that locked it is the parent's
  for (int file : registry.files) close(file);
  registry.files.clear();
}

void Register(int file) {
  static const int registered = pthread_atfork(
      [] { Registry::Get().mutex.lock(); }, [] { Registry::Get().mutex.unlock(); }, &CloseInChild);
  (void)registered;
  Registry& registry = Registry::Get();
  std::lock_guard lock(registry.mutex);
  registry.files.insert(file);
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
    Registry& registry = Registry::Get();
    std::lock_guard lock(registry.mutex);
    registry.files.erase(file_);
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

Socket Socket::Connect(const std::string& address, int port, Deadline deadline) {
  auto target = Resolve(address, port);
  const std::string name = "connecting to " + address + " port " + std::to_string(port);
  Socket socket = Open(*target);
  if (connect(socket.file_, target->ai_addr, target->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) ThrowSystemError(name, errno);
    if (!socket.Await(POLLOUT, deadline)) ThrowSystemError(name, ETIMEDOUT);
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.file_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) ThrowSystemError(name, error);
  }
  SendAtOnce(socket.file_);
  return socket;
}

Socket Socket::Accept(Deadline deadline) const {
  while (Await(POLLIN, deadline)) {
    const int file = accept4(file_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file >= 0) {
      SendAtOnce(file);
      return Socket(file);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      ThrowSystemError("accept", errno);
    }
  }
  return {};
}

int Socket::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

void Socket::BreakAfter(std::chrono::seconds silence) const {
  constexpr int kProbes = 4;
  const int on = 1, probes = kProbes;
  const int interval = std::max(1, static_cast<int>(silence.count()) / (kProbes + 1));
  const auto milliseconds = static_cast<unsigned>(silence.count() * 1000);
  setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(file_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(file_, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

bool Socket::Await(short events, Deadline deadline) const {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{file_, events, 0};
    const int ready =
        poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
  }
}

bool Socket::SendAll(const void* data, size_t bytes, Deadline deadline) const {
  const auto* next = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(file_, next, bytes, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      bytes -= sent;
    } else if ((errno != EAGAIN && errno != EINTR) || !Await(POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool Socket::ReceiveAll(void* data, size_t bytes, Deadline deadline) const {
  auto* next = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(file_, next, bytes, 0);
    if (received == 0) return false;
    if (received > 0) {
      next += received;
      bytes -= received;
    } else if ((errno != EAGAIN && errno != EINTR) || !Await(POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

void Socket::EndSending() const { shutdown(file_, SHUT_WR); }

}  // namespace cpu
