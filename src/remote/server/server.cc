#include "remote/server/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "remote/address.h"
#include "remote/remote.grpc.pb.h"
#include "remote/ring.h"
#include "remote/server/acceptor.h"
#include "remote/server/session.h"

namespace remote {
namespace {

// Takes as long for a token that is nearly right as for any other.
bool SameToken(std::string_view expected, std::string_view given) {
  unsigned difference = expected.size() != given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(expected[i % expected.size()]);
  }
  return difference == 0;
}

bool UsesTls(const ServerOptions& options) { return !options.certificate.empty(); }

void Check(const ServerOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    throw hlo::Error("TLS needs both a certificate and its key");
  }
  if (SocketPath(options.address)) {
    if (UsesTls(options)) throw hlo::Error("a Unix socket has no TLS: only this user reaches it");
    return;
  }
  if (!IsLocal(options.address) && (!UsesTls(options) || options.token.empty())) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "other hosts reach the address '" + options.address +
                         "': a server there needs a certificate, its key and a token "
                         "(--certificate, --key, --token-file)");
  }
  if (options.token.empty()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "other users reach the address '" + options.address +
                         "': a server there needs a token (--token-file)");
  }
}

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const ServerOptions& options) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({ReadFile(options.key, "the key of the TLS certificate"),
                                    ReadFile(options.certificate, "the TLS certificate")});
  return grpc::SslServerCredentials(tls);
}

hlo::Error OutOfMemory() {
  return hlo::Error(hlo::ErrorCode::kResourceExhausted,
                    "the runtime server has no memory or no thread left for this session");
}

grpc::Status StatusOf(const hlo::Error& error) {
  const bool exhausted = error.code() == hlo::ErrorCode::kResourceExhausted;
  return grpc::Status(
      exhausted ? grpc::StatusCode::RESOURCE_EXHAUSTED : grpc::StatusCode::INVALID_ARGUMENT,
      error.what());
}

// Of the exception that is being handled.
hlo::Error WhyItEnds() {
  try {
    throw;
  } catch (const hlo::Error& error) {
    return error;
  } catch (const std::exception&) {
    return OutOfMemory();
  }
}

}  // namespace

class Server::Service final : public wire::RuntimeServer::Service {
 public:
  explicit Service(const ServerOptions& options)
      : runtime_(options.plugin_path, options.plugin_options),
        token_(UsesTls(options) ? options.token : ""),
        most_sessions_(options.most_sessions) {}

  using Stream = grpc::ServerReaderWriter<wire::Replies, wire::Packet>;

  std::atomic<int64_t> sessions{0}, sessions_so_far{0};

  grpc::Status Describe(grpc::ServerContext* context, const wire::DescribeRequest*,
                        wire::Description* description) override {
    return OutlivingAll([&] {
      if (!IsKnown(*context)) return Unknown();
      description->Swap(
          Make<wire::Description>([this](auto& copy) { copy = runtime_.description; }).get());
      return grpc::Status::OK;
    });
  }

