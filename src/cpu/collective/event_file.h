// What one thread sets and another polls for.
#pragma once

namespace cpu {

class EventFile {
 public:
  // Throws hlo::Error(kUnavailable).
  EventFile();
  EventFile(const EventFile&) = delete;
  ~EventFile();

  int file() const { return file_; }  // readable while it is set
  void Set() const;
  void Clear() const;

 private:
  int file_;
};

}  // namespace cpu
