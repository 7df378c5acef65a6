#include "cpu/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include "cpu/fusible.h"
#include "cpu/library/attention_call.h"
#include "cpu/passes/engine_passes.h"
#include "cpu/profile.h"
#include "hlo/attention_composite.h"
#include "hlo/error.h"
#include "hlo/verifier.h"
#include "passes/passes.h"

namespace cpu {
namespace {

using enum When;
using enum Need;

// Those that kernels compute (chlo.erf) stay, and attention where the library has it.
bool ExpandComposites(hlo::Module& module) {
  return passes::ExpandComposites(module, [](const hlo::Instruction& c) {
    return IsFusible(c) || (hlo::IsAttention(c) && ServesAttention(c));
  });
}

bool FoldConstants(hlo::Module& module) { return passes::FoldConstants(module); }

// What runs after what leaves something to clean.
constexpr std::array<Pass, 4> CleanUp(When when) {
  return {{
      {"simplify", passes::Simplify, when, kOptional,
       "algebra that makes a program smaller and keeps every bit"},
      {"fold_constants", FoldConstants, when, kOptional, "arithmetic on constants"},
      {"common_subexpressions", passes::EliminateCommonSubexpressions, when, kOptional,
       "equal work is done once"},
      {"dead_code", passes::EliminateDeadCode, when, kOptional, "unseen work is dropped"},
  }};
}

template <size_t... sizes>
constexpr auto Join(const std::array<Pass, sizes>&... parts) {
  std::array<Pass, (sizes + ...)> all{};
  auto end = all.begin();
  ((end = std::ranges::copy(parts, end).out), ...);
  return all;
}

constexpr std::string_view kConvolutionLayout = "convolution_layout";

constexpr auto kPipeline = Join(
    std::to_array<Pass>({
        // Prepare: one body of operations that the engine has.
        {"expand_composites", ExpandComposites, kAlways, kNeeded,
         "composites become their decomposition, except those that kernels compute"},
        {"inline_calls", passes::InlineCalls, kAlways, kNeeded, "calls become their callee's body"},
        {"expand_batch_norm", passes::ExpandBatchNorm, kAlways, kNeeded,
         "batch normalisation becomes arithmetic and sums"},
        {"single_device", ResolveSingleDevice, kOnOneDevice, kNeeded,
         "collectives of one device become their operands"},
        {"placements", ResolvePlacements, kAlways, kNeeded,
         "moves between the memories of a device, which has one, become their operands"},
        {"dimension_sizes", ResolveDimensionSizes, kAlways, kNeeded,
         "static sizes become constants"},
        {"widen_types", passes::WidenTypes, kAlways, kNeeded,
         "numbers that no kernel computes become those of a wider type"},
        {"expand_empty", ExpandEmpty, kAlways, kNeeded,
         "operations over nothing become what they give"},
    }),
    CleanUp(kAlways),
    std::to_array<Pass>({
        {"attention", MakeAttentionCalls, kAlways, kNeeded,
         "attention becomes one library call, with the transpositions around it"},
        {"fold_reverse_into_convolution", passes::FoldReverseIntoConvolution, kAlways, kOptional,
         "a convolution flips its kernel itself"},
        {"expand_depthwise", ExpandDepthwise, kAlways, kOptional,
         "short convolutions of single channels become operations that fuse"},
        {"join_sums_of_dots", passes::JoinSumsOfDots, kAlways, kOptional,
         "a sum of products becomes one product"},
        {kConvolutionLayout, passes::UseChannelsLast, kAlways, kOptional,
         "convolutions and what follows them run channels-last"},
    }),
    CleanUp(kAfterLayoutChanged),
    std::to_array<Pass>({
        {"expand_select_and_scatter", ExpandSelectAndScatter, kAlways, kNeeded,
         "the gradient of pooling becomes operations that fuse"},
        {"separate_windows", SeparateWindows, kAlways, kOptional,
         "sums over large windows are taken along one dimension after the other"},
        {"expand_random", ExpandRandom, kAlways, kNeeded,
         "random bits become integer arithmetic, which fuses"},
        {"expand_remainder", ExpandRemainder, kAlways, kOptional,
         "remainders of floats take one division where the quotient is small"},
    }),
    CleanUp(kAlways),
    std::to_array<Pass>({
        // Fuse: operations become kernels and library calls.
        {"element_loops", MakeElementLoops, kAlways, kOptional,
         "loops over arrays whose elements do not need each other run element by element"},
        {"split_reductions", SplitReductions, kAlways, kOptional,
         "large sums to few results get parts for several threads"},
        {"expand_short_reductions", ExpandShortReductions, kAlways, kOptional,
         "reductions of pairs become operations on slices"},
        {"top_k", MakeTopKCalls, kAlways, kOptional,
         "sorts of which but the first elements are read select these"},
        {"fuse_epilogues", FuseEpilogues, kAlways, kOptional,
         "products and convolutions take the bias, activation or residual behind them"},
        {"fusion", FuseLoops, kAlways, kOptional,
         "element-wise operations, reductions and their neighbours become one kernel"},
        {"single_kernels", WrapSingleKernels, kAlways, kNeeded,
         "each operation that is in no kernel yet becomes one"},
    }));

bool Applies(When when, const PipelineOptions& options, bool layout_changed) {
  switch (when) {
    case kOnOneDevice:
      return options.single_device;
    case kAfterLayoutChanged:
      return layout_changed;
    case kAlways:
      break;
  }
  return true;
}

void Verify(const hlo::Module& module, const Pass& pass) {
  try {
    hlo::VerifyModule(module);
  } catch (const hlo::Error& error) {
    throw hlo::Error(hlo::ErrorCode::kInternal,
                     "the pass " + std::string(pass.name) +
                         " left a module that is not well formed: " + error.what());
  }
}

// What ParsePassNames has to say of a name that it does not take.
[[noreturn]] void RefuseName(std::string_view name) {
  const bool known = std::ranges::any_of(kPipeline, [&](const Pass& p) { return p.name == name; });
  std::set<std::string_view> optional;
  for (const Pass& pass : kPipeline) {
    if (pass.need == kOptional) optional.insert(pass.name);
  }
  std::string names;
  for (std::string_view other : optional) (names += names.empty() ? "" : ", ") += other;
  throw hlo::Error(
      "the pass '" + std::string(name) +
      (known ? "' cannot be left out: no program compiles without it" : "' is not there") +
      "; those that can be left out are " + names);
}

}  // namespace

std::span<const Pass> Pipeline() { return kPipeline; }

std::string_view ToString(When when) {
  switch (when) {
    case kOnOneDevice:
      return "on one device";
    case kAfterLayoutChanged:
      return "after a change of layout";
    case kAlways:
      break;
  }
  return "always";
}

std::string_view ToString(Need need) { return need == kNeeded ? "needed" : "optional"; }

std::string_view ToString(PassOutcome outcome) {
  switch (outcome) {
    case PassOutcome::kChanged:
      return "changed";
    case PassOutcome::kUnchanged:
      return "unchanged";
    case PassOutcome::kDisabled:
      return "disabled";
    case PassOutcome::kNotNeeded:
      break;
  }
  return "not needed";
}

PassNames ParsePassNames(std::string_view list) {
  PassNames names;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const bool optional = std::ranges::any_of(
        kPipeline, [&](const Pass& p) { return p.name == name && p.need == kOptional; });
    if (!optional) RefuseName(name);
    names.emplace(name);
  }
  return names;
}

