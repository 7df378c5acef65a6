#include "cpu/collective/shared_memory_transport.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "cpu/collective/member_parts.h"
#include "cpu/collective/reduction.h"
#include "hlo/error.h"
#include "process/limits.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Presence = SharedSegment::State;

constexpr int64_t kSlotBytes = SharedSegment::kSlotBytes;
// An all_reduce up to this many bytes, times members, is done at once.
constexpr int64_t kAtOnceInSlots = 64 << 10;

void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// True if message or count number `at` has been reached; numbers wrap around.
bool Reached(uint32_t at, uint32_t wanted) { return static_cast<int32_t>(at - wanted) >= 0; }

void CopyText(char* target, size_t capacity, const std::string& text) {
  const size_t size = std::min(text.size(), capacity - 1);
  std::memcpy(target, text.data(), size);
  target[size] = '\0';
}

template <size_t capacity>
std::string TextOf(const char (&text)[capacity]) {
  return std::string(text, strnlen(text, capacity));
}

}  // namespace

SharedMemoryTransport::SharedMemoryTransport(std::unique_ptr<SharedSegment> segment,
                                             std::vector<int64_t> ranks,
                                             std::chrono::milliseconds timeout,
                                             std::chrono::milliseconds heartbeat_timeout)
    : segment_(std::move(segment)),
      pulse_(std::make_unique<SharedPulse>(*segment_, ranks, heartbeat_timeout)),
      ranks_(std::move(ranks)),
      timeout_(timeout),
      spins_(segment_->count() <= process::UsableCpus() ? 1000 : 50),
      me_(segment_->index()),
      consumed_(segment_->count(), 0) {
  for (size_t i = 0; i < ranks_.size(); ++i) place_[ranks_[i]] = static_cast<int64_t>(i);
}

void SharedMemoryTransport::Begin(const Exchange& exchange) {
  SharedSegment::Control& control = segment_->control(me_);
  const uint32_t number = control.collectives.load(std::memory_order_relaxed) + 1;
  CopyText(control.descriptions[number % SharedSegment::Control::kDescriptions],
           sizeof control.descriptions[0], exchange.description);
  control.collectives.store(number, std::memory_order_release);
}

void SharedMemoryTransport::End() {
  SharedSegment::Control& control = segment_->control(me_);
  control.finished.store(control.collectives.load(std::memory_order_relaxed),
                         std::memory_order_release);
}

std::string SharedMemoryTransport::LastOf(int64_t rank) const {
  const SharedSegment::Control& control = segment_->control(Place(rank));
  const uint32_t number = control.collectives.load(std::memory_order_acquire);
  if (number == 0) return "it has run no collective yet";
  const char* state = control.finished == number ? "it last finished" : "it is in";
  return std::string(state) + " its collective " + std::to_string(number) + ", " +
         TextOf(control.descriptions[number % SharedSegment::Control::kDescriptions]);
}

void SharedMemoryTransport::Fail(const std::string& reason) noexcept {
  SharedSegment::Control& control = segment_->control(me_);
  CopyText(control.reason, sizeof control.reason, reason);
  control.state.store(Presence::kFailed, std::memory_order_release);
  for (int64_t place = 0; place < segment_->count(); ++place) segment_->Wake(place);
}

// Throws if `rank`, or another that it may be waiting for, will not come.
void SharedMemoryTransport::CheckAlive(const Exchange& exchange, int64_t rank) {
  for (int64_t other = 0; other < segment_->count(); ++other) {
    const SharedSegment::Control& control = segment_->control(other);
    if (control.state.load(std::memory_order_acquire) != Presence::kFailed || other == me_)
      continue;
    throw hlo::Error(hlo::ErrorCode::kAborted, exchange.description + " failed: rank " +
                                                   std::to_string(ranks_[other]) +
                                                   " gave up: " + TextOf(control.reason));
  }
  std::string how;
  if (segment_->control(Place(rank)).state == Presence::kLeft) {
    how = " has closed its client; ";
  } else if (segment_->HasDied(Place(rank))) {
    how = " has died; ";
  } else if (pulse_->IsSilent(Place(rank))) {
    how = " has given no sign of life for " + std::to_string(pulse_->timeout().count() / 1000.) +
          " s (TORCH_XLA_HEARTBEAT_TIMEOUT): it is stopped; ";
  } else {
    return;
  }
  throw hlo::Error(hlo::ErrorCode::kUnavailable, exchange.description + " failed: rank " +
                                                     std::to_string(rank) + how + LastOf(rank));
}

