#include "remote/client/connection.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "hlo/error.h"
#include "pjrt/boundary/event.h"
#include "process/block_signals.h"
#include "process/fork.h"
#include "remote/address.h"
#include "remote/client/fork_sockets.h"
#include "remote/dial.h"
#include "remote/remote.grpc.pb.h"
#include "remote/ring.h"

namespace remote {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(30);
// What may wait for company: bytes of small arrays, bytes of device memory that nobody uses any
// more, and a number of handles.
constexpr size_t kMostCorkedBytes = size_t{256} << 10;
constexpr size_t kMostUnfreedBytes = size_t{1} << 20;
constexpr size_t kMostUnfreed = 256;
// What may wait for a slow network before the caller has to.
constexpr size_t kMostQueuedBytes = size_t{64} << 20;

hlo::Error NoAnswer(const Endpoint& endpoint, const std::string& why) {
  return hlo::Error(hlo::ErrorCode::kUnavailable,
                    "the runtime server at '" + endpoint.address + "' does not answer (" + why +
                        "); start it (" + CommandFor(endpoint.address) +
                        "), or name another one in PJRT_REMOTE_ADDRESS; one that uses TLS wants "
                        "its certificate in PJRT_REMOTE_CERTIFICATE");
}

hlo::Error NoThread(const std::string& why, const std::system_error& error) {
  return hlo::Error(hlo::ErrorCode::kResourceExhausted,
                    "no thread " + why + " the runtime server: " + error.what());
}

int Milliseconds(double seconds) { return static_cast<int>(seconds * 1000); }

// Waits for a server on this machine. Throws hlo::Error.
std::shared_ptr<grpc::Channel> NewChannel(const Endpoint& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(2 * kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Retries, deadlines and compression of single messages are not for such a stream.
  arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Windows that need no measuring: its probes double the number of packets and wake both sides.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kMostMessageBytes);
  if (!endpoint.tls) {
    try {
      Descriptor socket =
          Dial(endpoint.address, endpoint.token, [](int opened) { GiveUpInChildren(opened); });
      return grpc::CreateCustomInsecureChannelFromFd(endpoint.address, socket.release(), arguments);
    } catch (const hlo::Error& error) {
      if (error.code() != hlo::ErrorCode::kUnavailable) throw;
      throw NoAnswer(endpoint, error.what());
    }
  }
  // A server whose host has gone silent is noticed. A stopped one answers no ping either.
  const int lost_after = Milliseconds(endpoint.lost_after_seconds);
  const int idle = std::min(20'000, lost_after / 2);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, idle);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, lost_after - idle);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = endpoint.certificate;
  return grpc::CreateCustomChannel(endpoint.address, grpc::SslCredentials(options), arguments);
}

// The certificate has proven the server.
void AddToken(const Endpoint& endpoint, grpc::ClientContext* context) {
  if (!endpoint.tls || endpoint.token.empty()) return;
  context->AddMetadata("authorization", "Bearer " + endpoint.token);
}

hlo::Error NoServer(const Endpoint& endpoint, const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAUTHENTICATED) {
    return NoAnswer(endpoint, status.error_message());
  }
  return hlo::Error(hlo::ErrorCode::kUnauthenticated,
                    "the runtime server at '" + endpoint.address +
                        "' does not let this process in: " + status.error_message() +
                        "; PJRT_REMOTE_TOKEN_FILE names the file that holds the token");
}

hlo::Error Lost(const Endpoint& endpoint, const grpc::Status& status) {
  const std::string where = "the runtime server at '" + endpoint.address + "'";
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
      return NoServer(endpoint, status);
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::INVALID_ARGUMENT:
      return hlo::Error(hlo::ErrorCode::kUnavailable,
                        where + " ended the session: " + status.error_message());
    default:
      return hlo::Error(
          hlo::ErrorCode::kUnavailable,
          where + " is gone (" + (status.ok() ? "it ended the session" : status.error_message()) +
              "), and with it all that was on its devices" +
              (endpoint.tls ? "; it, and this process, count as lost when they are silent for " +
                                  std::to_string(Milliseconds(endpoint.lost_after_seconds) / 1000) +
                                  " s (--lost-after, PJRT_REMOTE_LOST_AFTER)"
                            : "") +
              "; start it again (" + CommandFor(endpoint.address) +
              "), then this program, which can go on from its last checkpoint");
  }
}

