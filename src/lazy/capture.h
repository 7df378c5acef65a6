// A capture: what a thread records is kept, to be recorded as one operation later, and is not to be
// computed.
#pragma once

#include <cstdint>

namespace lazy {

class Storage;

// While it lives, what its thread records is the capture's own. No sync of any thread computes the
// storages that are made in it, and those from before cannot be written to (storage.h); a
// collective is only noted here, and random numbers move no generator on (RandomState). Values may
// be read, as long as no number was drawn: then they are computed, if they need no placeholder.
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
  // Whether a number was drawn, which each call of what is captured draws anew.
  bool draws() const { return draws_; }
  void NoteDraw() { draws_ = true; }
  // Throws hlo::Error(kFailedPrecondition) unless the storage was made since the capture began.
  void CheckWrite(const Storage& storage) const;

 private:
  CaptureScope* before_;
  const int64_t first_storage_;
  bool communicates_ = false;
  bool draws_ = false;
};

}  // namespace lazy
