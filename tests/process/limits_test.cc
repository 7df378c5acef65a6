#include "process/limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

namespace process {
namespace {

namespace fs = std::filesystem;

// A machine's files, in a folder of their own.
class Files {
 public:
  explicit Files(const std::map<std::string, std::string>& files) {
    char name[] = "/tmp/limits_test_XXXXXX";
    root_ = mkdtemp(name);
    for (const auto& [path, text] : files) {
      fs::create_directories(fs::path(root_ + path).parent_path());
      std::ofstream(root_ + path) << text;
    }
  }
  ~Files() { fs::remove_all(root_); }
  Cgroups cgroups() const { return Cgroups(root_); }

 private:
  std::string root_;
};

constexpr char kUnified[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Cgroups, NoneWhereThereAreNoFiles) {
  const Files files({});
  EXPECT_FALSE(files.cgroups().memory_limit());
  EXPECT_FALSE(files.cgroups().cpu_quota());
}

TEST(Cgroups, Version2TakesTheSmallestOfTheWholeChain) {
  const std::string top = "/sys/fs/cgroup";
  const Files files({
      {"/proc/self/cgroup", "0::/jobs/mine/step\n"},
      {"/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + std::string(kUnified)},
      {top + "/jobs/mine/step/memory.max", "max\n"},
      {top + "/jobs/mine/step/cpu.max", "max 100000\n"},
      {top + "/jobs/mine/memory.max", "2147483648\n"},
      {top + "/jobs/mine/memory.current", "1500\n"},
      {top + "/jobs/mine/memory.stat", "anon 7\nactive_file 300\ninactive_file 200\nfile 9\n"},
      {top + "/jobs/mine/cpu.max", "250000 100000\n"},
      {top + "/jobs/memory.max", "4294967296\n"},
      {top + "/jobs/cpu.max", "150000 100000\n"},
      {top + "/jobs/other/memory.max", "1\n"},
  });
  const Cgroups cgroups = files.cgroups();
  EXPECT_EQ(cgroups.memory_limit(), int64_t{2} << 30);
  ASSERT_EQ(cgroups.memory().size(), 2u);
  EXPECT_EQ(cgroups.memory()[0].used, 1000);
  EXPECT_EQ(cgroups.memory()[1].used, 0);
  EXPECT_EQ(cgroups.cpu_quota(), 1.5);
}

TEST(Cgroups, Version1HasAHierarchyForEachController) {
  const std::string memory = "/sys/fs/cgroup/memory/docker/abc", cpu = "/sys/fs/cgroup/cpu,cpuacct";
  const Files files({
      {"/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n2:cpu,cpuacct:/slice\n0::/\n"},
      {"/proc/self/mountinfo",
       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
       "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {memory + "/memory.limit_in_bytes", "1000000\n"},
      {memory + "/memory.usage_in_bytes", "5000\n"},
      {memory + "/memory.stat",
       "active_file 1\ntotal_active_file 2000\ntotal_inactive_file 1000\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {cpu + "/slice/cpu.cfs_quota_us", "-1\n"},
      {cpu + "/slice/cpu.cfs_period_us", "100000\n"},
      {cpu + "/cpu.cfs_quota_us", "300000\n"},
      {cpu + "/cpu.cfs_period_us", "100000\n"},
  });
  ASSERT_EQ(files.cgroups().memory().size(), 1u);
  EXPECT_EQ(files.cgroups().memory()[0].limit, 1000000);
  EXPECT_EQ(files.cgroups().memory()[0].used, 2000);
  EXPECT_EQ(files.cgroups().cpu_quota(), 3);
}

// In a container the machine's path is not mounted, or what is mounted begins below the top.
TEST(Cgroups, WhatIsMountedMayBeAPart) {
  const Files outside(
      {{"/proc/self/cgroup", "0::/docker/abc\n"},
       {"/proc/self/mountinfo", "30 23 0:26 /kubepods/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
       {"/sys/fs/cgroup/memory.max", "77\n"}});
  EXPECT_EQ(outside.cgroups().memory_limit(), 77);
  const Files below({{"/proc/self/cgroup", "0::/docker/abc/inner\n"},
                     {"/proc/self/mountinfo",
                      "30 23 0:26 /docker/abc /a\\040place rw shared:9 - cgroup2 cgroup2 rw\n"},
                     {"/a place/memory.max", "88\n"},
                     {"/a place/inner/memory.max", "66\n"}});
  EXPECT_EQ(below.cgroups().memory_limit(), 66);
  const Files above({{"/proc/self/cgroup", "0::/../../other\n"},
                     {"/proc/self/mountinfo", kUnified},
                     {"/sys/fs/cgroup/memory.max", "99\n"}});
  EXPECT_EQ(above.cgroups().memory_limit(), 99);
}

TEST(Cgroups, NonsenseIsNoLimit) {
  const Files files({{"/proc/self/cgroup", "nonsense\n0::/\n::\n"},
                     {"/proc/self/mountinfo", "1 2\n - \n - cgroup2\n" + std::string(kUnified)},
                     {"/sys/fs/cgroup/memory.max", "much\n"},
                     {"/sys/fs/cgroup/cpu.max", "100000\n"}});
  EXPECT_FALSE(files.cgroups().memory_limit());
  EXPECT_FALSE(files.cgroups().cpu_quota());
}

TEST(Limits, FollowTheAffinityMask) {
  EXPECT_GE(UsableCpus(), 1);
  EXPECT_GT(MemoryLimit(), int64_t{1} << 20);
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    _exit(sched_setaffinity(0, sizeof set, &set) == 0 && UsableCpus() == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace process