hlo::Error NoMemory(const Endpoint& endpoint) {
  return hlo::Error(hlo::ErrorCode::kUnavailable,
                    "this process had no memory for a request to the runtime server at '" +
                        endpoint.address +
                        "', or for its reply, and has ended the session, and with it all that was "
                        "on its devices");
}

std::unique_ptr<wire::Reply> ReplyOf(const hlo::Error& error) {
  return Make<wire::Reply>([&](wire::Reply& reply) { ToMessage(error, reply.mutable_error()); });
}

}  // namespace

// Shared with the reader, which may outlive the connection.
struct Connection::State {
  explicit State(const Endpoint& endpoint)
      : endpoint(endpoint),
        no_memory(NoMemory(endpoint)),
        no_memory_reply(ReplyOf(no_memory)),
        channel(NewChannel(endpoint)),
        stub(wire::RuntimeServer::NewStub(channel)) {
    AddToken(endpoint, &context);
    stream = stub->Session(&context);
  }

  void CheckProcess() const;
  bool IsFull() const { return !lost && queued_bytes >= kMostQueuedBytes; }
  void Queue(wire::Request request, std::unique_lock<std::mutex>& lock);
  void Flush(std::unique_lock<std::mutex>& lock);
  void SendQueue(std::unique_lock<std::mutex>& lock);
  void FlushUnlessReader(std::unique_lock<std::mutex>& lock);
  void QueueFrees();
  bool Send(const wire::Requests& batch);
  void Write();
  void KeepFromChildren();
  void Read() noexcept;
  grpc::Status ReadAll();
  hlo::Error WhyItEnded(const grpc::Status& said);
  void ReadRing() noexcept;
  void EndRings();
  void Dispatch(wire::Reply& reply);
  void EndWithoutMemory();
  bool HasNoMemory();
  void Lose(const hlo::Error& error) noexcept;
  bool OnReader() const {
    return reader == std::this_thread::get_id() || ring_reader == std::this_thread::get_id();
  }

  const Endpoint endpoint;
  const hlo::Error no_memory;  // made while there is some
  const std::unique_ptr<wire::Reply> no_memory_reply;
  const int64_t generation = process::ForkGeneration();
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<wire::RuntimeServer::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<wire::Packet, wire::Replies>> stream;
  std::atomic<std::thread::id> reader, ring_reader;
  std::unique_ptr<Rings> rings;  // null before UseRings
  bool reads_ring = false, rings_ended = false;

  std::atomic<uint64_t> next_number{1};
  std::mutex mutex;
  std::condition_variable written, ring_read, left_to_writer;
  std::deque<wire::Request> queue;
  size_t queued_bytes = 0;
  bool writing = false, has_left = false;
  // With requests that were to go out, without which others must not, or replies that came.
  bool out_of_memory = false;
  std::vector<uint64_t> free_buffers, free_executables;
  size_t unfreed_bytes = 0;
  struct Waiting {
    Handler handler;
    bool called = false;  // at this moment, by one of the readers
  };
  std::unordered_map<uint64_t, Waiting> handlers;
  std::optional<hlo::Error> lost;
};

// A forked child has no readers, the mutex may be locked, and what it wrote would go into the
// parent's stream.
void Connection::State::CheckProcess() const {
  if (generation == process::ForkGeneration()) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "this process was forked from one that is connected to the runtime server at '" +
                       endpoint.address +
                       "' and cannot use its connection; start the runtime after the fork, or use "
                       "start_method='spawn'");
}

void Connection::State::QueueFrees() {
  if (free_buffers.empty() && free_executables.empty()) return;
  wire::Request request;
  wire::Free& free = *request.mutable_free();
  free.mutable_buffers()->Assign(free_buffers.begin(), free_buffers.end());
  free.mutable_executables()->Assign(free_executables.begin(), free_executables.end());
  queue.push_back(std::move(request));
  free_buffers.clear();
  free_executables.clear();
  unfreed_bytes = 0;
}

