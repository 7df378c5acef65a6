#include "cpu/collective/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "cpu/collective/connections.h"
#include "cpu/collective/host_identity.h"
#include "cpu/collective/mixed_transport.h"
#include "cpu/collective/network_transport.h"
#include "cpu/collective/reduction.h"
#include "cpu/collective/rendezvous.h"
#include "cpu/collective/shared_memory_transport.h"
#include "hlo/error.h"
#include "process/block_signals.h"
#include "process/fork.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
using hlo::ErrorCode;
using std::chrono::milliseconds;

// Bytes of the dimensions from `first` on.
int64_t RowBytes(const hlo::Shape& shape, int64_t first) {
  int64_t bytes = static_cast<int64_t>(hlo::ByteWidth(shape.element_type()));
  for (int64_t d = first; d < shape.rank(); ++d) bytes *= shape.dimensions()[d];
  return bytes;
}

const std::byte* At(const void* data, int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

// Carries a collective out: finds who takes part, and which bytes go where.
class Runner {
 public:
  Runner(Transport& transport, int64_t rank, int64_t size, const Collective& collective,
         const void* const* operands, void* const* results)
      : transport_(transport),
        rank_(rank),
        size_(size),
        collective_(collective),
        operands_(operands),
        results_(results),
        exchange_{collective, collective.Signature(), collective.ToString(), {}, 0} {}

  void Run() {
    if (collective_.kind == CollectiveKind::kPermute) return Permute();
    if (!FindMembers()) return ZeroResults();
    switch (collective_.kind) {
      case CollectiveKind::kAllReduce:
        return AllReduce();
      case CollectiveKind::kAllGather:
        return AllGather();
      case CollectiveKind::kReduceScatter:
        return ReduceScatter();
      case CollectiveKind::kAllToAll:
        return AllToAll();
      case CollectiveKind::kBroadcast:
        return Broadcast();
      case CollectiveKind::kBarrier:
        if (!alone()) transport_.AllGather(exchange_, {}, {});
        return;
      default:
        return;
    }
  }

 private:
  bool alone() const { return exchange_.members.size() == 1; }
  int64_t count() const { return static_cast<int64_t>(exchange_.members.size()); }

  [[noreturn]] void Fail(ErrorCode code, const std::string& why) const {
    throw hlo::Error(code,
                     exchange_.description + " on rank " + std::to_string(rank_) + ": " + why);
  }

  void CheckRank(int64_t rank) const {
    if (rank < 0 || rank >= size_) {
      Fail(ErrorCode::kInvalidArgument, "it names rank " + std::to_string(rank) +
                                            ", but the world has " + std::to_string(size_));
    }
  }

  // False if this rank only gets zeros.
  bool FindMembers() {
    std::vector<int64_t>& members = exchange_.members;
    if (collective_.groups.empty()) {
      for (int64_t rank = 0; rank < size_; ++rank) members.push_back(rank);
    }
    for (const auto& group : collective_.groups) {
      if (std::find(group.begin(), group.end(), rank_) == group.end()) continue;
      for (int64_t rank : group) {
        if (rank == -1) continue;  // pads a ragged group
        CheckRank(rank);
        members.push_back(rank);
      }
      break;
    }
    if (members.empty()) {
      if (collective_.kind == CollectiveKind::kBroadcast) return false;
      Fail(ErrorCode::kInvalidArgument, "this rank is in none of its groups");
    }
    if (collective_.group_size != 0 && collective_.group_size != count()) {
      Fail(ErrorCode::kInvalidArgument, "its results are those of a group of " +
                                            std::to_string(collective_.group_size) +
                                            " ranks, and this one has " + std::to_string(count()));
    }
    exchange_.me = std::find(members.begin(), members.end(), rank_) - members.begin();
    return true;
  }

  FlatArray Whole(const void* const* arrays) const {
    FlatArray all;
    for (size_t k = 0; k < collective_.operands.size(); ++k) {
      all.Append(arrays[k], collective_.operands[k].byte_size());
    }
    return all;
  }
  void ZeroResults() const { Whole(results_).FillZero(); }

  void CheckReducible(hlo::ElementType type) const {
    if (CanReduce(type, collective_.reduction)) return;
    Fail(ErrorCode::kUnimplemented,
         "this reduction is not defined for " + std::string(hlo::ShortName(type)));
  }

  // Arrays of one type are one exchange.
  void AllReduce() {
    std::vector<hlo::ElementType> types;
    for (const hlo::Shape& shape : collective_.operands) {
      if (std::find(types.begin(), types.end(), shape.element_type()) == types.end()) {
        CheckReducible(shape.element_type());
        types.push_back(shape.element_type());
      }
    }
    for (hlo::ElementType type : types) {
      FlatArray in, out;
      for (size_t k = 0; k < collective_.operands.size(); ++k) {
        const hlo::Shape& shape = collective_.operands[k];
        if (shape.element_type() != type) continue;
        in.Append(operands_[k], shape.byte_size());
        out.Append(results_[k], shape.byte_size());
      }
      if (alone()) {
        out.CopyFrom(in);
      } else {
        transport_.AllReduce(exchange_, type, in, out);
      }
    }
  }

  void AllGather() {
    std::vector<FlatArray> parts(count());
    for (size_t k = 0; k < collective_.operands.size(); ++k) {
      const hlo::Shape& shape = collective_.operands[k];
      const int64_t row = RowBytes(shape, collective_.dimension);
      for (int64_t i = 0; i < count(); ++i) {
        parts[i].Append(At(results_[k], i * row), shape.byte_size(), row, count() * row);
      }
    }
    const FlatArray in = Whole(operands_);
    if (alone()) return parts[0].CopyFrom(in);
    transport_.AllGather(exchange_, in, parts);
  }

  void CheckDivides(const hlo::Shape& shape, int64_t dimension) const {
    if (shape.dimensions()[dimension] % count() == 0) return;
    Fail(ErrorCode::kInvalidArgument, "dimension " + std::to_string(dimension) + " of " +
                                          shape.ToString() + " is no multiple of the " +
                                          std::to_string(count()) + " ranks of the group");
  }

  // The slices of the operands along a dimension, one for each member.
  std::vector<FlatArray> Split(int64_t dimension) const {
    std::vector<FlatArray> parts(count());
    for (size_t k = 0; k < collective_.operands.size(); ++k) {
      const hlo::Shape& shape = collective_.operands[k];
      CheckDivides(shape, dimension);
      const int64_t row = RowBytes(shape, dimension), slice = row / count();
      for (int64_t i = 0; i < count(); ++i) {
        parts[i].Append(At(operands_[k], i * slice), shape.byte_size() / count(), slice, row);
      }
    }
    return parts;
  }

  void ReduceScatter() {
    const hlo::ElementType type = collective_.operands[0].element_type();
    CheckReducible(type);
    FlatArray out;
    for (size_t k = 0; k < collective_.operands.size(); ++k) {
      if (collective_.operands[k].element_type() != type) {
        Fail(ErrorCode::kUnimplemented, "its operands must be of one type");
      }
      out.Append(results_[k], collective_.operands[k].byte_size() / count());
    }
    const std::vector<FlatArray> parts = Split(collective_.dimension);
    if (alone()) return out.CopyFrom(parts[0]);
    transport_.ReduceScatter(exchange_, type, parts, out);
  }

  void AllToAll() {
    const std::vector<FlatArray> in = Split(collective_.split_dimension);
    std::vector<FlatArray> out(count());
    for (size_t k = 0; k < collective_.operands.size(); ++k) {
      const hlo::Shape& shape = collective_.operands[k];
      hlo::Dimensions dimensions = shape.dimensions();
      dimensions[collective_.split_dimension] /= count();
      const hlo::Shape part = shape.WithDimensions(dimensions);
      const int64_t row = RowBytes(part, collective_.concat_dimension);
      for (int64_t i = 0; i < count(); ++i) {
        out[i].Append(At(results_[k], i * row), part.byte_size(), row, count() * row);
      }
    }
    if (alone()) return out[0].CopyFrom(in[0]);
    transport_.AllToAll(exchange_, in, out);
  }

  void Broadcast() {
    const FlatArray in = Whole(operands_), out = Whole(results_);
    if (alone()) return out.CopyFrom(in);
    transport_.Broadcast(exchange_, in, out);
  }

  void Permute() {
    for (int64_t rank = 0; rank < size_; ++rank) exchange_.members.push_back(rank);
    exchange_.me = static_cast<size_t>(rank_);
    int64_t target = -1, source = -1;
    for (const auto& pair : collective_.pairs) {
      CheckRank(pair[0]);
      CheckRank(pair[1]);
      if (pair[0] == rank_) target = pair[1];
      if (pair[1] == rank_) source = pair[0];
    }
    if (target < 0 && source < 0) return ZeroResults();
    transport_.Permute(exchange_, Whole(operands_), Whole(results_), target, source);
  }

  Transport& transport_;
  const int64_t rank_, size_;
  const Collective& collective_;
  const void* const* operands_;
  void* const* results_;
  Exchange exchange_;
};

class QueueCommunicator : public Communicator {
 public:
  QueueCommunicator(int64_t rank, int64_t size, std::unique_ptr<Transport> transport)
      : rank_(rank), size_(size), state_(std::make_unique<State>()) {
    state_->transport = std::move(transport);
  }

  // What is queued is finished first.
  ~QueueCommunicator() override {
    if (InForkedChild()) {
      // Its thread does not exist here, its lock may be held, and what carries a collective was
      // perhaps forked in the middle of it.
      state_.release();  // NOLINT
      return;
    }
    {
      std::lock_guard lock(state_->mutex);
      state_->stopping = true;
    }
    state_->changed.notify_all();
    if (state_->thread.joinable()) state_->thread.join();
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }

  uint64_t Start(const Collective& collective, const void* const* operands,
                 void* const* results) override {
    CheckProcess();
    try {
      return Enqueue(collective, operands, results);
    } catch (...) {  // no memory, or no thread
      hlo::Error failure = CurrentError(collective);
      const process::MayFork waiting;
      std::unique_lock lock(state_->mutex);
      state_->changed.wait(lock, [&] { return state_->started == state_->finished; });
      const uint64_t ticket = ++state_->started;
      lock.unlock();
      Conclude(ticket, failure);
      throw failure;
    }
  }

  void Wait(uint64_t ticket) override {
    CheckProcess();
    const process::MayFork waiting;
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->finished >= ticket; });
    if (state_->failure && ticket >= state_->first_failed) throw *state_->failure;
  }

  void Run(const Collective& collective, const void* const* operands,
           void* const* results) override {
    CheckProcess();
    uint64_t ticket = 0;
    {
      std::lock_guard lock(state_->mutex);
      if (state_->started == state_->finished) ticket = ++state_->started;
    }
    if (ticket == 0) return Wait(Start(collective, operands, results));
    {
      const process::MayFork waiting;  // for the other processes
      Finish(ticket, collective, operands, results);
    }
    Wait(ticket);
  }

 private:
  struct Task {
    const Collective* collective;
    std::vector<const void*> operands;
    std::vector<void*> results;
  };
  struct State {
    std::unique_ptr<Transport> transport;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;
    uint64_t started = 0, finished = 0;
    std::optional<hlo::Error> failure;  // the first
    uint64_t first_failed = 0;
    bool stopping = false;
    std::thread thread;
  };

  uint64_t Enqueue(const Collective& collective, const void* const* operands,
                   void* const* results) {
    const size_t count = collective.operands.size();
    // (In braces the two pointers would be the elements.)
    Task task{&collective, std::vector<const void*>(operands, operands + count),
              std::vector<void*>(results, results + count)};
    std::lock_guard lock(state_->mutex);
    if (!state_->thread.joinable()) {
      const process::BlockSignals blocked;
      state_->thread = std::thread([this] { Work(); });
    }
    state_->tasks.push_back(std::move(task));
    state_->changed.notify_all();
    return ++state_->started;
  }

  bool InForkedChild() const { return getpid() != process_; }
  void CheckProcess() const {
    if (!InForkedChild()) return;
    throw hlo::Error(ErrorCode::kFailedPrecondition, "this process is a forked child of rank " +
                                                         std::to_string(rank_) +
                                                         " and cannot run its collectives");
  }

  // Of a collective; without memory for its text, what was made before.
  hlo::Error CurrentError(const Collective& collective) const noexcept {
    try {
      throw;
    } catch (const hlo::Error& error) {
      return error;  // shares the text
    } catch (const std::exception& error) {
      try {
        const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
        return {no_memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal,
                collective.ToString() + ": " + error.what()};
      } catch (const std::bad_alloc&) {
        return out_of_memory_;
      }
    }
  }

  void TellOthers(const hlo::Error& failure) noexcept {
    try {
      state_->transport->Fail(failure.what());
    } catch (const std::bad_alloc&) {
      state_->transport->Fail("no memory");  // too short to need any
    }
  }

  // The one whose turn it is: all before it are finished, and none after it starts.
  void Finish(uint64_t ticket, const Collective& collective, const void* const* operands,
              void* const* results) {
    std::optional<hlo::Error> failure;
    bool broken;
    {
      std::lock_guard lock(state_->mutex);
      broken = state_->failure.has_value();
    }
    if (!broken) {
      try {
        Runner(*state_->transport, rank_, size_, collective, operands, results).Run();
      } catch (...) {
        failure = CurrentError(collective);
      }
    }
    Conclude(ticket, std::move(failure));
  }

  // A failure breaks the world: no later collective begins.
  void Conclude(uint64_t ticket, std::optional<hlo::Error> failure) {
    if (failure) TellOthers(*failure);
    {
      std::lock_guard lock(state_->mutex);
      if (failure && !state_->failure) {
        state_->failure = std::move(failure);
        state_->first_failed = ticket;
      }
      state_->finished = ticket;
    }
    state_->changed.notify_all();
  }

  void Work() {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    while (true) {
      // Run may be carrying out the one before the first in the queue.
      auto is_next = [&] { return state.started - state.tasks.size() == state.finished; };
      state.changed.wait(lock, [&] { return state.tasks.empty() ? state.stopping : is_next(); });
      if (state.tasks.empty()) return;
      Task task = std::move(state.tasks.front());
      const uint64_t ticket = state.finished + 1;
      state.tasks.pop_front();
      lock.unlock();
      Finish(ticket, *task.collective, task.operands.data(), task.results.data());
      lock.lock();
    }
  }

  const int64_t rank_, size_;
  const pid_t process_ = getpid();
  const hlo::Error out_of_memory_{ErrorCode::kResourceExhausted, "a collective had no memory"};
  std::unique_ptr<State> state_;
};

