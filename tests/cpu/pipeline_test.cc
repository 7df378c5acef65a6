// Every pass on real programs and on damaged ones that are still well formed: no crash, and a
// well-formed result.
#include "../hlo/fuzz/mutator.h"

#include <functional>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/verifier.h"
#include "passes/common_subexpressions.h"
#include "passes/dead_code.h"
#include "passes/expand_batch_norm.h"
#include "passes/expand_composites.h"
#include "passes/fold_constants.h"
#include "passes/inline_calls.h"
#include "passes/simplify.h"

namespace passes {
namespace {

void RunPasses(hlo::Module& module) {
  const std::function<bool(hlo::Module&)> passes[] = {
      InlineCalls,
      [](hlo::Module& m) { return ExpandComposites(m); },
      ExpandBatchNorm,
      Simplify,
      [](hlo::Module& m) { return FoldConstants(m); },
      EliminateCommonSubexpressions,
      EliminateDeadCode,
  };
  for (const auto& pass : passes) {
    pass(module);
    hlo::VerifyModule(module);
  }
}

class PassesFuzzTest : public testing::TestWithParam<size_t> {};

TEST_P(PassesFuzzTest, KeepModulesWellFormed) {
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

INSTANTIATE_TEST_SUITE_P(Artifacts, PassesFuzzTest,
                         testing::Range(size_t{0}, hlo::Artifacts().size()), hlo::ArtifactName);

}  // namespace
}  // namespace passes
