// Thousands of damaged programs, the same in every run: each is read or refused, quickly and in
// little memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>

#include "exercise.h"

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

using Bytes = std::vector<std::byte>;

std::vector<std::pair<std::string, Bytes>> ReadArtifacts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ARTIFACTS)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::pair<std::string, Bytes>> artifacts;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::string data{std::istreambuf_iterator<char>(in), {}};
    auto bytes = std::as_bytes(std::span(data.data(), data.size()));
    artifacts.emplace_back(path.stem().string(), Bytes(bytes.begin(), bytes.end()));
  }
  return artifacts;
}

const std::vector<std::pair<std::string, Bytes>>& Artifacts() {
  static const auto* artifacts = new auto(ReadArtifacts());
  return *artifacts;
}

std::string Name(const testing::TestParamInfo<size_t>& info) {
  return Artifacts()[info.param].first;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  Bytes Mutate(Bytes bytes) {
    size_t count = 1 + Below(4);
    for (size_t i = 0; i < count && !bytes.empty(); ++i) MutateOnce(bytes);
    return bytes;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }

  void MutateOnce(Bytes& bytes) {
    constexpr unsigned char kSpecial[] = {0x00, 0x01, 0x02, 0x03, 0x7f, 0x80, 0xfe, 0xff};
    size_t at = Below(bytes.size());
    auto begin = bytes.begin() + static_cast<int64_t>(at);
    size_t length = 1 + Below(std::min<size_t>(bytes.size() - at, 16));
    auto end = begin + static_cast<int64_t>(length);
    switch (Below(8)) {
      case 0:
        bytes[at] ^= std::byte{1} << Below(8);
        return;
      case 1:
        bytes[at] = std::byte{kSpecial[Below(std::size(kSpecial))]};
        return;
      case 2:  // the next number, as short varints are written
        bytes[at] = static_cast<std::byte>(static_cast<unsigned>(bytes[at]) + 2);
        return;
      case 3:
        bytes[at] = static_cast<std::byte>(random_());
        return;
      case 4:
        bytes.erase(begin, end);
        return;
      case 5: {
        Bytes copy(begin, end);
        bytes.insert(begin, copy.begin(), copy.end());
        return;
      }
      case 6:
        bytes.resize(at);
        return;
      default:  // over another place
        std::copy_n(bytes.begin() + static_cast<int64_t>(Below(bytes.size() - length + 1)), length,
                    begin);
        return;
    }
  }

  std::mt19937 random_;
};

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

INSTANTIATE_TEST_SUITE_P(Artifacts, BytecodeFuzzTest, testing::Range(size_t{0}, Artifacts().size()),
                         Name);

}  // namespace
}  // namespace hlo
