// A connection between two ranks: a socket, and TLS over it or not. No call blocks.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/collective/socket.h"
#include "cpu/collective/tls.h"

namespace cpu {

class Link {
 public:
  Link() = default;
  explicit Link(Socket socket) : socket_(std::move(socket)) {}
  Link(Link&&) = default;
  Link& operator=(Link&&) = default;

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const Socket& socket() const { return socket_; }
  int file() const { return socket_.file(); }

  // TLS from here on; its handshake comes first. `tls` must stay until that is done.
  void Secure(const Tls& tls, TlsStream::Side side);
  TlsStream* tls() const { return tls_.get(); }
  // Whom the handshake has proven stays on the other side, and what follows goes in the clear: both
  // sides must do this at the same place in what they exchange.
  void EndTls() { tls_.reset(); }

  // Moves some of what the pieces hold, in their order. The bytes moved; 0 if it must wait, -1 if
  // the connection has ended. What was not sent must be sent again before anything else.
  int64_t Send(const iovec* pieces, int count);
  int64_t Receive(const iovec* pieces, int count);
  int64_t Send(const void* data, size_t bytes);
  int64_t Receive(void* data, size_t bytes);

  void Close();

 private:
  Socket socket_;
  std::unique_ptr<TlsStream> tls_;
  std::vector<char> gathered_;
};

}  // namespace cpu
