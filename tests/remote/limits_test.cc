// A client that asks for as many things as it can: its session is bounded, and others do not
// notice.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "process/sanitizers.h"
#include "remote_testing.h"

namespace remote {
namespace {

using Clock = std::chrono::steady_clock;
// A session's buffers, a kilobyte each, take 64 MiB, and what is under way comes on top.
constexpr size_t kMostGrowth = size_t{96} << 20;

size_t ResidentBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * 4096;
}

size_t Descriptors() {
  using Directory = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Directory("/proc/self/fd"), Directory()));
}

std::chrono::duration<double> TimeOfAnotherClient() {
  const auto begin = Clock::now();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto stub = wire::RuntimeServer::NewStub(TestChannel(TestAddress()));
  const auto stream = stub->Session(&context);
  stream->Write(PacketOf(SumRequests()));
  int count = 0;
  wire::Replies replies;
  while (count < 4 && stream->Read(&replies)) count += replies.replies_size();
  EXPECT_EQ(count, 4);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  return Clock::now() - begin;
}

struct Outcome {
  grpc::Status status;
  bool refused_one = false;  // by RESOURCE_EXHAUSTED
  size_t growth = 0, descriptors = 0;
  std::vector<double> others;  // seconds that each of the clients meanwhile took

  // Not the longest: the machine may do other things as well.
  double median() {
    std::ranges::sort(others);
    return others[others.size() / 2];
  }
};

using Fill = std::function<void(wire::Request&, uint64_t number)>;

// Sends `count` requests in one session, after `first`, with all replies read or none, and looks
// meanwhile at what it costs the process and another client.
Outcome Attack(const wire::Requests& first, uint64_t count, const Fill& fill, bool reads = true) {
  Outcome outcome;
  (void)TimeOfAnotherClient();
  const size_t before = ResidentBytes(), descriptors = Descriptors();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stub = wire::RuntimeServer::NewStub(TestChannel(TestAddress()));
  const auto stream = stub->Session(&context);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    if (!reads) return;
    wire::Replies replies;
    while (stream->Read(&replies)) {
      for (const wire::Reply& reply : replies.replies()) {
        if (reply.error().code() == PJRT_Error_Code_RESOURCE_EXHAUSTED) outcome.refused_one = true;
      }
    }
  });
  std::thread writer([&] {
    bool sent = first.requests_size() == 0 || stream->Write(PacketOf(first));
    for (uint64_t number = 1000; sent && number < 1000 + count;) {
      wire::Requests batch;
      while (batch.requests_size() < 4000 && number < 1000 + count) {
        wire::Request& request = *batch.add_requests();
        request.set_reply(number);
        fill(request, number++);
      }
      sent = stream->Write(PacketOf(batch));
    }
    if (sent && reads) stream->WritesDone();
    done = true;
  });
  const auto end = Clock::now() + std::chrono::milliseconds(reads ? 60'000 : 1'500);
  do {
    outcome.others.push_back(TimeOfAnotherClient().count());
    outcome.growth = std::max(outcome.growth, std::max(ResidentBytes(), before) - before);
    outcome.descriptors =
        std::max(outcome.descriptors, std::max(Descriptors(), descriptors) - descriptors);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while ((!done || !reads) && Clock::now() < end);
  if (!reads) context.TryCancel();
  writer.join();
  reader.join();
  wire::Replies rest;
  while (stream->Read(&rest)) {
  }
  outcome.status = stream->Finish();
  return outcome;
}

void ExpectBounded(Outcome outcome) {
  EXPECT_LT(outcome.median(), 1.0);
  if (!process::kAddressSanitizer) EXPECT_LT(outcome.growth, kMostGrowth);
  EXPECT_LE(outcome.descriptors, kMostSegments + 32);
}

void ExpectEnded(const Outcome& outcome, const std::string& why) {
  ExpectBounded(outcome);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(outcome.status.error_message().find(why), std::string::npos)
      << outcome.status.error_message();
}

