// What a session does with messages that no client of ours sends.
#include "remote/server/session.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "another_build.h"
#include "remote_testing.h"

namespace remote {
namespace {

TEST(Session, Sum) {
  Peer peer;
  peer.Send(SumRequests());
  const std::string data = peer.WaitFor(4).contents().data();
  EXPECT_FALSE(peer.WaitFor(3).has_error()) << peer.WaitFor(3).error().message();
  ASSERT_EQ(data.size(), 4 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<const float*>(data.data())[3], 8);
}

TEST(Session, NumbersOfAnotherSessionMeanNothing) {
  Peer owner, thief;
  owner.Send(SumRequests());
  for (uint64_t number : {1, 3, 4}) {
    const std::string error =
        thief.ErrorOf([&](wire::Request& request) { request.mutable_read()->set_buffer(number); });
    EXPECT_EQ(error, "this session has no buffer " + std::to_string(number));
    thief.Send([&] {
      wire::Requests requests;
      requests.add_requests()->mutable_free()->add_buffers(number);
      return requests;
    }());
  }
  EXPECT_EQ(thief.ErrorOf([](wire::Request& request) {
    request.mutable_execute()->set_executable(2);
    request.mutable_execute()->set_num_devices(1);
  }),
            "this session has no executable 2");
  // Nor does freeing them free anything.
  EXPECT_EQ(owner.ErrorOf([](wire::Request& r) { r.mutable_read()->set_buffer(1); }), "");
}

using Fill = std::function<void(wire::Request&)>;

void FillArray(wire::Request& request, int64_t size, const std::string& data) {
  wire::BufferFromHost& host = *request.mutable_buffer_from_host();
  host.set_buffer(50);
  host.mutable_shape()->set_element_type(PJRT_Buffer_Type_F32);
  host.mutable_shape()->add_dimensions(size);
  host.set_data(data);
}

TEST(Session, WrongRequestsFailAlone) {
  const std::pair<Fill, std::string> cases[] = {
      {[](auto& r) { FillArray(r, 2, "1234"); }, "4 bytes came for f32[2]"},
      {[](auto& r) { FillArray(r, -2, "12345678"); }, "must not be negative"},
      {[](auto& r) { FillArray(r, int64_t{1} << 62, ""); }, "too large"},
      {[](auto& r) {
         FillArray(r, 1, "1234");
         r.mutable_buffer_from_host()->mutable_shape()->set_element_type(1000);
       },
       "no element type"},
      {[](auto& r) {
         FillArray(r, 1, "1234");
         r.mutable_buffer_from_host()->mutable_place()->set_device(7);
       },
       "there is no device 7"},
      {[](auto& r) {
         FillArray(r, 1, "");
         r.mutable_buffer_from_host()->mutable_region()->set_segment(9);
       },
       "there is no segment 9"},
      {[](auto& r) {
         FillArray(r, 1, "");
         r.mutable_buffer_from_host()->set_blob(9);
       },
       "there is no blob 9"},
      {[](auto& r) { r.mutable_create_segment()->set_bytes(~uint64_t{0}); }, "shares at most"},
      {[](auto& r) { r.mutable_copy()->set_source(77); }, "no buffer 77"},
      {[](auto& r) {
         r.mutable_read()->set_buffer(1);
         r.mutable_read()->set_raw(true);
         r.mutable_read()->set_offset(~uint64_t{0});
         r.mutable_read()->set_bytes(8);
       },
       "are not within"},
      {[](auto& r) {
         r.mutable_execute()->set_executable(2);
         r.mutable_execute()->set_num_devices(2);
         r.mutable_execute()->add_arguments(1);
         r.mutable_execute()->set_first_result(90);
       },
       "1 arguments are given for 2 devices"},
      {[](auto& r) {
         r.mutable_execute()->set_executable(2);
         r.mutable_execute()->set_num_devices(1);
         r.mutable_execute()->add_arguments(1);
         r.mutable_execute()->set_first_result(60);
       },
       "takes 2 arguments"},
      {[](auto& r) {
         wire::Execute& call = *r.mutable_execute();
         call.set_executable(2);
         call.set_num_devices(1);
         call.add_arguments(1);
         call.add_arguments(1);
         call.add_non_donatable(5);
         call.set_first_result(70);
       },
       "non-donatable input 5"},
      {[](auto& r) {
         r.mutable_compile()->set_executable(80);
         r.mutable_compile()->set_format("mlir");
         r.mutable_compile()->set_code("no program");
       },
       "."},
      {[](auto& r) { r.mutable_device_assignment()->set_replicas(~0u); }, "cannot run on 2"},
      {[](auto& r) { r.mutable_memory_stats()->set_device(99); }, "there is no device 99"},
  };
  Peer peer;
  peer.Send(SumRequests());
  for (const auto& [fill, expected] : cases) {
    const std::string error = peer.ErrorOf(fill);
    EXPECT_NE(error.find(expected == "." ? "" : expected), std::string::npos) << error;
    EXPECT_NE(error, "");
    wire::Requests free;
    free.add_requests()->mutable_free()->add_buffers(50);
    peer.Send(std::move(free));
  }
  EXPECT_EQ(peer.ErrorOf([](wire::Request& r) { r.mutable_read()->set_buffer(1); }), "");
}

// What a session is given to load is its plugin's own or nothing.
TEST(Session, ExecutablesOfAnotherBuildAreRefused) {
  const AnotherBuild build(PLUGIN_CPU);
  const Runtime other(build.path(), {});
  Peer peer;
  uint64_t number = 10;
  const auto load = [&](const Runtime& maker) {
    wire::SerializedExecutable serialized;
    serialized.set_executable(
        maker.client->Compile(*pjrt::SumAndProduct())->executable().Serialize());
    return peer.Ask([&](wire::Request& request) {
      request.mutable_compile()->set_executable(++number);
      request.mutable_compile()->set_code(serialized.SerializeAsString());
    });
  };
  EXPECT_FALSE(load(TestRuntime()).has_error());
  const wire::Reply refusal = load(other);
  EXPECT_EQ(refusal.error().code(), PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_NE(refusal.error().message().find("compile the program again"), std::string::npos)
      << refusal.error().message();
}

// The error of what made a buffer is its reader's.
TEST(Session, FailedBufferSaysWhy) {
  Peer peer;
  peer.ErrorOf([](auto& r) { FillArray(r, 2, "1234"); });
  EXPECT_EQ(peer.ErrorOf([](auto& r) { r.mutable_read()->set_buffer(50); }),
            "4 bytes came for f32[2]");
}

TEST(Session, DishonestMessagesEndIt) {
  const Fill cases[] = {
      [](auto& r) {},                            // asks for nothing
      [](auto& r) { FillArray(r, 1, "1234"); },  // once more
      [](auto& r) { r.mutable_compile()->set_executable(2); },
      [](auto& r) { r.mutable_create_segment()->set_segment(5); },
  };
  for (const Fill& fill : cases) {
    Peer peer;
    peer.Send(SumRequests());
    peer.ErrorOf([](auto& r) { FillArray(r, 1, "1234"); });
    peer.ErrorOf([](auto& r) { r.mutable_create_segment()->set_segment(5); });
    EXPECT_THROW(peer.ErrorOf(fill), hlo::Error);
  }
}

TEST(Session, RegionsAreWithinTheirSegment) {
  Peer peer;
  const wire::Reply reply = peer.Ask([](auto& r) {
    r.mutable_create_segment()->set_segment(5);
    r.mutable_create_segment()->set_bytes(1 << 16);
  });
  const wire::Segment& segment = reply.segment();
  const auto shared = Segment::Open(segment.process(), segment.descriptor(), segment.nonce());
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(Segment::Open(segment.process(), segment.descriptor(), std::string(32, 'x')), nullptr);
  for (const auto& [offset, valid] : {std::pair<uint64_t, bool>{Segment::kHeader, true},
                                      {Segment::kHeader + (1 << 16) - 4, true},
                                      {Segment::kHeader + (1 << 16) - 3, false},
                                      {0, false},
                                      {~uint64_t{0}, false},
                                      {~uint64_t{0} - 3, false}}) {
    const std::string error = peer.ErrorOf([&, offset = offset](auto& r) {
      FillArray(r, 1, "");
      wire::Region& region = *r.mutable_buffer_from_host()->mutable_region();
      region.set_segment(5);
      region.set_offset(offset);
      region.set_bytes(4);
    });
    EXPECT_EQ(error.empty(), valid) << offset << ": " << error;
    wire::Requests free;
    free.add_requests()->mutable_free()->add_buffers(50);
    peer.Send(std::move(free));
  }
}

// Valid messages with some bytes changed: whatever they ask for, the process lives on.
wire::Request ProfileRequest(uint64_t profiler, wire::Profile::What what) {
  wire::Request request;
  request.set_reply(100);
  request.mutable_profile()->set_profiler(profiler);
  request.mutable_profile()->set_what(what);
  return request;
}

TEST(Session, ProfilersAreFewAndItsOwn) {
  Peer peer, other;
  auto error_of = [](Peer& who, uint64_t profiler, wire::Profile::What what) {
    return who.ErrorOf([&](wire::Request& r) { r = ProfileRequest(profiler, what); });
  };
  for (uint64_t number = 1; number <= kMostProfilers; ++number) {
    EXPECT_EQ(error_of(peer, number, wire::Profile::START), "");
  }
  EXPECT_EQ(error_of(peer, kMostProfilers + 1, wire::Profile::START),
            "a session has at most 8 profilers at a time");
  EXPECT_EQ(error_of(other, 1, wire::Profile::STOP), "this session has no profiler 1");
  EXPECT_NE(error_of(peer, 1, wire::Profile::COLLECT), "");  // it has not been stopped
  EXPECT_EQ(error_of(peer, 1, wire::Profile::STOP), "");
  EXPECT_EQ(error_of(peer, 1, wire::Profile::COLLECT), "");
}

TEST(Session, Fuzz) {
  std::mt19937 random(1);
  wire::Requests requests = SumRequests();
  for (auto what : {wire::Profile::START, wire::Profile::STOP, wire::Profile::COLLECT}) {
    *requests.add_requests() = ProfileRequest(9, what);
  }
  const std::string valid = requests.SerializeAsString();
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = valid;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 10 == 0) bytes.resize(random() % bytes.size());
    wire::Requests requests;
    if (!requests.ParseFromString(bytes)) continue;
    ++parsed;
    Peer peer;
    try {
      peer.Send(std::move(requests));
    } catch (const hlo::Error&) {
    }
  }
  EXPECT_GT(parsed, 500);
  Peer peer;
  peer.Send(SumRequests());
  peer.WaitFor(4);
}

}  // namespace
}  // namespace remote
