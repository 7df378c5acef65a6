#include "lazy/persistent_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include "lazy/device.h"
#include "lazy/metrics.h"
#include "lazy/span.h"
#include "lazy/warning.h"
#include "pjrt/client/module_compile.h"
#include "process/fork.h"
#include "process/library_identity.h"
#include "process/sha256.h"

namespace lazy {
namespace {

struct CacheSettings {
  process::Mutex mutex;
  std::shared_ptr<CacheFolder> folder;  // null: programs are not kept
  pid_t used_by = 0;                    // the process that has compiled with these settings
  bool from_environment = false;        // whether the environment has been asked
  static CacheSettings& Get() {
    static CacheSettings* settings = new CacheSettings;
    return *settings;
  }
};

// As initialize_cache leaves them to the processes that this one starts.
// Returns what to warn of, or nothing.
std::string ReadEnvironment(CacheSettings& settings) {
  const char* path = std::getenv("XLA_PERSISTENT_CACHE_PATH");
  if (settings.from_environment || settings.folder || path == nullptr || *path == '\0') return "";
  settings.from_environment = true;
  const char* readonly = std::getenv("XLA_PERSISTENT_CACHE_READ_ONLY");
  const std::string flag = readonly != nullptr ? readonly : "";
  try {
    settings.folder = std::make_shared<CacheFolder>(path, flag == "1" || flag == "true");
  } catch (const hlo::Error& error) {
    return std::string(error.what()) + " (XLA_PERSISTENT_CACHE_PATH)";
  }
  return "";
}

enum class Asking { kOnly, kToUse };

std::shared_ptr<CacheFolder> CurrentFolder(Asking asking) {
  CacheSettings& settings = CacheSettings::Get();
  std::shared_ptr<CacheFolder> folder;
  std::string warning;
  {
    std::lock_guard lock(settings.mutex);
    warning = ReadEnvironment(settings);
    if (asking == Asking::kToUse) settings.used_by = getpid();
    folder = settings.folder;
  }
  if (!warning.empty()) Warn(warning);  // a warning may run the program's code
  return folder;
}

// With its length, so that no two lists of fields give the same text.
void Append(std::string& text, const std::string& field) {
  text += std::to_string(field.size()) + ":" + field + "\n";
}

// The lines of /proc/cpuinfo that say what code may use.
std::string ProcessorFeatures() {
  std::ifstream file("/proc/cpuinfo");
  std::string features;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string name = line.substr(0, line.find_last_not_of(" \t", line.find(':') - 1) + 1);
    if (name == "model name" || name == "flags" || name == "Features" || name == "CPU part" ||
        name == "CPU implementer" || name == "isa") {
      features += line + "\n";
    }
  }
  return features;
}

std::string CreateOptions() {
  std::string text;
  for (const auto& [name, value] : Runtime::Get().options().create_options) {
    if (name != "node_id") text += name + "=" + pjrt::ToString(value) + ";";
  }
  return text;
}

std::unique_ptr<pjrt::LoadedExecutable> TryLoad(pjrt::Client& client, const CacheFolder& folder,
                                                const process::Sha256Digest& key) {
  static auto* hits = Counter("PersistentCacheHit");
  static auto* misses = Counter("PersistentCacheMiss");
  static auto* failures = Counter("PersistentCacheDeserializeFailure");
  static Metric* time = Metric::Get("PersistentCacheLoad");
  std::optional<std::string> bytes = folder.Read(key);
  if (!bytes) {
    Count(misses);
    return nullptr;
  }
  TimedSection timed(time);
  Span span("xla::load_program");
  try {
    auto executable = client.DeserializeAndLoad(*bytes);
    Count(hits);
    return executable;
  } catch (const hlo::Error& error) {
    Count(failures);
    Warn("the compiled program " + folder.EntryPath(key) + " cannot be loaded: " + error.what() +
         ". The program is compiled anew.");
    return nullptr;
  }
}

// Those that were compiled since this was last called: the engine counts for the whole process, and
// other plugins do not.
void CountLoops(const pjrt::Plugin& plugin) {
  static auto* loops = Counter("LoopCompile");
  static auto* mutex = new process::Mutex;
  static int64_t counted = 0;
  std::lock_guard lock(*mutex);
  const int64_t compiled = pjrt::CompiledLoops(plugin);
  if (compiled <= counted) return;
  Count(loops, compiled - counted);
  counted = compiled;
}

// What `compile` gives, counted and timed.
template <typename Compile>
std::unique_ptr<pjrt::LoadedExecutable> Compiled(const pjrt::Client& client,
                                                 const Compile& compile) {
  static auto* compiled = Counter("ProgramCompile");
  static Metric* time = Metric::Get("ProgramCompileTime");
  Count(compiled);
  TimedSection timed(time);
  Span span("xla::compile");
  auto executable = compile(span);
  CountLoops(client.plugin());
  return executable;
}

std::unique_ptr<pjrt::LoadedExecutable> Compile(pjrt::Client& client, const std::string& program,
                                                const pjrt::CompileOptions& options) {
  return Compiled(client, [&](Span& span) {
    span.Add("program_bytes", static_cast<int64_t>(program.size()));
    return client.Compile(program, "mlir", options);
  });
}

// What nobody keeps need not become bytes.
std::unique_ptr<pjrt::LoadedExecutable> Compile(pjrt::Client& client,
                                                std::unique_ptr<hlo::Module> module,
                                                const pjrt::CompileOptions& options) {
  if (!pjrt::TakesModules(client.plugin())) {
    return Compile(client, pjrt::SerializeProgram(*module, client.plugin()), options);
  }
  return Compiled(client,
                  [&](Span&) { return pjrt::CompileModule(client, std::move(module), options); });
}

}  // namespace

