#include "remote/server/session.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <new>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "hlo/module.h"
#include "hlo/text_reader.h"
#include "pjrt/client/call.h"
#include "pjrt/client/wait.h"
#include "remote/ring.h"
#include "remote/server/read.h"

namespace remote {
namespace {

// What ends the session.
class Dishonest : public hlo::Error {
 public:
  using hlo::Error::Error;
};

Dishonest TooMany(size_t most, const char* what) {
  return Dishonest(hlo::ErrorCode::kResourceExhausted,
                   "a session holds at most " + std::to_string(most) + " " + what);
}

// The results that a client wants with an execution's end. They are asked for at its
// start, as later requests may consume them.
class SmallResults {
 public:
  SmallResults() = default;
  SmallResults(const SmallResults&) = delete;
  // The plugin writes into the contents until they are there.
  ~SmallResults() {
    for (const Result& result : results_) pjrt::Wait(result.there);
  }

  void Add(size_t place, const pjrt::Buffer& buffer) {
    const int64_t bytes = buffer.shape().byte_size();
    if (bytes > kMostSmallResultBytes || results_.size() == kMostSmallResults) return;
    Result& result = results_.emplace_back();
    result.place = static_cast<uint32_t>(place);
    result.contents.resize(bytes);
    result.there = buffer.ToHostAsync(result.contents.data(), bytes);
  }

  void MoveTo(wire::Results* message) {
    for (Result& result : results_) {
      if (!result.there.IsReady() || result.there.error()) continue;
      message->add_places(result.place);
      message->add_contents(std::move(result.contents));
    }
  }

