// Messages through shared memory: between honest ends, and from one that is not.
#include "remote/ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hlo/error.h"
#include "remote/segment.h"
#include "remote_testing.h"

namespace remote {
namespace {

std::shared_ptr<char> NewMemory() {
  std::shared_ptr<char> memory(
      static_cast<char*>(std::aligned_alloc(Ring::kAlignment, Ring::kBytes)), std::free);
  std::memset(memory.get(), 0xAA, Ring::kBytes);
  Ring::Clear(memory.get());
  return memory;
}

std::string MessageOf(size_t size, int number) {
  std::string message(size, static_cast<char>('a' + number % 26));
  if (size >= sizeof number) std::memcpy(message.data(), &number, sizeof number);
  return message;
}

// More than fits, so that the ring wraps around and both ends wait for each other.
TEST(Ring, KeepsOrderAndContents) {
  const auto memory = NewMemory();
  Ring writer(memory), reader(memory);
  std::mt19937 sizes(1);
  std::vector<size_t> all;
  for (int i = 0; i < 3000; ++i) all.push_back(sizes() % (i % 100 == 0 ? 2'000'000 : 2'000));
  std::thread writing([&] {
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(writer.Write(MessageOf(all[i], static_cast<int>(i))));
    }
  });
  std::string message;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(reader.Read(&message, Ring::kCapacity));
    ASSERT_EQ(message, MessageOf(all[i], static_cast<int>(i))) << i;
  }
  writing.join();
}

TEST(Ring, CloseWakesWhoWaits) {
  const auto memory = NewMemory();
  Ring reader(memory), writer(memory);
  std::thread reading([&] {
    std::string message;
    EXPECT_FALSE(reader.Read(&message, Ring::kCapacity));
  });
  reader.Close();
  reading.join();
  std::thread writing([&] {
    while (writer.Write(std::string(1 << 20, 'x'))) {
    }
  });
  writer.Close();
  writing.join();
  EXPECT_FALSE(writer.Write("x"));
  const auto fresh = NewMemory();
  EXPECT_FALSE(Ring(fresh).Write(std::string(Ring::kCapacity / 2 + 1, 'x')));
}

// Whatever stands in the header and before the messages, an end says so or waits to be closed.
TEST(Ring, BelievesNothing) {
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    const auto memory = NewMemory();
    Ring writer(memory), reader(memory);
    for (int i = 0; i < 3; ++i) writer.Write(MessageOf(100, i));
    auto* words = reinterpret_cast<uint32_t*>(memory.get());
    switch (round % 3) {
      case 0:
        words[0] = random();  // written
        break;
      case 1:
        words[16] = random();  // read
        break;
      default:
        words[Ring::kAlignment / 4] = random();  // the first message's size
    }
    std::thread closing([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      writer.Close();
      reader.Close();
    });
    try {
      std::string message;
      while (reader.Read(&message, 4096)) EXPECT_LE(message.size(), 4096u);
      while (writer.Write("more")) {
      }
    } catch (const hlo::Error&) {
      ++refused;
    }
    closing.join();
  }
  EXPECT_GT(refused, 100);
}

// A session that has moved to rings, whose client writes there what it likes.
class RingSession {
 public:
  RingSession() {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_ = stub_->Session(&context_);
    wire::Request request;
    request.set_reply(1);
    request.mutable_create_segment()->set_segment(1);
    request.mutable_create_segment()->set_bytes(Rings::kBytes);
    const wire::Segment answer = Ask(request).segment();
    segment_ = Segment::Open(answer.process(), answer.descriptor(), answer.nonce());
    wire::Region& region = *request.mutable_use_rings()->mutable_region();
    region.set_segment(1);
    region.set_offset(Segment::kHeader);
    region.set_bytes(Rings::kBytes);
    EXPECT_FALSE(Ask(request).has_error());
    rings = std::make_unique<Rings>(
        std::shared_ptr<char>(segment_, segment_->data() + Segment::kHeader));
  }

  // How the server ends the session.
  std::string End() {
    wire::Replies last;
    std::string said;
    while (stream_->Read(&last)) said = last.replies(0).error().message();
    stream_->Finish();
    return said;
  }
  void WriteOnStream() { stream_->Write(PacketOf(SumRequests())); }

  std::unique_ptr<Rings> rings;

 private:
  wire::Reply Ask(const wire::Request& request) {
    wire::Requests requests;
    *requests.add_requests() = request;
    stream_->Write(PacketOf(requests));
    wire::Replies replies;
    EXPECT_TRUE(stream_->Read(&replies));
    return replies.replies(0);
  }

  std::unique_ptr<wire::RuntimeServer::Stub> stub_ =
      wire::RuntimeServer::NewStub(TestChannel(TestAddress()));
  grpc::ClientContext context_;
  std::unique_ptr<ClientStream> stream_;
  std::shared_ptr<Segment> segment_;
};

TEST(RingSession, Serves) {
  RingSession session;
  session.rings->requests.Write(SumRequests().SerializeAsString());
  int count = 0;
  std::string message;
  while (count < 4 && session.rings->replies.Read(&message, Ring::kCapacity)) {
    wire::Replies replies;
    ASSERT_TRUE(replies.ParseFromString(message));
    count += replies.replies_size();
  }
  EXPECT_EQ(count, 4);
}

TEST(RingSession, GarbageEndsItAndNoOther) {
  RingSession other;
  {
    RingSession session;
    session.rings->requests.Write("this is no message");
    EXPECT_EQ(session.End(), "a message is none of this service");
  }
  {
    RingSession session;
    wire::Requests again;
    again.add_requests()->mutable_create_segment()->set_segment(1);
    session.rings->requests.Write(again.SerializeAsString());
    EXPECT_EQ(session.End(), "a segment's number was used twice");
  }
  {
    RingSession session;
    session.WriteOnStream();  // where nothing more is to be said
    EXPECT_EQ(session.End(), "");
  }
  other.rings->requests.Write(SumRequests().SerializeAsString());
  std::string message;
  EXPECT_TRUE(other.rings->replies.Read(&message, Ring::kCapacity));
}

}  // namespace
}  // namespace remote
