#include "remote/dial.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "hlo/error.h"
#include "remote/address.h"
#include "remote/handshake.h"

namespace remote {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kAnswerTime = std::chrono::seconds(10);

bool SendAll(int connection, std::string_view bytes) {
  return send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

// What the peer sends, `size` bytes of it; less if it sends no more in time.
std::string Receive(int connection, size_t size) {
  const Clock::time_point end = Clock::now() + kAnswerTime;
  std::string received(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd readable = {connection, POLLIN, 0};
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) < 0) break;
    const ssize_t count = recv(connection, received.data() + filled, size - filled, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (count > 0) filled += count;
  }
  received.resize(filled);
  return received;
}

hlo::Error Stranger(const std::string& address, const std::string& why) {
  return hlo::Error(hlo::ErrorCode::kUnauthenticated,
                    "what listens at '" + address + "' is no runtime server of this user's: " +
                        why + ". Nothing was sent there");
}

}  // namespace

Descriptor Dial(const std::string& address, const std::string& token, const OnSocket& on_socket) {
  Descriptor connection = Connect(address, on_socket);
  if (SocketPath(address)) {
    if (IsOwnPeer(connection.get())) return connection;
    throw Stranger(address, "the process there belongs to another user");
  }
  if (token.empty()) {
    throw Stranger(address, "it would have left a token in '" + OwnTokenFile() +
                                "'; for another user's, PJRT_REMOTE_TOKEN_FILE names a file with "
                                "its token");
  }
  const ClientHandshake handshake(token, EndsOf(connection.get(), /*of_server=*/false));
  std::optional<std::string> proof;
  if (SendAll(connection.get(), handshake.hello())) {
    proof = handshake.Answer(Receive(connection.get(), kChallengeBytes));
  }
  if (!proof) {
    throw Stranger(
        address,
        "it does not prove that it knows this process's token (from "
        "PJRT_REMOTE_TOKEN_FILE, or else from '" +
            OwnTokenFile() +
            "'). It may be another user's, started with another token, one that uses TLS "
            "and wants its certificate in PJRT_REMOTE_CERTIFICATE, or reached through a "
            "tunnel, which takes TLS or a Unix socket");
  }
  if (!SendAll(connection.get(), *proof)) {
    throw hlo::Error(hlo::ErrorCode::kUnavailable, "the server closed the connection");
  }
  return connection;
}

}  // namespace remote