void Connection::State::Queue(wire::Request request, std::unique_lock<std::mutex>& lock) {
  // Who comes back into a NoFork may have to wait for a fork, and holds no lock then.
  while (!OnReader() && IsFull()) {
    lock.unlock();
    {
      const process::MayFork waiting;
      std::unique_lock waiters(mutex);
      written.wait(waiters, [&] { return !IsFull(); });
    }
    lock.lock();
  }
  if (lost) throw *lost;
  QueueFrees();
  queued_bytes += request.ByteSizeLong();
  queue.push_back(std::move(request));
}

// Who finds the stream free writes all that is queued, also what others add meanwhile. Without
// memory the session ends, since others may wait for what cannot be sent.
void Connection::State::Flush(std::unique_lock<std::mutex>& lock) {
  if (writing || out_of_memory) return;
  writing = true;
  try {
    SendQueue(lock);
  } catch (const std::exception&) {
    if (!lock.owns_lock()) lock.lock();
    EndWithoutMemory();
  }
  writing = false;
}

// Under the mutex. The reader tells those who wait.
void Connection::State::EndWithoutMemory() {
  out_of_memory = true;
  context.TryCancel();
}

void Connection::State::SendQueue(std::unique_lock<std::mutex>& lock) {
  wire::Requests batch;
  while (!queue.empty() && !lost) {
    batch.Clear();
    size_t bytes = 0;
    while (!queue.empty()) {
      const size_t more = queue.front().ByteSizeLong();
      if (bytes > 0 && bytes + more > kMostPieceBytes) break;
      if (static_cast<size_t>(batch.requests_size()) == kMostRequests) break;
      bytes += more;
      *batch.add_requests() = std::move(queue.front());
      queue.pop_front();
    }
    queued_bytes -= std::min(queued_bytes, bytes);
    lock.unlock();
    const bool sent = [&] {
      const process::MayFork waiting;  // for the server, which may wait for the reader
      return Send(batch);
    }();
    lock.lock();
    written.notify_all();
    if (!sent) return;  // the reader learns why
  }
}

// A reader must never wait for the server to read, which may itself be waiting for that reader: it
// leaves that to the writer.
void Connection::State::FlushUnlessReader(std::unique_lock<std::mutex>& lock) {
  if (!OnReader()) return Flush(lock);
  has_left = true;
  left_to_writer.notify_one();
}

// What readers have left, until the server is lost.
void Connection::State::Write() {
  std::unique_lock lock(mutex);
  while (true) {
    left_to_writer.wait(lock, [&] { return has_left || lost; });
    if (lost) return;
    has_left = false;
    Flush(lock);
  }
}

bool Connection::State::Send(const wire::Requests& batch) {
  if (rings == nullptr) {
    wire::Packet packet;
    packet.set_requests(batch.SerializeAsString());
    return stream->Write(packet);
  }
  if (rings->requests.Write(batch.SerializeAsString())) return true;
  context.TryCancel();
  return false;
}

// Here gRPC makes the socket itself, and has it when the server has let this client in.
void Connection::State::KeepFromChildren() {
  stream->WaitForInitialMetadata();
  const process::NoFork no_fork;
  GiveUpInChildren(context.peer());
}

// Until the stream ends.
void Connection::State::Read() noexcept {
  reader = std::this_thread::get_id();
  grpc::Status said;
  try {
    said = ReadAll();
  } catch (const hlo::Error&) {
    context.TryCancel();
  } catch (const std::exception&) {
    std::lock_guard lock(mutex);
    EndWithoutMemory();
  }
  std::optional<hlo::Error> error;
  try {
    error = WhyItEnded(said);
  } catch (const std::exception&) {
  }
  EndRings();
  Lose(!error || HasNoMemory() ? no_memory : *error);
}

// What the server said of the session's end, if it did.
grpc::Status Connection::State::ReadAll() {
  grpc::Status said;
  if (endpoint.tls) KeepFromChildren();
  Make<wire::Replies>([&](wire::Replies& batch) {
    while (stream->Read(&batch)) {
      for (wire::Reply& reply : *batch.mutable_replies()) {
        if (reply.reply() == 0) {
          said = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, reply.error().message());
        }
        Dispatch(reply);
      }
    }
  });
  return said;
}

hlo::Error Connection::State::WhyItEnded(const grpc::Status& said) {
  const grpc::Status status = stream->Finish();
  return Lost(endpoint, said.ok() ? status : said);
}