void SharedMemoryTransport::ThrowTimeout(const Exchange& exchange, int64_t awaited) {
  std::string message = exchange.description + " was not finished within " +
                        std::to_string(timeout_.count() / 1000.) +
                        " s (TORCH_XLA_COLLECTIVE_TIMEOUT)";
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i == exchange.me) continue;
    const int64_t rank = exchange.members[i];
    if (exchange.collective.kind == CollectiveKind::kPermute && rank != awaited) continue;
    const uint32_t posted = segment_->channel(Place(rank), me_).posted.load();
    const bool arrived = Reached(posted, consumed_[Place(rank)] + 1);
    message += "; rank " + std::to_string(rank) + (arrived ? " is here" : " has not arrived: ");
    if (!arrived) message += LastOf(rank);
  }
  throw hlo::Error(hlo::ErrorCode::kDeadlineExceeded, message);
}

template <typename Ready>
void SharedMemoryTransport::WaitFor(const Exchange& exchange, int64_t rank, const Ready& ready) {
  constexpr std::chrono::milliseconds kSlice(50);
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return;
    SpinPause();
  }
  std::this_thread::yield();
  const Clock::time_point deadline = Clock::now() + timeout_;
  while (true) {
    segment_->Sleep(kSlice, ready);
    if (ready()) return;
    try {
      CheckAlive(exchange, rank);
    } catch (...) {
      if (ready()) return;  // it did its part before it went
      throw;
    }
    if (Clock::now() >= deadline) ThrowTimeout(exchange, rank);
  }
}

std::byte* SharedMemoryTransport::Claim(const Exchange& exchange) {
  claimed_ = 1 - claimed_;
  for (const Unread& unread : unread_[claimed_]) {
    const SharedSegment::Channel& back = segment_->channel(Place(unread.reader), me_);
    WaitFor(exchange, unread.reader, [&] { return Reached(back.consumed, unread.message); });
  }
  unread_[claimed_].clear();
  SharedSegment::Slot& slot = segment_->slot(me_, claimed_);
  slot.signature = exchange.signature;
  slot.collective = segment_->control(me_).collectives.load(std::memory_order_relaxed);
  return slot.data;
}

void SharedMemoryTransport::Post(const Exchange& exchange, int64_t reader) {
  SharedSegment::Channel& channel = segment_->channel(me_, Place(reader));
  const uint32_t message = channel.posted.load(std::memory_order_relaxed) + 1;
  channel.slot[message % 2] = static_cast<uint8_t>(claimed_);
  unread_[claimed_].push_back({reader, message});
  channel.posted.store(message);
  segment_->Wake(Place(reader));
}

void SharedMemoryTransport::PostToOthers(const Exchange& exchange) {
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i != exchange.me) Post(exchange, exchange.members[i]);
  }
}

const std::byte* SharedMemoryTransport::Await(const Exchange& exchange, int64_t sender) {
  const int64_t place = Place(sender);
  const uint32_t message = consumed_[place] + 1;
  SharedSegment::Channel& channel = segment_->channel(place, me_);
  WaitFor(exchange, sender, [&] { return Reached(channel.posted, message); });
  const SharedSegment::Slot& slot = segment_->slot(place, channel.slot[message % 2]);
  CheckSignature(exchange, sender, slot);
  return slot.data;
}

void SharedMemoryTransport::Release(int64_t sender) {
  const int64_t place = Place(sender);
  segment_->channel(me_, place).consumed.store(++consumed_[place]);
  segment_->Wake(place);
}

