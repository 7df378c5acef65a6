#include "lazy/background_compile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "hlo/builder.h"
#include "lazy/device.h"
#include "lazy/sync_mutex.h"

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

  std::lock_guard<std::recursive_mutex> lock_{SyncMutex()};
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

}  // namespace
}  // namespace lazy
