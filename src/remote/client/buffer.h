// A buffer of the server's, as the client holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/boundary/buffer_description.h"
#include "pjrt/boundary/event.h"
#include "remote/client/client.h"

namespace remote {

struct Program;

// Contents of an execution's small results, by their places; there once it is done.
using SmallResults = std::map<uint32_t, std::string>;

}  // namespace remote

// Thread-safe.
struct PJRT_Buffer : pjrt::plugin::BufferDescription {
  // Takes the number over. `ready` is set when the contents are there.
  PJRT_Buffer(PJRT_Device& device, PJRT_Memory* memory, hlo::Shape shape, uint64_t number,
              pjrt::plugin::CompletionPtr ready);
  ~PJRT_Buffer();

  // The number, for a request. Throws if deleted.
  uint64_t Get() const;
  void Delete();
  // An execution has consumed it, or may have: then the server knows.
  void Donate(bool certain);
  // Asks the server if an execution may have consumed it.
  bool IsDeleted();
  // Its contents cannot have changed hands.
  bool is_certain() const { return !may_be_donated_; }

  const std::shared_ptr<PJRT_Client> client;
  PJRT_Device& device;
  PJRT_Memory* const memory;
  const pjrt::plugin::CompletionPtr ready;

  // Of an execution's result: which one it is, of what, and, if it was wanted, where its contents
  // come with the news of the execution's end.
  std::weak_ptr<const remote::Program> program;
  uint32_t place = 0;
  std::shared_ptr<const remote::SmallResults> small_results;

 private:
  const uint64_t number_;
  mutable std::mutex mutex_;
  bool deleted_ = false;
  std::atomic<bool> may_be_donated_{false};
};
