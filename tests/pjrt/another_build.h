// A plugin that says it is another build than ours.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

// A copy of a library with one bit of its build id changed, in a folder that goes with it. The code
// is the same: what is refused is refused for the build's name alone.
class AnotherBuild {
 public:
  explicit AnotherBuild(const std::string& library) {
    std::string folder = (std::filesystem::temp_directory_path() / "build-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder " + folder);
    folder_ = folder;
    std::ifstream file(library, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    bytes[BuildIdIn(bytes)] ^= 1;
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  ~AnotherBuild() { std::filesystem::remove_all(folder_); }
  AnotherBuild(const AnotherBuild&) = delete;

  std::string path() const { return (folder_ / "libpjrt_cpu.so").string(); }

 private:
  // Where the id is: in a note of type 3 by "GNU", after the sizes of both.
  static size_t BuildIdIn(const std::string& elf) {
    const std::string head("\x03\0\0\0GNU\0", 8), name_size("\x04\0\0\0", 4);
    for (size_t at = elf.find(head); at != elf.npos; at = elf.find(head, at + 1)) {
      uint32_t size = 0;
      std::memcpy(&size, elf.data() + at - 4, sizeof size);
      if (elf.substr(at - 8, 4) == name_size && size >= 8 && size <= 64) return at + head.size();
    }
    throw std::runtime_error("the library has no build id");
  }

  std::filesystem::path folder_;
};
