#include "cpu/collective/network_transport.h"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "cpu/collective/member_parts.h"
#include "hlo/error.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using State = PeerWatch::State;

// An all_reduce up to this many bytes, times members, is done at once.
constexpr int64_t kAtOnce = 128 << 10;
constexpr int64_t kChunk = 4 << 20;
// A broadcast from this size on is shared by all members.
constexpr int64_t kSharedBroadcast = 128 << 10;
constexpr int kSpins = 100;
constexpr std::chrono::milliseconds kSlice(1000);
constexpr std::chrono::milliseconds kGrace(100);

FlatArray ArrayOf(std::byte* data, int64_t bytes) {
  FlatArray array;
  array.Append(data, bytes);
  return array;
}

}  // namespace

NetworkTransport::NetworkTransport(std::unique_ptr<Connections> connections,
                                   std::chrono::milliseconds timeout)
    : connections_(std::move(connections)),
      timeout_(timeout),
      me_(connections_->rank()),
      lanes_(connections_->size()) {}

void NetworkTransport::Begin(const Exchange& exchange) {
  header_.signature = exchange.signature;
  header_.collective = ++collectives_;
  header_.set_description(exchange.description);
}

void NetworkTransport::Send(int64_t rank, const FlatArray& data, int64_t begin, int64_t end) {
  Lane& lane = lanes_[rank];
  if (!lane.busy()) busy_.push_back(rank);
  header_.bytes = end - begin;
  lane.outgoing.emplace_back(header_, data, begin, end);
}

void NetworkTransport::Receive(int64_t rank, const FlatArray& data, int64_t begin, int64_t end) {
  Lane& lane = lanes_[rank];
  if (!lane.busy()) busy_.push_back(rank);
  lane.incoming.emplace_back(MessageHeader(), data, begin, end);
}

bool NetworkTransport::Move(const Exchange& exchange, int64_t rank) {
  Lane& lane = lanes_[rank];
  Link& link = connections_->data(rank);
  bool moved = false;
  while (!lane.outgoing.empty()) {
    const Message::Progress progress = lane.outgoing.front().Send(link);
    moved |= progress == Message::Progress::kSome || progress == Message::Progress::kDone;
    lane.broken |= progress == Message::Progress::kBroken;
    if (progress != Message::Progress::kDone) break;
    lane.outgoing.pop_front();
  }
  while (!lane.incoming.empty()) {
    Message& message = lane.incoming.front();
    const Message::Progress progress =
        message.Receive(link, [&](const MessageHeader& header, int64_t bytes) {
          lane.latest = header;
          CheckHeader(exchange, rank, header, bytes);
        });
    moved |= progress == Message::Progress::kSome || progress == Message::Progress::kDone;
    lane.broken |= progress == Message::Progress::kBroken;
    if (progress != Message::Progress::kDone) break;
    lane.incoming.pop_front();
  }
  return moved;
}

bool NetworkTransport::MoveAll(const Exchange& exchange) {
  bool moved = false;
  for (int64_t rank : busy_) moved |= Move(exchange, rank);
  std::erase_if(busy_, [&](int64_t rank) { return !lanes_[rank].busy(); });
  return moved;
}

void NetworkTransport::Finish(const Exchange& exchange) {
  Clock::time_point deadline = Clock::now() + timeout_;
  std::optional<Clock::time_point> failure_seen;
  int spins = 0;
  while (true) {
    const bool moved = MoveAll(exchange);
    if (busy_.empty()) return;
    if (moved) {
      spins = 0;
      deadline = Clock::now() + timeout_;
      continue;
    }
    if (++spins <= kSpins) continue;
    AwaitEvents(failure_seen ? kGrace / 10 : std::min(timeout_, kSlice));
    // What was sent before the failure was told may come after that.
    if (HasFailure()) {
      if (!failure_seen) failure_seen = Clock::now();
      if (Clock::now() - *failure_seen > kGrace && !MoveAll(exchange)) ThrowFailure(exchange);
    }
    if (Clock::now() >= deadline) ThrowTimeout(exchange);
  }
}

// Returns when something can be sent or received, or a failure is known.
void NetworkTransport::AwaitEvents(std::chrono::milliseconds timeout) {
  std::vector<pollfd> entries;
  for (int64_t rank : busy_) {
    const Lane& lane = lanes_[rank];
    const short wanted = static_cast<short>((lane.outgoing.empty() ? 0 : POLLOUT) |
                                            (lane.incoming.empty() ? 0 : POLLIN));
    entries.push_back({connections_->data(rank).file(), wanted, 0});
  }
  entries.push_back({connections_->peers().changed_file(), POLLIN, 0});
  poll(entries.data(), entries.size(), static_cast<int>(timeout.count()));
  if (entries.back().revents != 0) connections_->peers().ClearChanged();
}

// True if one that is awaited, or that others may be waiting for, will not come.
bool NetworkTransport::HasFailure() {
  PeerWatch& peers = connections_->peers();
  for (int64_t rank : busy_) {
    if (lanes_[rank].broken) peers.AwaitEnd(rank);
    if (peers.state(rank) != State::kHere) return true;
  }
  for (int64_t rank = 0; rank < connections_->size(); ++rank) {
    if (peers.state(rank) == State::kFailed) return true;
  }
  return false;
}