// A world of one: what a group of one exchanges.
class NoTransport : public Transport {
 public:
  void AllReduce(const Exchange&, hlo::ElementType, const FlatArray&, const FlatArray&) override {}
  void ReduceScatter(const Exchange&, hlo::ElementType, const std::vector<FlatArray>&,
                     const FlatArray&) override {}
  void AllGather(const Exchange&, const FlatArray&, const std::vector<FlatArray>&) override {}
  void AllToAll(const Exchange&, const std::vector<FlatArray>&,
                const std::vector<FlatArray>&) override {}
  void Broadcast(const Exchange&, const FlatArray&, const FlatArray&) override {}
  void Permute(const Exchange&, const FlatArray& in, const FlatArray& out, int64_t,
               int64_t source) override {
    if (source >= 0) return out.CopyFrom(in);
    out.FillZero();
  }
  void Fail(const std::string&) noexcept override {}
};

// The hosts by number, in the order of their first ranks.
std::vector<int64_t> NumberHosts(const std::vector<std::string>& identities) {
  std::vector<int64_t> numbers;
  std::vector<std::string> known;
  for (const std::string& identity : identities) {
    auto found = std::find(known.begin(), known.end(), identity);
    numbers.push_back(found - known.begin());
    if (found == known.end()) known.push_back(identity);
  }
  return numbers;
}

