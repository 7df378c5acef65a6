// Thousands of damaged programs, the same in every run: each is read or refused, quickly and in
// little memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "exercise.h"
#include "mutator.h"

namespace {

std::atomic<size_t> live_bytes = 0;
// Splat constants may take 64 MiB each time a module is read, and reading happens three times.
constexpr size_t kMaxLiveBytes = size_t{512} << 20;

}  // namespace

// Counting allocation, and refusing more than the limit: std::bad_alloc fails a test.
void* operator new(size_t size) {
  void* memory = size < kMaxLiveBytes ? std::malloc(size) : nullptr;
  if (!memory) throw std::bad_alloc();
  if (live_bytes.fetch_add(malloc_usable_size(memory)) > kMaxLiveBytes) {
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

INSTANTIATE_TEST_SUITE_P(Artifacts, BytecodeFuzzTest, testing::Range(size_t{0}, Artifacts().size()),
                         ArtifactName);

}  // namespace
}  // namespace hlo
