#include "process/library_identity.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "process/fork.h"

namespace process {
namespace {

// The build that a library's file says it is (what `file` and `readelf -n` print).
const auto kHere = reinterpret_cast<void*>(
    static_cast<std::string (*)(const void*, const std::string&)>(&LibraryIdentity));

TEST(LibraryIdentityTest, IsTheBuildOfTheLibraryThatHoldsTheAddress) {
  Dl_info here, c_library;
  ASSERT_NE(dladdr(kHere, &here), 0);
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &c_library), 0);
  const std::string own = LibraryIdentity(kHere, here.dli_fname);
  const std::string other =
      LibraryIdentity(reinterpret_cast<void*>(&std::getenv), c_library.dli_fname);
  EXPECT_NE(own, other);
  EXPECT_FALSE(own.empty());
  EXPECT_EQ(own, LibraryIdentity(reinterpret_cast<void*>(&ForkGeneration), here.dli_fname));
}

TEST(LibraryIdentityTest, WithoutABuildIdTheFileCounts) {
  const int local = 0;  // on the stack: in no library
  char path[] = "/tmp/library_identity_test.XXXXXX";
  close(mkstemp(path));
  const std::string empty = LibraryIdentity(&local, path);
  std::ofstream(path) << "longer";
  EXPECT_NE(LibraryIdentity(&local, path), empty);
  EXPECT_NE(empty.find(path), empty.npos);
  std::remove(path);
}

}  // namespace
}  // namespace process
