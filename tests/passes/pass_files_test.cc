// Tests of passes that are written as programs: *.mlir in this folder (hlo/program_cases.h). What a
// case may say:
//
//   // CASE: name
//   // RUN-PASS: simplify,…      passes of cpu/pipeline.h, by name, in this order; `pipeline`: all,
//                                as the engine runs them for one device; `pad_sizes 0.1 2.0`:
//                                PadSizes, where dimension 1 of argument 0 and 0 of 2 vary
//   // REFUSED: text             what the pass says instead of doing anything
//   // UNCHANGED                 they say that they change nothing; without it, that they do
//   // ONCE                      a second run changes nothing
//   // INSTRUCTIONS: 2           what the entry has left, without its parameters
//   // COMPUTATIONS: 1           what the module has left, with the entry
//   // COUNT: stablehlo.add 1    operations of a kind in the whole module
//   // STEPS: cpu.loop abs       what the entry does, in order: kernels by name, other operations
//                                by opcode; constants, reshapes and picked results are none
//   // CHECK: text               a line of the resulting text has this, in the order of the checks
//   // CHECK-NOT: text           no line has this
//   // INPUTS: kind              which numbers it is run on: `any` with infinities and NaN (the
//                                default), `integers` between -3 and 3, `positive`
//   // TOLERANCE: 1e-5           how far results may differ, relative to those over 1 (0: the bits)
//   // ON-ENGINE                 the engine compiles the program, and computes the same
//
// Always the module must be well formed, and compute what it did before.
#include <algorithm>
#include <map>
#include <sstream>

#include "../cpu/engine_testing.h"
#include "../hlo/program_cases.h"
#include "cpu/pipeline.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "pad_sizes_testing.h"
#include "pass_test.h"

namespace passes {
namespace {

constexpr std::string_view kPassDirectives[] = {
    "CASE",  "RUN-PASS",  "UNCHANGED", "ONCE",      "INSTRUCTIONS", "COMPUTATIONS", "COUNT",
    "CHECK", "CHECK-NOT", "INPUTS",    "TOLERANCE", "STEPS",        "ON-ENGINE",    "REFUSED"};

std::vector<hlo::ProgramCase> PassCases() {
  return hlo::ReadProgramCases(PASS_FILES, kPassDirectives);
}

const cpu::Pass& FindPass(std::string_view name) {
  for (const cpu::Pass& pass : cpu::Pipeline()) {
    if (pass.name == name) return pass;
  }
  throw hlo::Error("there is no pass " + std::string(name));
}

bool RunPadSizes(hlo::Module& module, std::istringstream words) {
  VaryingDimensions dimensions;
  for (std::string word; words >> word;) {
    const size_t dot = word.find('.');
    dimensions.emplace(std::stoll(word.substr(0, dot)), std::stoll(word.substr(dot + 1)));
  }
  return PadInside(module, dimensions);
}

bool RunPasses(hlo::Module& module, const std::string& names) {
  constexpr std::string_view kPadSizes = "pad_sizes ";
  if (names.starts_with(kPadSizes)) {
    return RunPadSizes(module, std::istringstream(names.substr(kPadSizes.size())));
  }
  if (names == "pipeline") {
    cpu::RunPipeline(module, {.disabled = {}, .verify = true});
    return true;
  }
  bool changed = false;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) changed |= FindPass(name).run(module);
  return changed;
}

Literal Input(const std::string& kind, const Shape& shape, unsigned seed) {
  if (kind == "any") return TestLiteral(shape, seed);
  Literal literal(shape);
  std::mt19937 random(seed);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& element : literal.mutable_data<T>()) {
      const auto number = static_cast<float>(random() % 7);
      element = static_cast<T>(kind == "positive" ? 0.5F + number / 4 : number - 3);
    }
  });
  return literal;
}

std::string StepsOf(const hlo::Module& module) {
  std::string steps;
  for (const auto& instruction : module.entry()->instructions()) {
    switch (instruction->opcode()) {
      case Opcode::kParameter:
      case Opcode::kConstant:
      case Opcode::kGetTupleElement:
      case Opcode::kReshape:
        break;
      case Opcode::kComposite:
        steps += (steps.empty() ? "" : " ") + instruction->as<hlo::CompositeAttributes>().name;
        break;
      default:
        steps += (steps.empty() ? "" : " ") + std::string(hlo::Name(instruction->opcode()));
    }
  }
  return steps;
}

