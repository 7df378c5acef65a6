#include "cpu/collective/event_file.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "hlo/error.h"

namespace cpu {

EventFile::EventFile() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (file_ < 0) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable,
                     std::string("network for collectives: eventfd: ") + std::strerror(errno));
  }
}

EventFile::~EventFile() { close(file_); }

void EventFile::Set() const { eventfd_write(file_, 1); }

void EventFile::Clear() const {
  eventfd_t value;
  eventfd_read(file_, &value);
}

}  // namespace cpu
