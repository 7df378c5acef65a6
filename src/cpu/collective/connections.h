// The connections of a rank with all others over the network: one for data, and a control channel
// over which a rank says that it gives up or leaves, and gives signs of life meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/collective/link.h"
#include "cpu/collective/peer_watch.h"
#include "cpu/collective/rendezvous.h"

namespace cpu {

class Connections {
 public:
  // Connects with every other rank. Throws hlo::Error naming the one that cannot be reached, does
  // not come, or does not know the job's secret.
  explicit Connections(const Rendezvous& rendezvous);
  // Tells the others that this rank leaves, unless it has told them that it failed.
  ~Connections();
  Connections(const Connections&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(data_.size()); }

  Link& data(int64_t rank) { return data_[rank]; }
  PeerWatch& peers() { return *peers_; }
  const PeerWatch& peers() const { return *peers_; }
  // Tells all others why this rank gives up.
  void Fail(const std::string& reason) noexcept;

 private:
  int64_t rank_;
  bool has_failed_ = false;
  std::vector<Link> data_;  // by rank
  std::unique_ptr<PeerWatch> peers_;
  int64_t process_;
};

}  // namespace cpu
