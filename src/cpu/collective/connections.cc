#include "cpu/collective/connections.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "cpu/collective/host_identity.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr size_t kPasswordBytes = 32;
// A machine that is silent for so long has gone.
constexpr seconds kSilence(20);
// Strangers that connect and say nothing are not waited for longer.
constexpr seconds kGreetingTime(5);

// Whoever knows it has read it in the world's store.
std::string MakePassword() {
  unsigned char random[kPasswordBytes / 2];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable, "the system gives no random numbers");
  }
  static const char* const kDigits = "0123456789abcdef";
  std::string password;
  for (unsigned char byte : random) {
    password += kDigits[byte >> 4];
    password += kDigits[byte & 15];
  }
  return password;
}

}  // namespace

// The first bytes on a connection.
struct Connections::Greeting {
  char password[kPasswordBytes];
  int64_t rank;
  int64_t is_news;
};

Connections::Connections(const Meeting& meeting)
    : rank_(meeting.options().rank), process_(getpid()), peers_(meeting.options().size) {
  const std::string address = HostAddress();
  const Socket listener = Socket::Listen(address);
  const std::string password = MakePassword();
  meeting.Put("network", address + " " + std::to_string(listener.port()) + " " + password);
  for (int64_t rank = 0; rank < rank_; ++rank) ConnectTo(meeting, rank);
  AcceptOthers(meeting, listener, password);
  for (const Peer& peer : peers_) {
    if (!peer.data) continue;
    peer.data.BreakAfter(kSilence);
    peer.news.BreakAfter(kSilence);
  }
}

void Connections::ConnectTo(const Meeting& meeting, int64_t rank) {
  std::istringstream text(meeting.Get("network", rank));
  std::string address, password;
  int port = 0;
  text >> address >> port >> password;
  Greeting greeting{};
  greeting.rank = rank_;
  std::memcpy(greeting.password, password.data(), std::min(password.size(), kPasswordBytes));
  Peer& peer = peers_[rank];
  for (Socket* socket : {&peer.data, &peer.news}) {
    try {
      *socket = Socket::Connect(address, port, meeting.deadline());
    } catch (const hlo::Error& error) {
      throw hlo::Error(error.code(), "rank " + std::to_string(rank_) + " cannot reach rank " +
                                         std::to_string(rank) + ": " + error.what() +
                                         " (GLOO_SOCKET_IFNAME names the network to use)");
    }
    greeting.is_news = socket == &peer.news ? 1 : 0;
    socket->SendAll(&greeting, sizeof greeting, meeting.deadline());
  }
}

void Connections::AcceptOthers(const Meeting& meeting, const Socket& listener,
                               const std::string& password) {
  const int64_t size = this->size();
  for (int64_t wanted = 2 * (size - 1 - rank_); wanted > 0;) {
    Socket socket = listener.Accept(meeting.deadline());
    if (!socket) {
      std::vector<int64_t> missing;
      for (int64_t rank = rank_ + 1; rank < size; ++rank) {
        if (!peers_[rank].data || !peers_[rank].news) missing.push_back(rank);
      }
      meeting.ThrowMissing(missing);
    }
    Greeting greeting;
    const auto deadline = std::min(meeting.deadline(), Clock::now() + kGreetingTime);
    if (!socket.ReceiveAll(&greeting, sizeof greeting, deadline)) continue;
    if (std::memcmp(greeting.password, password.data(), kPasswordBytes) != 0) continue;
    if (greeting.rank <= rank_ || greeting.rank >= size) continue;
    Peer& peer = peers_[greeting.rank];
    (greeting.is_news != 0 ? peer.news : peer.data) = std::move(socket);
    --wanted;
  }
}

Connections::~Connections() {
  if (getpid() == process_ && !has_failed_) Announce(State::kLeft, "");
}

void Connections::ReadNews() {
  for (Peer& peer : peers_) {
    if (peer.news && peer.state != State::kDied) ReadNews(peer);
  }
}

void Connections::ReadNews(Peer& peer) {
  while (true) {
    char bytes[sizeof(News)];
    const ssize_t count =
        recv(peer.news.file(), bytes, sizeof(News) - peer.partial.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      // Whoever has said goodbye may end.
      if (peer.state == State::kHere) peer.state = State::kDied;
      peer.news.Close();
      return;
    }
    peer.partial.insert(peer.partial.end(), bytes, bytes + count);
    if (peer.partial.size() < sizeof(News)) continue;
    News news;
    std::memcpy(&news, peer.partial.data(), sizeof news);
    peer.partial.clear();
    peer.state = news.state;
    peer.reason.assign(news.reason, strnlen(news.reason, sizeof news.reason));
  }
}

std::vector<int> Connections::news() const {
  std::vector<int> files;
  for (const Peer& peer : peers_) {
    if (peer.news) files.push_back(peer.news.file());
  }
  return files;
}

void Connections::AwaitEnd(int64_t rank) {
  Peer& peer = peers_[rank];
  const auto deadline = Clock::now() + seconds(1);
  while (peer.state == State::kHere && Clock::now() < deadline) {
    pollfd entry{peer.news.file(), POLLIN, 0};
    poll(&entry, 1, 100);
    ReadNews(peer);
  }
  if (peer.state == State::kHere) peer.state = State::kDied;
}

void Connections::Announce(State state, const std::string& reason) noexcept {
  has_failed_ |= state == State::kFailed;
  News news{};
  news.state = state;
  std::memcpy(news.reason, reason.data(), std::min(reason.size(), sizeof news.reason - 1));
  for (Peer& peer : peers_) {
    if (peer.news) send(peer.news.file(), &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace cpu
