#include "pjrt/plugin/result_memory.h"

namespace pjrt::plugin {

ResultMemory::ResultMemory(const PJRT_ExecuteOptions& options, size_t device) : device_(device) {
  for (const auto* e = options.extension_start; e != nullptr; e = e->next) {
    if (e->type == PJRT_Extension_Type_ResultMemory && e->struct_size >= sizeof *lender_) {
      lender_ = *reinterpret_cast<const PJRT_ResultMemory_Extension*>(e);
    }
  }
}

std::shared_ptr<Allocation> ResultMemory::Take(size_t bytes) const {
  if (!lender_) return nullptr;
  void* data = lender_->allocate(lender_->memory, bytes);
  if (data == nullptr) return nullptr;
  std::shared_ptr<void> lent(
      data, [lender = *lender_, bytes](void* data) { lender.release(lender.memory, data, bytes); });
  auto counted = std::make_shared<cpu::Reservation>(bytes);
  return std::make_shared<Allocation>(data, bytes, /*writable=*/true, [lent, counted] {});
}

void ResultMemory::Tell(size_t result, const Allocation& allocation) const {
  if (lender_) lender_->placed(lender_->execution, device_, result, allocation.data());
}

}  // namespace pjrt::plugin
