#include "lazy/capture.h"

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

bool CaptureScope::Made(const Storage& storage) const { return storage.id() >= first_storage_; }

}  // namespace lazy
