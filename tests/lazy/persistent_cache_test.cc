#include "lazy/persistent_cache.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "another_build.h"
#include "hlo/builder.h"
#include "lazy/cache_folder.h"
#include "lazy/device.h"
#include "lazy/metrics.h"
#include "lazy/warning.h"
#include "process/library_identity.h"

namespace lazy {
namespace {

class PersistentCacheTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef PLUGIN_CPU
    setenv("PJRT_DEVICE", "LIBRARY", 1);
    setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
#else
    FAIL() << "the plugin is not built";
#endif
  }
  std::string Key(const pjrt::CompileOptions& options = {}) {
    return CacheKeyOf(Runtime::Get().client(), options);
  }
};

TEST_F(PersistentCacheTest, KeyNamesVersionPluginAndProcessor) {
  const std::string key = Key();
  const pjrt::Client& client = Runtime::Get().client();
  const pjrt::Plugin& plugin = client.plugin();
  EXPECT_NE(key.find(TORCH_XLA_VERSION), key.npos) << key;
  EXPECT_NE(key.find(process::LibraryIdentity(&plugin.api(), plugin.path())), key.npos) << key;
  EXPECT_NE(key.find(client.platform_version()), key.npos) << key;
  EXPECT_NE(key.find(client.devices()[0]->kind()), key.npos) << key;
  if (client.platform_name() != "cpu") return;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.starts_with("flags") || line.starts_with("Features")) {
      EXPECT_NE(key.find(line), key.npos) << line;
    }
  }
}

TEST_F(PersistentCacheTest, KeyIsTheSameForTheSameSettings) { EXPECT_EQ(Key(), Key()); }

TEST_F(PersistentCacheTest, KeyDiffersWithOptions) {
  const std::string key = Key();
  pjrt::CompileOptions options;
  options.num_replicas = 2;
  options.device_assignment = {0, 1};
  EXPECT_NE(Key(options), key);
  pjrt::CompileOptions reversed = options;
  reversed.device_assignment = {1, 0};
  EXPECT_NE(Key(reversed), Key(options));
  pjrt::CompileOptions overrides;
  overrides.overrides["a"] = true;
  EXPECT_NE(Key(overrides), key);
  pjrt::CompileOptions other_value = overrides;
  other_value.overrides["a"] = false;
  EXPECT_NE(Key(other_value), Key(overrides));
}

TEST_F(PersistentCacheTest, KeyDiffersWithThePluginsVariables) {
  const std::string key = Key();
  for (const char* name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    const char* old = std::getenv(name);
    const std::string value = old != nullptr ? old : "";
    setenv(name, "--another", 1);
    EXPECT_NE(Key(), key) << name;
    if (old != nullptr) {
      setenv(name, value.c_str(), 1);
    } else {
      unsetenv(name);
    }
  }
  EXPECT_EQ(Key(), key);
}

#ifdef PLUGIN_CPU
// Under its very name, so that nothing but the plugin can tell.
TEST_F(PersistentCacheTest, EntriesOfAnotherBuildAreCompiledAnew) {
  pjrt::Client& client = Runtime::Get().client();
  hlo::Module module("sum");
  module.set_entry(module.AddComputation("main"));
  hlo::Builder builder(module.entry());
  hlo::Value x = builder.Parameter(hlo::Shape(hlo::ElementType::kF32, {4}));
  module.entry()->set_results({builder.Add(x, x)});
  std::string folder = (std::filesystem::temp_directory_path() / "cache-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  InitializePersistentCache(folder, /*readonly=*/false);
  CompileOrLoad(client, module.Clone(), {}, CurrentPlaceInCache(client, {}));
  const std::string entry = std::filesystem::directory_iterator(folder)->path().stem();
  process::Sha256Digest key;
  for (size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<uint8_t>(std::stoi(entry.substr(2 * i, 2), nullptr, 16));
  }

  const AnotherBuild build(PLUGIN_CPU);
  const auto other = pjrt::Client::Create(pjrt::Plugin::Load(build.path()));
  EXPECT_NE(CacheKeyOf(*other, {}), Key());
  CacheFolder(folder, false).Write(key, other->Compile(module)->executable().Serialize());
  std::string warning;
  SetWarningHandler([&](const std::string& text) { warning = text; });
  const auto count = [](const char* name) { return Counter(name)->load(); };
  const int64_t hits = count("PersistentCacheHit"), compiles = count("ProgramCompile");
  const int64_t failures = count("PersistentCacheDeserializeFailure");
  EXPECT_NE(CompileOrLoad(client, module.Clone(), {}, CurrentPlaceInCache(client, {})), nullptr);
  EXPECT_EQ(count("PersistentCacheHit"), hits);
  EXPECT_EQ(count("ProgramCompile"), compiles + 1);
  EXPECT_EQ(count("PersistentCacheDeserializeFailure"), failures + 1);
  EXPECT_NE(warning.find("is compiled anew"), std::string::npos) << warning;
  // The new one has taken its place.
  CompileOrLoad(client, module.Clone(), {}, CurrentPlaceInCache(client, {}));
  EXPECT_EQ(count("PersistentCacheHit"), hits + 1);
  SetWarningHandler([](const std::string&) {});
  std::filesystem::remove_all(folder);
}
#endif

}  // namespace
}  // namespace lazy
