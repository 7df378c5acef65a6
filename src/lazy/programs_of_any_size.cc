#include "lazy/programs_of_any_size.h"

#include <atomic>
#include <span>

#include "hlo/text_reader.h"
#include "hlo/verifier.h"
#include "lazy/data.h"
#include "passes/forget_sizes.h"
#include "passes/generalize_sizes.h"
#include "passes/instantiate_sizes.h"
#include "passes/passes.h"

namespace lazy {
namespace {

std::atomic<bool> has_open_sizes{false};
constinit thread_local int lowerings_for_any_size = 0;

std::unique_ptr<hlo::Module> Read(const std::string& program) {
  return hlo::ReadStablehlo(std::as_bytes(std::span(program)));
}

}  // namespace

void OpenSize(Data& data, int64_t dimension) {
  data.set_any_size(dimension);
  has_open_sizes = true;
}

bool HasOpenSizes() { return has_open_sizes.load(std::memory_order_relaxed); }

LoweringForAnySize::LoweringForAnySize() { ++lowerings_for_any_size; }
LoweringForAnySize::~LoweringForAnySize() { --lowerings_for_any_size; }
bool LoweringForAnySize::IsOn() { return lowerings_for_any_size > 0; }

std::unique_ptr<hlo::Module> LowerForAnySize(const Graph& graph, const std::string& name) {
  std::vector<passes::ParameterDimension> marked;
  for (size_t i = 0; i < graph.data_leaves().size(); ++i) {
    const Data& data = *graph.data_leaves()[i]->data();
    for (int64_t d = 0; d < data.shape()->rank(); ++d) {
      if (data.has_any_size(d)) marked.push_back({static_cast<int64_t>(i), d});
    }
  }
  if (marked.empty()) return graph.Lower(name);
  const LoweringForAnySize lowering;
  auto module = graph.Lower(name);
  module = passes::ForgetSizes(*module, marked);
  passes::EliminateCommonSubexpressions(*module);
  hlo::VerifyModule(*module);
  return module;
}

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
