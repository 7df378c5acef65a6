// Sockets by which processes of one machine reach each other: Unix sockets of one user, and
// loopback TCP.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace remote {

// Closes what it holds.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// What a server listens on.
struct Listener {
  std::vector<Descriptor> sockets;  // they do not block
  int port = 0;                     // of TCP
  std::string path;                 // of a Unix socket; removed by StopListening
  Descriptor lock;                  // that no other server serves at the path
};

// Listens at a local address: on all that the name stands for, so that no stranger listens on the
// others. A socket that a dead server left behind is replaced. Throws hlo::Error: kAlreadyExists
// for an address in use.
Listener Listen(const std::string& address);
void StopListening(Listener& listener);

// Called with each socket as soon as there is one, before which no other thread forks: with
// GiveUpInChildren, no forked child keeps one that is still connecting.
using OnSocket = std::function<void(int socket)>;

// Connects to a local address. Throws hlo::Error(kUnavailable) if nobody listens.
Descriptor Connect(const std::string& address, const OnSocket& on_socket = {});

// Is the process at the other end of a Unix socket of this one's user?
bool IsOwnPeer(int connection);

// The two ends of a TCP connection, the client's first; the same text on both sides.
std::string EndsOf(int connection, bool of_server);

}  // namespace remote
