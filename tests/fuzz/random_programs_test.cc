// Random programs through every pass and through the whole engine, the same ones in every run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "cpu/pipeline.h"
#include "differential.h"

namespace fuzz {
namespace {

unsigned Setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// Others by TORCH_XLA_TEST_FIRST_PROGRAM, and as many as TORCH_XLA_TEST_PROGRAMS says, whatever
// fails.
template <typename Check>
void CheckAll(unsigned programs, Check check) {
  int64_t known = 0, unknown = 0;
  const unsigned first = Setting("TORCH_XLA_TEST_FIRST_PROGRAM", 0);
  const unsigned end = first + Setting("TORCH_XLA_TEST_PROGRAMS", programs);
  for (unsigned seed = first; seed < end; ++seed) {
    const RandomProgram program = MakeRandomProgram(BytesOfSeed(seed, 100 + seed % 300));
    const Outcome outcome = check(program);
    known += outcome.known;
    unknown += outcome.unknown;
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    const bool goes_on = std::getenv("TORCH_XLA_TEST_PROGRAMS") != nullptr;
    if (::testing::Test::HasFailure() && !goes_on) return;
  }
  // Programs that only magnify their rounding errors would show nothing.
  EXPECT_GT(known, 4 * unknown);
}

TEST(RandomPrograms, EveryPassKeepsTheResults) { CheckAll(150, CheckPasses); }
TEST(RandomPrograms, TheEngineAgreesWithTheEvaluator) {
  CheckAll(150, [](const RandomProgram& program) { return CheckEngine(program); });
}

// Each optional pass is left out of some of the programs, all of them of one more.
TEST(RandomPrograms, TheEngineNeedsNoOptionalPass) {
  cpu::PassNames optional;
  for (const cpu::Pass& pass : cpu::Pipeline()) {
    if (pass.need == cpu::Need::kOptional) optional.emplace(pass.name);
  }
  std::vector<cpu::PassNames> sets = {optional};
  for (const std::string& name : optional) sets.push_back({name});
  size_t next = 0;
  CheckAll(50, [&](const RandomProgram& program) {
    return CheckEngine(program, sets[next++ % sets.size()]);
  });
}

}  // namespace
}  // namespace fuzz
