// Every allocation and every thread start of the server fails once, in a program of its own: that
// session ends, or that request fails, and the next client is served. So does every allocation of a
// client's thread that asks, and of those that read and write: each request is answered or fails.
//
// An allocation is the server's if one of its functions is on the stack above it, with none of
// gRPC's or the plugin's between: what gRPC allocates for itself ends the process when there is
// none left (gpr_malloc), and the plugin answers for its own.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "remote/client/connection.h"
#include "remote/ring.h"
#include "remote_testing.h"

namespace {

struct Range {
  uintptr_t begin, end;
  bool Holds(uintptr_t address) const { return begin <= address && address < end; }
};

// The code of functions in namespace remote, by this program's symbol table.
std::vector<Range>& ServerCode() {
  static auto* code = new std::vector<Range>;
  return *code;
}
// Of these, a client's connection's.
std::vector<Range>& ConnectionCode() {
  static auto* code = new std::vector<Range>;
  return *code;
}
// Of this program, and of libraries that it calls for its own sake.
std::vector<Range>& OwnLibraries() {
  static auto* libraries = new std::vector<Range>;
  return *libraries;
}

void FindServerCode() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string elf((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uintptr_t*>(data) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(elf.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(elf.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = elf.data() + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(elf.data() + sections[i].sh_offset);
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      if (ELF64_ST_TYPE(symbols[s].st_info) != STT_FUNC) continue;
      const std::string_view name = names + symbols[s].st_name;
      for (std::string_view prefix : {"_ZN6remote", "_ZNK6remote", "_ZZN6remote", "_ZZNK6remote"}) {
        if (!name.starts_with(prefix)) continue;
        const uintptr_t begin = base + symbols[s].st_value;
        ServerCode().push_back({begin, begin + symbols[s].st_size});
        const bool is_connection = name.substr(prefix.size()).starts_with("10Connection");
        if (is_connection) ConnectionCode().push_back(ServerCode().back());
      }
    }
  }
  std::ranges::sort(ServerCode(), {}, &Range::begin);
  std::ranges::sort(ConnectionCode(), {}, &Range::begin);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        const std::string_view name = info->dlpi_name;
        const auto has = [name](const char* part) { return name.find(part) != name.npos; };
        if (!name.empty() && !has("libstdc++") && !has("libprotobuf") && !has("libc.so") &&
            !has("libgcc")) {
          return 0;
        }
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          OwnLibraries().push_back({begin, begin + part.p_memsz});
        }
        return 0;
      },
      nullptr);
}

bool IsIn(const std::vector<Range>& code, uintptr_t address) {
  auto found = std::ranges::upper_bound(code, address, {}, &Range::begin);
  return found != code.begin() && std::prev(found)->Holds(address);
}

struct Search {
  const std::vector<Range>& code;
  bool found = false;
};

_Unwind_Reason_Code Look(_Unwind_Context* context, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const uintptr_t address = _Unwind_GetIP(context) - 1;
  if (std::ranges::none_of(OwnLibraries(), [&](const Range& r) { return r.Holds(address); })) {
    return _URC_END_OF_STACK;
  }
  if (!IsIn(search.code, address)) return _URC_NO_REASON;
  search.found = true;
  return _URC_END_OF_STACK;
}

enum class What { kNothing, kAllocations, kClientAllocations, kConnectionAllocations, kThreads };
std::atomic<What> failing{What::kNothing};
std::atomic<int> countdown{0};  // the failure comes at zero
thread_local bool spared = false, looking = false, is_client = false;

bool Fails(What what) {
  if (failing != what || spared || looking) return false;
  looking = true;
  Search search{what == What::kConnectionAllocations ? ConnectionCode() : ServerCode()};
  _Unwind_Backtrace(&Look, &search);
  looking = false;
  return search.found && countdown.fetch_sub(1) == 0;
}

