#include "process/library_identity.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace process {
namespace {

struct Search {
  uintptr_t address;
  std::string build_id;
};

bool Holds(const dl_phdr_info& library, uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library.dlpi_phdr[i];
    const uintptr_t begin = library.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) {
      return true;
    }
  }
  return false;
}

// The notes of a segment: headers, each followed by a name and a description, at multiples of 4.
std::string BuildIdIn(const char* notes, size_t size) {
  const auto aligned = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name_at = sizeof note, description_at = name_at + aligned(note.n_namesz);
    const size_t end = description_at + aligned(note.n_descsz);
    if (end > size) break;
    const std::string_view name(notes + name_at, note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      return std::string(notes + description_at, note.n_descsz);
    }
    notes += end;
    size -= end;
  }
  return "";
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

int Visit(dl_phdr_info* library, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!Holds(*library, search.address)) return 0;
  for (int i = 0; i < library->dlpi_phnum && search.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(library->dlpi_addr + segment.p_vaddr);
    search.build_id = BuildIdIn(notes, segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string LibraryIdentity(const void* address) {
  Dl_info info{};
  const bool found = dladdr(address, &info) != 0 && info.dli_fname != nullptr;
  return LibraryIdentity(address, found ? info.dli_fname : "/proc/self/exe");
}

std::string LibraryIdentity(const void* address, const std::string& path) {
  Search search{reinterpret_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(&Visit, &search);
  if (!search.build_id.empty()) return "build id " + ToHex(search.build_id);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return path;
  return path + " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) +
         "." + std::to_string(status.st_mtim.tv_nsec);
}

}  // namespace process