bool Connection::State::HasNoMemory() {
  std::lock_guard lock(mutex);
  return out_of_memory;
}

void Connection::State::ReadRing() noexcept {
  ring_reader = std::this_thread::get_id();
  try {
    std::string message;
    Make<wire::Replies>([&](wire::Replies& batch) {
      while (rings->replies.Read(&message, Ring::kCapacity)) {
        if (!batch.ParseFromString(message)) throw hlo::Error("a reply is none of this service");
        for (wire::Reply& reply : *batch.mutable_replies()) Dispatch(reply);
      }
    });
  } catch (const hlo::Error&) {
    context.TryCancel();  // the reader tells
  } catch (const std::exception&) {
    std::lock_guard lock(mutex);
    EndWithoutMemory();
  }
  std::lock_guard lock(mutex);
  reads_ring = false;
  ring_read.notify_all();
}

// So that no handler is called on two threads.
void Connection::State::EndRings() {
  std::unique_lock lock(mutex);
  rings_ended = true;
  if (rings == nullptr) return;
  rings->Close();
  ring_read.wait(lock, [&] { return !reads_ring; });
}

// What handlers lock and change is whole in a forked child. One that fails stays, so that it hears
// of the session's end. While one is called it stays where it is: others are only added, and it is
// not for the other reader, through which a server that is honest does not answer the same request.
void Connection::State::Dispatch(wire::Reply& reply) {
  const process::NoFork no_fork;
  const uint64_t number = reply.reply();
  const bool last = !reply.more();
  Waiting* waiting = nullptr;
  {
    std::lock_guard lock(mutex);
    auto found = handlers.find(number);
    if (found == handlers.end()) return;
    waiting = &found->second;
    if (waiting->called) throw hlo::Error("a request was answered in two ways at once");
    waiting->called = true;
  }
  waiting->handler(reply);
  decltype(handlers)::node_type done;  // destroyed after the lock is given back
  std::lock_guard lock(mutex);
  waiting->called = false;
  if (last) done = handlers.extract(number);
}

void Connection::State::Lose(const hlo::Error& error) noexcept {
  const process::NoFork no_fork;
  std::unordered_map<uint64_t, Waiting> unanswered;
  {
    std::lock_guard lock(mutex);
    lost = error;
    unanswered.swap(handlers);
    queue.clear();
    queued_bytes = 0;
  }
  written.notify_all();
  left_to_writer.notify_all();
  std::unique_ptr<wire::Reply> reply;
  try {
    reply = ReplyOf(error);
  } catch (const std::exception&) {
  }
  wire::Reply& told = reply != nullptr ? *reply : *no_memory_reply;
  for (auto& [number, waiting] : unanswered) {
    told.set_reply(number);
    try {
      waiting.handler(told);
    } catch (const std::exception&) {  // it has heard, or cannot
    }
  }
}

wire::Description Connection::Describe(const Endpoint& endpoint) {
  const process::MayFork waiting;
  const auto stub = wire::RuntimeServer::NewStub(NewChannel(endpoint));
  grpc::ClientContext context;
  AddToken(endpoint, &context);
  context.set_deadline(std::chrono::system_clock::now() + kAnswerTime);
  wire::Description description;
  const grpc::Status status = stub->Describe(&context, {}, &description);
  if (!status.ok()) throw NoServer(endpoint, status);
  if (description.protocol() != kProtocol) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the runtime server at '" + endpoint.address + "' speaks version " +
                         std::to_string(description.protocol()) + " of the protocol, this client " +
                         std::to_string(kProtocol) +
                         "; install the same version of torch_xla on both sides");
  }
  return description;
}

Connection::Connection(const Endpoint& endpoint) {
  const process::MayFork waiting;
  state_ = std::make_shared<State>(endpoint);
  const process::BlockSignals blocked;
  try {
    reader_ = std::thread([state = state_] { state->Read(); });
  } catch (const std::system_error& error) {
    throw NoThread("to read from", error);
  }
  try {
    writer_ = std::thread([state = state_] { state->Write(); });
  } catch (const std::system_error& error) {
    state_->context.TryCancel();
    reader_.join();
    throw NoThread("to write to", error);
  }
}