 private:
  struct Result {
    uint32_t place;
    std::string contents;
    pjrt::Event there;
  };
  std::deque<Result> results_;  // stay where they are
};

// So that a client knows at once which of its buffers are gone. Nothing for programs that are not
// StableHLO as this project reads it.
std::optional<wire::Donations> DonationsOf(const std::string& code) {
  try {
    const std::unique_ptr<hlo::Module> module = hlo::ReadStablehlo(std::as_bytes(std::span(code)));
    wire::Donations donations;
    donations.set_parameters(module->entry()->parameters().size());
    std::set<int64_t> consumed(module->buffer_donors.begin(), module->buffer_donors.end());
    for (const hlo::InputOutputAlias& alias : module->input_output_aliases) {
      consumed.insert(alias.parameter);
    }
    for (int64_t parameter : consumed) donations.add_consumed(static_cast<uint32_t>(parameter));
    return donations;
  } catch (const hlo::Error&) {
    return {};
  }
}

}  // namespace

void Session::Handle(wire::Requests requests) {
  for (wire::Request& request : *requests.mutable_requests()) {
    try {
      Do(request);
    } catch (const Dishonest&) {
      throw;
    } catch (const hlo::Error& error) {
      Fail(request, error);
    } catch (const std::bad_alloc&) {
      throw;  // how far it came is not known
    } catch (const std::system_error&) {
      throw;
    } catch (const std::exception& error) {
      Fail(request, hlo::Error(hlo::ErrorCode::kInternal, error.what()));
    }
    outbox_->SendIfFull();
  }
}

void Session::Do(wire::Request& request) {
  const uint64_t reply = request.reply();
  switch (request.call_case()) {
    case wire::Request::kPiece:
      return AddPiece(*request.mutable_piece());
    case wire::Request::kCreateSegment:
      return CreateSegment(reply, request.create_segment());
    case wire::Request::kReleaseSegment:
      return shared_->Release(request.release_segment().segment());
    case wire::Request::kBufferFromHost:
      return BufferFromHost(reply, *request.mutable_buffer_from_host());
    case wire::Request::kCopy:
      return Copy(reply, request.copy());
    case wire::Request::kFree:
      return Free(request.free());
    case wire::Request::kRead:
      return Read(reply, request.read());
    case wire::Request::kIsDeleted:
      return Answer(reply, [&](wire::Reply& answer) {
        answer.mutable_numbers()->add_numbers(BufferOf(request.is_deleted().buffer())->IsDeleted());
      });
    case wire::Request::kCompile:
      return Compile(reply, *request.mutable_compile());
    case wire::Request::kDescribe:
      return Describe(reply, request.describe());
    case wire::Request::kExecute:
      return Execute(reply, request.execute());
    case wire::Request::kMemoryStats:
      return MemoryStats(reply, request.memory_stats());
    case wire::Request::kDeviceAssignment:
      return DeviceAssignment(reply, request.device_assignment());
    case wire::Request::kProfile:
      return Profile(reply, request.profile());
    case wire::Request::kUseRings:
      return UseRings(reply, request.use_rings());
    case wire::Request::CALL_NOT_SET:
      throw Dishonest("a request asks for nothing that this server knows");
  }
}

// What the request should have made becomes the error.
void Session::Fail(const wire::Request& request, const hlo::Error& error) {
  const auto shared = std::make_shared<const hlo::Error>(error);
  if (request.has_buffer_from_host()) {
    AddBuffer(request.buffer_from_host().buffer(), {nullptr, shared});
  } else if (request.has_copy()) {
    AddBuffer(request.copy().target(), {nullptr, shared});
  }
  if (request.reply() != 0) Report(request.reply(), &error);
}

void Session::AddPiece(wire::Piece& call) {
  if (blob_bytes_ + call.data().size() > kMostBlobBytes) {
    throw Dishonest(hlo::ErrorCode::kResourceExhausted,
                    "more than " + std::to_string(kMostBlobBytes) +
                        " bytes came in pieces that no request has used");
  }
  if (blobs_.size() >= kMostBlobs && !blobs_.contains(call.blob())) {
    throw TooMany(kMostBlobs, "blobs that no request has used");
  }
  std::string& blob = blobs_[call.blob()];
  blob_bytes_ += call.data().size();
  if (blob.empty()) {
    blob = std::move(*call.mutable_data());
  } else {
    blob += call.data();
  }
}

std::string Session::TakeBlob(uint64_t number) {
  auto found = blobs_.find(number);
  if (found == blobs_.end()) throw hlo::Error("there is no blob " + std::to_string(number));
  std::string blob = std::move(found->second);
  blob_bytes_ -= blob.size();
  blobs_.erase(found);
  return blob;
}

void Session::CreateSegment(uint64_t reply, const wire::CreateSegment& call) {
  if (shared_->Has(call.segment())) throw Dishonest("a segment's number was used twice");
  if (call.for_results() && !runtime_.takes_result_memory) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the server's plugin puts results where it likes");
  }
  const std::shared_ptr<Segment> segment = call.for_results()
                                               ? shared_->AddResults(call.segment())
                                               : shared_->Add(call.segment(), call.bytes());
  Answer(reply, [&](wire::Reply& answer) {
    answer.mutable_segment()->set_process(getpid());
    answer.mutable_segment()->set_descriptor(segment->descriptor());
    answer.mutable_segment()->set_nonce(segment->nonce());
  });
}

std::unique_ptr<pjrt::Buffer> Session::NewBuffer(const void* data, const hlo::Shape& shape,
                                                 const wire::Place& place,
                                                 const pjrt::HostBufferOptions& options) {
  if (place.has_memory()) {
    return runtime_.client->BufferFromHost(data, shape, runtime_.memory(place.memory()), options);
  }
  return runtime_.client->BufferFromHost(data, shape, runtime_.device(place.device()), options);
}

