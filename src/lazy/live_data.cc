#include "lazy/live_data.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "lazy/data.h"
#include "lazy/device.h"
#include "process/fork.h"

namespace lazy {
namespace {

struct Maker {
  const OperationKind* kind = nullptr;
  const SourceLocation* location = nullptr;
};

struct LiveRegistry {
  process::Mutex mutex;
  std::unordered_map<const Data*, Maker> live;
  static LiveRegistry& Get() {
    static LiveRegistry* registry = new LiveRegistry;
    return *registry;
  }
};

std::string Size(int64_t bytes) {
  return bytes >= (int64_t{1} << 20) ? std::to_string(bytes >> 20) + " MiB"
                                     : std::to_string(bytes) + " bytes";
}

}  // namespace

void AddLiveData(const Data* data) {
  LiveRegistry& registry = LiveRegistry::Get();
  std::lock_guard lock(registry.mutex);
  registry.live.emplace(data, Maker());
}

void RemoveLiveData(const Data* data) {
  LiveRegistry& registry = LiveRegistry::Get();
  std::lock_guard lock(registry.mutex);
  registry.live.erase(data);
}

void NoteMaker(const Data* data, const OperationKind* kind, const SourceLocation* location) {
  LiveRegistry& registry = LiveRegistry::Get();
  std::lock_guard lock(registry.mutex);
  auto found = registry.live.find(data);
  if (found != registry.live.end()) found->second = {kind, location};
}

std::vector<LiveTensors> ListLiveTensors() {
  using Key = std::tuple<const Device*, ShapeRef, const OperationKind*, const SourceLocation*>;
  std::map<Key, std::pair<int64_t, SharedShape>> counts;
  {
    LiveRegistry& registry = LiveRegistry::Get();
    std::lock_guard lock(registry.mutex);
    for (const auto& [data, maker] : registry.live) {
      auto& [count, shape] = counts[{data->device(), data->shape(), maker.kind, maker.location}];
      if (count++ == 0) shape = SharedShape(data->shape());  // the data may go any time
    }
  }
  std::vector<LiveTensors> tensors;
  for (const auto& [key, counted] : counts) {
    const auto& [device, unheld, kind, location] = key;
    const auto& [count, shape] = counted;
    tensors.push_back({device, shape, kind != nullptr ? kind->name : "", location, count,
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
