// Results that a client reads where executions have put them.
#include "remote/server/result_memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "hlo/text_writer.h"
#include "process/free_list.h"
#include "remote_testing.h"

namespace remote {
namespace {

constexpr int64_t kElements = 1 << 16;
constexpr size_t kBytes = kElements * sizeof(float);
const hlo::Shape kLarge(hlo::ElementType::kF32, {kElements});

// x + x of kLarge.
std::unique_ptr<hlo::Module> Doubling(bool donate) {
  auto module = pjrt::MakeModule("doubling", [](hlo::Builder& b) {
    hlo::Value x = b.Parameter(kLarge);
    return std::vector<hlo::Value>{b.Add(x, x)};
  });
  if (donate) module->input_output_aliases.push_back({.output = 0, .parameter = 0});
  return module;
}

bool Holds(const char* data, float value) {
  const auto* floats = reinterpret_cast<const float*>(data);
  return std::all_of(floats, floats + kElements, [value](float x) { return x == value; });
}

TEST(FreeList, TakesTheFirstPieceThatIsLargeEnough) {
  process::FreeList list;
  EXPECT_FALSE(list.Take(1));
  list.Give(100, 50);
  list.Give(200, 300);
  EXPECT_EQ(list.bytes(), 350U);
  EXPECT_EQ(list.Take(60), 200U);
  EXPECT_EQ(list.Take(50), 100U);
  EXPECT_EQ(list.Take(240), 260U);
  EXPECT_FALSE(list.Take(1));
  EXPECT_EQ(list.bytes(), 0U);
}

TEST(FreeList, JoinsNeighbours) {
  for (const std::vector<size_t>& order :
       std::vector<std::vector<size_t>>{{0, 10, 20}, {20, 10, 0}, {0, 20, 10}}) {
    process::FreeList list;
    for (size_t offset : order) list.Give(offset, 10);
    EXPECT_EQ(list.Take(30), 0U);
  }
}

TEST(ResultMemory, LendsWhatIsLarge) {
  auto memory = ResultMemory::Create();
  EXPECT_EQ(memory->Take(kMostInlineBytes), nullptr);
  EXPECT_EQ(memory->Take(memory->segment()->bytes()), nullptr);
  void* first = memory->Take(kBytes + 1);
  void* second = memory->Take(kBytes);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 4096, 0U);
  EXPECT_GT(std::abs(static_cast<char*>(second) - static_cast<char*>(first)), kBytes);
  memory->Give(first, kBytes + 1);
  EXPECT_EQ(memory->Take(kBytes), first);
  memory->Give(first, kBytes);
  memory->Give(second, kBytes);
}

TEST(ResultMemory, LivesWithWhatIsTaken) {
  auto memory = ResultMemory::Create();
  auto* data = static_cast<char*>(memory->Take(kBytes));
  std::weak_ptr<ResultMemory> watched = memory;
  ResultMemory& still_there = *memory;
  memory = nullptr;
  ASSERT_FALSE(watched.expired());
  std::memset(data, 1, kBytes);
  still_there.Give(data, kBytes);
  EXPECT_TRUE(watched.expired());
}

TEST(ResultMemory, GivesBackWhatIsTooMuchToKeep) {
  constexpr size_t kMuch = (size_t{1} << 30) + 1;
  auto memory = ResultMemory::Create();
  auto* data = static_cast<char*>(memory->Take(kMuch));
  ASSERT_NE(data, nullptr);
  data[5000] = 1;
  memory->Give(data, kMuch);
  EXPECT_EQ(memory->Take(kMuch), data);
  EXPECT_EQ(data[5000], 0);
  memory->Give(data, kMuch);
}

// A session that shares its results: buffer 1 holds ones, executables 2 and 3 double it and what
// they get in place.
class SharingPeer : public Peer {
 public:
  SharingPeer() {
    const wire::Reply reply = Ask([](wire::Request& r) {
      r.mutable_create_segment()->set_segment(kResults);
      r.mutable_create_segment()->set_for_results(true);
    });
    const wire::Segment& answer = reply.segment();
    results = Segment::Open(answer.process(), answer.descriptor(), answer.nonce(), false);
    EXPECT_EQ(ErrorOf([](wire::Request& r) {
                wire::BufferFromHost& host = *r.mutable_buffer_from_host();
                host.set_buffer(1);
                ToMessage(kLarge, host.mutable_shape());
                host.mutable_place()->set_device(0);
                const std::vector<float> ones(kElements, 1);
                host.set_data(ones.data(), kBytes);
              }),
              "");
    Compile(2, *Doubling(/*donate=*/false));
    Compile(3, *Doubling(/*donate=*/true));
  }