void NetworkTransport::ThrowFailure(const Exchange& exchange) {
  const PeerWatch& peers = connections_->peers();
  for (int64_t rank : busy_) {
    const State state = peers.state(rank);
    if (state != State::kHere && state != State::kFailed) ThrowGone(exchange, rank);
  }
  for (int64_t rank = 0; rank < connections_->size(); ++rank) {
    if (peers.state(rank) != State::kFailed) continue;
    throw hlo::Error(hlo::ErrorCode::kAborted, exchange.description + " failed: rank " +
                                                   std::to_string(rank) +
                                                   " gave up: " + peers.reason(rank));
  }
}

void NetworkTransport::CheckHeader(const Exchange& exchange, int64_t rank,
                                   const MessageHeader& header, int64_t bytes) {
  if (header.signature == exchange.signature && header.bytes == bytes) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "the ranks diverge: rank " + std::to_string(me_) + " runs " +
                       exchange.description + ", but rank " + std::to_string(rank) + " runs " +
                       header.DescriptionText());
}

void NetworkTransport::ThrowGone(const Exchange& exchange, int64_t rank) {
  const PeerWatch& peers = connections_->peers();
  const State state = peers.state(rank);
  std::string how = " has died, or its host has gone; ";
  if (state == State::kLeft) how = " has closed its client; ";
  if (state == State::kSilent) {
    how = " has given no sign of life for " + std::to_string(peers.timeout().count() / 1000.) +
          " s (TORCH_XLA_HEARTBEAT_TIMEOUT): it is stopped, or its host or the network has gone; ";
  }
  throw hlo::Error(hlo::ErrorCode::kUnavailable, exchange.description + " failed: rank " +
                                                     std::to_string(rank) + how + LastOf(rank));
}

void NetworkTransport::ThrowTimeout(const Exchange& exchange) {
  std::string message = exchange.description + " was not finished within " +
                        std::to_string(timeout_.count() / 1000.) +
                        " s (TORCH_XLA_COLLECTIVE_TIMEOUT)";
  for (int64_t rank : exchange.members) {
    const Lane& lane = lanes_[rank];
    const std::string name = "; rank " + std::to_string(rank);
    if (!lane.incoming.empty() && !lane.incoming.front().HasHeader()) {
      message += name + " has not arrived: " + LastOf(rank);
    } else if (lane.busy()) {
      message += name +
                 (lane.incoming.empty() ? " takes no more data: " : " sends no more data: ") +
                 LastOf(rank);
    } else if (rank != me_ && exchange.collective.kind != CollectiveKind::kPermute) {
      message += name + " is here";
    }
  }
  throw hlo::Error(hlo::ErrorCode::kDeadlineExceeded, message);
}

std::string NetworkTransport::LastOf(int64_t rank) const {
  const MessageHeader& latest = lanes_[rank].latest;
  if (latest.collective == 0) return "it has sent nothing to rank " + std::to_string(me_) + " yet";
  return "it was last in its collective " + std::to_string(latest.collective) + ", " +
         latest.DescriptionText();
}

void NetworkTransport::Fail(const std::string& reason) noexcept { connections_->Fail(reason); }

std::byte* NetworkTransport::Room(size_t member, int64_t bytes) {
  if (rooms_.size() <= member) rooms_.resize(member + 1);
  std::vector<std::byte>& room = rooms_[member];
  if (room.size() < static_cast<size_t>(bytes)) room.resize(bytes);
  return room.data();
}

void NetworkTransport::AllReduce(const Exchange& exchange, hlo::ElementType type,
                                 const FlatArray& in, const FlatArray& out) {
  Begin(exchange);
  if (in.bytes() * static_cast<int64_t>(exchange.members.size()) <= kAtOnce) {
    AllReduceAtOnce(exchange, type, in, out);
  } else {
    AllReduceInChunks(exchange, type, in, out);
  }
}

void NetworkTransport::AllReduceAtOnce(const Exchange& exchange, hlo::ElementType type,
                                       const FlatArray& in, const FlatArray& out) {
  const int64_t bytes = in.bytes();
  std::vector<const std::byte*> sources(exchange.members.size());
  std::byte* sum = Room(exchange.me, bytes);
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    sources[i] = sum;
    if (i == exchange.me) continue;
    std::byte* room = Room(i, bytes);
    sources[i] = room;
    Send(exchange.members[i], in, 0, bytes);
    Receive(exchange.members[i], ArrayOf(room, bytes), 0, bytes);
  }
  Finish(exchange);
  ReduceWithOwn(exchange, type, in, 0, bytes, sources, sum);
  out.CopyFrom(sum, 0, bytes);
}