const PassNames& PassesDisabledByEnvironment() {
  static const auto* names = [] {
    const char* list = std::getenv("TORCH_XLA_DISABLE_PASSES");
    try {
      return new PassNames(ParsePassNames(list ? list : ""));
    } catch (const hlo::Error& error) {
      throw hlo::Error(std::string("TORCH_XLA_DISABLE_PASSES: ") + error.what());
    }
  }();
  return *names;
}

bool VerifiesByDefault() {
#ifdef TORCH_XLA_DEBUG
  return true;
#else
  static const bool verifies = [] {
    const char* value = std::getenv("TORCH_XLA_VERIFY");
    return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
  }();
  return verifies;
#endif
}

void RunPipeline(hlo::Module& module, const PipelineOptions& options, const PassObserver& observe) {
  using Clock = std::chrono::steady_clock;
  bool layout_changed = false;
  for (size_t i = 0; i < std::size(kPipeline); ++i) {
    const Pass& pass = kPipeline[i];
    PassRun run{static_cast<int>(i) + 1, pass, PassOutcome::kNotNeeded, 0};
    if (options.disabled.contains(pass.name)) {
      run.outcome = PassOutcome::kDisabled;
    } else if (Applies(pass.when, options, layout_changed)) {
      const Clock::time_point start = Clock::now();
      const bool changed = pass.run(module);
      run.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      run.outcome = changed ? PassOutcome::kChanged : PassOutcome::kUnchanged;
      if (pass.name == kConvolutionLayout) layout_changed = changed;
      if (ProfilesSteps()) AddPassTime(pass.name, run.milliseconds);
    }
    if (observe) observe(run, module);
    if (options.verify && run.outcome == PassOutcome::kChanged) Verify(module, pass);
  }
}

}  // namespace cpu
