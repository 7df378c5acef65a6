#include "lazy/ahead_of_time.h"

#include <span>

#include "hlo/attention_composite.h"
#include "hlo/text_reader.h"
#include "passes/cudnn_attention.h"

namespace lazy {
namespace {

// Null if it has no such attention. Only programs of ours have our composites, and what cannot be
// read here is the compiler's to read.
std::unique_ptr<hlo::Module> WithCudnnAttention(const std::string& code) {
  if (code.find(hlo::kAttention) == std::string::npos) return nullptr;
  try {
    std::unique_ptr<hlo::Module> module = hlo::ReadStablehlo(std::as_bytes(std::span(code)));
    if (passes::UseCudnnAttention(*module)) return module;
  } catch (const hlo::Error&) {
    // The compiler will say it.
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<pjrt::Executable> CompileAheadOfTime(const pjrt::Topology& topology,
                                                     const std::string& code) {
  if (topology.platform_name() == "cuda") {
    if (const std::unique_ptr<hlo::Module> module = WithCudnnAttention(code)) {
      try {
        return topology.Compile(*module);
      } catch (const hlo::Error&) {
        // What is wrong with more than the kernels is wrong without them, too.
      }
    }
  }
  return topology.Compile(code, "mlir");
}

}  // namespace lazy
