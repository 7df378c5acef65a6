// How the ranks of a world know each other over the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cpu/collective/communicator.h"
#include "cpu/collective/tls.h"

namespace cpu {

class Security {
 public:
  enum class Mode {
    kOpen,           // the job has no secret: whoever can read the store may connect
    kAuthenticated,  // both sides of a connection prove that they know it; TORCH_XLA_TLS=0
    kEncrypted,      // and what they send can be read, and changed, by nobody else
  };

  // Throws hlo::Error for a TORCH_XLA_TLS that is neither 0 nor 1.
  explicit Security(const CommunicatorOptions& options);

  Mode mode() const { return mode_; }
  // Null if the mode is kOpen.
  const Tls* tls() const { return tls_ ? &*tls_ : nullptr; }

  // What a rank calls itself where it connects, and the rank that calls itself so; -1: none.
  static std::string NameOf(int64_t rank);
  static int64_t RankOf(const std::string& name);

 private:
  Mode mode_ = Mode::kOpen;
  std::optional<Tls> tls_;
};

// For messages, and for the others to compare.
std::string ToString(Security::Mode mode);
std::optional<Security::Mode> ModeFromString(const std::string& text);

}  // namespace cpu
