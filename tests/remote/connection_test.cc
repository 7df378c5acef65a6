// The client's end of a session, with a server that does as it likes.
#include "remote/client/connection.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>

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

// What a callback asks for may be more than the server takes before it has said all it wants to.
TEST(Connection, AReaderDoesNotWaitForTheServer) {
  std::string folder = (std::filesystem::temp_directory_path() / "connection-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Talker talker;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + folder + "/server", grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&talker);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  std::future<int> heard = talker.heard.get_future();
  {
    Endpoint endpoint;
    endpoint.address = "unix:" + folder + "/server";
    Connection connection(endpoint);
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
  server->Shutdown();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace remote