  void Compile(uint64_t number, const hlo::Module& module) {
    EXPECT_EQ(ErrorOf([&](wire::Request& r) {
                wire::Compile& compile = *r.mutable_compile();
                compile.set_executable(number);
                compile.set_format("mlir");
                compile.set_code(hlo::WriteBytecode(module));
                compile.set_options(pjrt::CompileOptions().Serialize());
              }),
              "");
  }

  // The place of the result, once it is there; 0 if it is not in the memory for results.
  uint64_t Run(uint64_t executable, uint64_t argument, uint64_t result) {
    const wire::Reply reply = Ask([&](wire::Request& r) {
      wire::Execute& execute = *r.mutable_execute();
      execute.set_executable(executable);
      execute.set_num_devices(1);
      execute.add_arguments(argument);
      execute.set_first_result(result);
    });
    const wire::Results& told = reply.results();
    return told.offsets_size() == 1 && told.located(0) == 0 ? told.offsets(0) : 0;
  }

  // The read has the number 100.
  wire::Contents Locate(uint64_t buffer) {
    return Ask([&](wire::Request& r) {
             r.mutable_read()->set_buffer(buffer);
             r.mutable_read()->set_locate(true);
           })
        .contents();
  }

  void Free(const std::function<void(wire::Free&)>& fill) {
    wire::Requests requests;
    fill(*requests.add_requests()->mutable_free());
    Send(std::move(requests));
  }

