// Random programs as text, the same ones in every run.
#include <gtest/gtest.h>

#include "../hlo/fuzz/exercise.h"
#include "random_program.h"

namespace fuzz {
namespace {

TEST(RandomPrograms, AreReadAsTheyArePrinted) {
  constexpr unsigned kPrograms = 500;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    const RandomProgram program = MakeRandomProgram(BytesOfSeed(seed, 100 + seed % 300));
    // Operands of branches and constants find their places in the first reading after a writing.
    const auto module = hlo::ReadBytecode(hlo::BytesOf(hlo::WriteBytecode(*program.module)));
    ASSERT_NO_THROW(hlo::ExerciseText(*module)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fuzz
