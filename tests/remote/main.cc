// Starts the server that all tests of the program share, with two devices.
#include <gtest/gtest.h>

#include <cstdlib>

#include "remote_testing.h"

namespace remote {

Server& TestServer() {
  static auto* server = [] {
    ServerOptions options;
    options.address = "localhost:0";
    options.plugin_path = PLUGIN_CPU;
    options.plugin_options = {{"cpu_device_count", int64_t{2}}};
    return new Server(options);
  }();
  return *server;
}

std::string TestAddress() { return "localhost:" + std::to_string(TestServer().port()); }

}  // namespace remote

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // The foreign engine's conformance is tested in tests/pjrt.
  if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = "-*foreign*";
  setenv("PJRT_REMOTE_ADDRESS", remote::TestAddress().c_str(), 1);
  return RUN_ALL_TESTS();
}
