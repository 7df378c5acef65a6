#include "remote/server/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "hlo/error.h"
#include "remote/handshake.h"

namespace remote {
namespace {

using Clock = std::chrono::steady_clock;
// An honest client needs milliseconds. Of more strangers than this the oldest go.
constexpr auto kHandshakeTime = std::chrono::seconds(5);
constexpr size_t kMostPending = 64;
// While the process has no descriptors or memory left.
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

// A handshake under way.
class Acceptor::Pending {
 public:
  Pending(Descriptor connection, const std::string& token)
      : connection_(std::move(connection)),
        deadline_(Clock::now() + kHandshakeTime),
        handshake_(token, EndsOf(connection_.get(), /*of_server=*/true)) {}

  enum class Progress { kWaits, kProven, kRefused };
  Progress Receive() noexcept {
    try {
      return ReceiveSome();
    } catch (const std::exception&) {  // no memory for it
      return Progress::kRefused;
    }
  }

  int number() const { return connection_.get(); }
  Clock::time_point deadline() const { return deadline_; }
  Descriptor TakeConnection() { return std::move(connection_); }

 private:
  Progress ReceiveSome() {
    const size_t wanted = challenged_ ? kProofBytes : kHelloBytes;
    char bytes[kHelloBytes];
    const ssize_t count = recv(connection_.get(), bytes, wanted - received_.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::kWaits;
    if (count <= 0) return Progress::kRefused;
    received_.append(bytes, count);
    if (received_.size() < wanted) return Progress::kWaits;
    if (challenged_) {
      return handshake_.Accepts(received_) ? Progress::kProven : Progress::kRefused;
    }
    return Challenge() ? Progress::kWaits : Progress::kRefused;
  }

  bool Challenge() {
    const std::optional<std::string> challenge = handshake_.Answer(received_);
    challenged_ = true;
    received_.clear();
    return challenge &&
           send(connection_.get(), challenge->data(), challenge->size(),
                MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(challenge->size());
  }

  Descriptor connection_;
  Clock::time_point deadline_;
  ServerHandshake handshake_;
  std::string received_;
  bool challenged_ = false;
};

Acceptor::Acceptor(Listener listener, std::string token, std::function<void(Descriptor)> take)
    : listener_(std::move(listener)),
      token_(std::move(token)),
      take_(std::move(take)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  if (!wake_) throw hlo::Error(hlo::ErrorCode::kResourceExhausted, std::strerror(errno));
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
  StopListening(listener_);
}

void Acceptor::Run() noexcept {
  pollfd woken = {wake_.get(), POLLIN, 0};
  while (poll(&woken, 1, 0) <= 0) {
    try {
      RunOnce();
    } catch (const std::exception&) {  // no memory: those who wait still do
      poll(&woken, 1, static_cast<int>(kPause.count()));
    }
  }
}

void Acceptor::RunOnce() {
  std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}};
  for (const Descriptor& socket : listener_.sockets) watched.push_back({socket.get(), POLLIN, 0});
  for (const Pending& pending : pending_) watched.push_back({pending.number(), POLLIN, 0});
  int wait = -1;
  if (!pending_.empty()) {  // the first is the oldest
    const auto left = pending_.front().deadline() - Clock::now();
    wait = static_cast<int>(
        std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
  if (poll(watched.data(), watched.size(), wait) < 0) return;
  const Clock::time_point now = Clock::now();
  size_t at = 1 + listener_.sockets.size();
  for (auto pending = pending_.begin(); pending != pending_.end(); ++at) {
    auto progress = Pending::Progress::kWaits;
    if (watched[at].revents != 0) progress = pending->Receive();
    const auto current = pending++;
    if (progress == Pending::Progress::kProven) take_(current->TakeConnection());
    if (progress != Pending::Progress::kWaits || current->deadline() <= now) {
      pending_.erase(current);
    }
  }
  for (size_t i = 0; i < listener_.sockets.size(); ++i) {
    if (watched[1 + i].revents != 0) Accept(listener_.sockets[i]);
  }
}

void Acceptor::Accept(const Descriptor& socket) {
  Descriptor connection(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) {
    // Else the loop would spin until there are descriptors again.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      pollfd woken = {wake_.get(), POLLIN, 0};
      poll(&woken, 1, static_cast<int>(kPause.count()));
    }
    return;
  }
  if (!listener_.path.empty()) {
    if (IsOwnPeer(connection.get())) take_(std::move(connection));
    return;
  }
  const int yes = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (pending_.size() >= kMostPending) pending_.pop_front();
  try {
    pending_.emplace_back(std::move(connection), token_);
  } catch (const hlo::Error&) {  // it is gone already, and must not cost the others a pause
  }
}

}  // namespace remote
