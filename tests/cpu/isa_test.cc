#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cpu/host.h"
#include "hlo/error.h"

namespace cpu {
namespace {

// Each in a process of its own, since the variable is read once.
void ExpectInChild(const char* word, bool (*holds)()) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("TORCH_XLA_CPU_ISA", word, 1);
  EXPECT_EXIT(_Exit(holds() ? 0 : 1), ::testing::ExitedWithCode(0), "") << word;
  unsetenv("TORCH_XLA_CPU_ISA");
}

bool Has(const char* feature) { return Host().features.find(feature) != std::string::npos; }

TEST(Isa, GeneratedCodeKeepsToTheCap) {
  ExpectInChild("SSE41", [] { return Host().vector_bytes == 16 && !Has("+avx") && !Has("+fma"); });
  ExpectInChild("avx2",
                [] { return Host().vector_bytes <= 32 && !Has("+avx512") && !Has("+amx"); });
  ExpectInChild("AVX512",
                [] { return !Has("+avx512bf16") && !Has("+avx512fp16") && !Has("+amx"); });
  ExpectInChild("", [] { return IsaCap() == Isa::kAll; });
}

TEST(Isa, AnotherWordIsAnError) {
  ExpectInChild("AVX", [] {
    try {
      Host();
      return false;
    } catch (const hlo::Error& error) {
      return error.code() == hlo::ErrorCode::kInvalidArgument;
    }
  });
}

}  // namespace
}  // namespace cpu
