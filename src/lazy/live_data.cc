#include "lazy/live_data.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "lazy/data.h"
#include "lazy/device.h"
#include "process/fork.h"

namespace lazy {
namespace {

struct LiveList {
  process::Mutex mutex;
  const Data* first = nullptr;
  static LiveList& Get() {
    static auto* list = new LiveList;
    return *list;
  }
};

std::string Size(int64_t bytes) {
  return bytes >= (int64_t{1} << 20) ? std::to_string(bytes >> 20) + " MiB"
                                     : std::to_string(bytes) + " bytes";
}

}  // namespace

void AddLiveData(const Data* data) {
  LiveList& list = LiveList::Get();
  LiveEntry& entry = data->live_entry();
  std::lock_guard lock(list.mutex);
  if (entry.is_listed) return;
  entry.is_listed = true;
  entry.previous = nullptr;  // it may have been listed before
  entry.next = list.first;
  if (entry.next != nullptr) entry.next->live_entry().previous = data;
  list.first = data;
}

void RemoveLiveData(const Data* data) {
  LiveList& list = LiveList::Get();
  LiveEntry& entry = data->live_entry();
  std::lock_guard lock(list.mutex);
  if (!entry.is_listed) return;
  entry.is_listed = false;
  if (entry.next != nullptr) entry.next->live_entry().previous = entry.previous;
  (entry.previous != nullptr ? entry.previous->live_entry().next : list.first) = entry.next;
}

void NoteMaker(const Data* data, const OperationKind* kind, const SourceLocation* location,
               Sections sections) {
  std::lock_guard lock(LiveList::Get().mutex);
  LiveEntry& entry = data->live_entry();
  entry.kind = kind;
  entry.location = location;
  entry.sections = std::move(sections);
}

void NoteUpload(const Data* data) {
  if (HasLocationProvider()) NoteMaker(data, nullptr, Here(), CurrentSections());
}

std::vector<LiveTensors> ListLiveTensors() {
  using Key =
      std::tuple<const Device*, ShapeRef, const OperationKind*, const SourceLocation*, std::string>;
  std::map<Key, std::pair<int64_t, SharedShape>> counts;
  {
    LiveList& list = LiveList::Get();
    std::lock_guard lock(list.mutex);
    for (const Data* data = list.first; data != nullptr; data = data->live_entry().next) {
      const LiveEntry& entry = data->live_entry();
      std::string sections = entry.sections != nullptr ? *entry.sections : "";
      auto& [count, shape] =
          counts[{data->device(), data->shape(), entry.kind, entry.location, std::move(sections)}];
      if (count++ == 0) shape = SharedShape(data->shape());  // the data may go any time
    }
  }
  std::vector<LiveTensors> tensors;
  for (const auto& [key, counted] : counts) {
    const auto& [device, unheld, kind, location, sections] = key;
    const auto& [count, shape] = counted;
    tensors.push_back({device, shape, kind != nullptr ? kind->name : "", location, sections, count,
                       count * shape->byte_size()});
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return tensors;
}

std::string DescribeLiveTensors(size_t most) {
  std::vector<LiveTensors> tensors = ListLiveTensors();
  int64_t total = 0, number = 0;
  for (const LiveTensors& entry : tensors) {
    total += entry.bytes;
    number += entry.count;
  }
  std::string text = std::to_string(number) + " tensors hold " + Size(total) + "; the largest:";
  for (size_t i = 0; i < std::min(most, tensors.size()); ++i) {
    const LiveTensors& entry = tensors[i];
    text += "\n  " + Size(entry.bytes) + ": " + std::to_string(entry.count) + " x " +
            entry.shape->ToString() +
            (entry.made_by.empty() ? ", from the host" : ", made by " + entry.made_by);
    if (entry.location != nullptr) {
      text += " at " + entry.location->file + ":" + std::to_string(entry.location->line) + " (" +
              entry.location->function + ")";
    }
  }
  if (!HasLocationProvider()) text += "\nXLA_IR_DEBUG=1 adds the lines that made them.";
  return text;
}

}  // namespace lazy
