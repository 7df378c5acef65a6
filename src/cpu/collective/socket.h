// TCP connections between ranks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace cpu {

// A stream socket that this process owns. In a forked child all of them are closed at once: a child
// that outlived its parent would keep the connections open, and the others could not see that the
// parent has died. Calls neither block nor raise SIGPIPE, unless they take a deadline.
class Socket {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Socket() = default;
  explicit Socket(int file);  // takes it over
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Listens at a numeric address, on a port that the system chooses. Throws
  // hlo::Error(kUnavailable), as the others do.
  static Socket Listen(const std::string& address);
  static Socket Connect(const std::string& address, int port, Deadline deadline);
  // Empty when the time is over.
  Socket Accept(Deadline deadline) const;

  explicit operator bool() const { return file_ >= 0; }
  int file() const { return file_; }
  int port() const;
  // The connection breaks when the other side's machine has not answered for this long.
  void BreakAfter(std::chrono::seconds silence) const;

  // All bytes, or false: the connection has ended, or the time is over.
  bool SendAll(const void* data, size_t bytes, Deadline deadline) const;
  bool ReceiveAll(void* data, size_t bytes, Deadline deadline) const;
  // Nothing more will be sent; what was sent still arrives.
  void EndSending() const;
  void Close();

 private:
  bool Await(short events, Deadline deadline) const;

  int file_ = -1;
  pid_t process_ = 0;  // whose it is
};

}  // namespace cpu
