// A buffer of the server's, as the client holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hlo/shape.h"
#include "pjrt/boundary/buffer_description.h"
#include "pjrt/boundary/event.h"
#include "remote/client/client.h"

namespace remote {

struct ServedProgram;

// What came with the end of an execution of its results on one device, by their places.
struct CompletedResults {
  std::map<uint32_t, std::string> contents;  // of small ones that were wanted
  std::map<uint32_t, size_t> offsets;        // of those in the memory for results
};

}  // namespace remote

// Thread-safe.
struct PJRT_Buffer : pjrt::boundary::BufferDescription {
  // Takes the number over. `ready` is set when the contents are there.
  PJRT_Buffer(PJRT_Device& device, PJRT_Memory* memory, hlo::Shape shape, uint64_t number,
              pjrt::boundary::CompletionPtr ready);
  ~PJRT_Buffer();

  // The number, for a request. Throws if deleted.
  uint64_t Get() const;
  void Delete();
  // Copies bytes that are there in shared memory, at once; false if they are not.
  bool CopyShared(void* target, size_t offset, size_t bytes) const;
  // An execution will consume it, or may: then the server knows.
  void MayBeDonated();
  // Asks the server if an execution may have consumed it.
  bool IsDeleted();
  // Its contents cannot have changed hands.
  bool is_certain() const { return !may_be_donated_; }

  const std::shared_ptr<PJRT_Client> client;
  PJRT_Device& device;
  PJRT_Memory* const memory;
  const pjrt::boundary::CompletionPtr ready;

  // Of an execution's result: which one it is, of what, whether its contents shall come with its
  // end, and these, there once it is ready.
  std::weak_ptr<const remote::ServedProgram> program;
  uint32_t place = 0;
  bool is_wanted = false;
  std::shared_ptr<const remote::CompletedResults> completed;

 private:
  const uint64_t number_;
  mutable std::mutex mutex_;
  bool deleted_ = false;
  std::atomic<bool> may_be_donated_{false};
};