void SharedMemoryTransport::CheckSignature(const Exchange& exchange, int64_t rank,
                                           const SharedSegment::Slot& slot) {
  if (slot.signature == exchange.signature) return;
  const SharedSegment::Control& control = segment_->control(Place(rank));
  throw hlo::Error(
      hlo::ErrorCode::kFailedPrecondition,
      "the ranks diverge: rank " + std::to_string(ranks_[me_]) + " runs " + exchange.description +
          ", but rank " + std::to_string(rank) + " runs " +
          TextOf(control.descriptions[slot.collective % SharedSegment::Control::kDescriptions]));
}

void SharedMemoryTransport::AllReduce(const Exchange& exchange, hlo::ElementType type,
                                      const FlatArray& in, const FlatArray& out) {
  Begin(exchange);
  const auto count = static_cast<int64_t>(exchange.members.size());
  if (in.bytes() * count <= kAtOnceInSlots) {
    AllReduceAtOnce(exchange, type, in, out);
  } else {
    for (int64_t begin = 0; begin < in.bytes(); begin += kSlotBytes) {
      AllReduceChunk(exchange, type, in, out, begin, std::min(in.bytes(), begin + kSlotBytes));
    }
  }
  End();
}

void SharedMemoryTransport::AllReduceAtOnce(const Exchange& exchange, hlo::ElementType type,
                                            const FlatArray& in, const FlatArray& out) {
  alignas(64) std::byte sum[kAtOnceInSlots / 2];
  std::byte* slot = Claim(exchange);
  in.CopyTo(slot, 0, in.bytes());
  PostToOthers(exchange);
  std::vector<const std::byte*> sources(exchange.members.size(), slot);
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i != exchange.me) sources[i] = Await(exchange, exchange.members[i]);
  }
  Reduce(type, exchange.collective.reduction, sources, sum,
         in.bytes() / static_cast<int64_t>(hlo::ByteWidth(type)));
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i != exchange.me) Release(exchange.members[i]);
  }
  out.CopyFrom(sum, 0, in.bytes());
}

void SharedMemoryTransport::AllReduceChunk(const Exchange& exchange, hlo::ElementType type,
                                           const FlatArray& in, const FlatArray& out, int64_t begin,
                                           int64_t end) {
  const auto count = static_cast<int64_t>(exchange.members.size());
  const auto me = static_cast<int64_t>(exchange.me);
  auto part = [&](int64_t i) { return PartOf(end - begin, count, i); };
  const Part own = part(me);

  std::byte* slot = Claim(exchange);
  for (int64_t i = 0; i < count; ++i) {
    if (i != me) in.CopyTo(slot + part(i).begin, begin + part(i).begin, begin + part(i).end);
  }
  PostToOthers(exchange);

  std::byte* sum = Claim(exchange);
  std::vector<const std::byte*> sources(count, slot);
  for (int64_t i = 0; i < count; ++i) {
    if (i != me) sources[i] = Await(exchange, exchange.members[i]) + own.begin;
  }
  ReduceWithOwn(exchange, type, in, begin + own.begin, begin + own.end, sources, sum);
  for (int64_t i = 0; i < count; ++i) {
    if (i != me) Release(exchange.members[i]);
  }
  PostToOthers(exchange);

  out.CopyFrom(sum, begin + own.begin, begin + own.end);
  for (int64_t i = 0; i < count; ++i) {
    if (i == me) continue;
    const std::byte* data = Await(exchange, exchange.members[i]);
    out.CopyFrom(data, begin + part(i).begin, begin + part(i).end);
    Release(exchange.members[i]);
  }
}

