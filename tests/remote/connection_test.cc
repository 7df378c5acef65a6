// The client's end of a session, with a server that does as it likes.
#include "remote/client/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "remote/ring.h"
#include "remote_testing.h"

namespace remote {
namespace {

constexpr int kMessages = 64;
constexpr size_t kMegabyte = size_t{1} << 20;

// Sends many large replies to the first request, and reads no other before they have gone.
class Talker : public wire::RuntimeServer::Service {
 public:
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<wire::Replies, wire::Packet>* stream) override {
    stream->SendInitialMetadata();
    wire::Packet packet;
    stream->Read(&packet);
    wire::Requests requests;
    requests.ParseFromString(packet.requests());
    for (int i = 0; i < kMessages; ++i) {
      wire::Replies replies;
      wire::Reply& reply = *replies.add_replies();
      reply.set_reply(requests.requests(0).reply());
      reply.set_more(i + 1 < kMessages);
      reply.mutable_contents()->set_data(std::string(kMegabyte, 'x'));
      stream->Write(replies);
    }
    int others = 0;
    while (others < kMessages && stream->Read(&packet)) {
      requests.ParseFromString(packet.requests());
      others += requests.requests_size();
    }
    heard.set_value(others);
    return grpc::Status::OK;
  }

  std::promise<int> heard;
};

// A server with this service, at a socket in a folder of its own.
class Listening {
 public:
  explicit Listening(grpc::Service* service) {
    folder_ = (std::filesystem::temp_directory_path() / "connection-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) throw hlo::Error("no folder " + folder_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(endpoint().address, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~Listening() {
    server_->Shutdown();
    std::filesystem::remove_all(folder_);
  }
  Endpoint endpoint() const {
    Endpoint endpoint;
    endpoint.address = "unix:" + folder_ + "/server";
    return endpoint;
  }

 private:
  std::string folder_;
  std::unique_ptr<grpc::Server> server_;
};

// What a callback asks for may be more than the server takes before it has said all it wants to.
TEST(Connection, AReaderDoesNotWaitForTheServer) {
  Talker talker;
  std::future<int> heard = talker.heard.get_future();
  const Listening server(&talker);
  {
    Connection connection(server.endpoint());
    int replies = 0;
    connection.Call({}, {[&](wire::Reply& reply) {
                      if (reply.has_error() || replies++ > 0) return;
                      for (int i = 0; i < kMessages; ++i) {
                        wire::Request request;
                        request.mutable_buffer_from_host()->set_data(std::string(kMegabyte, 'y'));
                        connection.Call(std::move(request), {[](wire::Reply&) {}});
                      }
                    }});
    ASSERT_EQ(heard.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(heard.get(), kMessages);
  }
}

// Answers the first request in its rings both there and on the stream, piece after piece.
class TwoTongues : public wire::RuntimeServer::Service {
 public:
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<wire::Replies, wire::Packet>* stream) override {
    stream->SendInitialMetadata();
    wire::Packet packet;
    stream->Read(&packet);
    wire::Requests requests;
    requests.ParseFromString(packet.requests());
    stream->Write(AnswerTo(requests, /*more=*/false));
    Rings rings(memory);
    std::string message;
    rings.requests.Read(&message, Ring::kCapacity);
    requests.ParseFromString(message);
    const wire::Replies replies = AnswerTo(requests, /*more=*/true);
    for (int i = 0; i < kMessages; ++i) {
      stream->Write(replies);
      rings.replies.Write(replies.SerializeAsString());
    }
    while (stream->Read(&packet)) {
    }
    return grpc::Status::OK;
  }

  const std::shared_ptr<char> memory = [] {
    auto* bytes = static_cast<char*>(std::aligned_alloc(Ring::kAlignment, Rings::kBytes));
    Rings::Clear(bytes);
    return std::shared_ptr<char>(bytes, &std::free);
  }();

 private:
  static wire::Replies AnswerTo(const wire::Requests& requests, bool more) {
    wire::Replies replies;
    replies.add_replies()->set_reply(requests.requests(0).reply());
    replies.mutable_replies(0)->set_more(more);
    return replies;
  }
};

// Two threads read, and a handler is for one at a time. A server that does not keep to it is left.
TEST(Connection, AHandlerIsCalledByOneReaderAtATime) {
  TwoTongues service;
  const Listening server(&service);
  std::atomic<int> inside{0}, most{0};
  std::promise<void> ended;
  {
    Connection connection(server.endpoint());
    connection.UseRings({}, service.memory);
    connection.Call({}, {[&](wire::Reply& reply) {
                      most = std::max(most.load(), ++inside);
                      std::this_thread::sleep_for(std::chrono::milliseconds(20));
                      --inside;
                      if (reply.has_error()) ended.set_value();
                    }});
    EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace remote
