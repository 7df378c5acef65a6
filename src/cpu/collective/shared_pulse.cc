#include "cpu/collective/shared_pulse.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "cpu/collective/heartbeat.h"

namespace cpu {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class SharedPulse::Thread {
 public:
  Thread(SharedSegment& segment, std::vector<int64_t> ranks, milliseconds timeout)
      : segment_(segment), ranks_(std::move(ranks)), timeout_(timeout), peers_(ranks_.size()) {
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i].beats = Beats(static_cast<int64_t>(i));
    thread_ = StartHeartbeatThread([this] { Work(); });
  }

  ~Thread() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }

  milliseconds timeout() const { return timeout_; }
  bool IsSilent(int64_t process) const {
    return peers_[process].is_silent.load(std::memory_order_acquire);
  }

 private:
  struct Peer {
    uint32_t beats = 0;
    FailureDetector detector;
    std::atomic<bool> is_silent = false;
  };

  uint32_t Beats(int64_t process) const { return segment_.control(process).beats.load(); }

  void Work() {
    Clock::time_point last = Clock::now();
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      ++segment_.control(segment_.index()).beats;
      stop_.wait_for(lock, FailureDetector::Period(timeout_), [&] { return stopping_; });
      const Clock::time_point now = Clock::now();
      Listen(std::chrono::duration_cast<milliseconds>(now - last));
      last = now;
    }
  }

  void Listen(milliseconds elapsed) {
    for (int64_t process = 0; process < segment_.count(); ++process) {
      Peer& peer = peers_[process];
      const uint32_t beats = Beats(process);
      const bool is_silent = peer.detector.Listen(beats != peer.beats, elapsed, timeout_);
      peer.beats = beats;
      // (One that has left or failed, or died, is told of otherwise.)
      if (!is_silent || process == segment_.index() || peer.is_silent ||
          segment_.control(process).state != SharedSegment::State::kJoined ||
          segment_.HasDied(process)) {
        continue;
      }
      WarnOfSilence(ranks_[process], timeout_);
      peer.is_silent.store(true, std::memory_order_release);
      segment_.Wake(segment_.index());
    }
  }

  SharedSegment& segment_;
  const std::vector<int64_t> ranks_;
  const milliseconds timeout_;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

SharedPulse::SharedPulse(SharedSegment& segment, std::vector<int64_t> ranks, milliseconds timeout)
    : thread_(std::make_unique<Thread>(segment, std::move(ranks), timeout)), process_(getpid()) {}

SharedPulse::~SharedPulse() {
  // In a forked child there is no such thread, and its lock may be held.
  if (getpid() != process_) thread_.release();  // NOLINT: left as it is
}

milliseconds SharedPulse::timeout() const { return thread_->timeout(); }
bool SharedPulse::IsSilent(int64_t process) const { return thread_->IsSilent(process); }

}  // namespace cpu
