// Real programs, and damaged copies of them that are the same in every run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hlo {

using Bytes = std::vector<std::byte>;

inline std::vector<std::pair<std::string, Bytes>> ReadArtifacts() {
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

inline const std::vector<std::pair<std::string, Bytes>>& Artifacts() {
  static const auto* artifacts = new auto(ReadArtifacts());
  return *artifacts;
}

inline std::string ArtifactName(const testing::TestParamInfo<size_t>& info) {
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

}  // namespace hlo
