#include "lazy/settings.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "hlo/error.h"
#include "lazy/op.h"
#include "lazy/sync_mutex.h"

namespace lazy {
namespace {

std::atomic<bool> allow_execution{true};

struct Settings {
  std::string graph_name;
  hlo::Precision precision = hlo::Precision::kDefault;
  CompileOverrides overrides;
  uint64_t overrides_hash = 0;
  static Settings& Get() {
    static auto* settings = new Settings;
    return *settings;
  }
};

constexpr std::pair<const char*, hlo::Precision> kPrecisions[] = {
    {"default", hlo::Precision::kDefault},
    {"high", hlo::Precision::kHigh},
    {"highest", hlo::Precision::kHighest},
};

}  // namespace

void SetAllowExecution(bool allow) { allow_execution = allow; }
bool AllowExecution() { return allow_execution.load(std::memory_order_relaxed); }

void SetGraphName(const std::string& name) {
  std::lock_guard lock(SyncMutex());
  Settings::Get().graph_name = name;
}
std::string GraphName() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().graph_name;
}

void SetMatMulPrecision(const std::string& precision) {
  for (const auto& [name, value] : kPrecisions) {
    if (precision != name) continue;
    std::lock_guard lock(SyncMutex());
    Settings::Get().precision = value;
    return;
  }
  throw hlo::Error("the precision of matrix products is default, high or highest, not " +
                   precision);
}
std::string MatMulPrecision() {
  const hlo::Precision precision = ContractionPrecision();
  for (const auto& [name, value] : kPrecisions) {
    if (precision == value) return name;
  }
  return "";
}
hlo::Precision ContractionPrecision() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().precision;
}

void SetCustomCompileOptions(CompileOverrides options) {
  std::lock_guard lock(SyncMutex());
  Settings& settings = Settings::Get();
  settings.overrides = std::move(options);
  settings.overrides_hash = 0;
  for (const auto& [name, value] : settings.overrides) {
    settings.overrides_hash = hlo::CombineHash(
        hlo::CombineHash(settings.overrides_hash, HashAttribute(name)), HashAttribute(value));
  }
}
CompileOverrides CustomCompileOptions() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().overrides;
}
uint64_t CustomCompileOptionsHash() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().overrides_hash;
}

bool DynamicPrograms() {
  static const bool dynamic = [] {
    const char* mode = std::getenv("TORCH_XLA_DYNAMIC");
    return mode == nullptr || std::string_view(mode) != "exact";
  }();
  return dynamic;
}

}  // namespace lazy