void Session::BufferFromHost(uint64_t reply, wire::BufferFromHost& call) {
  const hlo::Shape shape = FromMessage(call.shape());
  const auto bytes = static_cast<size_t>(shape.byte_size());
  Array array;
  if (call.has_region()) {
    pjrt::HostBufferOptions options;
    // Whether the plugin copies at once or reads the shared memory in place is its own affair.
    options.semantics = pjrt::HostBufferSemantics::kImmutableZeroCopy;
    std::shared_ptr<char> memory = shared_->At(call.region(), bytes);
    options.done = [memory, outbox = outbox_, reply] { outbox->Answer(reply, [](auto&) {}); };
    array.buffer = NewBuffer(memory.get(), shape, call.place(), options);
  } else {
    const std::string blob = call.has_blob() ? TakeBlob(call.blob()) : std::string();
    const std::string& data = call.has_blob() ? blob : call.data();
    if (data.size() != bytes) {
      throw hlo::Error(std::to_string(data.size()) + " bytes came for " + shape.ToString());
    }
    array.buffer = NewBuffer(data.data(), shape, call.place(), {});
    if (reply != 0) Report(reply);
  }
  AddBuffer(call.buffer(), std::move(array));
}

void Session::AddBuffer(uint64_t number, Array array) {
  if (buffers_.size() >= kMostBuffers) throw TooMany(kMostBuffers, "buffers");
  if (!buffers_.emplace(number, std::move(array)).second) {
    throw Dishonest("a buffer's number was used twice");
  }
}

const std::shared_ptr<pjrt::Buffer>& Session::BufferOf(uint64_t number) const {
  auto found = buffers_.find(number);
  if (found == buffers_.end()) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "this session has no buffer " + std::to_string(number));
  }
  if (found->second.error != nullptr) throw *found->second.error;
  return found->second.buffer;
}

const Session::LoadedProgram& Session::ProgramOf(uint64_t number) const {
  auto found = programs_.find(number);
  if (found == programs_.end()) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "this session has no executable " + std::to_string(number));
  }
  if (found->second.error != nullptr) throw *found->second.error;
  return found->second;
}

void Session::Copy(uint64_t reply, const wire::Copy& call) {
  const pjrt::Buffer& source = *BufferOf(call.source());
  Array array;
  if (call.place().has_memory()) {
    array.buffer = source.CopyToMemory(runtime_.memory(call.place().memory()));
  } else {
    array.buffer = source.CopyToDevice(runtime_.device(call.place().device()));
  }
  array.buffer->ReadyEvent().OnReady(
      [outbox = outbox_, reply, underway = Begin()](const hlo::Error* error) {
        outbox->Answer(reply, [error](wire::Reply& answer) {
          if (error != nullptr) ToMessage(*error, answer.mutable_error());
        });
      });
  AddBuffer(call.target(), std::move(array));
}

std::shared_ptr<void> Session::Begin(size_t bytes) {
  // The client may wait for what is said already.
  return underway_->Begin(bytes, [this] { outbox_->Send(); });
}

void Session::Free(const wire::Free& call) {
  for (uint64_t number : call.buffers()) buffers_.erase(number);
  for (uint64_t number : call.executables()) programs_.erase(number);
  for (uint64_t number : call.reads()) located_.erase(number);
}

void Session::Read(uint64_t reply, const wire::Read& call) {
  const std::shared_ptr<pjrt::Buffer>& buffer = BufferOf(call.buffer());
  ReadRequest request;
  request.buffer = buffer;
  request.outbox = outbox_;
  request.reply = reply;
  const auto all = static_cast<uint64_t>(buffer->shape().byte_size());
  request.raw = call.raw();
  request.offset = call.raw() ? call.offset() : 0;
  request.bytes = call.raw() ? call.bytes() : all;
  const uint64_t most = call.raw() ? buffer->on_device_size_in_bytes() : all;
  if (request.offset > most || request.bytes > most - request.offset) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     std::to_string(request.bytes) + " bytes at " + std::to_string(request.offset) +
                         " are not within the buffer's " + std::to_string(most));
  }
  if (call.has_region()) request.shared = shared_->At(call.region(), request.bytes);
  request.underway = Begin(call.has_region() ? 0 : request.bytes);
  if (!call.locate() || call.raw() || shared_->results() == nullptr) {
    return StartRead(std::move(request));
  }
  // A copy shares the memory, and later executions do not consume it.
  request.buffer = buffer->CopyToDevice(buffer->device());
  if (located_.size() >= kMostReads) throw TooMany(kMostReads, "located reads");
  if (!located_.emplace(reply, request.buffer).second) {
    throw Dishonest("a read's number was used twice");
  }
  StartLocatedRead(std::move(request), shared_);
}

