// Thousands of damaged programs, the same in every run: each is read or refused, quickly and in
// little memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "exercise.h"
#include "mutator.h"

namespace {

std::atomic<size_t> live_bytes = 0;
// Splat constants may take 64 MiB each time a module is read, and reading happens three times.
constexpr size_t kMaxLiveBytes = size_t{512} << 20;
std::atomic<size_t> max_live_bytes = kMaxLiveBytes;

}  // namespace

// Counting allocation, and refusing more than the limit: std::bad_alloc fails a test.
void* operator new(size_t size) {
  void* memory = size < max_live_bytes ? std::malloc(size) : nullptr;
  if (!memory) throw std::bad_alloc();
  if (live_bytes.fetch_add(malloc_usable_size(memory)) > max_live_bytes) {
    live_bytes.fetch_sub(malloc_usable_size(memory));
    std::free(memory);
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  if (!memory) return;
  live_bytes.fetch_sub(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace hlo {
namespace {

Bytes TextOf(const Bytes& bytecode) {
  const std::string text = WriteStablehloText(*ReadBytecode(bytecode), {.locations = true});
  return {BytesOf(text).begin(), BytesOf(text).end()};
}

class BytecodeFuzzTest : public testing::TestWithParam<size_t> {};

TEST_P(BytecodeFuzzTest, SeedIsRead) { EXPECT_TRUE(Exercise(Artifacts()[GetParam()].second)); }

TEST_P(BytecodeFuzzTest, EveryPrefixIsRefused) {
  const Bytes& seed = Artifacts()[GetParam()].second;
  for (size_t size = 0; size < seed.size(); ++size) {
    Bytes prefix(seed.begin(), seed.begin() + static_cast<int64_t>(size));  // exact, for sanitizers
    EXPECT_FALSE(Exercise(prefix)) << size;
  }
}

TEST_P(BytecodeFuzzTest, MutationsAreReadOrRefused) {
  constexpr int kMutations = 1000;
  const Bytes& seed = Artifacts()[GetParam()].second;
  Mutator mutator(static_cast<unsigned>(GetParam()) + 1);
  int read = 0;
  for (int i = 0; i < kMutations; ++i) {
    Bytes input = mutator.Mutate(seed);
    auto start = std::chrono::steady_clock::now();
    try {
      read += Exercise(input);
    } catch (const std::exception& error) {
      FAIL() << "mutation " << i << ": " << error.what();
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 10) << "mutation " << i;
  }
  // Some changes do no harm (names, numbers): the test reaches beyond the container.
  EXPECT_GT(read, 0);
}

// The same programs as text. Every prefix would take long: some.
TEST_P(BytecodeFuzzTest, PrefixesOfTextAreRefused) {
  const Bytes text = TextOf(Artifacts()[GetParam()].second);
  const size_t step = std::max<size_t>(1, text.size() / 50);
  for (size_t size = 0; size + 2 < text.size(); size += step) {
    Bytes prefix(text.begin(), text.begin() + static_cast<int64_t>(size));
    EXPECT_FALSE(Exercise(prefix)) << size;
  }
}

TEST_P(BytecodeFuzzTest, MutationsOfTextAreReadOrRefused) {
  constexpr int kMutations = 200;
  const Bytes seed = TextOf(Artifacts()[GetParam()].second);
  EXPECT_TRUE(Exercise(seed));
  Mutator mutator(static_cast<unsigned>(GetParam()) + 1);
  for (int i = 0; i < kMutations; ++i) {
    const Bytes input = mutator.Mutate(seed);
    try {
      Exercise(input);
    } catch (const std::exception& error) {
      FAIL() << "mutation " << i << ": " << error.what();
    }
  }
}

std::string Repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

std::string Listed(const std::string& part, int count) {
  return Repeated(part + ", ", count - 1) + part;
}

constexpr std::string_view kMain = "func.func @main(%a: tensor<f32>) {\nreturn\n}\n";

// True if the program is read; either way in memory of a small multiple of its size.
bool IsReadInLittleMemory(const std::string& text) {
  constexpr size_t kFactor = 200, kConstant = size_t{8} << 20;
  struct Limit {
    ~Limit() { max_live_bytes = kMaxLiveBytes; }
  } restore;
  max_live_bytes = live_bytes + kConstant + kFactor * text.size();
  try {
    ReadStablehloText(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Short names of long things, used often.
TEST(TextMemory, AliasOfAFunctionsType) {
  constexpr int kMany = 10000;
  EXPECT_FALSE(IsReadInLittleMemory("!f = () -> (" + Listed("i1", kMany) + ")\n" +
                                    "func.func @main() {\n" + Repeated("\"a\"():!f\n", kMany) +
                                    "return\n}"));
}

TEST(TextMemory, AliasOfFields) {
  const auto alias = [](int count) {
    std::string text = "#a = #stablehlo.gather<";
    for (int i = 0; i < count; ++i) text += "a" + std::to_string(i) + " = 1, ";
    return text + "z = 1>\n";
  };
  EXPECT_FALSE(IsReadInLittleMemory(alias(10000) + std::string(kMain)));
  // As many as there may be, in each of many dictionaries; twice in one.
  const std::string few = alias(14);
  std::string dictionaries;
  for (int i = 0; i < 2000; ++i) {
    dictionaries += "{b = " + std::to_string(i) + ", a = #a}, ";
  }
  EXPECT_TRUE(IsReadInLittleMemory(few + "#b = [" + dictionaries + "1]\n" + std::string(kMain)));
  EXPECT_FALSE(IsReadInLittleMemory(few + "#b = {b = #a, c = #a}\n" + std::string(kMain)));
}

TEST(TextMemory, AliasesOfALocation) {
  std::string text = "#l = loc(fused[" + Listed("\"\"", 10000) + "])\n";
  for (int i = 0; i < 10000; ++i) text += "#l" + std::to_string(i) + " = loc(#l)\n";
  EXPECT_TRUE(IsReadInLittleMemory(text + std::string(kMain)));
}

TEST(TextMemory, UsesOfAResource) {
  constexpr int kMany = 2000;
  std::string uses;
  for (int i = 0; i < kMany; ++i) {
    uses += "dense_resource<r> : tensor<" + std::to_string(i) + "xi8>, ";
  }
  EXPECT_TRUE(IsReadInLittleMemory("#a = [" + uses + "1]\n" + std::string(kMain) +
                                   "{-# dialect_resources: { builtin: { r: \"0x04000000" +
                                   Repeated("00", 100 * kMany) + "\" } } #-}"));
}

// One element that stands for many, where no constant's allowance pays for them.
TEST(TextMemory, SplatInADictionary) {
  for (const char* type :
       {"tensor<300000000xi64>", "tensor<2x4000000xf32>", "tensor<90000000xi1>"}) {
    const char* value = std::strstr(type, "i1") ? "true" : std::strstr(type, "f32") ? "1.0" : "1";
    const std::string text =
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.custom_call @f(%a) {api_version = 4 : i32, backend_config = {x = dense<" +
        std::string(value) + "> : " + type +
        "}} : (tensor<f32>) -> tensor<f32>\n"
        "return %0 : tensor<f32>\n}";
    EXPECT_FALSE(IsReadInLittleMemory(text)) << type;
  }
}

INSTANTIATE_TEST_SUITE_P(Artifacts, BytecodeFuzzTest, testing::Range(size_t{0}, Artifacts().size()),
                         ArtifactName);

}  // namespace
}  // namespace hlo
