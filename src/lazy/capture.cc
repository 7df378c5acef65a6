#include "lazy/capture.h"

namespace lazy {
namespace {

thread_local CaptureScope* current = nullptr;

}  // namespace

CaptureScope::CaptureScope() : before_(current) { current = this; }

CaptureScope::~CaptureScope() { current = before_; }

CaptureScope* CaptureScope::Current() { return current; }

}  // namespace lazy
