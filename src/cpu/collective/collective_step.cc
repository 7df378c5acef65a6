#include "cpu/collective/collective_step.h"

#include "hlo/error.h"

namespace cpu {

void CollectiveStep::Run(const RunState& state) const {
  Communicator* communicator = state.options.communicator;
  if (communicator == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     collective_.ToString() + " needs other processes, but this one runs alone");
  }
  std::vector<const void*> operands;
  std::vector<void*> results;
  for (int32_t number : operands_) operands.push_back(state.buffers[number]);
  for (int32_t number : results_) results.push_back(state.buffers[number]);
  if (number_ < 0) {
    communicator->Run(collective_, operands.data(), results.data());
  } else {
    state.started->Start(number_,
                         communicator->Start(collective_, operands.data(), results.data()));
  }
}

std::string CollectiveStep::ToString() const {
  const std::string start = number_ < 0 ? "" : "start " + std::to_string(number_) + ": ";
  return BufferNames(results_) + " = " + start + collective_.ToString() + " (" +
         BufferNames(operands_) + ")";
}

}  // namespace cpu
