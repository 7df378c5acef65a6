#include "lazy/capture.h"

#include "hlo/error.h"
#include "lazy/storage.h"

namespace lazy {
namespace {

thread_local CaptureScope* current_capture = nullptr;

}  // namespace

CaptureScope::CaptureScope() : before_(current_capture), first_storage_(Storage::next_id()) {
  current_capture = this;
}

CaptureScope::~CaptureScope() { current_capture = before_; }

CaptureScope* CaptureScope::Current() { return current_capture; }

// A sync would compute it from placeholders, or not at all.
void CaptureScope::CheckWrite(const Storage& storage) const {
  if (storage.id() >= first_storage_) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "a captured graph writes to a tensor that is neither one of its arguments nor "
                   "made in it");
}

}  // namespace lazy
