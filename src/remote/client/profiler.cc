// The Profiler extension: what the servers' plugins tell of their devices.
#include <cstdlib>
#include <vector>

#include "pjrt/boundary/profiler_extension.h"
#include "pjrt/wire/xspace.h"
#include "remote/client/blob.h"
#include "remote/client/client.h"

namespace remote {
namespace {

using pjrt::boundary::DeviceProfiler;

// The spaces' events as many nanoseconds later. Lines that count from the profile's start have no
// clock.
std::string Moved(std::string_view bytes, int64_t by_ns) {
  const int64_t now = NanosecondsSinceEpoch();
  pjrt::XSpace space = pjrt::ParseXSpace(bytes);
  for (pjrt::XPlane& plane : space.planes) {
    for (pjrt::XLine& line : plane.lines) {
      if (line.timestamp_ns > now / 2) line.timestamp_ns += by_ns;
    }
  }
  return pjrt::Serialize(space);
}

// On one server.
class SessionProfiler {
 public:
  explicit SessionProfiler(std::shared_ptr<PJRT_Client> client)
      : client_(std::move(client)), number_(client_->connection->NewNumbers()) {}
  SessionProfiler(const SessionProfiler&) = delete;

  ~SessionProfiler() {
    try {
      client_->connection->Post(Request(wire::Profile::FREE));
    } catch (const hlo::Error&) {
      // The server is gone, and with it the profiler.
    }
  }

  // Another host's clock may differ: by how much is known to half the time of the answer.
  void Start() {
    const int64_t before = NanosecondsSinceEpoch();
    const wire::Reply reply = client_->connection->Ask(Request(wire::Profile::START));
    const int64_t after = NanosecondsSinceEpoch();
    if (reply.numbers().numbers_size() != 1) return;
    const int64_t ahead = reply.numbers().numbers(0) - (before + after) / 2;
    ahead_ns_ = std::abs(ahead) > (after - before) / 2 ? ahead : 0;
  }

  void Stop() { client_->connection->Ask(Request(wire::Profile::STOP)); }

  std::string Collect() {
    const Text text = AskText(*client_->connection, Request(wire::Profile::COLLECT));
    return ahead_ns_ == 0 ? text.text : Moved(text.text, -ahead_ns_);
  }

 private:
  wire::Request Request(wire::Profile::What what) const {
    wire::Request request;
    request.mutable_profile()->set_profiler(number_);
    request.mutable_profile()->set_what(what);
    return request;
  }

  const std::shared_ptr<PJRT_Client> client_;
  const uint64_t number_;
  int64_t ahead_ns_ = 0;
};

// On the servers of all clients there are when it starts.
class RemoteProfiler final : public DeviceProfiler {
 public:
  void Start() override {
    sessions_.clear();
    for (std::shared_ptr<PJRT_Client>& client : LiveClients()) {
      sessions_.push_back(std::make_unique<SessionProfiler>(std::move(client)));
      sessions_.back()->Start();
    }
  }

  void Stop() override {
    for (const auto& session : sessions_) session->Stop();
  }

  std::string Collect() override {
    std::string spaces;
    for (const auto& session : sessions_) spaces += session->Collect();
    return spaces;
  }

 private:
  std::vector<std::unique_ptr<SessionProfiler>> sessions_;
};

}  // namespace
}  // namespace remote

std::unique_ptr<pjrt::boundary::DeviceProfiler> pjrt::boundary::NewDeviceProfiler() {
  return std::make_unique<remote::RemoteProfiler>();
}
