// Random programs through every pass and through the whole engine, the same ones in every run.
#include <gtest/gtest.h>

#include "differential.h"

namespace fuzz {
namespace {

constexpr unsigned kPrograms = 150;

void CheckAll(Outcome (*check)(const RandomProgram&)) {
  int64_t known = 0, unknown = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const RandomProgram program = MakeRandomProgram(BytesOfSeed(seed, 100 + seed % 300));
    const Outcome outcome = check(program);
    known += outcome.known;
    unknown += outcome.unknown;
    ASSERT_EQ(outcome.failure, "") << "seed " << seed;
  }
  // Programs that only magnify their rounding errors would show nothing.
  EXPECT_GT(known, 4 * unknown);
}

TEST(RandomPrograms, EveryPassKeepsTheResults) { CheckAll(CheckPasses); }
TEST(RandomPrograms, TheEngineAgreesWithTheEvaluator) { CheckAll(CheckEngine); }

}  // namespace
}  // namespace fuzz