void NetworkTransport::AllReduceInChunks(const Exchange& exchange, hlo::ElementType type,
                                         const FlatArray& in, const FlatArray& out) {
  const auto count = static_cast<int64_t>(exchange.members.size());
  const auto me = static_cast<int64_t>(exchange.me);
  const int64_t bytes = in.bytes();
  const int64_t chunks = hlo::CeilDivide(bytes, kChunk);
  auto part = [&](int64_t chunk, int64_t i) {
    const int64_t begin = chunk * kChunk;
    const Part within = PartOf(std::min(kChunk, bytes - begin), count, i);
    return Part{begin + within.begin, begin + within.end};
  };
  const int64_t most = PartOf(std::min(kChunk, bytes), count, 0).end;
  std::byte* sum = Room(me, most);
  std::vector<const std::byte*> sources(count, sum);
  for (int64_t i = 0; i < count; ++i) {
    if (i != me) sources[i] = Room(i, most);
  }
  for (int64_t chunk = 0; chunk <= chunks; ++chunk) {
    const Part own = chunk < chunks ? part(chunk, me) : Part{0, 0};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t rank = exchange.members[i];
      if (i == me) continue;
      if (chunk < chunks) {
        const Part theirs = part(chunk, i);
        Send(rank, in, theirs.begin, theirs.end);
        Receive(rank, ArrayOf(Room(i, most), most), 0, own.end - own.begin);
      }
      if (chunk > 0) {
        const Part mine = part(chunk - 1, me), theirs = part(chunk - 1, i);
        Send(rank, out, mine.begin, mine.end);
        Receive(rank, out, theirs.begin, theirs.end);
      }
    }
    Finish(exchange);
    if (chunk == chunks) return;
    ReduceWithOwn(exchange, type, in, own.begin, own.end, sources, sum);
    out.CopyFrom(sum, own.begin, own.end);
  }
}

void NetworkTransport::ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                                     const std::vector<FlatArray>& parts, const FlatArray& out) {
  Begin(exchange);
  const size_t count = exchange.members.size();
  const int64_t step = kChunk / kPartAlignment / static_cast<int64_t>(count) * kPartAlignment;
  for (int64_t begin = 0; begin < out.bytes(); begin += step) {
    const int64_t end = std::min(out.bytes(), begin + step);
    std::byte* sum = Room(exchange.me, step);
    std::vector<const std::byte*> sources(count, sum);
    for (size_t i = 0; i < count; ++i) {
      if (i == exchange.me) continue;
      std::byte* room = Room(i, step);
      sources[i] = room;
      Send(exchange.members[i], parts[i], begin, end);
      Receive(exchange.members[i], ArrayOf(room, step), 0, end - begin);
    }
    Finish(exchange);
    ReduceWithOwn(exchange, type, parts[exchange.me], begin, end, sources, sum);
    out.CopyFrom(sum, begin, end);
  }
}

void NetworkTransport::AllGather(const Exchange& exchange, const FlatArray& in,
                                 const std::vector<FlatArray>& parts) {
  Begin(exchange);
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i == exchange.me) continue;
    Send(exchange.members[i], in, 0, in.bytes());
    Receive(exchange.members[i], parts.empty() ? FlatArray() : parts[i], 0, in.bytes());
  }
  Finish(exchange);
  if (!parts.empty()) parts[exchange.me].CopyFrom(in);
}

void NetworkTransport::AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                                const std::vector<FlatArray>& out) {
  Begin(exchange);
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    if (i == exchange.me) continue;
    Send(exchange.members[i], in[i], 0, in[i].bytes());
    Receive(exchange.members[i], out[i], 0, out[i].bytes());
  }
  Finish(exchange);
  out[exchange.me].CopyFrom(in[exchange.me]);
}

// A large one: member 0 sends each its part, and they exchange the parts.
void NetworkTransport::Broadcast(const Exchange& exchange, const FlatArray& in,
                                 const FlatArray& out) {
  Begin(exchange);
  const auto count = static_cast<int64_t>(exchange.members.size());
  const auto me = static_cast<int64_t>(exchange.me);
  const bool is_shared = count > 2 && in.bytes() >= kSharedBroadcast;
  auto part = [&](int64_t i) {
    return is_shared ? PartOf(in.bytes(), count - 1, i - 1) : Part{0, in.bytes()};
  };
  if (me == 0) {
    for (int64_t i = 1; i < count; ++i) Send(exchange.members[i], in, part(i).begin, part(i).end);
  } else {
    Receive(exchange.members[0], out, part(me).begin, part(me).end);
  }
  Finish(exchange);
  for (int64_t i = 1; is_shared && me > 0 && i < count; ++i) {
    if (i == me) continue;
    Send(exchange.members[i], out, part(me).begin, part(me).end);
    Receive(exchange.members[i], out, part(i).begin, part(i).end);
  }
  Finish(exchange);
  if (me == 0) out.CopyFrom(in);
}

void NetworkTransport::Permute(const Exchange& exchange, const FlatArray& in, const FlatArray& out,
                               int64_t target, int64_t source) {
  Begin(exchange);
  const auto me = static_cast<int64_t>(exchange.me);
  if (target >= 0 && target != me) Send(exchange.members[target], in, 0, in.bytes());
  if (source >= 0 && source != me) Receive(exchange.members[source], out, 0, out.bytes());
  Finish(exchange);
  if (source == me) out.CopyFrom(in);
  if (source < 0) out.FillZero();
}

}  // namespace cpu
