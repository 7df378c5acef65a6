// Programs that the server has compiled, as the client holds them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/boundary/program_description.h"
#include "remote/client/client.h"

namespace remote {

// Shared by the handles of both kinds. Freed on the server with the last one.
struct ServedProgram : pjrt::boundary::ProgramDescription {
  ServedProgram(std::shared_ptr<PJRT_Client> client, uint64_t number, wire::Executable message);
  ~ServedProgram();
  ServedProgram(const ServedProgram&) = delete;

  // A result has been read, and its like will probably be after the next execution. Those that
  // were, at most kMostSmallResults. Thread-safe.
  void Want(uint32_t place) const;
  std::vector<uint32_t> wanted() const;

  const std::shared_ptr<PJRT_Client> client;
  const uint64_t number;
  const wire::Executable message;
  std::vector<hlo::Shape> results;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<uint32_t> wanted_;
};

}  // namespace remote

struct PJRT_Executable {
  std::shared_ptr<const remote::ServedProgram> program;
  pjrt::NamedValues costs;  // once asked for
  std::vector<PJRT_NamedValue> cost_handles;
};

struct PJRT_LoadedExecutable : pjrt::boundary::ProgramDevices {
  explicit PJRT_LoadedExecutable(std::shared_ptr<const remote::ServedProgram> program);
  // Throws if deleted.
  const remote::ServedProgram& Get() const;

  std::shared_ptr<const remote::ServedProgram> program;
  std::atomic<bool> deleted{false};
};
