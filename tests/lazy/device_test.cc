// Starting the runtime.
#include "lazy/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "hlo/error.h"

namespace lazy {
namespace {

#ifdef PLUGIN_CPU
// How often a provider is asked whose plugin finds no server.
int TimesAsked(bool starts_server) {
  int times = 0;
  Runtime::RegisterPlugin("NOWHERE", [&] {
    ++times;
    RuntimeOptions options;
    options.plugin_path = std::filesystem::path(PLUGIN_CPU).replace_filename("libpjrt_remote.so");
    options.starts_server = starts_server;
    return options;
  });
  setenv("PJRT_DEVICE", "NOWHERE", 1);
  setenv("PJRT_REMOTE_ADDRESS", "unix:/nowhere/server.sock", 1);
  try {
    Runtime::Get();
  } catch (const hlo::Error& error) {
    if (error.code() == hlo::ErrorCode::kUnavailable) return times;
  }
  return 0;
}

// Another server than the one that has ended is there only if the provider starts it.
TEST(RuntimeTest, OnlyWhoStartsServersIsAskedTwice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has started none
  const auto expect = [](bool starts_server, int times) {
    std::exit(TimesAsked(starts_server) == times ? 0 : 1);
  };
  EXPECT_EXIT(expect(false, 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(expect(true, 2), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace lazy
