#include "remote/server/result_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "hlo/size_arithmetic.h"

namespace remote {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kKeptBytes = size_t{1} << 30;  // of pages that nobody uses

size_t MachineBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::shared_ptr<ResultMemory> ResultMemory::Create() {
  return std::shared_ptr<ResultMemory>(
      new ResultMemory(Segment::Create(Segment::kHeader + hlo::RoundUp(MachineBytes(), kPage))));
}

ResultMemory::ResultMemory(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {
  fresh_.Give(Segment::kHeader, segment_->bytes() - Segment::kHeader);
  madvise(segment_->data(), segment_->bytes(), MADV_HUGEPAGE);  // where the kernel allows it
}

void* ResultMemory::Take(size_t bytes) {
  if (bytes <= kMostInlineBytes) return nullptr;
  const size_t rounded = hlo::RoundUp(bytes, kPage);
  std::lock_guard lock(mutex_);
  std::optional<size_t> offset = used_.Take(rounded);
  if (!offset) offset = fresh_.Take(rounded);
  if (!offset) return nullptr;
  if (taken_++ == 0) itself_ = shared_from_this();
  return segment_->data() + *offset;
}

void ResultMemory::Give(void* data, size_t bytes) {
  const size_t offset = static_cast<char*>(data) - segment_->data(),
               rounded = hlo::RoundUp(bytes, kPage);
  std::shared_ptr<ResultMemory> last;  // destroyed after unlocking
  std::lock_guard lock(mutex_);
  if (--taken_ == 0) last = std::move(itself_);
  if (used_.bytes() + rounded <= kKeptBytes) return used_.Give(offset, rounded);
  madvise(data, rounded, MADV_REMOVE);
  fresh_.Give(offset, rounded);
}

PJRT_ResultMemory_Extension PlacedResults::Extension() {
  PJRT_ResultMemory_Extension extension{};
  extension.base = {sizeof extension, PJRT_Extension_Type_ResultMemory, nullptr};
  extension.memory = memory_.get();
  extension.execution = this;
  // Exceptions must not reach the plugin. What finds no room in a list is not found where it is.
  extension.allocate = [](void* memory, size_t bytes) -> void* {
    try {
      return static_cast<ResultMemory*>(memory)->Take(bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  };
  extension.release = [](void* memory, void* data, size_t bytes) {
    try {
      static_cast<ResultMemory*>(memory)->Give(data, bytes);
    } catch (const std::bad_alloc&) {  // it stays taken
    }
  };
  extension.placed = [](void* execution, size_t device, size_t result, const void* data) {
    auto& placed = *static_cast<PlacedResults*>(execution);
    const Segment& segment = *placed.memory_->segment();
    const size_t offset = static_cast<const char*>(data) - segment.data();
    if (data < segment.data() || !segment.Holds(offset, 1)) return;
    placed.by_device_[device].add_located(static_cast<uint32_t>(result));
    placed.by_device_[device].add_offsets(offset);
  };
  return extension;
}

void PlacedResults::MoveTo(size_t device, wire::Results* message) {
  message->Swap(&by_device_[device]);
}

}  // namespace remote