// Fails the `count`-th; the test's own thread is the client's.
class Failure {
 public:
  Failure(What what, int count) {
    countdown = count;
    failing = what;
  }
  ~Failure() { failing = What::kNothing; }
  bool has_come() const { return countdown < 0; }
};

}  // namespace

void* operator new(size_t bytes) {
  if (Fails(is_client ? What::kClientAllocations : What::kAllocations) ||
      Fails(What::kConnectionAllocations)) {
    throw std::bad_alloc();
  }
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_create"));
  return Fails(What::kThreads) ? EAGAIN : create(thread, attributes, start, argument);
}

namespace remote {

Server& TestServer() {
  static auto* server = new Server(TestOptions());
  return *server;
}

std::string TestAddress() { return "localhost:" + std::to_string(TestServer().port()); }

namespace {

constexpr int64_t kElements = 1 << 16;

wire::Request WithReply(uint64_t reply) {
  wire::Request request;
  request.set_reply(reply);
  return request;
}

// What an honest client asks for, of each kind: SumRequests, shared memory of both kinds, an array
// in pieces, its contents, a copy, a profile, and what makes errors.
wire::Requests AllRequests() {
  wire::Requests requests = SumRequests();
  auto add = [&](uint64_t reply) -> wire::Request& {
    wire::Request& request = *requests.add_requests();
    request.set_reply(reply);
    return request;
  };
  wire::CreateSegment& segment = *add(11).mutable_create_segment();
  segment.set_segment(1);
  segment.set_bytes(kElements * 4);
  wire::CreateSegment& results = *add(12).mutable_create_segment();
  results.set_segment(2);
  results.set_for_results(true);
  for (int i = 0; i < 4; ++i) {
    wire::Piece& piece = *requests.add_requests()->mutable_piece();
    piece.set_blob(7);
    piece.set_data(std::string(kElements, 'x'));
  }
  wire::BufferFromHost& pieces = *add(13).mutable_buffer_from_host();
  pieces.set_buffer(20);
  pieces.set_blob(7);
  ToMessage(hlo::Shape(hlo::ElementType::kF32, {kElements}), pieces.mutable_shape());
  pieces.mutable_place()->set_device(0);
  add(14).mutable_read()->set_buffer(20);
  wire::BufferFromHost& shared = *add(15).mutable_buffer_from_host();
  shared = pieces;
  shared.set_buffer(21);
  wire::Region& region = *shared.mutable_region();
  region.set_segment(1);
  region.set_offset(Segment::kHeader);
  region.set_bytes(kElements * 4);
  wire::Copy& copy = *add(16).mutable_copy();
  copy.set_source(20);
  copy.set_target(22);
  copy.mutable_place()->set_device(0);
  wire::Read& located = *add(17).mutable_read();
  located.set_buffer(22);
  located.set_locate(true);
  wire::Execute& execute = *add(18).mutable_execute();
  execute = requests.requests(2).execute();
  execute.set_first_result(30);
  execute.add_wanted(0);
  execute.add_wanted(1);
  add(19).mutable_describe()->set_executable(2);
  add(20).mutable_memory_stats()->set_device(0);
  add(21).mutable_read()->set_buffer(77);  // there is none
  add(22).mutable_is_deleted()->set_buffer(20);
  wire::Free& free = *requests.add_requests()->mutable_free();
  for (uint64_t number : {20, 21, 22, 30, 31}) free.add_buffers(number);
  add(23).mutable_read()->set_buffer(1);
  return requests;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
}

// Until the last reply, or the session's end. False if neither comes.
bool RunAll() {
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stub = wire::RuntimeServer::NewStub(TestChannel(TestAddress()));
  const auto stream = stub->Session(&context);
  static const wire::Packet packet = PacketOf(AllRequests());
  stream->Write(packet);
  wire::Replies replies;
  bool done = false;
  while (!done && stream->Read(&replies)) {
    for (const wire::Reply& reply : replies.replies()) done = done || reply.reply() == 23;
  }
  stream->WritesDone();
  while (stream->Read(&replies)) {
  }
  return stream->Finish().error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

// The same by a whole client's means: through rings. The replies, or how the stream ended.
bool RunInMemory() {
  grpc::ClientContext context;
  SetDeadline(context);
  const auto stub = wire::RuntimeServer::NewStub(TestChannel(TestAddress()));
  const auto stream = stub->Session(&context);
  wire::Requests requests;
  *requests.add_requests() = WithReply(1);
  requests.mutable_requests(0)->mutable_create_segment()->set_segment(50);
  requests.mutable_requests(0)->mutable_create_segment()->set_bytes(Rings::kBytes);
  stream->Write(PacketOf(requests));
  wire::Replies replies;
  std::shared_ptr<Segment> segment;
  if (stream->Read(&replies) && !replies.replies(0).has_error()) {
    const wire::Segment& answer = replies.replies(0).segment();
    segment = Segment::Open(answer.process(), answer.descriptor(), answer.nonce());
  }
  bool in_memory = false;
  if (segment != nullptr) {
    requests.mutable_requests(0)->Clear();
    *requests.mutable_requests(0) = WithReply(2);
    wire::Region& region = *requests.mutable_requests(0)->mutable_use_rings()->mutable_region();
    region.set_segment(50);
    region.set_offset(Segment::kHeader);
    region.set_bytes(Rings::kBytes);
    stream->Write(PacketOf(requests));
    in_memory = stream->Read(&replies) && !replies.replies(0).has_error();
  }
  if (in_memory) {
    Rings rings(std::shared_ptr<char>(segment, segment->data() + Segment::kHeader));
    rings.requests.Write(AllRequests().SerializeAsString());
    // The stream says when the session has ended.
    std::atomic<bool> served{false};
    std::thread reader([&] {
      spared = true;
      std::string message;
      while (!served && rings.replies.Read(&message, Ring::kCapacity)) {
        wire::Replies batch;
        if (!batch.ParseFromString(message)) break;
        for (const wire::Reply& reply : batch.replies()) served = served || reply.reply() == 23;
      }
      if (served) context.TryCancel();
    });
    while (stream->Read(&replies)) {
    }
    rings.Close();
    reader.join();
  }
  stream->WritesDone();
  while (stream->Read(&replies)) {
  }
  return stream->Finish().error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

// Runs it with each failure in turn, until all has gone well without one. How many there were.
template <typename Run>
int FailEach(What what, const Run& run) {
  for (int count = 0;; ++count) {
    const Failure failure(what, count);
    try {
      EXPECT_TRUE(run()) << "with failure " << count;
    } catch (const hlo::Error&) {  // it was not let in
    }
    // The session's threads end a little later.
    for (int i = 0; i < 2000 && TestServer().num_sessions() > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(TestServer().num_sessions(), 0) << "with failure " << count;
    if (!failure.has_come() || testing::Test::HasFailure()) return count;
  }
}

class Failures : public testing::Test {
 protected:
  Failures() {
    spared = true;
    EXPECT_TRUE(RunAll());  // what is made once is there
    EXPECT_TRUE(RunInMemory());
  }
};

TEST_F(Failures, AllocationsOfASession) {
  EXPECT_GT(FailEach(What::kAllocations, RunAll), 100);
  EXPECT_TRUE(RunAll());
}

TEST_F(Failures, AllocationsOfASessionInSharedMemory) {
  EXPECT_GT(FailEach(What::kAllocations, RunInMemory), 100);
  EXPECT_TRUE(RunInMemory());
}

TEST_F(Failures, ThreadsOfASession) {
  EXPECT_EQ(FailEach(What::kThreads, RunAll), 1);
  EXPECT_EQ(FailEach(What::kThreads, RunInMemory), 2);
  EXPECT_TRUE(RunInMemory());
}

// Of a server that starts: it says so, and leaves nothing.
TEST_F(Failures, Starting) {
  const ServerOptions options = TestOptions();
  for (const What what : {What::kAllocations, What::kThreads}) {
    int failures = 0;
    for (int count = 0;; ++count) {
      const Failure failure(what, count);
      spared = false;
      try {
        const Server server(options);
      } catch (const std::exception&) {
        ++failures;
      }
      spared = true;
      if (!failure.has_come()) break;
    }
    EXPECT_GT(failures, 0);
  }
  EXPECT_TRUE(RunAll());
}

// Whether the request fails or is answered.
bool Ends(Connection& connection) try {
  auto answered = std::make_shared<std::promise<void>>();
  std::future<void> answer = answered->get_future();
  wire::Request request;
  request.mutable_memory_stats()->set_device(0);
  connection.Call(std::move(request), {[answered](wire::Reply&) { answered->set_value(); }});
  return answer.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
} catch (const std::exception&) {
  return true;
}

TEST_F(Failures, AllocationsOfAClientThatAsks) {
  Endpoint endpoint;
  endpoint.address = TestAddress();
  endpoint.token = kToken;
  for (int count = 0;; ++count) {
    Connection connection(endpoint);
    const Failure failure(What::kClientAllocations, count);
    is_client = true;
    spared = false;
    EXPECT_TRUE(Ends(connection)) << "with failure " << count;
    for (uint64_t number = 1; number <= 300; ++number) connection.FreeBuffer(number, 1);
    is_client = false;
    spared = true;
    EXPECT_TRUE(Ends(connection)) << "after failure " << count;
    if (failure.has_come() && !HasFailure()) continue;
    EXPECT_GT(count, 10);
    break;
  }
}

void UseRings(Connection& connection, uint64_t segment) {
  wire::Request request;
  request.mutable_create_segment()->set_segment(segment);
  request.mutable_create_segment()->set_bytes(Segment::kHeader + Rings::kBytes);
  const wire::Segment answer = connection.Ask(std::move(request)).segment();
  const auto memory = Segment::Open(answer.process(), answer.descriptor(), answer.nonce());
  wire::Region region;
  region.set_segment(segment);
  region.set_offset(Segment::kHeader);
  region.set_bytes(Rings::kBytes);
  connection.UseRings(region, std::shared_ptr<char>(memory, memory->data() + Segment::kHeader));
}

// What a connection's own threads allocate, and what handlers do there: the session may end, and
// whoever waits for a reply is told.
class FailuresOfAConnection : public Failures, public testing::WithParamInterface<bool> {};

TEST_P(FailuresOfAConnection, Allocations) {
  Endpoint endpoint;
  endpoint.address = TestAddress();
  endpoint.token = kToken;
  for (int count = 0;; ++count) {
    Connection connection(endpoint);
    if (GetParam()) UseRings(connection, connection.NewNumbers());
    const Failure failure(What::kConnectionAllocations, count);
    auto texts = std::make_shared<std::vector<std::string>>();
    const auto keep = [texts](wire::Reply& reply) {
      if (!reply.has_error()) texts->push_back(std::string(100, 'x') + reply.DebugString());
    };
    try {
      for (int i = 0; i < 5; ++i) {
        wire::Request request;
        request.mutable_memory_stats()->set_device(0);
        connection.Call(std::move(request), {keep});
        EXPECT_TRUE(Ends(connection)) << "with failure " << count;
      }
      wire::Request wrong;
      wrong.mutable_read()->set_buffer(77);
      EXPECT_THROW(connection.Ask(std::move(wrong)), hlo::Error) << "with failure " << count;
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kUnavailable) << error.what();
    }
    if (failure.has_come() && !HasFailure()) continue;
    EXPECT_GT(count, 20);
    break;
  }
  EXPECT_TRUE(RunAll());
}

INSTANTIATE_TEST_SUITE_P(Ways, FailuresOfAConnection, testing::Bool(),
                         [](const auto& info) { return info.param ? "Rings" : "Stream"; });

}  // namespace
}  // namespace remote

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  FindServerCode();
  return RUN_ALL_TESTS();
}