class Limits : public testing::Test {
 protected:
  // As the server's program does.
  Limits() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit raised = {before_.rlim_max, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  ~Limits() override { setrlimit(RLIMIT_NOFILE, &before_); }

  rlimit before_ = {};
};

TEST_F(Limits, EmptySegments) {
  const Outcome outcome = Attack({}, 1'000'000, [](wire::Request& request, uint64_t number) {
    request.mutable_create_segment()->set_segment(number);
  });
  ExpectBounded(outcome);
  EXPECT_TRUE(outcome.refused_one);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
}

// With few descriptors some are left for who has yet to connect.
TEST_F(Limits, DescriptorsAreLeftForOthers) {
  const rlimit few = {256, before_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const Outcome outcome = Attack({}, 10'000, [](wire::Request& request, uint64_t number) {
    request.mutable_create_segment()->set_segment(number);
  });
  ExpectBounded(outcome);
  EXPECT_TRUE(outcome.refused_one);
  EXPECT_LT(outcome.descriptors, 200U);
}

TEST_F(Limits, EmptyPieces) {
  ExpectEnded(Attack({}, 10'000'000,
                     [](wire::Request& request, uint64_t number) {
                       request.mutable_piece()->set_blob(number);
                     }),
              "blobs");
}

TEST_F(Limits, EmptyBuffers) {
  ExpectEnded(Attack({}, 1'000'000,
                     [](wire::Request& request, uint64_t number) {
                       wire::BufferFromHost& call = *request.mutable_buffer_from_host();
                       call.set_buffer(number);
                       call.mutable_shape()->set_element_type(PJRT_Buffer_Type_F32);
                       call.mutable_shape()->add_dimensions(0);
                       call.mutable_place()->set_device(0);
                     }),
              "buffers");
}

TEST_F(Limits, FailedBuffers) {
  ExpectEnded(Attack({}, 1'000'000,
                     [](wire::Request& request, uint64_t number) {
                       request.mutable_copy()->set_source(1);
                       request.mutable_copy()->set_target(number);
                     }),
              "buffers");
}

TEST_F(Limits, FailedExecutables) {
  ExpectEnded(Attack({}, 1'000'000,
                     [](wire::Request& request, uint64_t number) {
                       request.mutable_compile()->set_executable(number);
                       request.mutable_compile()->set_format("mlir");
                     }),
              "executables");
}

TEST_F(Limits, Executions) {
  ExpectEnded(Attack(SumRequests(), 1'000'000,
                     [](wire::Request& request, uint64_t number) {
                       wire::Execute& call = *request.mutable_execute();
                       call.set_executable(2);
                       call.set_num_devices(1);
                       call.add_arguments(1);
                       call.add_arguments(1);
                       call.set_first_result(number * 2);
                       request.set_reply(0);
                     }),
              "buffers");
}

TEST_F(Limits, LocatedReads) {
  wire::Requests first = SumRequests();
  first.add_requests()->mutable_create_segment()->set_for_results(true);
  ExpectEnded(Attack(first, 1'000'000,
                     [](wire::Request& request, uint64_t) {
                       request.mutable_read()->set_buffer(1);
                       request.mutable_read()->set_locate(true);
                     }),
              "located reads");
}

// Requests whose replies nobody takes.
TEST_F(Limits, UnreadReplies) {
  ExpectBounded(Attack(
      {}, 3'000'000,
      [](wire::Request& request, uint64_t) { request.mutable_read()->set_buffer(1); },
      /*reads=*/false));
}

TEST_F(Limits, UnreadContents) {
  wire::Requests first = SumRequests();
  wire::BufferFromHost& large = *first.add_requests()->mutable_buffer_from_host();
  large.set_buffer(9);
  large.mutable_shape()->set_element_type(PJRT_Buffer_Type_U8);
  large.mutable_shape()->add_dimensions(1 << 20);
  large.mutable_place()->set_device(0);
  large.set_data(std::string(1 << 20, 'x'));
  Outcome outcome = Attack(
      first, 100'000,
      [](wire::Request& request, uint64_t) { request.mutable_read()->set_buffer(9); },
      /*reads=*/false);
  EXPECT_LT(outcome.median(), 1.0);
  // What may be under way, and what may wait to be sent.
  if (!process::kAddressSanitizer) {
    EXPECT_LT(outcome.growth, Underway::kMostBytes + kMostGrowth);
  }
}

// Two bytes each on the way, a hundred in memory.
TEST_F(Limits, RequestsForNothing) {
  std::string bytes;
  for (int i = 0; i < 2'000'000; ++i) bytes += std::string("\x0a\x00", 2);
  const size_t before = ResidentBytes();
  EXPECT_THROW((void)ParseRequests(bytes), hlo::Error);
  if (!process::kAddressSanitizer) EXPECT_LT(ResidentBytes(), before + (8 << 20));
  EXPECT_EQ(ParseRequests(SumRequests().SerializeAsString()).requests_size(), 4);
  for (const std::string& garbage : {std::string("\x0a\x05"), std::string("\x0a"),
                                     std::string("\x12\x00", 2), std::string("no message")}) {
    EXPECT_THROW((void)ParseRequests(garbage), hlo::Error);
  }
}

}  // namespace
}  // namespace remote
