// Starts the server that all tests of the program share, with two devices.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "remote_testing.h"

namespace remote {

Server& TestServer() {
  static auto* server = new Server(TestOptions());
  return *server;
}

std::string TestAddress() { return "localhost:" + std::to_string(TestServer().port()); }

}  // namespace remote

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // The foreign engine's conformance is tested in tests/pjrt.
  if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = "-*foreign*";
  // As a user's own: nobody else's folder or token is touched.
  std::string folder = (std::filesystem::temp_directory_path() / "remote_test-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  setenv("TORCH_XLA_RUNTIME_DIR", folder.c_str(), 1);
  umask(077);
  std::ofstream(folder + "/token") << remote::kToken << "\n";
  setenv("PJRT_REMOTE_ADDRESS", remote::TestAddress().c_str(), 1);
  const int result = RUN_ALL_TESTS();
  std::filesystem::remove_all(folder);
  return result;
}