class PassFileTest : public testing::TestWithParam<hlo::ProgramCase> {
 protected:
  void CheckText(const hlo::Module& module) const {
    const std::string text = hlo::WriteStablehloText(module);
    size_t position = 0;
    for (const std::string& wanted : GetParam().All("CHECK")) {
      const size_t found = text.find(wanted, position);
      ASSERT_NE(found, std::string::npos) << "no '" << wanted << "' in the rest of\n" << text;
      position = text.find('\n', found);
    }
    for (const std::string& unwanted : GetParam().All("CHECK-NOT")) {
      EXPECT_EQ(text.find(unwanted), std::string::npos) << text;
    }
  }

  void CheckCounts(const hlo::Module& module) const {
    const hlo::ProgramCase& row = GetParam();
    const hlo::Computation& entry = *module.entry();
    const size_t left = entry.instructions().size() - entry.parameters().size();
    if (row.Has("INSTRUCTIONS")) {
      EXPECT_EQ(std::to_string(left), row.One("INSTRUCTIONS")) << module.ToString();
    }
    if (row.Has("COMPUTATIONS")) {
      EXPECT_EQ(std::to_string(module.computations().size()), row.One("COMPUTATIONS"));
    }
    if (row.Has("STEPS")) {
      EXPECT_EQ(StepsOf(module), row.One("STEPS")) << module.ToString();
    }
    for (const std::string& count : row.All("COUNT")) {
      const size_t blank = count.find(' '), dot = count.find('.');
      ASSERT_NE(blank, std::string::npos) << count;
      const auto opcode = hlo::OpcodeFromName(count.substr(dot + 1, blank - dot - 1));
      ASSERT_TRUE(opcode.has_value()) << count;
      EXPECT_EQ(std::to_string(CountOpcode(module, *opcode)), count.substr(blank + 1))
          << count << "\n"
          << module.ToString();
    }
  }
};

TEST_P(PassFileTest, DoesWhatItSays) {
  const hlo::ProgramCase& row = GetParam();
  ASSERT_TRUE(row.Has("CASE") && row.Has("RUN-PASS"));
  ASSERT_FALSE(row.Has("UNKNOWN")) << "a directive that is not known: " << row.One("UNKNOWN");
  const auto module = hlo::ReadStablehloText(row.text);
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module->entry()->parameters()) {
    arguments.push_back(Input(row.One("INPUTS", "any"), parameter->shape(),
                              static_cast<unsigned>(arguments.size())));
  }
  if (row.Has("ON-ENGINE")) cpu::CheckModule(*module, arguments);
  const auto pass = [&](hlo::Module& m) { return RunPasses(m, row.One("RUN-PASS")); };
  if (row.Has("REFUSED")) {
    try {
      pass(*module);
      FAIL() << "not refused:\n" << module->ToString();
    } catch (const hlo::Error& error) {
      EXPECT_NE(std::string(error.what()).find(row.One("REFUSED")), std::string::npos)
          << error.what();
    }
    return;
  }
  const bool changed =
      ApplyAndCompare(*module, pass, arguments, std::stod(row.One("TOLERANCE", "0")));
  EXPECT_EQ(changed, !row.Has("UNCHANGED")) << module->ToString();
  CheckCounts(*module);
  CheckText(*module);
  if (row.Has("ONCE")) {
    EXPECT_FALSE(pass(*module)) << "a second run finds something";
  }
}

TEST(PassFiles, EachPassHasOne) {
  const std::vector<hlo::ProgramCase> cases = PassCases();
  for (const cpu::Pass& pass : cpu::Pipeline()) {
    const bool is_there = std::ranges::any_of(cases, [&](const hlo::ProgramCase& c) {
      return c.file == std::string(pass.name) + ".mlir" &&
             c.One("RUN-PASS").find(pass.name) != std::string::npos;
    });
    EXPECT_TRUE(is_there) << "tests/passes/" << pass.name << ".mlir has no case of this pass";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PassFileTest, testing::ValuesIn(PassCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace passes
