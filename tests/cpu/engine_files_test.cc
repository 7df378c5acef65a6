// Tests of the engine that are programs: *.mlir in this folder (hlo/program_cases.h), which it must
// compute as the evaluator does, on random numbers:
//
//   // CASE: name
//   // SCALE: 10      how many times the tolerance of a type its results may differ (1)
#include "../hlo/program_cases.h"
#include "engine_testing.h"
#include "hlo/text_reader.h"

namespace cpu {
namespace {

constexpr std::string_view kEngineDirectives[] = {"CASE", "SCALE"};

class EngineFileTest : public testing::TestWithParam<hlo::ProgramCase> {};

TEST_P(EngineFileTest, IsAsEvaluated) {
  const hlo::ProgramCase& row = GetParam();
  ASSERT_TRUE(row.Has("CASE"));
  ASSERT_FALSE(row.Has("UNKNOWN")) << "a directive that is not known: " << row.One("UNKNOWN");
  const auto module = hlo::ReadStablehloText(row.text);
  CheckModule(*module, RandomArguments(*module), std::stod(row.One("SCALE", "1")));
}

INSTANTIATE_TEST_SUITE_P(Files, EngineFileTest,
                         testing::ValuesIn(hlo::ReadProgramCases(ENGINE_FILES, kEngineDirectives)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cpu
