// The table of passes: every one of them on real programs and on damaged ones that are still well
// formed (no crash, and a well-formed result), and those that are left out.
#include "cpu/pipeline.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <utility>

#include "../hlo/fuzz/mutator.h"
#include "engine_testing.h"
#include "hlo/builder.h"
#include "hlo/bytecode.h"
#include "hlo/error.h"

namespace cpu {
namespace {

// A program that the engine does not run may be refused by name: then false.
bool RunPasses(hlo::Module& module) {
  std::string_view last = "nothing";
  size_t hash = module.Hash();
  const auto observe = [&](const PassRun& run, const hlo::Module& after) {
    last = run.pass.name;
    const size_t before = std::exchange(hash, after.Hash());
    if (run.outcome == PassOutcome::kChanged || hash == before) return;
    throw hlo::Error("a silent change");
  };
  try {
    RunPipeline(module, {.disabled = {}, .verify = true}, observe);
    return true;
  } catch (const hlo::Error& error) {
    if (error.code() == hlo::ErrorCode::kUnimplemented) return false;
    throw hlo::Error("after " + std::string(last) + ": " + error.what());
  }
}

class PipelineTest : public testing::TestWithParam<size_t> {};

TEST_P(PipelineTest, KeepsModulesWellFormed) {
  constexpr int kMutations = 400;
  const hlo::Bytes& seed = hlo::Artifacts()[GetParam()].second;
  hlo::Mutator mutator(static_cast<unsigned>(GetParam()) + 100);
  int run = 0;
  for (int i = 0; i < kMutations; ++i) {
    std::unique_ptr<hlo::Module> module;
    try {
      module = hlo::ReadBytecode(i == 0 ? seed : mutator.Mutate(seed));
    } catch (const hlo::Error&) {
      ASSERT_NE(i, 0);
      continue;
    }
    try {
      run += RunPasses(*module);
    } catch (const std::exception& error) {
      FAIL() << "mutation " << i << ": " << error.what() << "\n" << module->ToString();
    }
  }
  // Some changes do no harm: more than the seed went through all passes.
  EXPECT_GT(run, 1);
}

// What a file of passes declares as `bool Name(hlo::Module& module…);` is a row of the table, so
// that no test which walks the table forgets it.
TEST(Pipeline, HasEveryPass) {
  std::set<std::string_view> names;
  for (const Pass& pass : Pipeline()) names.insert(pass.name);
  const std::regex declaration("\nbool \\w+\\(hlo::Module& module");
  std::set<std::string> files;
  for (const char* folder : {SOURCES "/passes", SOURCES "/cpu/passes"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".h") continue;
      std::ifstream in(file.path());
      const std::string text(std::istreambuf_iterator<char>(in), {});
      if (std::regex_search(text, declaration)) files.insert(file.path().stem());
    }
  }
  // Not passes, but what passes are made of.
  for (const char* part : {"for_each_computation", "inline_where"}) files.erase(part);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), files);
}

TEST(Pipeline, NamesOfPassesThatCannotBeLeftOutAreErrors) {
  EXPECT_EQ(ParsePassNames(""), PassNames());
  EXPECT_EQ(ParsePassNames("simplify,fusion"), (PassNames{"fusion", "simplify"}));
  const auto refusal = [](std::string_view list) {
    try {
      ParsePassNames(list);
    } catch (const hlo::Error& error) {
      const std::string text = error.what();
      return text.substr(0, text.find(';'));
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal("fusion,fussion"), "the pass 'fussion' is not there");
  EXPECT_EQ(refusal("fusion,,simplify"), "the pass '' is not there");
  EXPECT_EQ(refusal("expand_random"),
            "the pass 'expand_random' cannot be left out: no program compiles without it");
  try {
    ParsePassNames("fussion");
  } catch (const hlo::Error& error) {
    EXPECT_NE(std::string(error.what()).find("convolution_layout, dead_code"), std::string::npos);
  }
}

TEST(Pipeline, TellsWhatEachPassDid) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder b(entry);
  hlo::Value x = b.Parameter(hlo::Shape(hlo::ElementType::kF32, {4}));
  entry->set_results({b.Negate(b.Negate(b.Tanh(x)))});
  std::map<std::string_view, PassOutcome> outcomes;
  RunPipeline(module, {.single_device = false, .disabled = {"dead_code"}, .verify = true},
              [&](const PassRun& run, const hlo::Module&) {
                EXPECT_EQ(&run.pass, &Pipeline()[static_cast<size_t>(run.number) - 1]);
                outcomes.emplace(run.pass.name, run.outcome);  // of the first row of the name
              });
  EXPECT_EQ(outcomes.at("simplify"), PassOutcome::kChanged);
  EXPECT_EQ(outcomes.at("fusion"), PassOutcome::kChanged);
  EXPECT_EQ(outcomes.at("inline_calls"), PassOutcome::kUnchanged);
  EXPECT_EQ(outcomes.at("dead_code"), PassOutcome::kDisabled);
  EXPECT_EQ(outcomes.at("single_device"), PassOutcome::kNotNeeded);
}

// What a pass would have dropped is right in a kernel too.
TEST(Pipeline, ASliceOfAScalarNeedsNoSimplification) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder b(entry);
  const hlo::Shape scalar(hlo::ElementType::kF32, {});
  entry->set_results({b.Negate(b.Slice(b.Parameter(scalar), {}, {}, {}))});
  const std::vector<hlo::Literal> arguments = {RandomLiteral(scalar, 1)};
  CompileOptions options;
  for (const char* disabled : {"simplify", "fusion"}) {
    options.disabled_passes.insert(disabled);
    ExpectClose(hlo::Evaluate(module, arguments)[0],
                RunOnEngine(*Compile(module, options), arguments)[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Artifacts, PipelineTest,
                         testing::Range(size_t{0}, hlo::Artifacts().size()), hlo::ArtifactName);

}  // namespace
}  // namespace cpu
