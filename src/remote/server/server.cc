#include "remote/server/server.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "remote/address.h"
#include "remote/remote.grpc.pb.h"
#include "remote/ring.h"
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

std::shared_ptr<grpc::ServerCredentials> Credentials(const ServerOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    throw hlo::Error("TLS needs both a certificate and its key");
  }
  if (!IsLoopback(options.address) && (options.certificate.empty() || options.token.empty())) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "other hosts reach the address '" + options.address +
                         "': a server there needs a certificate, its key and a token "
                         "(--certificate, --key, --token-file)");
  }
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({ReadFile(options.key, "the key of the TLS certificate"),
                                    ReadFile(options.certificate, "the TLS certificate")});
  return grpc::SslServerCredentials(tls);
}

}  // namespace

class Server::Service final : public wire::RuntimeServer::Service {
 public:
  explicit Service(const ServerOptions& options)
      : runtime_(options.plugin_path, options.plugin_options),
        token_(options.token),
        most_sessions_(options.most_sessions) {}

  using Stream = grpc::ServerReaderWriter<wire::Replies, wire::Requests>;

  std::atomic<int64_t> sessions{0}, sessions_so_far{0};

  grpc::Status Describe(grpc::ServerContext* context, const wire::DescribeRequest*,
                        wire::Description* description) override {
    if (!IsKnown(*context)) return Unknown();
    *description = runtime_.description;
    return grpc::Status::OK;
  }

  // Nothing of what a client sends is read before its token is known to be right.
  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    if (!IsKnown(*context)) return Unknown();
    const Counted counted(*this);
    if (sessions > most_sessions_) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                          "the server has " + std::to_string(most_sessions_) +
                              " sessions already, as many as it allows (--most-sessions)");
    }
    return Serve(*context, *stream);
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
    Stream& stream;
    std::unique_ptr<Rings> rings;
    std::atomic<bool> in_memory{false};

    bool Send(const wire::Replies& batch) {
      return in_memory ? rings->replies.Write(batch.SerializeAsString()) : stream.Write(batch);
    }
  };

  grpc::Status Serve(grpc::ServerContext& context, Stream& stream) {
    // So that the client knows that it has been let in.
    stream.SendInitialMetadata();
    Ways ways{stream, nullptr};
    auto outbox =
        std::make_shared<Outbox>([&ways](const wire::Replies& batch) { return ways.Send(batch); });
    std::thread writer([outbox] { outbox->RunWriter(); });
    outbox->SetOwner();
    grpc::Status status;
    try {
      remote::Session session(runtime_, outbox);
      wire::Requests requests;
      while (session.memory_of_rings() == nullptr && outbox->WaitForRoom() &&
             stream.Read(&requests)) {
        session.Handle(std::move(requests));
        outbox->Send();
      }
      if (session.memory_of_rings() != nullptr) {
        ways.rings = std::make_unique<Rings>(session.memory_of_rings());
        ways.in_memory = true;
        ServeInMemory(context, ways, session, *outbox);
      }
    } catch (const std::exception& error) {
      status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, error.what());
    }
    outbox->Close();
    writer.join();
    return status;
  }

  // Until the stream ends, or the client says what it must not.
  static void ServeInMemory(grpc::ServerContext& context, Ways& ways, remote::Session& session,
                            Outbox& outbox) {
    std::thread watcher([&ways] {
      wire::Requests nothing;
      ways.stream.Read(&nothing);
      ways.rings->Close();
    });
    try {
      std::string message;
      while (outbox.WaitForRoom() && ways.rings->requests.Read(&message, kMostMessageBytes)) {
        wire::Requests requests;
        if (!requests.ParseFromString(message))
          throw hlo::Error("a message is none of this service");
        session.Handle(std::move(requests));
        outbox.Send();
      }
    } catch (const std::exception& error) {
      wire::Replies last;
      ToMessage(hlo::Error(error.what()), last.add_replies()->mutable_error());
      ways.stream.Write(last);
    }
    ways.rings->Close();
    context.TryCancel();
    watcher.join();
  }

  const Runtime runtime_;
  const std::string token_;
  const int64_t most_sessions_;
};

struct Server::Running {
  explicit Running(const ServerOptions& options) : service(options) {}
  Service service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

Server::Server(const ServerOptions& options) {
  const std::shared_ptr<grpc::ServerCredentials> credentials = Credentials(options);
  running_ = std::make_unique<Running>(options);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, credentials, &running_->port);
  builder.RegisterService(&running_->service);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kMostMessageBytes);
  // A client whose host has gone silent ends too.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  running_->server = builder.BuildAndStart();
  if (running_->server == nullptr || running_->port == 0) {
    throw hlo::Error(hlo::ErrorCode::kAlreadyExists,
                     "the runtime server cannot listen on '" + options.address +
                         "': the address is in use, or not this host's, or the certificate and its "
                         "key do not fit");
  }
}

Server::~Server() {
  running_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  running_->server->Wait();
}

int Server::port() const { return running_->port; }
int64_t Server::num_sessions() const { return running_->service.sessions; }
int64_t Server::num_sessions_so_far() const { return running_->service.sessions_so_far; }

}  // namespace remote
