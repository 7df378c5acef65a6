// TCP connections between ranks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace cpu {

// A stream socket that this process owns. In a forked child all of them are closed at once: a child
// that outlived its parent would keep the connections open, and the others could not see that the
// parent has died. No call blocks.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int file);  // takes it over
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // Listens at a numeric address, and no other, on a port that the system chooses. Throws
  // hlo::Error(kUnavailable), as the others do.
  static Socket Listen(const std::string& address);
  // Begins to connect. Once the socket can be written, CheckConnected says how that went.
  static Socket Connect(const std::string& address, int port);
  void CheckConnected() const;
  // One that has come, or an empty one.
  Socket Accept() const;

  explicit operator bool() const { return file_ >= 0; }
  int file() const { return file_; }
  int port() const;
  // The other side's address, or "?".
  std::string PeerAddress() const;
  // Keeps an idle connection known to what lies between, and sends again within `retry` what was
  // lost, as far as the system can: a link that was down is noticed soon after it is back. How long
  // the other side may be silent is not decided here.
  void Persist(std::chrono::seconds retry) const;
  void Close();

 private:
  int file_ = -1;
  pid_t process_ = 0;  // whose it is
};

}  // namespace cpu