  static constexpr uint64_t kResults = 90;
  std::shared_ptr<Segment> results;
};

TEST(Donations, OfTextAreThoseOfBytecode) {
  const auto module = Doubling(/*donate=*/true);
  for (const std::string& code : {hlo::WriteBytecode(*module), hlo::WriteStablehloText(*module)}) {
    Peer peer;
    const wire::Reply reply = peer.Ask([&](wire::Request& r) {
      wire::Compile& compile = *r.mutable_compile();
      compile.set_executable(2);
      compile.set_format("mlir");
      compile.set_code(code);
      compile.set_options(pjrt::CompileOptions().Serialize());
    });
    ASSERT_FALSE(reply.has_error());
    ASSERT_TRUE(reply.executable().has_donations());
    ASSERT_EQ(reply.executable().donations().consumed_size(), 1);
    EXPECT_EQ(reply.executable().donations().consumed(0), 0U);
  }
}

TEST(SharedResults, AreWhereTheNewsSays) {
  SharingPeer peer;
  ASSERT_NE(peer.results, nullptr);
  const uint64_t offset = peer.Run(2, 1, 10);
  ASSERT_TRUE(peer.results->Holds(offset, kBytes));
  EXPECT_TRUE(Holds(peer.results->data() + offset, 2));
  const uint64_t in_place = peer.Run(3, 10, 11);
  EXPECT_EQ(in_place, offset);
  EXPECT_TRUE(Holds(peer.results->data() + in_place, 4));
  peer.Free([](wire::Free& free) { free.add_buffers(11); });
  EXPECT_EQ(peer.Run(2, 1, 12), offset);  // used again
}

TEST(SharedResults, SmallOnesAreNot) {
  SharingPeer peer;
  wire::Requests requests = SumRequests();
  for (wire::Request& request : *requests.mutable_requests()) {
    if (request.has_buffer_from_host()) request.mutable_buffer_from_host()->set_buffer(51);
    if (request.has_compile()) request.mutable_compile()->set_executable(52);
    if (!request.has_execute()) continue;
    request.mutable_execute()->set_executable(52);
    request.mutable_execute()->set_arguments(0, 51);
    request.mutable_execute()->set_arguments(1, 51);
  }
  peer.Send(std::move(requests));
  const wire::Reply reply = peer.WaitFor(3);
  EXPECT_FALSE(reply.has_error());
  EXPECT_EQ(reply.results().located_size(), 0);
}

TEST(SharedResults, StayWhereTheyAreWhileTheyAreRead) {
  SharingPeer peer;
  const uint64_t offset = peer.Run(2, 1, 10);
  const wire::Region region = peer.Locate(10).located();
  EXPECT_EQ(region.segment(), SharingPeer::kResults);
  EXPECT_EQ(region.offset(), offset);
  EXPECT_EQ(region.bytes(), kBytes);
  const uint64_t elsewhere = peer.Run(3, 10, 11);
  EXPECT_NE(elsewhere, offset);
  EXPECT_TRUE(Holds(peer.results->data() + offset, 2));
  peer.Free([](wire::Free& free) { free.add_reads(100); });
  EXPECT_EQ(peer.Run(2, 1, 12), offset);
}

TEST(SharedResults, ArraysOfTheClientAreLocatedToo) {
  SharingPeer peer;
  peer.ErrorOf([](wire::Request& r) {
    r.mutable_create_segment()->set_segment(5);
    r.mutable_create_segment()->set_bytes(kBytes);
  });
  EXPECT_EQ(peer.ErrorOf([](wire::Request& r) {
    wire::BufferFromHost& host = *r.mutable_buffer_from_host();
    host.set_buffer(10);
    ToMessage(kLarge, host.mutable_shape());
    host.mutable_place()->set_device(0);
    host.mutable_region()->set_segment(5);
    host.mutable_region()->set_offset(Segment::kHeader);
    host.mutable_region()->set_bytes(kBytes);
  }),
            "");
  const wire::Region region = peer.Locate(10).located();
  EXPECT_EQ(region.segment(), 5U);
  EXPECT_EQ(region.offset(), Segment::kHeader);
}

TEST(SharedResults, WhatIsNotSharedIsSent) {
  SharingPeer peer;
  const wire::Contents contents = peer.Locate(1);  // came in a message
  EXPECT_FALSE(contents.has_located());
  EXPECT_GT(contents.data().size(), 0U);
}

TEST(SharedResults, AreSharedOnce) {
  SharingPeer peer;
  EXPECT_EQ(peer.ErrorOf([](wire::Request& r) {
    r.mutable_create_segment()->set_segment(91);
    r.mutable_create_segment()->set_for_results(true);
  }),
            "a session has memory for results once");
}

// Who reads while another thread's execution consumes the buffer gets its value, or an error.
TEST(SharedResults, AreNotTornByDonation) {
  const auto client = pjrt::Client::Create(pjrt::Plugin::Load(PLUGIN_REMOTE));
  const auto start = client->Compile(*Doubling(/*donate=*/false));
  const auto next = client->Compile(*Doubling(/*donate=*/true));
  std::mutex mutex;
  std::shared_ptr<pjrt::Buffer> current;
  std::atomic<bool> done{false};
  std::atomic<int> reads{0};
  auto read = [&] {
    std::vector<float> values(kElements);
    while (!done) {
      std::shared_ptr<pjrt::Buffer> buffer;
      {
        std::lock_guard lock(mutex);
        buffer = current;
      }
      if (buffer == nullptr) continue;
      try {
        buffer->ToHost(values.data(), kBytes);
      } catch (const hlo::Error&) {  // consumed
        continue;
      }
      ++reads;
      ASSERT_TRUE(Holds(reinterpret_cast<const char*>(values.data()), values[0]));
    }
  };
  std::thread first(read), second(read);
  const std::vector<float> ones(kElements, 1);
  const auto x = client->BufferFromHost(ones.data(), kLarge, *client->devices()[0]);
  for (int round = 0; round < 50; ++round) {
    const pjrt::Buffer* argument = x.get();
    std::shared_ptr<pjrt::Buffer> buffer = std::move(start->Execute({&argument, 1}).outputs[0]);
    for (int i = 0; i < 20; ++i) {
      {
        std::lock_guard lock(mutex);
        current = buffer;
      }
      if (i % 4 == 0) buffer->Await();
      argument = buffer.get();
      buffer = std::move(next->Execute({&argument, 1}).outputs[0]);
    }
  }
  done = true;
  first.join();
  second.join();
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace remote
