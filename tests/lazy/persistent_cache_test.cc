#include "lazy/persistent_cache.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "lazy/device.h"
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

}  // namespace
}  // namespace lazy
