#include "cpu/collective/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace cpu {
namespace {

// What one record of TLS holds.
constexpr size_t kRecordBytes = 16 << 10;

int64_t Moved(ssize_t outcome, bool ended) {
  if (outcome > 0) return outcome;
  if (ended) return -1;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

msghdr MessageOf(const iovec* pieces, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = count;
  return message;
}

}  // namespace

void Link::Secure(const Tls& tls, TlsStream::Side side) {
  tls_ = std::make_unique<TlsStream>(tls, side, file());
}

int64_t Link::Send(const iovec* pieces, int count) {
  if (tls_ == nullptr) {
    const msghdr message = MessageOf(pieces, count);
    return Moved(sendmsg(file(), &message, MSG_NOSIGNAL | MSG_DONTWAIT), false);
  }
  if (count == 1) return tls_->Write(pieces[0].iov_base, pieces[0].iov_len);
  // One record, rather than one for each piece.
  gathered_.clear();
  for (int i = 0; i < count; ++i) {
    const auto* data = static_cast<const char*>(pieces[i].iov_base);
    gathered_.insert(gathered_.end(), data,
                     data + std::min(pieces[i].iov_len, kRecordBytes - gathered_.size()));
  }
  return tls_->Write(gathered_.data(), gathered_.size());
}

int64_t Link::Receive(const iovec* pieces, int count) {
  if (tls_ != nullptr) return tls_->Read(pieces[0].iov_base, pieces[0].iov_len);
  msghdr message = MessageOf(pieces, count);
  const ssize_t received = recvmsg(file(), &message, MSG_DONTWAIT);
  return Moved(received, received == 0);
}

int64_t Link::Send(const void* data, size_t bytes) {
  const iovec piece{const_cast<void*>(data), bytes};
  return Send(&piece, 1);
}

int64_t Link::Receive(void* data, size_t bytes) {
  const iovec piece{data, bytes};
  return Receive(&piece, 1);
}

void Link::Close() {
  tls_.reset();
  socket_.Close();
}

}  // namespace cpu
