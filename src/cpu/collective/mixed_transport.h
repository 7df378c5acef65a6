// Collectives in a world of several hosts: through shared memory between the processes of one host,
// over the network where members are on different ones.
#pragma once

#include <memory>
#include <vector>

#include "cpu/collective/transport.h"

namespace cpu {

class MixedTransport : public Transport {
 public:
  // `hosts[rank]` is the number of a rank's host. `local` serves the ranks of this rank's host, and
  // is null if it is alone there; `network` serves all.
  MixedTransport(std::vector<int64_t> hosts, int64_t rank, std::unique_ptr<Transport> local,
                 std::unique_ptr<Transport> network);

  void AllReduce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                 const FlatArray& out) override;
  void ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                     const std::vector<FlatArray>& parts, const FlatArray& out) override;
  void AllGather(const Exchange& exchange, const FlatArray& in,
                 const std::vector<FlatArray>& parts) override;
  void AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                const std::vector<FlatArray>& out) override;
  void Broadcast(const Exchange& exchange, const FlatArray& in, const FlatArray& out) override;
  void Permute(const Exchange& exchange, const FlatArray& in, const FlatArray& out, int64_t target,
               int64_t source) override;
  void Fail(const std::string& reason) noexcept override;

 private:
  bool IsHere(int64_t rank) const { return hosts_[rank] == hosts_[rank_]; }
  Transport& For(const Exchange& exchange) const;

  std::vector<int64_t> hosts_;
  int64_t rank_;
  std::unique_ptr<Transport> local_, network_;
};

}  // namespace cpu