void Session::Compile(uint64_t reply, wire::Compile& call) {
  if (programs_.size() >= kMostExecutables) throw TooMany(kMostExecutables, "executables");
  if (programs_.contains(call.executable())) {
    throw Dishonest("an executable's number was used twice");
  }
  const std::string blob = call.has_blob() ? TakeBlob(call.blob()) : std::string();
  const std::string& code = call.has_blob() ? blob : call.code();
  LoadedProgram& program = programs_[call.executable()];
  try {
    CompileInto(program, code, call);
    Answer(reply, [&](wire::Reply& answer) {
      DescribeExecutable(runtime_, *program.executable, answer.mutable_executable());
      if (program.donations) *answer.mutable_executable()->mutable_donations() = *program.donations;
    });
  } catch (const hlo::Error& error) {
    program.executable = nullptr;
    program.error = std::make_shared<const hlo::Error>(error);
    throw;
  }
}

void Session::CompileInto(LoadedProgram& program, const std::string& code,
                          const wire::Compile& call) {
  if (!call.format().empty()) {
    program.executable = runtime_.client->CompileWith(code, call.format(), call.options());
    program.donations = DonationsOf(code);
    return;
  }
  bool is_one = false;
  const auto serialized = Make<wire::SerializedExecutable>(
      [&](auto& message) { is_one = message.ParseFromString(code); });
  if (!is_one) throw hlo::Error("the bytes are no serialized executable of a runtime server");
  program.executable =
      runtime_.client->DeserializeAndLoad(serialized->executable(), call.options());
  if (serialized->has_donations()) program.donations = serialized->donations();
}

void Session::ReplyText(uint64_t reply, const std::string& text, const std::string& format) {
  size_t offset = 0;
  do {
    const size_t bytes = std::min(kMostPieceBytes, text.size() - offset);
    Answer(reply, [&](wire::Reply& answer) {
      answer.mutable_contents()->set_offset(offset);
      answer.mutable_contents()->set_bytes(bytes);
      answer.mutable_contents()->set_data(text.data() + offset, bytes);
      answer.mutable_contents()->set_format(format);
      answer.set_more(offset + bytes < text.size());
    });
    offset += bytes;
  } while (offset < text.size());
}

void Session::Describe(uint64_t reply, const wire::Describe& call) {
  const LoadedProgram& program = ProgramOf(call.executable());
  const pjrt::Executable& executable = program.executable->executable();
  if (call.what() == wire::Describe::SERIALIZED) {
    const auto serialized = Make<wire::SerializedExecutable>([&](auto& message) {
      message.set_executable(executable.Serialize());
      if (program.donations) *message.mutable_donations() = *program.donations;
    });
    ReplyText(reply, serialized->SerializeAsString());
  } else if (call.what() == wire::Describe::OPTIMIZED_PROGRAM) {
    const pjrt::OptimizedProgram optimized = executable.optimized_program();
    ReplyText(reply, optimized.code, optimized.format);
  } else {
    Answer(reply, [&](wire::Reply& answer) {
      ToMessage(executable.cost_analysis(), answer.mutable_values()->mutable_values());
    });
  }
}

