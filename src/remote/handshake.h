// How the two ends of a loopback TCP connection prove to each other that they know the same token,
// before either says anything else. Neither sends the token, nor anything by which who does not
// know it could pass for one who does: a stranger at the server's port learns a random number.
//
//   client: Hello      which client, 32 random bytes
//   server: Challenge  32 random bytes of its own, and its proof
//   client: Proof
//
// A proof is an HMAC-SHA-256 by the token over the side, both random numbers and the connection's
// two ends, so that nobody in between can pass it on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace remote {

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32;
inline constexpr size_t kHelloBytes = 16 + kNonceBytes;
inline constexpr size_t kChallengeBytes = kNonceBytes + kProofBytes;

class ClientHandshake {
 public:
  // `ends` as of EndsOf. Throws hlo::Error if the system gives no random bytes.
  ClientHandshake(std::string token, std::string ends);
  const std::string& hello() const { return hello_; }
  // The proof to send; nothing for what is no proof of the server's.
  std::optional<std::string> Answer(std::string_view challenge) const;

 private:
  const std::string token_, ends_;
  std::string hello_;
};

class ServerHandshake {
 public:
  ServerHandshake(std::string token, std::string ends)
      : token_(std::move(token)), ends_(std::move(ends)) {}
  // The challenge to send; nothing for what is no hello.
  std::optional<std::string> Answer(std::string_view hello);
  bool Accepts(std::string_view proof) const;

 private:
  const std::string token_, ends_;
  std::string expected_;
};

}  // namespace remote
