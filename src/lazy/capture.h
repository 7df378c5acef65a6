// A capture: what a thread records is kept, to be recorded as one operation later, and is not to be
// computed.
#pragma once

namespace lazy {

// While it lives, what its thread records is the capture's own. No sync of any thread computes the
// storages that get recorded work in it (storage.h), a collective is only noted here, and random
// numbers move no generator on (RandomState). Values may be read: then they are computed, if they
// need no placeholder.
class CaptureScope {
 public:
  CaptureScope();
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;

  // That of this thread; null if it captures nothing.
  static CaptureScope* Current();

  // Whether an operation was recorded in which other processes take part.
  bool communicates() const { return communicates_; }
  void NoteCollective() { communicates_ = true; }

 private:
  CaptureScope* before_;
  bool communicates_ = false;
};

}  // namespace lazy
