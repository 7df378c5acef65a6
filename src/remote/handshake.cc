#include "remote/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "hlo/error.h"

namespace remote {
namespace {

constexpr std::string_view kGreeting = "torch_xla/server";
static_assert(kGreeting.size() + kNonceBytes == kHelloBytes);

std::string NewNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable, "the system gives no random numbers");
  }
  return nonce;
}

// All parts but the ends, which come last, have one size.
std::string ProofOf(std::string_view side, const std::string& token, const std::string& ends,
                    std::string_view client_nonce, std::string_view server_nonce) {
  std::string text(side);
  text.append(client_nonce).append(server_nonce).append(ends);
  std::string proof(kProofBytes, '\0');
  unsigned size = 0;
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size) == nullptr ||
      size != kProofBytes) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "OpenSSL computes no HMAC-SHA-256");
  }
  return proof;
}

constexpr std::string_view kClient = "client", kServer = "server";

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

ClientHandshake::ClientHandshake(std::string token, std::string ends)
    : token_(std::move(token)), ends_(std::move(ends)), hello_(kGreeting) {
  hello_ += NewNonce();
}

std::optional<std::string> ClientHandshake::Answer(std::string_view challenge) const {
  if (challenge.size() != kChallengeBytes) return {};
  const std::string_view own = std::string_view(hello_).substr(kGreeting.size());
  const std::string_view servers = challenge.substr(0, kNonceBytes);
  if (!Same(challenge.substr(kNonceBytes), ProofOf(kServer, token_, ends_, own, servers))) {
    return {};
  }
  return ProofOf(kClient, token_, ends_, own, servers);
}

std::optional<std::string> ServerHandshake::Answer(std::string_view hello) {
  if (hello.size() != kHelloBytes || !hello.starts_with(kGreeting)) return {};
  const std::string_view clients = hello.substr(kGreeting.size());
  const std::string own = NewNonce();
  expected_ = ProofOf(kClient, token_, ends_, clients, own);
  return own + ProofOf(kServer, token_, ends_, clients, own);
}

bool ServerHandshake::Accepts(std::string_view proof) const {
  return !expected_.empty() && Same(expected_, proof);
}

}  // namespace remote
