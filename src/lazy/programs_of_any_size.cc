#include "lazy/programs_of_any_size.h"

#include <span>

#include "hlo/text_reader.h"
#include "hlo/verifier.h"
#include "passes/common_subexpressions.h"
#include "passes/generalize_sizes.h"
#include "passes/instantiate_sizes.h"

namespace lazy {
namespace {

std::unique_ptr<hlo::Module> Read(const std::string& program) {
  return hlo::ReadStablehlo(std::as_bytes(std::span(program)));
}

}  // namespace

std::unique_ptr<hlo::Module> GeneralizePrograms(const std::vector<std::string>& samples) {
  std::vector<std::unique_ptr<hlo::Module>> modules;
  std::vector<const hlo::Module*> pointers;
  for (const std::string& sample : samples) {
    modules.push_back(Read(sample));
    pointers.push_back(modules.back().get());
  }
  std::unique_ptr<hlo::Module> general = passes::GeneralizeSizes(pointers);
  passes::EliminateCommonSubexpressions(*general);
  hlo::VerifyModule(*general);
  return general;
}

std::unique_ptr<hlo::Module> InstantiateProgram(const std::string& program,
                                                const std::vector<hlo::Shape>& arguments) {
  return passes::InstantiateSizes(*Read(program), arguments);
}

}  // namespace lazy