// Between `ranks`, those of this process's host. The first of them makes the memory.
std::unique_ptr<Transport> ShareMemory(const Rendezvous& rendezvous,
                                       const std::vector<int64_t>& ranks) {
  const CommunicatorOptions& options = rendezvous.options();
  const auto count = static_cast<int64_t>(ranks.size());
  const int64_t place = std::find(ranks.begin(), ranks.end(), options.rank) - ranks.begin();
  std::unique_ptr<SharedSegment> segment;
  if (place == 0) {
    segment = std::make_unique<SharedSegment>(0, count);
    rendezvous.Put("segment", segment->address());
  } else {
    segment = std::make_unique<SharedSegment>(place, count, rendezvous.Get("segment", ranks[0]));
  }
  while (true) {
    std::vector<int64_t> missing;
    for (int64_t other = 0; other < count; ++other) {
      if (segment->control(other).state == SharedSegment::State::kAbsent) {
        missing.push_back(ranks[other]);
      }
    }
    if (missing.empty()) {
      return std::make_unique<SharedMemoryTransport>(std::move(segment), ranks, options.timeout,
                                                     options.heartbeat_timeout);
    }
    if (Clock::now() >= rendezvous.deadline()) rendezvous.ThrowMissing(missing);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::unique_ptr<Transport> MakeTransport(const Rendezvous& rendezvous) {
  const CommunicatorOptions& options = rendezvous.options();
  rendezvous.Put("host", options.host.empty() ? HostIdentity() : options.host);
  std::vector<int64_t> hosts = NumberHosts(rendezvous.GetFromAll("host"));
  std::vector<int64_t> here;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    if (hosts[rank] == hosts[options.rank]) here.push_back(rank);
  }
  std::unique_ptr<Transport> local;
  if (here.size() > 1) local = ShareMemory(rendezvous, here);
  if (static_cast<int64_t>(here.size()) == options.size) return local;
  auto network = std::make_unique<NetworkTransport>(std::make_unique<Connections>(rendezvous),
                                                    options.timeout);
  return std::make_unique<MixedTransport>(std::move(hosts), options.rank, std::move(local),
                                          std::move(network));
}

// A positive number of seconds in the environment.
milliseconds SecondsFrom(const char* name, milliseconds otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end != '\0' || !(seconds > 0 && seconds < 1e9)) {
    throw hlo::Error(std::string(name) + " is '" + text +
                     "'; it must be a positive number of seconds");
  }
  return milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

}  // namespace

milliseconds CollectiveTimeout() {
  return SecondsFrom("TORCH_XLA_COLLECTIVE_TIMEOUT", std::chrono::minutes(30));
}

milliseconds HeartbeatTimeout() {
  return SecondsFrom("TORCH_XLA_HEARTBEAT_TIMEOUT", std::chrono::seconds(100));
}

std::unique_ptr<Communicator> ConnectCommunicator(const CommunicatorOptions& options,
                                                  const KeyValueStore& store) {
  if (options.rank < 0 || options.rank >= options.size) {
    throw hlo::Error("rank " + std::to_string(options.rank) + " is not in a world of " +
                     std::to_string(options.size));
  }
  std::unique_ptr<Transport> transport = std::make_unique<NoTransport>();
  if (options.size > 1) transport = MakeTransport(Rendezvous(options, store));
  return std::make_unique<QueueCommunicator>(options.rank, options.size, std::move(transport));
}

}  // namespace cpu
