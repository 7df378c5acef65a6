#include "lazy/settings.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "hlo/error.h"
#include "hlo/size_arithmetic.h"
#include "lazy/program_cache.h"
#include "lazy/sync_mutex.h"
#include "pjrt/client/compile_options.h"

namespace lazy {
namespace {

std::atomic<bool> allow_execution{true};

constexpr std::pair<const char*, DynamicMode> kDynamicModes[] = {
    {"exact", DynamicMode::kExact},
    {"symbolic", DynamicMode::kSymbolic},
    {"bucketed", DynamicMode::kBucketed},
};

DynamicMode DynamicModeOf(std::string_view word) {
  for (const auto& [name, mode] : kDynamicModes) {
    if (word == name) return mode;
  }
  throw hlo::Error("the mode of what varies is exact, symbolic or bucketed, not " +
                   std::string(word));
}

DynamicMode DynamicModeFromEnvironment() {
  const char* word = std::getenv("TORCH_XLA_DYNAMIC");
  return word == nullptr || *word == '\0' ? DynamicMode::kSymbolic : DynamicModeOf(word);
}

struct Settings {
  DynamicMode dynamic = DynamicModeFromEnvironment();
  std::string graph_name;
  hlo::Precision precision = hlo::Precision::kDefault;
  CompileOverrides overrides;
  std::vector<uint64_t> overrides_key = {0};
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
  pjrt::CompileOptions compile_options;
  compile_options.overrides = std::move(options);
  const std::string bytes = compile_options.overrides.empty() ? "" : compile_options.Serialize();
  std::vector<uint64_t> key(1 + hlo::CeilDivide(bytes.size(), sizeof(uint64_t)));
  key[0] = bytes.size();
  std::memcpy(key.data() + 1, bytes.data(), bytes.size());
  settings.overrides = std::move(compile_options.overrides);
  settings.overrides_key = std::move(key);
}
CompileOverrides CustomCompileOptions() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().overrides;
}
std::vector<uint64_t> CustomCompileOptionsKey() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().overrides_key;
}

void SetDynamicMode(const std::string& word) {
  const DynamicMode mode = DynamicModeOf(word);
  std::lock_guard lock(SyncMutex());
  if (std::exchange(Settings::Get().dynamic, mode) != mode) ClearComputationCache();
}
DynamicMode CurrentDynamicMode() {
  std::lock_guard lock(SyncMutex());
  return Settings::Get().dynamic;
}
std::string DynamicModeWord() {
  const DynamicMode current = CurrentDynamicMode();
  for (const auto& [name, mode] : kDynamicModes) {
    if (mode == current) return name;
  }
  return "";
}

}  // namespace lazy