std::string CacheKeyOf(const pjrt::Client& client, const pjrt::CompileOptions& options) {
  const pjrt::Plugin& plugin = client.plugin();
  std::string key;
  Append(key, TORCH_XLA_VERSION);
  Append(key, process::LibraryIdentity(&plugin.api(), plugin.path()));
  Append(key, client.platform_name());
  Append(key, client.platform_version());
  for (const pjrt::Device* device : client.devices()) {
    Append(key, std::to_string(device->id()) + " in " + std::to_string(device->process_index()) +
                    ": " + device->kind());
  }
  if (client.platform_name() == "cpu") Append(key, ProcessorFeatures());
  Append(key, options.Serialize());
  Append(key, CreateOptions());
  for (const char* name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    const char* value = std::getenv(name);
    Append(key, value != nullptr ? value : "");
  }
  return key;
}

PlaceInCache CurrentPlaceInCache(const pjrt::Client& client, const pjrt::CompileOptions& options) {
  std::shared_ptr<CacheFolder> folder = CurrentFolder(Asking::kToUse);
  if (!folder) return {};
  return {std::move(folder), CacheKeyOf(client, options)};
}

std::unique_ptr<pjrt::LoadedExecutable> CompileOrLoad(pjrt::Client& client,
                                                      std::unique_ptr<hlo::Module> module,
                                                      const pjrt::CompileOptions& options,
                                                      const PlaceInCache& place) {
  if (!place.folder) return Compile(client, std::move(module), options);
  std::string program = pjrt::SerializeProgram(*module, client.plugin());
  std::string key_text = place.key;
  Append(key_text, program);
  const process::Sha256Digest key = process::Sha256Of(key_text);
  if (auto loaded = TryLoad(client, *place.folder, key)) return loaded;
  auto executable = Compile(client, program, options);
  if (place.folder->readonly()) return executable;
  std::string bytes;
  try {
    bytes = executable->executable().Serialize();
  } catch (const hlo::Error&) {
    // An engine that cannot serialize compiles in every process.
    return executable;
  }
  place.folder->Write(key, bytes);
  return executable;
}

void InitializePersistentCache(const std::string& path, bool readonly) {
  auto folder = std::make_shared<CacheFolder>(path, readonly);
  CacheSettings& settings = CacheSettings::Get();
  std::lock_guard lock(settings.mutex);
  settings.folder = std::move(folder);
}

bool KeepsPrograms() {
  const std::shared_ptr<CacheFolder> folder = CurrentFolder(Asking::kOnly);
  return folder != nullptr && !folder->readonly();
}

bool HasPersistentCache() {
  CacheSettings& settings = CacheSettings::Get();
  std::lock_guard lock(settings.mutex);
  return settings.folder != nullptr && settings.used_by == getpid();
}

}  // namespace lazy
