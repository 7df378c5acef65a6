// The server on the network: whom it lets in, and what it outlives.
#include "remote/server/server.h"

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "process/sanitizers.h"
#include "remote/address.h"
#include "remote/remote.grpc.pb.h"
#include "remote/server/session.h"
#include "remote_testing.h"

namespace remote {
namespace {

constexpr char kCertificate[] = SOURCE_DIRECTORY "/tests/remote/localhost.pem";
constexpr char kKey[] = SOURCE_DIRECTORY "/tests/remote/localhost.key";

std::shared_ptr<grpc::Channel> TlsChannel(int port) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ReadFile(kCertificate, "");
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("localhost:" + std::to_string(port),
                                   grpc::SslCredentials(options), arguments);
}

std::shared_ptr<grpc::Channel> Channel(int port, bool tls = false) {
  return tls ? TlsChannel(port) : TestChannel("localhost:" + std::to_string(port));
}

// gRPC without a word before it.
std::shared_ptr<grpc::Channel> PlainChannel(int port) {
  return grpc::CreateChannel("localhost:" + std::to_string(port),
                             grpc::InsecureChannelCredentials());
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

grpc::Status Describe(const std::shared_ptr<grpc::Channel>& channel,
                      const std::string& token = "") {
  grpc::ClientContext context;
  SetDeadline(context);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  wire::Description description;
  return wire::RuntimeServer::NewStub(channel)->Describe(&context, {}, &description);
}

// What becomes of a session whose first message is SumRequests: the number of replies, and how it
// ended.
std::pair<int, grpc::Status> RunSum(const std::shared_ptr<grpc::Channel>& channel,
                                    const std::string& token = "") {
  grpc::ClientContext context;
  SetDeadline(context);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  const auto stub = wire::RuntimeServer::NewStub(channel);
  const auto stream = stub->Session(&context);
  stream->Write(PacketOf(SumRequests()));
  int count = 0;
  wire::Replies replies;
  while (count < 4 && stream->Read(&replies)) count += replies.replies_size();
  stream->WritesDone();
  return {count, stream->Finish()};
}

std::pair<int, grpc::Status> RunSum(int port) { return RunSum(Channel(port)); }

TEST(Server, Serves) {
  const auto [replies, status] = RunSum(TestServer().port());
  EXPECT_EQ(replies, 4);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(Server, TokenIsDemandedBeforeAnythingElse) {
  ServerOptions options = TestOptions();
  options.token = "correct horse";
  options.certificate = kCertificate;
  options.key = kKey;
  const Server server(options);
  const auto channel = TlsChannel(server.port());
  for (const std::string token : {"", "wrong", "correct horse ", "correct hors", "Correct horse"}) {
    EXPECT_EQ(Describe(channel, token).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    const auto [replies, status] = RunSum(channel, token);
    EXPECT_EQ(replies, 0);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_EQ(server.num_sessions_so_far(), 0);
  EXPECT_TRUE(Describe(channel, "correct horse").ok());
  EXPECT_EQ(RunSum(channel, "correct horse").first, 4);
}

TEST(Server, OtherAddressesNeedTlsAndToken) {
  EXPECT_TRUE(IsLocal("localhost:1"));
  EXPECT_TRUE(IsLocal("127.0.0.2:1"));
  EXPECT_TRUE(IsLocal("[::1]:1"));
  EXPECT_FALSE(IsLocal("0.0.0.0:1"));
  EXPECT_FALSE(IsLocal("[::]:1"));
  EXPECT_THROW(IsLocal("localhost"), hlo::Error);
  EXPECT_THROW(IsLocal("localhost:99999"), hlo::Error);
  for (int missing = 0; missing < 3; ++missing) {
    ServerOptions options = TestOptions();
    options.address = "0.0.0.0:0";
    options.token = missing != 0 ? "token" : "";
    if (missing != 1) options.certificate = kCertificate;
    if (missing != 1) options.key = kKey;
    if (missing == 2) options.key = "";
    EXPECT_THROW(Server{options}, hlo::Error);
  }
  ServerOptions options = TestOptions();
  options.address = "0.0.0.0:0";
  options.token = "token";
  options.certificate = kCertificate;
  options.key = kKey;
  const Server server(options);
  EXPECT_TRUE(Describe(TlsChannel(server.port()), "token").ok());
  EXPECT_EQ(Describe(PlainChannel(server.port()), "token").error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Describe(TlsChannel(server.port()), "wrong").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Server, AddressInUseIsSaid) {
  ServerOptions options = TestOptions();
  options.address = TestAddress();
  try {
    Server second(options);
    FAIL();
  } catch (const hlo::Error& error) {
    EXPECT_NE(std::string(error.what()).find("in use"), std::string::npos) << error.what();
  }
}

TEST(Server, AllowsSoManySessions) {
  ServerOptions options = TestOptions();
  options.most_sessions = 1;
  const Server server(options);
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stub = wire::RuntimeServer::NewStub(Channel(server.port()));
  const auto first = stub->Session(&context);
  first->WaitForInitialMetadata();
  EXPECT_EQ(RunSum(server.port()).second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
  while (server.num_sessions() > 0) std::this_thread::yield();
  EXPECT_EQ(RunSum(server.port()).first, 4);
}

// A message of any bytes, sent as one of a session's. How the session ends.
grpc::Status SendBytes(int port, const std::string& bytes) {
  grpc::GenericStub stub(Channel(port));
  grpc::ClientContext context;
  SetDeadline(context);
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(&context, "/torch_xla.remote.RuntimeServer/Session", &queue);
  auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  stream->StartCall(nullptr);
  wait();
  grpc::Slice slice(bytes);
  stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  wait();
  stream->WritesDone(nullptr);
  wait();
  grpc::ByteBuffer reply;
  do {
    stream->Read(&reply, nullptr);
  } while (wait());
  grpc::Status status;
  stream->Finish(&status, nullptr);
  wait();
  return status;
}

TEST(Server, OversizedMessagesAreRefused) {
  wire::Requests requests;
  requests.add_requests()->mutable_piece()->set_data(std::string(kMostMessageBytes + 1, 'x'));
  EXPECT_FALSE(SendBytes(TestServer().port(), PacketOf(requests).SerializeAsString()).ok());
  EXPECT_EQ(RunSum(TestServer().port()).first, 4);
}

TEST(Server, OutlivesAnyMessage) {
  std::mt19937 random(2);
  const std::string valid = SumRequests().SerializeAsString();
  for (int round = 0; round < 150; ++round) {
    std::string bytes = valid;
    if (round % 2 == 0) bytes.assign(random() % 2000, '\0');
    const size_t changes = round % 2 == 0 ? bytes.size() : 1 + random() % 5;
    for (size_t i = 0; i < changes; ++i) {
      bytes[round % 2 == 0 ? i : random() % bytes.size()] = static_cast<char>(random());
    }
    wire::Packet packet;
    packet.set_requests(bytes);
    (void)SendBytes(TestServer().port(), round % 4 < 2 ? packet.SerializeAsString() : bytes);
  }
  EXPECT_EQ(RunSum(TestServer().port()).first, 4);
}

int Connect(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return connection;
}

TEST(Server, OutlivesWhatIsNoGrpc) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    // From strangers, and from those who were let in.
    const int connection =
        round % 4 < 2 ? Connect(TestServer().port()) : Dial(TestAddress(), kToken).release();
    std::string bytes(random() % 4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (round % 2 == 0) bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes;
    (void)!send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(connection);
  }
  EXPECT_EQ(RunSum(TestServer().port()).first, 4);
}

struct Resources {
  size_t files = 0, threads = 0, kilobytes = 0;
};

Resources Now() {
  Resources now;
  using Directory = std::filesystem::directory_iterator;
  now.files = static_cast<size_t>(std::distance(Directory("/proc/self/fd"), Directory()));
  now.threads = static_cast<size_t>(std::distance(Directory("/proc/self/task"), Directory()));
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  now.kilobytes = pages * 4;
  return now;
}

// Half of them with buffers and shared memory, which they leave behind.
void ConnectAndDisconnect(int port, int times) {
  const auto stub = wire::RuntimeServer::NewStub(Channel(port));
  wire::Requests requests;
  requests.add_requests()->mutable_create_segment()->set_bytes(1 << 20);
  requests.mutable_requests(0)->set_reply(1);
  wire::CreateSegment& results = *requests.add_requests()->mutable_create_segment();
  results.set_segment(1);
  results.set_for_results(true);
  *requests.add_requests() = SumRequests().requests(0);
  for (int i = 0; i < times; ++i) {
    grpc::ClientContext context;
    SetDeadline(context);
    const auto stream = stub->Session(&context);
    if (i % 2 == 0) {
      stream->Write(PacketOf(requests));
      wire::Replies replies;
      stream->Read(&replies);
    }
    if (i % 4 < 2) context.TryCancel();
    stream->WritesDone();
    wire::Replies rest;
    while (stream->Read(&rest)) {
    }
    (void)stream->Finish();
  }
}

// Sessions end a little after their clients.
void WaitForSessions(const Server& server) {
  for (int i = 0; i < 1000 && server.num_sessions() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(server.num_sessions(), 0);
}

TEST(Server, ThousandClientsLeaveNothing) {
  Server& server = TestServer();
  ConnectAndDisconnect(server.port(), 100);
  WaitForSessions(server);
  const Resources before = Now();
  ConnectAndDisconnect(server.port(), 1000);
  WaitForSessions(server);
  const Resources after = Now();
  EXPECT_LE(after.files, before.files + 3);
  EXPECT_LE(after.threads, before.threads + 3);
  if (!process::kKeepsFreedMemory) EXPECT_LE(after.kilobytes, before.kilobytes + 8 * 1024);
}

// Whole clients, with arrays that go through shared memory both ways.
void TransferAndDisconnect(int times) {
  const hlo::Shape large(hlo::ElementType::kF32, {1 << 16});
  const auto inverse = pjrt::MakeModule("inverse", [&](hlo::Builder& b) {
    return std::vector<hlo::Value>{b.Negate(b.Parameter(large))};
  });
  for (int i = 0; i < times; ++i) {
    const auto client = pjrt::Client::Create(pjrt::Plugin::Load(PLUGIN_REMOTE));
    std::vector<float> values(1 << 16, 1);
    const auto x = client->BufferFromHost(values.data(), large, *client->devices()[0]);
    const pjrt::Buffer* arguments[] = {x.get()};
    const auto result = client->Compile(*inverse)->Execute(arguments);
    result.outputs[0]->ToHost(values.data(), large.byte_size());
    ASSERT_EQ(values[1], -1);
  }
}

TEST(Server, ClientsThatTransferLeaveNothing) {
  TransferAndDisconnect(10);
  WaitForSessions(TestServer());
  const Resources before = Now();
  TransferAndDisconnect(50);
  WaitForSessions(TestServer());
  const Resources after = Now();
  EXPECT_LE(after.files, before.files + 3);
  EXPECT_LE(after.threads, before.threads + 3);
  if (!process::kKeepsFreedMemory) EXPECT_LE(after.kilobytes, before.kilobytes + 8 * 1024);
}

}  // namespace
}  // namespace remote
