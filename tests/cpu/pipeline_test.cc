// Every pass of the engine's pipeline on real programs and on damaged ones that are still well
// formed: no crash, and a well-formed result.
#include "cpu/pipeline.h"

#include "../hlo/fuzz/mutator.h"
#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/verifier.h"

namespace cpu {
namespace {

// A program that the engine does not run may be refused by name.
void RunPasses(hlo::Module& module) {
  for (const Pass& pass : Pipeline(true)) {
    try {
      pass.run(module);
      hlo::VerifyModule(module);
    } catch (const hlo::Error& error) {
      if (error.code() == hlo::ErrorCode::kUnimplemented) return;
      throw hlo::Error(std::string(pass.name) + ": " + error.what());
    }
  }
}

class PipelineTest : public testing::TestWithParam<size_t> {};

TEST_P(PipelineTest, KeepsModulesWellFormed) {
  constexpr int kMutations = 400;
  const hlo::Bytes& seed = hlo::Artifacts()[GetParam()].second;
  hlo::Mutator mutator(static_cast<unsigned>(GetParam()) + 100);
  for (int i = 0; i < kMutations; ++i) {
    std::unique_ptr<hlo::Module> module;
    try {
      module = hlo::ReadBytecode(i == 0 ? seed : mutator.Mutate(seed));
    } catch (const hlo::Error&) {
      ASSERT_NE(i, 0);
      continue;
    }
    try {
      RunPasses(*module);
    } catch (const std::exception& error) {
      FAIL() << "mutation " << i << ": " << error.what() << "\n" << module->ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Artifacts, PipelineTest,
                         testing::Range(size_t{0}, hlo::Artifacts().size()), hlo::ArtifactName);

}  // namespace
}  // namespace cpu
