#include "cpu/sealed_parts.h"

#include <cstdint>
#include <cstring>

#include "hlo/error.h"
#include "process/sha256.h"

namespace cpu {
namespace {

std::string_view AsText(const process::Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::string SealParts(std::string_view kind, const std::vector<std::string_view>& parts) {
  std::string content;
  for (const std::string_view part : parts) {
    const uint64_t size = part.size();
    content.append(reinterpret_cast<const char*>(&size), sizeof size);
    content += part;
  }
  std::string sealed(kind);
  sealed += '\n';
  sealed += AsText(process::Sha256Of(content));
  return sealed += content;
}

std::vector<std::string_view> OpenSealed(std::string_view kind, std::string_view bytes,
                                         size_t at_least) {
  const std::string name(kind);
  if (!bytes.starts_with(name + '\n')) throw hlo::Error("these bytes are no " + name);
  bytes.remove_prefix(kind.size() + 1);
  constexpr size_t kDigest = sizeof(process::Sha256Digest);
  const bool is_whole =
      bytes.size() >= kDigest &&
      bytes.substr(0, kDigest) == AsText(process::Sha256Of(bytes.substr(kDigest)));
  if (!is_whole) throw hlo::Error("the " + name + " is damaged or cut off");
  bytes.remove_prefix(kDigest);
  std::vector<std::string_view> parts;
  uint64_t size = 0;
  while (bytes.size() >= sizeof size) {
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) break;
    parts.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty() || parts.size() < at_least) throw hlo::Error("the " + name + " is malformed");
  return parts;
}

}  // namespace cpu
