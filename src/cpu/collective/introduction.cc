#include "cpu/collective/introduction.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

#include "cpu/collective/host_identity.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kTicketBytes = 32;
// Whoever connects must have said who it is by then.
constexpr seconds kGreetingTimeout(10);
// So many that have not are kept. Who must go is drawn by lot, so that none knows how to outlast a
// rank, which tries again.
constexpr size_t kMostStrangers = 256;
// So many that have come are looked at before those that are here already go on.
constexpr int kMostAtOnce = 64;
// A rank whose connection was closed before it stood tries again.
constexpr milliseconds kPause(20);
// So long a connection may take to be answered before another is tried: where strangers fill the
// listener's queue, the system would ask again only after seconds. Each further one may take
// longer.
constexpr milliseconds kPatience(50), kMostPatience(4000);

// The first bytes on a connection, each way.
struct Greeting {
  char magic[sizeof kGreetingMagic];
  char ticket[kTicketBytes];  // of the one that accepts
  int64_t from, to;
  int64_t is_control;
};

Greeting GreetingOf(const std::string& ticket, int64_t from, int64_t to, bool is_control) {
  Greeting greeting{};
  std::memcpy(greeting.magic, kGreetingMagic, sizeof kGreetingMagic);
  std::memcpy(greeting.ticket, ticket.data(), std::min(ticket.size(), kTicketBytes));
  greeting.from = from;
  greeting.to = to;
  greeting.is_control = is_control ? 1 : 0;
  return greeting;
}

// In constant time: strangers may guess.
bool AreEqual(const Greeting& a, const Greeting& b) {
  const auto* left = reinterpret_cast<const unsigned char*>(&a);
  const auto* right = reinterpret_cast<const unsigned char*>(&b);
  unsigned difference = 0;
  for (size_t i = 0; i < sizeof a; ++i) difference |= left[i] ^ right[i];
  return difference == 0;
}

std::string MakeTicket() {
  unsigned char random[kTicketBytes / 2];
  if (getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable, "the system gives no random numbers");
  }
  static const char* const kDigits = "0123456789abcdef";
  std::string ticket;
  for (unsigned char byte : random) {
    ticket += kDigits[byte >> 4];
    ticket += kDigits[byte & 15];
  }
  return ticket;
}

