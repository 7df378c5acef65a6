// The table of passes: every one of them on real programs and on damaged ones that are still well
// formed (no crash, and a well-formed result), and those that are left out.
#include "cpu/pipeline.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "../hlo/fuzz/mutator.h"
#include "engine_testing.h"
#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"

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

std::string ContentsOf(const std::filesystem::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// What these headers declare is a row of the table under the name of its source, so that no test
// which walks the table forgets it; and nothing else in these folders is a pass.
TEST(Pipeline, HasEveryPass) {
  const std::regex declaration(R"(\nbool \w+\(hlo::Module& module)");
  const std::regex description(R"(\n// (\w+): .*(\n//.*)*\nbool \w+\(hlo::Module& module)");
  std::set<std::string> described;
  for (const std::filesystem::path folder : {SOURCES "/passes", SOURCES "/cpu/passes"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string text = ContentsOf(file.path()), name = file.path().stem();
      // What passes are made of, and a pass for somebody else's compiler.
      if (name == "for_each_computation" || name == "inline_where") continue;
      if (name == "cudnn_attention") continue;
      if (file.path().extension() != ".h") continue;
      const auto count = [&](const std::regex& what) {
        return std::distance(std::sregex_iterator(text.begin(), text.end(), what), {});
      };
      EXPECT_EQ(count(declaration), name.ends_with("passes") ? count(description) : 0)
          << file.path();
      for (std::sregex_iterator it(text.begin(), text.end(), description), end; it != end; ++it) {
        described.insert((*it)[1]);
        EXPECT_TRUE(std::filesystem::exists(folder / ((*it)[1].str() + ".cc"))) << (*it)[1];
      }
    }
  }
  std::set<std::string> names;
  for (const Pass& pass : Pipeline()) names.emplace(pass.name);
  EXPECT_EQ(names, described);
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
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = stablehlo.negate %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
})");
  std::map<std::string_view, PassOutcome> outcomes;
  RunPipeline(*module, {.single_device = false, .disabled = {"dead_code"}, .verify = true},
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
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.slice %x [] : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.negate %0 : tensor<f32>
  func.return %1 : tensor<f32>
})");
  const std::vector<hlo::Literal> arguments = RandomArguments(*module);
  CompileOptions options;
  for (const char* disabled : {"simplify", "fusion"}) {
    options.disabled_passes.insert(disabled);
    ExpectClose(hlo::Evaluate(*module, arguments)[0],
                RunOnEngine(*Compile(*module, options), arguments)[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Artifacts, PipelineTest,
                         testing::Range(size_t{0}, hlo::Artifacts().size()), hlo::ArtifactName);

}  // namespace
}  // namespace cpu
