#include "lazy/background_compile.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "lazy/device.h"
#include "lazy/sync_mutex.h"
#include "lazy/warning.h"

namespace lazy {
namespace {

// x + 1, `length` times.
std::unique_ptr<hlo::Module> Additions(int length) {
  auto module = std::make_unique<hlo::Module>("additions");
  hlo::Computation* main = module->AddComputation("main");
  module->set_entry(main);
  hlo::Builder builder(main);
  hlo::Value x = builder.Parameter(hlo::Shape(hlo::ElementType::kF32, {64}));
  for (int i = 0; i < length; ++i) x = builder.Add(x, builder.Full(x->shape(), 1.0));
  main->set_results({x});
  return module;
}

// Named by a number, and of one index.
LoweredProgram Program(uint64_t name, Specialization specialization = {}) {
  LoweredProgram lowered;
  lowered.client = &Runtime::Get().client();
  lowered.module = Additions(static_cast<int>(name));
  lowered.options.device_assignment = {Runtime::Get().device(0)->pjrt_device().id()};
  lowered.program = std::make_shared<CachedProgram>();
  lowered.program->signature = {name};
  lowered.program->specialization = std::move(specialization);
  return lowered;
}

LoweredProgram Uncompilable(uint64_t name) {
  LoweredProgram lowered = Program(name);
  lowered.options.device_assignment = {12345};
  return lowered;
}

class BackgroundCompile : public testing::Test {
 protected:
  void SetUp() override {
#ifndef PLUGIN_CPU
    FAIL() << "this build has no engine";
#else
    setenv("PJRT_DEVICE", "LIBRARY", 1);
    setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
#endif
    compiler().Stop();
    compiler().Open();
  }
  void TearDown() override { compiler().Stop(); }

  static BackgroundCompiler& compiler() { return BackgroundCompiler::Get(); }
  static std::shared_ptr<CachedProgram> Take(uint64_t name, const Assignment& assignment = {}) {
    return compiler().Take(name, {name}, assignment);
  }

  std::lock_guard<SyncLock> lock_{SyncMutex()};
};

TEST_F(BackgroundCompile, GivesWhatWasStarted) {
  compiler().Start(3, Program(3));
  compiler().Finish();
  const auto program = Take(3);
  ASSERT_NE(program, nullptr);
  EXPECT_NE(program->executable, nullptr);
  EXPECT_GT(program->bytes, 0);
  EXPECT_EQ(Take(3), nullptr) << "it is given once";
  EXPECT_EQ(Take(4), nullptr) << "never started";
}

TEST_F(BackgroundCompile, IsWaitedForWhereverItIs) {
  for (uint64_t name = 1; name <= 20; ++name) compiler().Start(name, Program(name));
  // The last waits still, the first are being compiled or ready.
  for (uint64_t name = 20; name >= 1; --name) {
    const auto program = Take(name);
    ASSERT_NE(program, nullptr) << name;
    EXPECT_NE(program->executable, nullptr);
  }
}

TEST_F(BackgroundCompile, ServesItsAssignments) {
  compiler().Start(1, Program(1, {{5, 7}, {false, true}}));
  EXPECT_EQ(Take(1, {6, 7}), nullptr);
  EXPECT_NE(Take(1, {5, 8}), nullptr);
}

TEST_F(BackgroundCompile, ErrorsAreTheCallers) {
  compiler().Start(1, Uncompilable(1));
  compiler().Start(2, Program(2));
  compiler().Finish();
  EXPECT_EQ(Take(1), nullptr);
  EXPECT_NE(Take(2), nullptr) << "the thread goes on";
}

TEST_F(BackgroundCompile, TheOldestAreGivenUp) {
  for (uint64_t name = 1; name <= 100; ++name) compiler().Start(name, Program(name));
  EXPECT_EQ(Take(1), nullptr);
  EXPECT_NE(Take(100), nullptr);
}

TEST_F(BackgroundCompile, StartsAgainAfterAStop) {
  compiler().Start(1, Program(1));
  compiler().Stop();
  EXPECT_EQ(Take(1), nullptr);
  compiler().Start(2, Program(2));
  compiler().Finish();
  EXPECT_NE(Take(2), nullptr);
}

// While one lives, no thread can be started: its stack would be larger than all addresses.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, size_t{1} << 60);
    pthread_setattr_default_np(&huge);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_;
};

TEST_F(BackgroundCompile, WithoutAThreadNothingIsStarted) {
  {
    const NoThreads none;
    EXPECT_THROW(compiler().Start(1, Program(1)), std::system_error);
    compiler().Finish();
    EXPECT_EQ(Take(1), nullptr);
  }
  compiler().Start(2, Program(2));
  compiler().Finish();
  EXPECT_NE(Take(2), nullptr);
}

// This thread holds the lock, as one does that waits for something else of the exiting one's.
TEST_F(BackgroundCompile, ClosesWithoutTheLock) {
  for (uint64_t name = 1; name <= 10; ++name) compiler().Start(name, Program(name));
  std::thread([] { compiler().Close(); }).join();
  EXPECT_FALSE(compiler().is_enabled());
  for (uint64_t name = 1; name <= 10; ++name) {
    const auto program = Take(name);
    ASSERT_NE(program, nullptr) << name;
    EXPECT_NE(program->executable, nullptr);
  }
  compiler().Start(11, Program(11));
  compiler().Finish();
  EXPECT_EQ(Take(11), nullptr);
}

std::vector<int> ThreadsOfThisProcess() {
  std::vector<int> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.push_back(std::stoi(task.path().filename()));
  }
  return threads;
}

