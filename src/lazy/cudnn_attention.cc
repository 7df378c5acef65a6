#include "lazy/cudnn_attention.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "hlo/attention_composite.h"
#include "lazy/metrics.h"
#include "lazy/warning.h"
#include "passes/cudnn_attention.h"

namespace lazy {
namespace {

bool IsAttentionIn(const hlo::Module& module) {
  return std::ranges::any_of(module.computations(), [](const auto& computation) {
    return std::ranges::any_of(computation->instructions(), [](const auto& instruction) {
      return hlo::IsAttention(*instruction);
    });
  });
}

// That the kernels compute nothing is no error, and one reason is enough.
void TellRefusal(const std::string& reason) {
  static auto* refused = Counter("CudnnAttentionRefused");
  Count(refused);
  static std::once_flag warned;
  std::call_once(warned, [&] { Warn("attention is computed without cuDNN's kernels: " + reason); });
}

}  // namespace

bool IsCudnnRefusal(const hlo::Error& error) {
  switch (error.code()) {
    case hlo::ErrorCode::kUnknown:
    case hlo::ErrorCode::kInvalidArgument:
    case hlo::ErrorCode::kNotFound:
    case hlo::ErrorCode::kFailedPrecondition:
    case hlo::ErrorCode::kUnimplemented:
    case hlo::ErrorCode::kInternal:
      break;
    default:
      return false;
  }
  std::string text = error.what();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto is_in = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfMemory = {"alloc_failed", "out of memory",
                                                         "out_of_memory"};
  // The library, XLA's source that calls it and its word for it, and the calls themselves.
  constexpr std::array<std::string_view, 4> kOfCudnn = {"cudnn", "cuda_dnn", "dnn library", "fmha"};
  return std::ranges::none_of(kOfMemory, is_in) && std::ranges::any_of(kOfCudnn, is_in);
}

CudnnAttention& CudnnAttention::OfDevices() {
  static auto* attention = new CudnnAttention;
  return *attention;
}

void CudnnAttention::Compile(std::unique_ptr<hlo::Module> module,
                             const std::function<void(std::unique_ptr<hlo::Module>)>& compile) {
  if (!IsAttentionIn(*module)) return compile(std::move(module));
  Kinds kinds;
  const auto is_wanted = [&](const std::string& kind) {
    if (IsRefused(kind)) return false;
    kinds.insert(kind);
    return true;
  };
  std::unique_ptr<hlo::Module> with_kernels = module->Clone();
  if (!passes::UseCudnnAttention(*with_kernels, is_wanted)) return compile(std::move(module));
  std::string reason;
  try {
    compile(std::move(with_kernels));
    return NoteServed(kinds);
  } catch (const hlo::Error& error) {
    if (!IsCudnnRefusal(error)) throw;
    reason = error.what();
  }
  compile(std::move(module));
  NoteRefused(kinds);
  TellRefusal(reason);
}

bool CudnnAttention::IsRefused(const std::string& kind) {
  std::lock_guard lock(mutex_);
  return refused_.contains(kind);
}

void CudnnAttention::NoteServed(const Kinds& kinds) {
  std::lock_guard lock(mutex_);
  served_.insert(kinds.begin(), kinds.end());
}

void CudnnAttention::NoteRefused(const Kinds& kinds) {
  std::lock_guard lock(mutex_);
  Kinds suspects;
  std::ranges::set_difference(kinds, served_, std::inserter(suspects, suspects.end()));
  refused_.merge(suspects.empty() ? Kinds(kinds) : std::move(suspects));
}

}  // namespace lazy