void SharedMemoryTransport::ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                                          const std::vector<FlatArray>& parts,
                                          const FlatArray& out) {
  Begin(exchange);
  const auto count = static_cast<int64_t>(exchange.members.size());
  const auto me = static_cast<int64_t>(exchange.me);
  const int64_t step = kSlotBytes / count / kPartAlignment * kPartAlignment;
  std::vector<std::byte> sum(std::min(step, out.bytes()));
  for (int64_t begin = 0; begin < out.bytes(); begin += step) {
    const int64_t end = std::min(out.bytes(), begin + step);
    std::byte* slot = Claim(exchange);
    for (int64_t i = 0; i < count; ++i) {
      if (i != me) parts[i].CopyTo(slot + i * step, begin, end);
    }
    PostToOthers(exchange);
    std::vector<const std::byte*> sources(count, slot);
    for (int64_t i = 0; i < count; ++i) {
      if (i != me) sources[i] = Await(exchange, exchange.members[i]) + me * step;
    }
    ReduceWithOwn(exchange, type, parts[me], begin, end, sources, sum.data());
    for (int64_t i = 0; i < count; ++i) {
      if (i != me) Release(exchange.members[i]);
    }
    out.CopyFrom(sum.data(), begin, end);
  }
  End();
}

void SharedMemoryTransport::AllGather(const Exchange& exchange, const FlatArray& in,
                                      const std::vector<FlatArray>& parts) {
  Begin(exchange);
  const size_t count = exchange.members.size();
  int64_t begin = 0;
  do {  // a barrier is one message without data
    const int64_t end = std::min(in.bytes(), begin + kSlotBytes);
    in.CopyTo(Claim(exchange), begin, end);
    PostToOthers(exchange);
    for (size_t i = 0; i < count; ++i) {
      if (i == exchange.me) continue;
      const std::byte* data = Await(exchange, exchange.members[i]);
      if (!parts.empty()) parts[i].CopyFrom(data, begin, end);
      Release(exchange.members[i]);
    }
    begin = end;
  } while (begin < in.bytes());
  if (!parts.empty()) parts[exchange.me].CopyFrom(in);
  End();
}

void SharedMemoryTransport::AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                                     const std::vector<FlatArray>& out) {
  Begin(exchange);
  const auto count = static_cast<int64_t>(exchange.members.size());
  const auto me = static_cast<int64_t>(exchange.me);
  const int64_t step = kSlotBytes / count / kPartAlignment * kPartAlignment;
  const int64_t bytes = in[me].bytes();
  for (int64_t begin = 0; begin < bytes; begin += step) {
    const int64_t end = std::min(bytes, begin + step);
    std::byte* slot = Claim(exchange);
    for (int64_t i = 0; i < count; ++i) {
      if (i != me) in[i].CopyTo(slot + i * step, begin, end);
    }
    PostToOthers(exchange);
    for (int64_t i = 0; i < count; ++i) {
      if (i == me) continue;
      out[i].CopyFrom(Await(exchange, exchange.members[i]) + me * step, begin, end);
      Release(exchange.members[i]);
    }
  }
  out[me].CopyFrom(in[me]);
  End();
}

void SharedMemoryTransport::Broadcast(const Exchange& exchange, const FlatArray& in,
                                      const FlatArray& out) {
  Begin(exchange);
  int64_t begin = 0;
  do {
    const int64_t end = std::min(in.bytes(), begin + kSlotBytes);
    if (exchange.me == 0) {
      in.CopyTo(Claim(exchange), begin, end);
      PostToOthers(exchange);
    } else {
      const int64_t root = exchange.members[0];
      out.CopyFrom(Await(exchange, root), begin, end);
      Release(root);
    }
    begin = end;
  } while (begin < in.bytes());
  if (exchange.me == 0) out.CopyFrom(in);
  End();
}

void SharedMemoryTransport::Permute(const Exchange& exchange, const FlatArray& in,
                                    const FlatArray& out, int64_t target, int64_t source) {
  Begin(exchange);
  const auto me = static_cast<int64_t>(exchange.me);
  int64_t begin = 0;
  do {
    const int64_t end = std::min(in.bytes(), begin + kSlotBytes);
    if (target >= 0 && target != me) {
      in.CopyTo(Claim(exchange), begin, end);
      Post(exchange, exchange.members[target]);
    }
    if (source >= 0 && source != me) {
      const int64_t sender = exchange.members[source];
      out.CopyFrom(Await(exchange, sender), begin, end);
      Release(sender);
    }
    begin = end;
  } while (begin < in.bytes());
  if (source == me) out.CopyFrom(in);
  if (source < 0) out.FillZero();
  End();
}

}  // namespace cpu
