#include "cpu/isa.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "hlo/error.h"

namespace cpu {

Isa IsaCap() {
  static const Isa cap = [] {
    const char* text = std::getenv("TORCH_XLA_CPU_ISA");
    std::string word = text == nullptr ? "" : text;
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (word.empty()) return Isa::kAll;
    if (word == "SSE41") return Isa::kBaseline;
    if (word == "AVX2") return Isa::kAvx2;
    if (word == "AVX512") return Isa::kAvx512;
    throw hlo::Error(hlo::ErrorCode::kInvalidArgument,
                     "TORCH_XLA_CPU_ISA is SSE41, AVX2 or AVX512, not " + word);
  }();
  return cap;
}

Isa KernelIsa() {
  static const Isa isa = [] {
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                            __builtin_cpu_supports("avx512bw") != 0 &&
                            __builtin_cpu_supports("avx512vl") != 0 &&
                            __builtin_cpu_supports("avx512dq") != 0;
    const Isa has = has_avx512 ? Isa::kAvx512 : has_avx2 ? Isa::kAvx2 : Isa::kBaseline;
    return std::min(has, IsaCap());
#else
    return Isa::kBaseline;
#endif
  }();
  return isa;
}

}  // namespace cpu
