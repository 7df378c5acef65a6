#include "cpu/collective/security.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "hlo/error.h"

namespace cpu {
namespace {

constexpr std::string_view kNameOfRank = "torch_xla rank ";

bool WantsEncryption() {
  const char* text = std::getenv("TORCH_XLA_TLS");
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty() || value == "1") return true;
  if (value == "0") return false;
  throw hlo::Error("TORCH_XLA_TLS is '" + std::string(value) + "'; it must be 0 or 1");
}

}  // namespace

Security::Security(const CommunicatorOptions& options) {
  const bool encrypts = WantsEncryption();
  if (options.secret.empty()) return;
  mode_ = encrypts ? Mode::kEncrypted : Mode::kAuthenticated;
  tls_.emplace(options.secret, NameOf(options.rank));
}

std::string Security::NameOf(int64_t rank) {
  return std::string(kNameOfRank) + std::to_string(rank);
}

int64_t Security::RankOf(const std::string& name) {
  int64_t rank = -1;
  if (!name.starts_with(kNameOfRank)) return -1;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kNameOfRank.size(), end, rank);
  return error == std::errc() && stop == end ? rank : -1;
}

std::string ToString(Security::Mode mode) {
  switch (mode) {
    case Security::Mode::kOpen:
      return "open";
    case Security::Mode::kAuthenticated:
      return "authenticated";
    case Security::Mode::kEncrypted:
      return "encrypted";
  }
  return "?";
}

std::optional<Security::Mode> ModeFromString(const std::string& text) {
  for (auto mode :
       {Security::Mode::kOpen, Security::Mode::kAuthenticated, Security::Mode::kEncrypted}) {
    if (ToString(mode) == text) return mode;
  }
  return {};
}

}  // namespace cpu
