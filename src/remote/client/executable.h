// Programs that the server has compiled, as the client holds them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/boundary/layout.h"
#include "remote/client/client.h"

namespace remote {

// Shared by the handles of both kinds. Freed on the server with the last one.
struct Program {
  Program(std::shared_ptr<PJRT_Client> client, uint64_t number, wire::Executable message);
  ~Program();
  Program(const Program&) = delete;

  // A result has been read, and its like will probably be after the next execution. Those that
  // were, at most kMostSmallResults. Thread-safe.
  void Want(uint32_t place) const;
  std::vector<uint32_t> wanted() const;

  const std::shared_ptr<PJRT_Client> client;
  const uint64_t number;
  const wire::Executable message;
  std::vector<hlo::Shape> results;

  // As the C functions return them.
  std::vector<PJRT_Buffer_Type> result_types;
  std::vector<int64_t> result_dimensions;
  std::vector<size_t> result_ranks;
  std::vector<const char*> parameter_memory_kinds, result_memory_kinds;
  std::vector<size_t> parameter_memory_kind_sizes, result_memory_kind_sizes;
  std::vector<PJRT_Layouts_MemoryLayout> parameter_layouts, result_layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layout_handles, result_layout_handles;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<uint32_t> wanted_;
};

}  // namespace remote

struct PJRT_Executable {
  std::shared_ptr<const remote::Program> program;
  pjrt::NamedValues costs;  // once asked for
  std::vector<PJRT_NamedValue> cost_handles;
};

struct PJRT_LoadedExecutable {
  explicit PJRT_LoadedExecutable(std::shared_ptr<const remote::Program> program);
  // Throws if deleted.
  const remote::Program& Get() const;

  std::shared_ptr<const remote::Program> program;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_LogicalDeviceIds> logical_ids;
  std::atomic<bool> deleted{false};
};