std::string RankName(int64_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

// A connection that does not stand yet.
class Introduction::Candidate {
 public:
  enum class Outcome { kWaits, kStands, kEnded, kRefused };

  // Connects to `rank`, not before `start`, and may take as long as `patience`.
  Candidate(const Introduction& owner, int64_t rank, bool is_control, Clock::time_point start,
            milliseconds patience)
      : owner_(owner),
        connects_(true),
        rank_(rank),
        is_control_(is_control),
        start_(start),
        patience_(patience),
        mine_(GreetingOf(owner.addresses_[rank].ticket, owner.rank_, rank, is_control)) {}
  // Has come, and must say who it is within kGreetingTimeout.
  Candidate(const Introduction& owner, Socket socket)
      : owner_(owner), link_(std::move(socket)), start_(Clock::now()) {
    if (owner.security_.tls() != nullptr) {
      link_.Secure(*owner.security_.tls(), TlsStream::Side::kAccepts);
      stage_ = Stage::kHandshake;
    } else {
      stage_ = Stage::kRead;
    }
  }

  bool connects() const { return connects_; }
  int64_t rank() const { return rank_; }
  bool is_control() const { return is_control_; }
  milliseconds patience() const { return patience_; }
  bool is_known() const { return is_known_; }
  // When it must have gone on: begun, or come to stand. One that has proven itself may take its
  // time.
  Clock::time_point deadline() const {
    if (!has_started()) return start_;
    return is_known_ ? Clock::time_point::max() : start_ + patience_;
  }
  Link& link() { return link_; }
  const Link& link() const { return link_; }
  bool has_started() const { return stage_ != Stage::kWaits; }
  // What to poll for.
  short events() const { return events_; }

  Outcome Advance() {
    try {
      return Step();
    } catch (const hlo::Error& error) {
      if (!connects_) return Outcome::kEnded;
      throw hlo::Error(error.code(), RankName(owner_.rank_) + " cannot reach " + RankName(rank_) +
                                         ": " + error.what() +
                                         " (GLOO_SOCKET_IFNAME names the network to use)");
    }
  }

 private:
  enum class Stage { kWaits, kConnects, kHandshake, kWrite, kRead, kConfirm };

  // As far as it goes.
  Outcome Step() {
    while (true) {
      switch (stage_) {
        case Stage::kWaits: {
          if (Clock::now() < start_) return Outcome::kWaits;
          const Address& address = owner_.addresses_[rank_];
          link_ = Link(Socket::Connect(address.host, address.port));
          stage_ = Stage::kConnects;
          events_ = POLLOUT;
          return Outcome::kWaits;
        }
        case Stage::kConnects: {
          pollfd entry{link_.file(), POLLOUT, 0};
          if (poll(&entry, 1, 0) <= 0) return Outcome::kWaits;
          link_.socket().CheckConnected();
          stage_ = Stage::kWrite;
          if (owner_.security_.tls() == nullptr) break;
          link_.Secure(*owner_.security_.tls(), TlsStream::Side::kConnects);
          stage_ = Stage::kHandshake;
          break;
        }
        case Stage::kHandshake: {
          const TlsStream::Progress progress = link_.tls()->Handshake();
          if (progress == TlsStream::Progress::kEnded) return Outcome::kEnded;
          if (progress == TlsStream::Progress::kRefused) return Outcome::kRefused;
          if (progress != TlsStream::Progress::kDone) {
            events_ = progress == TlsStream::Progress::kMustRead ? POLLIN : POLLOUT;
            return Outcome::kWaits;
          }
          stage_ = connects_ ? Stage::kWrite : Stage::kRead;
          break;
        }
        case Stage::kWrite: {
          events_ = POLLOUT;
          const Outcome outcome = Move(&mine_, true);
          if (outcome != Outcome::kStands) return outcome;
          stage_ = connects_ ? Stage::kRead : Stage::kConfirm;
          break;
        }
        case Stage::kRead: {
          events_ = POLLIN;
          const Outcome outcome = Move(&theirs_, false);
          if (outcome != Outcome::kStands) return outcome;
          if (connects_) {
            const std::string& ticket = owner_.addresses_[rank_].ticket;
            const Greeting expected = GreetingOf(ticket, rank_, owner_.rank_, is_control_);
            if (!AreEqual(theirs_, expected)) return Outcome::kEnded;
            is_known_ = true;
            stage_ = Stage::kConfirm;
            break;
          }
          if (!Accept()) return Outcome::kEnded;
          is_known_ = true;
          stage_ = Stage::kWrite;
          break;
        }
        // The one that connects has the last word: it may have tried several times, and takes one.
        case Stage::kConfirm: {
          events_ = connects_ ? POLLOUT : POLLIN;
          const Outcome outcome = connects_ ? Move(&mine_, true) : Move(&theirs_, false);
          if (outcome != Outcome::kStands) return outcome;
          if (!connects_ &&
              !AreEqual(theirs_, GreetingOf(owner_.ticket_, rank_, owner_.rank_, is_control_))) {
            return Outcome::kEnded;
          }
          return Stands();
        }
      }
    }
  }

  // kStands: all of the greeting.
  Outcome Move(Greeting* greeting, bool sends) {
    auto* bytes = reinterpret_cast<char*>(greeting);
    while (moved_ < sizeof *greeting) {
      const size_t left = sizeof *greeting - moved_;
      const int64_t count =
          sends ? link_.Send(bytes + moved_, left) : link_.Receive(bytes + moved_, left);
      if (count < 0) return Outcome::kEnded;
      if (count == 0) return Outcome::kWaits;
      moved_ += static_cast<size_t>(count);
    }
    moved_ = 0;
    return Outcome::kStands;
  }

  // True if one of this world, for whom this rank waits, wants this rank.
  bool Accept() {
    rank_ = theirs_.from;
    is_control_ = theirs_.is_control != 0;
    if (rank_ <= owner_.rank_ || rank_ >= owner_.size_) return false;
    if (!AreEqual(theirs_, GreetingOf(owner_.ticket_, rank_, owner_.rank_, is_control_)))
      return false;
    mine_ = GreetingOf(owner_.ticket_, owner_.rank_, rank_, is_control_);
    return true;
  }

  Outcome Stands() {
    if (owner_.security_.mode() == Security::Mode::kAuthenticated) link_.EndTls();
    if (link_.tls() != nullptr && !is_control_) link_.tls()->ReadAhead();
    return Outcome::kStands;
  }

  const Introduction& owner_;
  Link link_;
  bool connects_ = false;
  int64_t rank_ = -1;
  bool is_control_ = false;
  Clock::time_point start_;
  milliseconds patience_ = kGreetingTimeout;
  bool is_known_ = false;  // the other side has said, and proven if there is a secret, who it is
  Stage stage_ = Stage::kWaits;
  short events_ = POLLIN;
  Greeting mine_{}, theirs_{};
  size_t moved_ = 0;
};

Introduction::Introduction(const Rendezvous& rendezvous)
    : rendezvous_(rendezvous),
      rank_(rendezvous.options().rank),
      size_(rendezvous.options().size),
      security_(rendezvous.options()),
      ticket_(MakeTicket()),
      links_(size_) {
  const std::string address = HostAddress();
  listener_ = Socket::Listen(address);
  rendezvous.Put("network", address + " " + std::to_string(listener_.port()) + " " + ticket_ + " " +
                                ToString(security_.mode()));
  ReadAddresses();
}

Introduction::~Introduction() = default;

void Introduction::ReadAddresses() {
  addresses_.resize(size_);
  const std::vector<std::string> texts = rendezvous_.GetFromAll("network");
  for (int64_t rank = 0; rank < size_; ++rank) {
    Address& address = addresses_[rank];
    std::istringstream text(texts[rank]);
    std::string mode;
    text >> address.host >> address.port >> address.ticket >> mode;
    const std::optional<Security::Mode> known = ModeFromString(mode);
    if (!text || !known || address.port < 1 || address.port > 65535 ||
        address.ticket.size() != kTicketBytes) {
      throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                       RankName(rank) +
                           " gives no address that this version of torch_xla reads: '" +
                           texts[rank] + "'; all ranks must run the same version");
    }
    address.mode = *known;
  }
  for (int64_t rank = 0; rank < size_; ++rank) CheckMode(rank);
  WarnOfOpenNetwork();
}