std::vector<std::vector<const pjrt::Buffer*>> Session::ArgumentsOf(
    const wire::Execute& call) const {
  const size_t num_devices = call.num_devices();
  const size_t most = call.has_device() ? 1 : runtime_.client->addressable_devices().size();
  if (num_devices == 0 || num_devices > most || call.arguments_size() % num_devices != 0) {
    throw hlo::Error(std::to_string(call.arguments_size()) + " arguments are given for " +
                     std::to_string(num_devices) + " devices; the server has " +
                     std::to_string(most));
  }
  const size_t num_arguments = call.arguments_size() / num_devices;
  std::vector<std::vector<const pjrt::Buffer*>> arguments(num_devices);
  for (size_t i = 0; i < static_cast<size_t>(call.arguments_size()); ++i) {
    arguments[i / num_arguments].push_back(BufferOf(call.arguments(i)).get());
  }
  for (int64_t index : call.non_donatable()) {
    if (index >= static_cast<int64_t>(num_arguments)) {
      throw hlo::Error("non-donatable input " + std::to_string(index) + " is not below " +
                       std::to_string(num_arguments));
    }
  }
  return arguments;
}

void Session::Execute(uint64_t reply, const wire::Execute& call) {
  std::vector<pjrt::ExecuteResult> results;
  size_t num_results = 0;
  std::shared_ptr<PlacedResults> placed;
  const std::shared_ptr<void> underway = Begin();
  try {
    const pjrt::LoadedExecutable& executable = *ProgramOf(call.executable()).executable;
    num_results = executable.output_shapes().size();
    const auto arguments = ArgumentsOf(call);
    pjrt::ExecuteOptions options;
    options.launch_id = call.launch();
    const std::vector<int64_t> keep(call.non_donatable().begin(), call.non_donatable().end());
    options.non_donatable_inputs = keep;
    if (call.has_device()) options.device = &runtime_.device(call.device());
    PJRT_ResultMemory_Extension extension;
    if (shared_->results() != nullptr) {
      placed = std::make_shared<PlacedResults>(shared_->results(), arguments.size());
      extension = placed->Extension();
      options.result_memory = &extension;
    }
    results = executable.ExecuteSharded(arguments, options);
  } catch (const hlo::Error& error) {
    return FailExecution(reply, call, num_results, error);
  }
  try {
    for (size_t d = 0; d < results.size(); ++d) {
      AnswerExecution(reply, call, d, results[d], {placed, underway});
    }
  } catch (...) {  // the execution uses what is here
    for (const pjrt::ExecuteResult& result : results) pjrt::Wait(result.done);
    throw;
  }
}

void Session::FailExecution(uint64_t reply, const wire::Execute& call, size_t num_results,
                            const hlo::Error& error) {
  const size_t num_devices = call.num_devices();
  if (num_devices > runtime_.client->devices().size()) throw Dishonest(error.what());
  const auto failure = std::make_shared<const hlo::Error>(error);
  for (size_t d = 0; d < num_devices; ++d) {
    Report(reply + d, failure.get());
    for (size_t i = 0; i < num_results; ++i) {
      AddBuffer(call.first_result() + d * num_results + i, {nullptr, failure});
    }
  }
}

void Session::AnswerExecution(uint64_t reply, const wire::Execute& call, size_t device,
                              pjrt::ExecuteResult& result, Running running) {
  const size_t num_results = result.outputs.size();
  auto small = std::make_shared<SmallResults>();
  for (size_t i = 0; i < num_results; ++i) {
    const auto& wanted = call.wanted();
    if (runtime_.description.host_memory() &&
        std::find(wanted.begin(), wanted.end(), i) != wanted.end()) {
      small->Add(i, *result.outputs[i]);
    }
    AddBuffer(call.first_result() + device * num_results + i,
              {std::move(result.outputs[i]), nullptr});
  }
  result.done.OnReady([outbox = outbox_, device, number = reply + device, small,
                       running = std::move(running)](const hlo::Error* error) {
    outbox->Answer(number, [&](wire::Reply& answer) {
      if (error != nullptr) return ToMessage(*error, answer.mutable_error());
      if (running.placed != nullptr) running.placed->MoveTo(device, answer.mutable_results());
      small->MoveTo(answer.mutable_results());
    });
  });
}

