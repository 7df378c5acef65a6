#include "cpu/collective/connections.h"

#include <unistd.h>

#include <utility>

#include "cpu/collective/heartbeat.h"
#include "cpu/collective/introduction.h"

namespace cpu {

Connections::Connections(const Rendezvous& rendezvous)
    : rank_(rendezvous.options().rank), process_(getpid()) {
  const auto timeout = rendezvous.options().heartbeat_timeout;
  const auto retry = std::chrono::ceil<std::chrono::seconds>(FailureDetector::Period(timeout));
  std::vector<Link> control;
  for (LinkPair& pair : Introduction(rendezvous).Run()) {
    for (const Link* link : {&pair.data, &pair.control}) {
      if (*link) link->socket().Persist(retry);
    }
    data_.push_back(std::move(pair.data));
    control.push_back(std::move(pair.control));
  }
  peers_ = std::make_unique<PeerWatch>(std::move(control), timeout);
}

Connections::~Connections() {
  if (getpid() == process_ && !has_failed_) peers_->Announce(PeerWatch::State::kLeft, "");
}

void Connections::Fail(const std::string& reason) noexcept {
  has_failed_ = true;
  peers_->Announce(PeerWatch::State::kFailed, reason);
}

}  // namespace cpu