// What another says never makes this rank less careful: all must be alike.
void Introduction::CheckMode(int64_t rank) const {
  const Security::Mode mine = security_.mode(), theirs = addresses_[rank].mode;
  if (mine == theirs) return;
  const bool is_secret = (mine == Security::Mode::kOpen) != (theirs == Security::Mode::kOpen);
  const bool mine_has =
      is_secret ? mine != Security::Mode::kOpen : mine == Security::Mode::kEncrypted;
  const int64_t with = mine_has ? rank_ : rank, without = mine_has ? rank : rank_;
  throw hlo::Error(
      hlo::ErrorCode::kFailedPrecondition,
      is_secret ? RankName(with) + " has a job secret, but " + RankName(without) +
                      " has none: set TORCH_XLA_JOB_SECRET or TORCH_XLA_JOB_SECRET_FILE for all "
                      "ranks of the job, or for none"
                : RankName(with) + " encrypts what it sends, but " + RankName(without) +
                      " does not: set TORCH_XLA_TLS to the same for all ranks");
}

// Once for the job.
void Introduction::WarnOfOpenNetwork() const {
  if (security_.mode() != Security::Mode::kOpen || rank_ != 0) return;
  if (std::ranges::all_of(addresses_, [&](const Address& address) {
        return address.host == addresses_[rank_].host;
      })) {
    return;
  }
  std::fprintf(stderr,
               "torch_xla: warning: the job has no secret, so tensors travel between hosts in the "
               "clear, and whoever reaches the store can join it. Give all ranks the same "
               "TORCH_XLA_JOB_SECRET or TORCH_XLA_JOB_SECRET_FILE.\n");
}

std::vector<LinkPair> Introduction::Run() {
  // All ranks are here, so this takes no longer than a rank may be silent.
  const auto deadline =
      std::min(rendezvous_.deadline(), Clock::now() + rendezvous_.options().heartbeat_timeout);
  for (int64_t rank = 0; rank < rank_; ++rank) {
    for (bool is_control : {false, true}) ConnectTo(rank, is_control, Clock::now(), kPatience);
  }
  while (true) {
    AcceptSome();
    Advance();
    if (IsComplete()) return std::move(links_);
    if (Clock::now() >= deadline) ThrowMissing();
    AwaitEvents(deadline);
  }
}

