// What one client has on the server: its buffers, executables and shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pjrt/client/profiler.h"
#include "remote/messages.h"
#include "remote/server/outbox.h"
#include "remote/server/runtime.h"
#include "remote/server/shared_memory.h"
#include "remote/server/underway.h"

namespace remote {

// What a session may hold; docs/runtime_server.md names these.
inline constexpr size_t kMostBuffers = size_t{1} << 16;
inline constexpr size_t kMostExecutables = size_t{1} << 14;
inline constexpr size_t kMostReads = size_t{1} << 16;      // located, and not freed
inline constexpr size_t kMostBlobs = 4096;                 // in pieces that nothing used yet
inline constexpr size_t kMostBlobBytes = size_t{4} << 30;  // of all of them
inline constexpr size_t kMostProfilers = 8;

// All is freed with it; what still runs keeps what it needs. Used by one thread.
class Session {
 public:
  Session(const Runtime& runtime, std::shared_ptr<Outbox> outbox)
      : runtime_(runtime), outbox_(std::move(outbox)) {}
  Session(const Session&) = delete;

  // Does what a message asks for and puts the replies into the outbox. Waits while the client does
  // not read them, and while too much is under way. After an exception the session must end:
  // hlo::Error for a message that no honest client sends, std::bad_alloc and std::system_error.
  void Handle(wire::Requests requests);

  // Null until the client asks for them.
  const std::shared_ptr<char>& memory_of_rings() const { return memory_of_rings_; }

 private:
  // A buffer, or why there is none.
  struct Array {
    std::shared_ptr<pjrt::Buffer> buffer;
    std::shared_ptr<const hlo::Error> error;
  };
  struct LoadedProgram {
    std::shared_ptr<pjrt::LoadedExecutable> executable;
    std::optional<wire::Donations> donations;
    std::shared_ptr<const hlo::Error> error;
  };
  // What an execution uses until it ends.
  struct Running {
    std::shared_ptr<PlacedResults> placed;  // null if results lie in no shared memory
    std::shared_ptr<void> underway;
  };

  void Do(wire::Request& request);
  // Puts what `fill` makes of an empty reply of the number into the outbox. Throws what it throws.
  template <typename Fill>
  void Answer(uint64_t reply, const Fill& fill) {
    outbox_->Push(std::move(*Make<wire::Reply>([&](wire::Reply& answer) {
      answer.set_reply(reply);
      fill(answer);
    })));
  }
  // That it is done, or why it is not.
  void Report(uint64_t reply, const hlo::Error* error = nullptr) {
    Answer(reply, [error](wire::Reply& answer) {
      if (error != nullptr) ToMessage(*error, answer.mutable_error());
    });
  }
  void Fail(const wire::Request& request, const hlo::Error& error);

  void AddPiece(wire::Piece& call);
  void CreateSegment(uint64_t reply, const wire::CreateSegment& call);
  void BufferFromHost(uint64_t reply, wire::BufferFromHost& call);
  void Copy(uint64_t reply, const wire::Copy& call);
  void Free(const wire::Free& call);
  void Read(uint64_t reply, const wire::Read& call);
  void Compile(uint64_t reply, wire::Compile& call);
  void CompileInto(LoadedProgram& program, const std::string& code, const wire::Compile& call);
  void Describe(uint64_t reply, const wire::Describe& call);
  void Execute(uint64_t reply, const wire::Execute& call);
  // Of each device. Throws hlo::Error if their number does not fit, or one is not there.
  std::vector<std::vector<const pjrt::Buffer*>> ArgumentsOf(const wire::Execute& call) const;
  // Every device's reply and all results are the error.
  void FailExecution(uint64_t reply, const wire::Execute& call, size_t num_results,
                     const hlo::Error& error);
  // A device's results are buffers from now on; its reply follows when they are there.
  void AnswerExecution(uint64_t reply, const wire::Execute& call, size_t device,
                       pjrt::ExecuteResult& result, Running running);
  void MemoryStats(uint64_t reply, const wire::MemoryStats& call);
  void DeviceAssignment(uint64_t reply, const wire::DeviceAssignment& call);
  void Profile(uint64_t reply, const wire::Profile& call);
  void UseRings(uint64_t reply, const wire::UseRings& call);

  std::unique_ptr<pjrt::Buffer> NewBuffer(const void* data, const hlo::Shape& shape,
                                          const wire::Place& place,
                                          const pjrt::HostBufferOptions& options);
  // Throws the error that is in the buffer's place.
  const std::shared_ptr<pjrt::Buffer>& BufferOf(uint64_t number) const;
  const LoadedProgram& ProgramOf(uint64_t number) const;
  pjrt::Profiler& ProfilerOf(const wire::Profile& call);
  // Until it ends; waits while there is too much.
  std::shared_ptr<void> Begin(size_t bytes = 0);
  std::string TakeBlob(uint64_t number);
  void AddBuffer(uint64_t number, Array array);
  // Text in as many replies as it needs.
  void ReplyText(uint64_t reply, const std::string& text, const std::string& format = "");

  const Runtime& runtime_;
  std::shared_ptr<Outbox> outbox_;
  std::unordered_map<uint64_t, Array> buffers_;
  std::unordered_map<uint64_t, LoadedProgram> programs_;
  std::unordered_map<uint64_t, std::string> blobs_;
  std::unordered_map<uint64_t, std::shared_ptr<pjrt::Buffer>> located_;  // by their reads
  const std::shared_ptr<SharedMemory> shared_ = std::make_shared<SharedMemory>();
  std::unordered_map<uint64_t, std::unique_ptr<pjrt::Profiler>> profilers_;
  const std::shared_ptr<Underway> underway_ = std::make_shared<Underway>();
  std::shared_ptr<char> memory_of_rings_;
  size_t blob_bytes_ = 0;
};

}  // namespace remote