  // Nothing of what a client sends is read before it is known.
  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    return OutlivingAll([&] {
      if (!IsKnown(*context)) return Unknown();
      const Counted counted(*this);
      if (sessions > most_sessions_) {
        return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "the server has " + std::to_string(most_sessions_) +
                                " sessions already, as many as it allows (--most-sessions)");
      }
      return Serve(*context, *stream);
    });
  }

 private:
  struct Counted {
    explicit Counted(Service& service) : service(service) {
      ++service.sessions;
      ++service.sessions_so_far;
    }
    ~Counted() { --service.sessions; }
    Service& service;
  };

  template <typename Body>
  static grpc::Status OutlivingAll(const Body& body) noexcept {
    try {
      return body();
    } catch (const std::exception&) {  // no memory, not even to say so
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "");
    }
  }

  // At a local address the acceptor lets nobody in who is not.
  bool IsKnown(const grpc::ServerContext& context) const {
    if (token_.empty()) return true;
    const auto& metadata = context.client_metadata();
    auto found = metadata.find("authorization");
    if (found == metadata.end()) return false;
    return SameToken("Bearer " + token_, {found->second.data(), found->second.size()});
  }
  static grpc::Status Unknown() {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                        "the token that the runtime server asks for is missing or wrong");
  }

  // The ways to a client: the stream, and the rings once there are some.
  struct Ways {
    grpc::ServerContext& context;
    Stream& stream;
    std::unique_ptr<Rings> rings;
    std::atomic<bool> in_memory{false};
    std::mutex writing{};  // a stream takes one message at a time

    bool Send(const wire::Replies& batch) {
      return in_memory ? rings->replies.Write(batch.SerializeAsString()) : Write(batch);
    }
    bool Write(const wire::Replies& batch) {
      std::lock_guard lock(writing);
      return stream.Write(batch);
    }
    // Whoever waits for the client waits no more.
    void GiveUp() { in_memory ? rings->Close() : context.TryCancel(); }
  };

  // Sends what the session's thread does not send itself.
  class Writer {
   public:
    explicit Writer(Outbox& outbox) : outbox_(outbox), thread_([&outbox] { outbox.RunWriter(); }) {}
    ~Writer() {
      outbox_.Close();
      thread_.join();
    }

   private:
    Outbox& outbox_;
    std::thread thread_;
  };

  grpc::Status Serve(grpc::ServerContext& context, Stream& stream) {
    // So that the client knows that it has been let in.
    stream.SendInitialMetadata();
    Ways ways{context, stream, nullptr};
    auto outbox =
        std::make_shared<Outbox>([&ways](const wire::Replies& batch) { return ways.Send(batch); },
                                 [&ways] { ways.GiveUp(); });
    const Writer writer(*outbox);
    outbox->SetOwner();
    try {
      remote::Session session(runtime_, outbox);
      wire::Packet packet;
      while (session.memory_of_rings() == nullptr && outbox->WaitForRoom() &&
             stream.Read(&packet)) {
        session.Handle(ParseRequests(packet.requests()));
        outbox->Send();
      }
      if (session.memory_of_rings() != nullptr) {
        ways.rings = std::make_unique<Rings>(session.memory_of_rings());
        ways.in_memory = true;
        ServeInMemory(ways, session, *outbox);
      }
    } catch (const std::exception&) {
      return StatusOf(WhyItEnds());
    }
    return outbox->has_failed() ? StatusOf(OutOfMemory()) : grpc::Status::OK;
  }

  // Closes the rings when the stream ends, and ends the stream with itself.
  class Watcher {
   public:
    explicit Watcher(Ways& ways)
        : ways_(ways), thread_([&ways] {
            wire::Packet nothing;
            ways.stream.Read(&nothing);
            ways.rings->Close();
          }) {}
    ~Watcher() {
      ways_.rings->Close();
      ways_.context.TryCancel();
      thread_.join();
    }

   private:
    Ways& ways_;
    std::thread thread_;
  };

  // Until the stream ends, or the client says what it must not.
  static void ServeInMemory(Ways& ways, remote::Session& session, Outbox& outbox) {
    const Watcher watcher(ways);
    auto say_why = [&ways](const hlo::Error& error) {
      // A thread of the plugin's may still be at what it began before there were rings.
      ways.Write(*Make<wire::Replies>([&error](wire::Replies& last) {
        ToMessage(error, last.add_replies()->mutable_error());
      }));
    };
    try {
      std::string message;
      while (outbox.WaitForRoom() && ways.rings->requests.Read(&message, kMostMessageBytes)) {
        session.Handle(ParseRequests(message));
        outbox.Send();
      }
      if (outbox.has_failed()) say_why(OutOfMemory());
    } catch (const std::exception&) {
      say_why(WhyItEnds());
    }
  }

  const Runtime runtime_;
  const std::string token_;  // of clients over TLS
  const int64_t most_sessions_;
};

struct Server::Running {
  explicit Running(const ServerOptions& options) : service(options) {}
  Service service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Acceptor> acceptor;  // at a local address
};

namespace {

int Milliseconds(double seconds) { return static_cast<int>(std::max(seconds, 0.002) * 1000); }

// A client whose host has gone silent ends too. A stopped one answers no ping either.
void ListenWithTls(const ServerOptions& options, grpc::ServerBuilder& builder, int* port) {
  builder.AddListeningPort(options.address, TlsCredentials(options), port);
  const int lost_after = Milliseconds(options.lost_after_seconds);
  const int idle = std::min(30'000, lost_after / 2);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, idle);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, lost_after - idle);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 100);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
}

}  // namespace

Server::Server(const ServerOptions& options) {
  Check(options);
  const bool local = !UsesTls(options);
  Listener listener;  // before the plugin is loaded, which takes time
  if (local) listener = Listen(options.address);
  running_ = std::make_unique<Running>(options);
  running_->port = listener.port;
  grpc::ServerBuilder builder;
  if (!local) ListenWithTls(options, builder, &running_->port);
  builder.RegisterService(&running_->service);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  // Those that are refused have a thread too, while they are told so.
  builder.SetResourceQuota(
      grpc::ResourceQuota().SetMaxThreads(static_cast<int>(options.most_sessions) + 64));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 128);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 300'000);  // that have no session
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kMostMessageBytes);
  running_->server = builder.BuildAndStart();
  if (running_->server == nullptr || (!local && running_->port == 0)) {
    throw hlo::Error(hlo::ErrorCode::kAlreadyExists,
                     "the runtime server cannot listen on '" + options.address +
                         "': the address is in use, or not this host's, or the certificate and its "
                         "key do not fit");
  }
  if (!local) return;
  running_->acceptor = std::make_unique<Acceptor>(
      std::move(listener), options.token, [server = running_->server.get()](Descriptor connection) {
        grpc::AddInsecureChannelFromFd(server, connection.release());
      });
}

Server::~Server() {
  running_->acceptor.reset();
  running_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  running_->server->Wait();
}

int Server::port() const { return running_->port; }
int64_t Server::num_sessions() const { return running_->service.sessions; }
int64_t Server::num_sessions_so_far() const { return running_->service.sessions_so_far; }

}  // namespace remote
