#include "lazy/persistent_cache.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>

#include "lazy/metrics.h"
#include "lazy/sync.h"

namespace lazy {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::mutex mutex;
  std::optional<fs::path> folder;
  bool readonly = false;
  static Settings& Get() {
    static Settings* settings = new Settings;
    return *settings;
  }
};

// Two independent 64-bit hashes: long enough to be a name.
std::string Digest(const std::string& text) {
  uint64_t a = 0xcbf29ce484222325u, b = 0x84222325cbf29ce4u;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001b3u;
    b = (b + c) * 0x9e3779b97f4a7c15u;
    b ^= b >> 29;
  }
  char out[40];
  std::snprintf(out, sizeof(out), "%016lx%016lx", a, b);
  return out;
}

std::optional<std::string> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Under another name first, so that no process ever reads half a file.
void WriteFile(const fs::path& path, const std::string& content) {
  fs::path temporary = path;
  temporary += "." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << content;
  file.close();
  std::error_code error;
  if (file) fs::rename(temporary, path, error);
  if (!file || error) fs::remove(temporary, error);
}

std::unique_ptr<pjrt::LoadedExecutable> TryLoad(pjrt::Client& client, const fs::path& path) {
  static auto* hits = Counter("PersistentCacheHit");
  static auto* misses = Counter("PersistentCacheMiss");
  static auto* failures = Counter("PersistentCacheDeserializeFailure");
  static Metric* time = Metric::Get("PersistentCacheLoad");
  std::optional<std::string> bytes = ReadFile(path);
  if (!bytes) {
    Count(misses);
    return nullptr;
  }
  TimedSection timed(time);
  try {
    auto executable = client.DeserializeAndLoad(*bytes);
    Count(hits);
    return executable;
  } catch (const hlo::Error&) {
    Count(failures);
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<pjrt::LoadedExecutable> CompileOrLoad(pjrt::Client& client,
                                                      const hlo::Module& module,
                                                      const pjrt::CompileOptions& options) {
  std::optional<fs::path> folder;
  bool readonly;
  {
    Settings& settings = Settings::Get();
    std::lock_guard lock(settings.mutex);
    folder = settings.folder;
    readonly = settings.readonly;
  }
  if (!folder) return client.Compile(module, options);
  std::string program = pjrt::SerializeProgram(module, client.plugin());
  fs::path path = *folder / Digest(program + options.Serialize() + client.platform_name() +
                                   client.platform_version());
  if (auto loaded = TryLoad(client, path)) return loaded;
  auto executable = client.Compile(program, "mlir", options);
  if (!readonly) {
    try {
      WriteFile(path, executable->executable().Serialize());
    } catch (const hlo::Error&) {
      // An engine that cannot serialize compiles in every process.
    }
  }
  return executable;
}

void InitializePersistentCache(const std::string& path, bool readonly) {
  std::error_code error;
  if (!readonly) fs::create_directories(path, error);
  if (!fs::is_directory(path, error)) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "the folder of the compilation cache cannot be used: " + path);
  }
  Settings& settings = Settings::Get();
  std::lock_guard lock(settings.mutex);
  settings.folder = path;
  settings.readonly = readonly;
}

bool HasPersistentCache() {
  Settings& settings = Settings::Get();
  std::lock_guard lock(settings.mutex);
  return settings.folder.has_value();
}

}  // namespace lazy