void Session::MemoryStats(uint64_t reply, const wire::MemoryStats& call) {
  pjrt::Arguments<PJRT_Device_MemoryStats_Args> args;
  args->device = runtime_.device(call.device()).handle();
  PJRT_INVOKE(runtime_.client->plugin(), Device_MemoryStats, args);
  std::vector<int64_t> numbers;
  auto add = [&](int64_t value, bool is_set) {
    numbers.push_back(value);
    numbers.push_back(is_set);
  };
  add(args->bytes_in_use, true);
  add(args->peak_bytes_in_use, args->peak_bytes_in_use_is_set);
  add(args->num_allocs, args->num_allocs_is_set);
  add(args->largest_alloc_size, args->largest_alloc_size_is_set);
  add(args->bytes_limit, args->bytes_limit_is_set);
  add(args->bytes_reserved, args->bytes_reserved_is_set);
  add(args->peak_bytes_reserved, args->peak_bytes_reserved_is_set);
  add(args->bytes_reservable_limit, args->bytes_reservable_limit_is_set);
  add(args->largest_free_block_bytes, args->largest_free_block_bytes_is_set);
  add(args->pool_bytes, args->pool_bytes_is_set);
  add(args->peak_pool_bytes, args->peak_pool_bytes_is_set);
  Answer(reply, [&](wire::Reply& answer) {
    answer.mutable_numbers()->mutable_numbers()->Assign(numbers.begin(), numbers.end());
  });
}

void Session::DeviceAssignment(uint64_t reply, const wire::DeviceAssignment& call) {
  const size_t most = runtime_.client->devices().size();
  if (call.replicas() == 0 || call.partitions() == 0 || call.replicas() > most ||
      call.partitions() > most / call.replicas()) {
    throw hlo::Error(std::to_string(call.replicas()) + " replicas of " +
                     std::to_string(call.partitions()) + " partitions cannot run on " +
                     std::to_string(most) + " devices");
  }
  const std::vector<int64_t> ids = runtime_.client->DefaultDeviceAssignment(
      static_cast<int>(call.replicas()), static_cast<int>(call.partitions()));
  Answer(reply, [&](wire::Reply& answer) {
    answer.mutable_numbers()->mutable_numbers()->Assign(ids.begin(), ids.end());
  });
}

// Made by the first START.
pjrt::Profiler& Session::ProfilerOf(const wire::Profile& call) {
  auto found = profilers_.find(call.profiler());
  if (found != profilers_.end()) return *found->second;
  if (call.what() != wire::Profile::START) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "this session has no profiler " + std::to_string(call.profiler()));
  }
  if (profilers_.size() >= kMostProfilers) {
    throw hlo::Error(
        hlo::ErrorCode::kResourceExhausted,
        "a session has at most " + std::to_string(kMostProfilers) + " profilers at a time");
  }
  auto profiler = std::make_unique<pjrt::Profiler>(runtime_.client->plugin());
  return *profilers_.emplace(call.profiler(), std::move(profiler)).first->second;
}

void Session::Profile(uint64_t reply, const wire::Profile& call) {
  if (call.what() == wire::Profile::FREE) {
    profilers_.erase(call.profiler());
    return;
  }
  pjrt::Profiler& profiler = ProfilerOf(call);
  if (call.what() == wire::Profile::COLLECT) return ReplyText(reply, profiler.Collect());
  if (call.what() == wire::Profile::STOP) {
    profiler.Stop();
  } else {
    profiler.Start();
  }
  Answer(reply, [](wire::Reply& answer) {
    answer.mutable_numbers()->add_numbers(NanosecondsSinceEpoch());
  });
}

void Session::UseRings(uint64_t reply, const wire::UseRings& call) {
  if (memory_of_rings_ != nullptr) throw Dishonest("a session has one pair of rings");
  std::shared_ptr<char> memory = shared_->At(call.region(), Rings::kBytes);
  if (call.region().offset() % Ring::kAlignment != 0) throw Dishonest("a ring begins at a page");
  Rings::Clear(memory.get());
  memory_of_rings_ = std::move(memory);
  Report(reply);
}

}  // namespace remote
