// Carries bytes between two processes over a stream of gRPC; benchmarks/links.py starts one in each
// of two network namespaces, to compare with link_collectives.
//
//   link_grpc RANK ADDRESS FOLDER WAY MIB COUNT
//
// Rank 0 listens at ADDRESS. With FOLDER the stream is TLS, by the key.pem and cert.pem in it; ""
// leaves it in the clear. WAY is `one` (rank 0 sends) or `both`. Prints what link_collectives does.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPiece = 1 << 20;  // of a message, which gRPC would rather have small

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One end of the stream: sends from memory of the program, without a copy, and receives into it.
template <typename Reactor>
class Mover : public Reactor {
 public:
  explicit Mover(int64_t bytes) : source_(bytes, 'x'), target_(bytes) {}

  // Moves so many messages of the size each way.
  void Carry(int64_t sends, int64_t receives) { CarryBytes(sends * size(), receives * size()); }
  // Returns when the other side is here too.
  void Meet() { CarryBytes(1, 1); }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    is_writing_ = false;
    Go(ok);
  }
  void OnReadDone(bool ok) override {
    std::vector<grpc::Slice> slices;
    if (ok) incoming_.Dump(&slices);
    std::lock_guard lock(mutex_);
    for (const grpc::Slice& slice : slices) Take(slice);
    incoming_.Clear();
    is_reading_ = false;
    Go(ok);
  }

 private:
  int64_t size() const { return static_cast<int64_t>(source_.size()); }

  void CarryBytes(int64_t out, int64_t in) {
    std::unique_lock lock(mutex_);
    sent_ = received_ = 0;
    out_ = out;
    in_ = in;
    Go(true);
    changed_.wait(
        lock, [&] { return has_failed_ || (sent_ == out_ && !is_writing_ && received_ == in_); });
    if (has_failed_) {
      std::fprintf(stderr, "the stream has ended\n");
      _exit(1);
    }
  }

  void Go(bool ok) {
    has_failed_ |= !ok;
    if (ok && !is_writing_ && sent_ < out_) {
      const int64_t at = sent_ % size(), bytes = std::min({kPiece, size() - at, out_ - sent_});
      grpc::Slice slice(source_.data() + at, bytes, grpc::Slice::STATIC_SLICE);
      outgoing_ = grpc::ByteBuffer(&slice, 1);
      sent_ += bytes;
      is_writing_ = true;
      this->StartWrite(&outgoing_);
    }
    if (ok && !is_reading_ && received_ < in_) {
      is_reading_ = true;
      this->StartRead(&incoming_);
    }
    changed_.notify_all();
  }

  void Take(const grpc::Slice& slice) {
    const int64_t at = received_ % size();
    std::memcpy(target_.data() + at, slice.begin(),
                std::min(static_cast<int64_t>(slice.size()), size() - at));
    received_ += static_cast<int64_t>(slice.size());
  }

  std::vector<char> source_, target_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t sent_ = 0, out_ = 0, received_ = 0, in_ = 0;
  bool is_writing_ = false, is_reading_ = false, has_failed_ = false;
  grpc::ByteBuffer outgoing_, incoming_;
};

struct ServerMover : Mover<grpc::ServerGenericBidiReactor> {
  using Mover::Mover;
  void OnDone() override {}
};
struct ClientMover : Mover<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
  using Mover::Mover;
  void OnDone(const grpc::Status&) override {}
};

struct Service : grpc::CallbackGenericService {
  explicit Service(int64_t bytes) : mover(bytes) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return &mover;  // of the one stream there is
  }
  ServerMover mover;
};

// What is good for large messages.
template <typename Set>
void SetOptions(const Set& set) {
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 20);
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 4 << 20);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
}

std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

template <typename Reactor>
[[noreturn]] void Measure(Mover<Reactor>& mover, int64_t sends, int64_t receives, int64_t count) {
  mover.Carry(sends, receives);  // warm
  mover.Meet();
  const auto begin = Clock::now();
  const double used = ProcessorSeconds();
  mover.Carry(sends * count, receives * count);
  mover.Meet();
  std::printf("{\"seconds\": %.6f, \"processor\": %.6f}\n",
              std::chrono::duration<double>(Clock::now() - begin).count(),
              ProcessorSeconds() - used);
  std::fflush(stdout);
  sleep(1);  // until the other side has what was sent last
  _exit(0);  // an open stream does not end otherwise
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: link_grpc RANK ADDRESS FOLDER WAY MIB COUNT\n");
    return 2;
  }
  const bool is_server = std::string(argv[1]) == "0", both = std::string(argv[4]) == "both";
  const std::string address = argv[2], folder = argv[3];
  const int64_t bytes = std::atoll(argv[5]) << 20, count = std::atoll(argv[6]);
  if (is_server) {
    Service service(bytes);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&service);
    SetOptions([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({Read(folder + "/key.pem"), Read(folder + "/cert.pem")});
    builder.AddListeningPort(address, folder.empty() ? grpc::InsecureServerCredentials()
                                                     : grpc::SslServerCredentials(options));
    const auto server = builder.BuildAndStart();
    if (server == nullptr) return 1;
    Measure(service.mover, 1, both ? 1 : 0, count);
  }
  grpc::ChannelArguments settings;
  SetOptions([&](const char* name, int value) { settings.SetInt(name, value); });
  settings.SetSslTargetNameOverride("rank");
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Read(folder + "/cert.pem");
  const auto channel = grpc::CreateCustomChannel(
      address, folder.empty() ? grpc::InsecureChannelCredentials() : grpc::SslCredentials(options),
      settings);
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  ClientMover mover(bytes);
  stub.PrepareBidiStreamingCall(&context, "/links/Carry", grpc::StubOptions(), &mover);
  mover.AddHold();
  mover.StartCall();
  Measure(mover, both ? 1 : 0, 1, count);
}
