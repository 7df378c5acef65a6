// The memory that the caller of an execution lends for its results.
#pragma once

#include <memory>
#include <optional>

#include "pjrt/c_api.h"
#include "pjrt/plugin/buffer.h"

namespace pjrt::plugin {

// For one device's results.
class ResultMemory {
 public:
  // `device`: its place among those of the execution.
  ResultMemory(const PJRT_ExecuteOptions& options, size_t device);

  // Contents undefined. Null if the caller lends none.
  std::shared_ptr<Allocation> Take(size_t bytes) const;
  // Tells the caller where a result will be.
  void Tell(size_t result, const Allocation& allocation) const;

 private:
  std::optional<PJRT_ResultMemory_Extension> lender_;
  size_t device_;
};

}  // namespace pjrt::plugin