// Of a thread: the signals that it blocks, a bit each.
uint64_t BlockedSignals(int thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string word; status >> word;) {
    if (word == "SigBlk:" && status >> word) return std::stoull(word, nullptr, 16);
  }
  return 0;
}

int NiceOf(int thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

TEST_F(BackgroundCompile, ItsThreadStaysBehindAndTakesNoSignals) {
  static constexpr int kNice = 3, kLast = 19;
  const int before = NiceOf(0);  // the tests may run behind others themselves
  if (before + kNice >= kLast) GTEST_SKIP() << "nothing is behind the last";
  std::thread([=] {
    // Of this thread, and of those that it starts.
    ASSERT_EQ(nice(kNice), before + kNice);
    compiler().Start(1, Program(1));
  }).join();
  compiler().Finish();
  std::vector<int> behind;
  for (const int thread : ThreadsOfThisProcess()) {
    if (NiceOf(thread) > before + kNice) behind.push_back(thread);
  }
  ASSERT_EQ(behind.size(), 1U);
  EXPECT_EQ(NiceOf(behind[0]), std::min(before + kNice + 10, kLast));
  EXPECT_TRUE(BlockedSignals(behind[0]) >> (SIGTERM - 1) & 1);
}

// An entry of a folder of programs that is damaged, for one.
TEST_F(BackgroundCompile, WarnsOnTheThreadThatTakes) {
  std::string folder = (std::filesystem::temp_directory_path() / "cache-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  pjrt::Client& client = Runtime::Get().client();
  const auto start = [&] {
    LoweredProgram program = Program(1);
    program.place = {std::make_shared<CacheFolder>(folder, /*readonly=*/false),
                     CacheKeyOf(client, program.options)};
    compiler().Start(1, std::move(program));
    compiler().Finish();
  };
  start();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ofstream(entry.path()) << "damaged";
  }
  ASSERT_NE(Take(1), nullptr);
  std::vector<std::thread::id> warned;
  SetWarningHandler([&](const std::string&) { warned.push_back(std::this_thread::get_id()); });
  start();
  EXPECT_TRUE(warned.empty());
  EXPECT_NE(Take(1), nullptr);
  EXPECT_EQ(warned, std::vector{std::this_thread::get_id()});
  SetWarningHandler([](const std::string&) {});
  std::filesystem::remove_all(folder);
}

// Neither Python nor an atexit handler of ours is asked.
TEST_F(BackgroundCompile, AnExitWaitsForWhatIsBeingCompiled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, not a forked child
  EXPECT_EXIT(
      {
        for (uint64_t name = 1; name <= 5; ++name) compiler().Start(40 * name, Program(40 * name));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  GTEST_FLAG_SET(death_test_style, "fast");
}

}  // namespace
}  // namespace lazy