void Introduction::ConnectTo(int64_t rank, bool is_control, Clock::time_point start,
                             milliseconds patience) {
  candidates_.push_back(std::make_unique<Candidate>(*this, rank, is_control, start, patience));
}

void Introduction::AcceptSome() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Socket socket = listener_.Accept();
    if (!socket) return;
    MakeRoom();
    candidates_.push_back(std::make_unique<Candidate>(*this, std::move(socket)));
  }
}

// Drops one of too many strangers.
void Introduction::MakeRoom() {
  std::vector<size_t> strangers;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i]->connects() && !candidates_[i]->is_known()) strangers.push_back(i);
  }
  if (strangers.size() < kMostStrangers + 2 * size_) return;
  const size_t lot = std::uniform_int_distribution<size_t>(0, strangers.size() - 1)(random_);
  candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(strangers[lot]));
}

void Introduction::AwaitEvents(Clock::time_point deadline) {
  std::vector<pollfd> entries{{listener_.file(), POLLIN, 0}};
  for (const auto& candidate : candidates_) {
    deadline = std::min(deadline, candidate->deadline());
    if (candidate->has_started()) {
      entries.push_back({candidate->link().file(), candidate->events(), 0});
    }
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  poll(entries.data(), entries.size(),
       static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000)));
}

void Introduction::Advance() {
  // (Those that are retired may add new ones.)
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = *candidates_[i];
    switch (candidate.Advance()) {
      case Candidate::Outcome::kWaits:
        if (Clock::now() < candidate.deadline()) continue;
        Retire(candidate);
        break;
      case Candidate::Outcome::kStands:
        Take(candidate);
        break;
      case Candidate::Outcome::kEnded:
        Retire(candidate);
        break;
      case Candidate::Outcome::kRefused:
        NoteRefused(candidate);
        break;
    }
    candidates_[i].reset();
  }
  std::erase(candidates_, nullptr);
}

void Introduction::Take(Candidate& candidate) {
  LinkPair& pair = links_[candidate.rank()];
  (candidate.is_control() ? pair.control : pair.data) = std::move(candidate.link());
}

// Closed by the other side, which may have had to choose among too many, or not answered in time.
void Introduction::Retire(const Candidate& candidate) {
  if (!candidate.connects()) return;
  ConnectTo(candidate.rank(), candidate.is_control(), Clock::now() + kPause,
            std::min(candidate.patience() * 3 / 2, kMostPatience));
}

void Introduction::NoteRefused(const Candidate& candidate) {
  if (candidate.connects()) {
    throw hlo::Error(hlo::ErrorCode::kPermissionDenied,
                     RankName(rank_) + " and " + RankName(candidate.rank()) +
                         " have different job secrets: TORCH_XLA_JOB_SECRET, or what "
                         "TORCH_XLA_JOB_SECRET_FILE holds, must be the same for all ranks");
  }
  // It may be anybody, so the one that it claims to be is still awaited.
  const int64_t claimed = Security::RankOf(candidate.link().tls()->claimed_name());
  if (claimed <= rank_ || claimed >= size_) return;
  const std::string from = candidate.link().socket().PeerAddress();
  if (!refused_.emplace(claimed, from).second) return;
  std::fprintf(stderr,
               "torch_xla: warning: rank %lld refused a connection from %s, which calls itself "
               "rank %lld, but has another job secret.\n",
               static_cast<long long>(rank_), from.c_str(), static_cast<long long>(claimed));
}

bool Introduction::IsComplete() const {
  for (int64_t rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && (!links_[rank].data || !links_[rank].control)) return false;
  }
  return true;
}

void Introduction::ThrowMissing() const {
  std::vector<int64_t> missing;
  std::string more;
  for (int64_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || (links_[rank].data && links_[rank].control)) continue;
    missing.push_back(rank);
    if (auto it = refused_.find(rank); it != refused_.end()) {
      more += "; a connection from " + it->second + " that called itself " + RankName(rank) +
              " was refused: it has another job secret";
    }
  }
  rendezvous_.ThrowMissing(missing, more);
}

}  // namespace cpu
