#include "cpu/collective/peer_watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "cpu/collective/event_file.h"
#include "cpu/collective/heartbeat.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
using State = PeerWatch::State;
using std::chrono::milliseconds;

// How long a rank that leaves waits for others to take its farewell.
constexpr milliseconds kFarewell(1000);
constexpr uint32_t kMostReasonBytes = 1532;

// What travels: this, and the reason. kHere is a sign of life.
struct ControlHeader {
  State state;
  uint32_t reason_bytes;
};

std::string Encode(State state, const std::string& reason) {
  const ControlHeader header{
      state, static_cast<uint32_t>(std::min<size_t>(reason.size(), kMostReasonBytes))};
  std::string text(sizeof header, '\0');
  std::memcpy(text.data(), &header, sizeof header);
  return text.append(reason, 0, header.reason_bytes);
}

}  // namespace

class PeerWatch::Thread {
 public:
  Thread(std::vector<Link> links, milliseconds timeout)
      : timeout_(timeout), peers_(links.size()), states_(links.size()) {
    for (size_t i = 0; i < links.size(); ++i) peers_[i].link = std::move(links[i]);
    entries_.reserve(1 + links.size());
    thread_ = StartHeartbeatThread([this] { Work(); });
  }

  ~Thread() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.Set();
    thread_.join();
  }

  int64_t size() const { return static_cast<int64_t>(peers_.size()); }
  milliseconds timeout() const { return timeout_; }
  State state(int64_t rank) const { return states_[rank].load(std::memory_order_acquire); }
  std::string reason(int64_t rank) const {
    std::lock_guard lock(mutex_);
    return peers_[rank].reason;
  }
  const EventFile& changed() const { return changed_; }

  void AwaitEnd(int64_t rank) {
    std::unique_lock lock(mutex_);
    has_changed_.wait_for(lock, std::chrono::seconds(1),
                          [&] { return states_[rank].load() != State::kHere; });
    if (states_[rank].load() == State::kHere) Change(rank, State::kDied);
  }

  void Announce(State state, const std::string& reason) {
    std::lock_guard lock(mutex_);
    for (Peer& peer : peers_) {
      if (!peer.link) continue;
      peer.outgoing.push_back(Encode(state, reason));
      Send(peer);
    }
    wake_.Set();
  }

 private:
  struct Peer {
    Link link;
    std::string reason;
    std::deque<std::string> outgoing;
    size_t sent = 0;       // of the first
    std::string incoming;  // part of the next control message
    bool heard = false;
    FailureDetector detector;
  };

  void Work() {
    const milliseconds period = FailureDetector::Period(timeout_);
    Clock::time_point last = Clock::now(), farewell = Clock::time_point::max();
    while (true) {
      AwaitEvents(last + period);
      std::lock_guard lock(mutex_);
      for (int64_t rank = 0; rank < size(); ++rank) {
        if (peers_[rank].link) Receive(rank);
        if (peers_[rank].link) Send(peers_[rank]);
      }
      const Clock::time_point now = Clock::now();
      if (stopping_) {
        farewell = std::min(farewell, now + kFarewell);
        if (now >= farewell ||
            std::ranges::all_of(peers_, [](const Peer& peer) { return peer.outgoing.empty(); })) {
          return;
        }
      }
      if (now < last + period) continue;
      Beat(std::chrono::duration_cast<milliseconds>(now - last));
      last = now;
    }
  }

  void AwaitEvents(Clock::time_point until) {
    entries_.clear();
    entries_.push_back({wake_.file(), POLLIN, 0});
    {
      std::lock_guard lock(mutex_);
      for (const Peer& peer : peers_) {
        if (!peer.link) continue;
        const int wanted = POLLIN | (peer.outgoing.empty() ? 0 : POLLOUT);
        entries_.push_back({peer.link.file(), static_cast<short>(wanted), 0});
      }
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    poll(entries_.data(), entries_.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (entries_[0].revents != 0) wake_.Clear();
  }

  // Gives signs of life, and counts those that did not come.
  void Beat(milliseconds elapsed) {
    for (int64_t rank = 0; rank < size(); ++rank) {
      Peer& peer = peers_[rank];
      if (!peer.link) continue;
      GiveSign(peer);
      const bool is_silent = peer.detector.Listen(peer.heard, elapsed, timeout_);
      peer.heard = false;
      if (!is_silent || states_[rank].load() != State::kHere) continue;
      Change(rank, State::kSilent);
      try {
        WarnOfSilence(rank, timeout_);
      } catch (const std::bad_alloc&) {
        // The error that waits for whoever needs this rank tells the same.
      }
    }
  }

  // Without memory for it, the next one is in time.
  void GiveSign(Peer& peer) {
    try {
      if (peer.outgoing.empty()) peer.outgoing.push_back(Encode(State::kHere, ""));
    } catch (const std::bad_alloc&) {
      return;
    }
    Send(peer);
  }

  void Send(Peer& peer) {
    while (peer.link && !peer.outgoing.empty()) {
      const std::string& text = peer.outgoing.front();
      const int64_t count = peer.link.Send(text.data() + peer.sent, text.size() - peer.sent);
      if (count < 0) Forget(peer);  // (why it has ended is what Receive finds)
      if (count <= 0) return;
      peer.sent += static_cast<size_t>(count);
      if (peer.sent < text.size()) continue;
      peer.sent = 0;
      peer.outgoing.pop_front();
    }
  }

  static void Forget(Peer& peer) {
    peer.outgoing.clear();
    peer.sent = 0;
  }

  void Receive(int64_t rank) {
    Peer& peer = peers_[rank];
    while (true) {
      char bytes[2048];
      const int64_t count = peer.link.Receive(bytes, sizeof bytes);
      if (count == 0) return;
      if (count < 0 || !Take(rank, std::string_view(bytes, static_cast<size_t>(count)))) {
        peer.link.Close();
        Forget(peer);
        // Whoever has said goodbye may end.
        if (states_[rank].load() == State::kHere) Change(rank, State::kDied);
        return;
      }
    }
  }

  // False if the other side does not keep to what is agreed, or this one has no memory for it.
  bool Take(int64_t rank, std::string_view bytes) try {
    Peer& peer = peers_[rank];
    peer.heard = true;
    peer.incoming.append(bytes);
    while (peer.incoming.size() >= sizeof(ControlHeader)) {
      ControlHeader header;
      std::memcpy(&header, peer.incoming.data(), sizeof header);
      if (header.reason_bytes > kMostReasonBytes || header.state > State::kFailed) return false;
      const size_t whole = sizeof header + header.reason_bytes;
      if (peer.incoming.size() < whole) break;
      if (header.state != State::kHere && states_[rank].load() == State::kHere) {
        peer.reason = peer.incoming.substr(sizeof header, header.reason_bytes);
        Change(rank, header.state);
      }
      peer.incoming.erase(0, whole);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  void Change(int64_t rank, State state) {
    states_[rank].store(state, std::memory_order_release);
    has_changed_.notify_all();
    changed_.Set();
  }

  const milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable has_changed_;
  std::vector<Peer> peers_;                 // by rank
  std::vector<pollfd> entries_;             // has room for all, so that waiting needs no memory
  std::vector<std::atomic<State>> states_;  // changed under the lock
  bool stopping_ = false;
  EventFile wake_, changed_;
  std::thread thread_;
};

PeerWatch::PeerWatch(std::vector<Link> links, milliseconds timeout)
    : thread_(std::make_unique<Thread>(std::move(links), timeout)), process_(getpid()) {}

PeerWatch::~PeerWatch() {
  // In a forked child there is no such thread, and its lock may be held.
  if (getpid() != process_) thread_.release();  // NOLINT: left as it is
}

int64_t PeerWatch::size() const { return thread_->size(); }
milliseconds PeerWatch::timeout() const { return thread_->timeout(); }
State PeerWatch::state(int64_t rank) const { return thread_->state(rank); }
std::string PeerWatch::reason(int64_t rank) const { return thread_->reason(rank); }
int PeerWatch::changed_file() const { return thread_->changed().file(); }
void PeerWatch::ClearChanged() { thread_->changed().Clear(); }
void PeerWatch::AwaitEnd(int64_t rank) { thread_->AwaitEnd(rank); }

void PeerWatch::Announce(State state, const std::string& reason) noexcept {
  try {
    thread_->Announce(state, reason);
  } catch (const std::exception&) {
    // Without memory for the words, the end of the connection tells.
  }
}

}  // namespace cpu
