#include "lazy/capture.h"

#include "hlo/error.h"
#include "lazy/storage.h"

namespace lazy {
namespace {

thread_local CaptureScope* current = nullptr;

}  // namespace

CaptureScope::CaptureScope() : before_(current), first_storage_(Storage::next_id()) {
  current = this;
}

CaptureScope::~CaptureScope() { current = before_; }

CaptureScope* CaptureScope::Current() { return current; }

// A sync would compute it from placeholders, or not at all.
void CaptureScope::CheckWrite(const Storage& storage) const {
  if (storage.id() >= first_storage_) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "a captured graph writes to a tensor that is neither one of its arguments nor "
                   "made in it");
}

}  // namespace lazy
