#include "cpu/collective/mixed_transport.h"

#include <algorithm>
#include <utility>

namespace cpu {

MixedTransport::MixedTransport(std::vector<int64_t> hosts, int64_t rank,
                               std::unique_ptr<Transport> local, std::unique_ptr<Transport> network)
    : hosts_(std::move(hosts)),
      rank_(rank),
      local_(std::move(local)),
      network_(std::move(network)) {}

Transport& MixedTransport::For(const Exchange& exchange) const {
  const bool is_local = local_ != nullptr &&
                        std::ranges::all_of(exchange.members, [&](int64_t r) { return IsHere(r); });
  return is_local ? *local_ : *network_;
}

void MixedTransport::AllReduce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                               const FlatArray& out) {
  For(exchange).AllReduce(exchange, type, in, out);
}

void MixedTransport::ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                                   const std::vector<FlatArray>& parts, const FlatArray& out) {
  For(exchange).ReduceScatter(exchange, type, parts, out);
}

void MixedTransport::AllGather(const Exchange& exchange, const FlatArray& in,
                               const std::vector<FlatArray>& parts) {
  For(exchange).AllGather(exchange, in, parts);
}

void MixedTransport::AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                              const std::vector<FlatArray>& out) {
  For(exchange).AllToAll(exchange, in, out);
}

void MixedTransport::Broadcast(const Exchange& exchange, const FlatArray& in,
                               const FlatArray& out) {
  For(exchange).Broadcast(exchange, in, out);
}

// Each pair goes its own way; first all local ones, on every rank.
void MixedTransport::Permute(const Exchange& exchange, const FlatArray& in, const FlatArray& out,
                             int64_t target, int64_t source) {
  auto among = [](int64_t rank, bool wanted) { return wanted ? rank : -1; };
  const bool target_here = target >= 0 && local_ != nullptr && IsHere(target);
  const bool source_here = source >= 0 && local_ != nullptr && IsHere(source);
  if (target_here || source_here) {
    local_->Permute(exchange, in, source_here ? out : FlatArray(), among(target, target_here),
                    among(source, source_here));
  }
  const bool target_away = target >= 0 && !target_here;
  const bool source_away = source >= 0 && !source_here;
  if (target_away || source_away) {
    network_->Permute(exchange, in, source_away ? out : FlatArray(), among(target, target_away),
                      among(source, source_away));
  }
  if (source < 0) out.FillZero();
}

void MixedTransport::Fail(const std::string& reason) noexcept {
  if (local_ != nullptr) local_->Fail(reason);
  network_->Fail(reason);
}

}  // namespace cpu