Connection::~Connection() {
  if (InForkedChild()) {
    new std::shared_ptr<State>(std::move(state_));  // NOLINT: left as the parent had it
    for (std::thread* thread : {&reader_, &ring_reader_, &writer_}) new (thread) std::thread;
    return;
  }
  const process::MayFork waiting;
  state_->context.TryCancel();
  // The last buffer may have gone away in a handler.
  const bool on_reader = state_->OnReader();
  for (std::thread* thread : {&reader_, &ring_reader_, &writer_}) {
    if (!thread->joinable()) continue;
    on_reader ? thread->detach() : thread->join();
  }
}

void Connection::UseRings(const wire::Region& region, const std::shared_ptr<char>& memory) {
  wire::Request request;
  *request.mutable_use_rings()->mutable_region() = region;
  Ask(std::move(request));
  {
    std::lock_guard lock(state_->mutex);
    if (state_->lost) throw *state_->lost;
    // Nobody would close them: why the session ended is about to be known.
    if (state_->rings_ended) throw Lost(state_->endpoint, grpc::Status::CANCELLED);
    state_->rings = std::make_unique<Rings>(memory);
    state_->reads_ring = true;
  }
  const process::BlockSignals blocked;
  try {
    ring_reader_ = std::thread([state = state_] { state->ReadRing(); });
  } catch (const std::system_error& error) {
    std::lock_guard lock(state_->mutex);
    state_->reads_ring = false;
    state_->ring_read.notify_all();  // the reader may wait for it already
    throw NoThread("to read from", error);
  }
}

bool Connection::InForkedChild() const { return state_->generation != process::ForkGeneration(); }

uint64_t Connection::NewNumbers(uint64_t count) { return state_->next_number.fetch_add(count); }

void Connection::Post(wire::Request request) {
  state_->CheckProcess();
  std::unique_lock lock(state_->mutex);
  state_->Queue(std::move(request), lock);
  const bool full = state_->queued_bytes > kMostCorkedBytes || state_->queue.size() > kMostUnfreed;
  if (full) state_->FlushUnlessReader(lock);
}

void Connection::Call(wire::Request request, std::vector<Handler> handlers) {
  const uint64_t first = NewNumbers(handlers.size());
  request.set_reply(first);
  state_->CheckProcess();
  std::unique_lock lock(state_->mutex);
  state_->Queue(std::move(request), lock);
  for (size_t i = 0; i < handlers.size(); ++i) {
    state_->handlers[first + i].handler = std::move(handlers[i]);
  }
  state_->FlushUnlessReader(lock);
}

wire::Reply Connection::Ask(wire::Request request) {
  if (state_->OnReader()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "a callback must not wait for the runtime server, whose answers it holds up");
  }
  auto done = std::make_shared<pjrt::boundary::Completion>();
  auto answer = std::make_shared<wire::Reply>();
  Call(std::move(request), {[done, answer](wire::Reply& reply) {
         if (reply.has_error()) return done->Set(FailureOf(reply));
         answer->Swap(&reply);
         done->Set();
       }});
  done->Wait();
  if (done->failure() != nullptr) throw *done->failure();
  return std::move(*answer);
}

void Connection::FreeBuffer(uint64_t number, size_t bytes) noexcept try {
  if (InForkedChild()) return;  // the parent's
  std::unique_lock lock(state_->mutex);
  if (state_->lost) return;
  state_->free_buffers.push_back(number);
  state_->unfreed_bytes += bytes;
  if (state_->unfreed_bytes < kMostUnfreedBytes && state_->free_buffers.size() < kMostUnfreed) {
    return;
  }
  state_->QueueFrees();
  state_->FlushUnlessReader(lock);
} catch (const std::exception&) {  // no memory: the server has it until the session ends
}

void Connection::FreeExecutable(uint64_t number) noexcept try {
  if (InForkedChild()) return;
  std::unique_lock lock(state_->mutex);
  if (!state_->lost) state_->free_executables.push_back(number);
} catch (const std::exception&) {
}

pjrt::boundary::FailurePtr FailureOf(const wire::Reply& reply) noexcept {
  if (!reply.has_error()) return nullptr;
  try {
    throw FromMessage(reply.error());
  } catch (...) {
    return pjrt::boundary::CurrentFailure();  // also when there is no memory for it
  }
}

}  // namespace remote
