// The connections of a rank with all others over the network: one for data, and one for news, over
// which a rank says that it gives up or leaves, and whose end says that it has died.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpu/collective/meeting.h"
#include "cpu/collective/socket.h"

namespace cpu {

class Connections {
 public:
  enum class State : uint32_t { kHere, kLeft, kFailed, kDied };

  // Connects with every other rank. Throws hlo::Error naming the one that cannot be reached or does
  // not come.
  explicit Connections(const Meeting& meeting);
  // Tells the others that this rank leaves, unless it has told them that it failed.
  ~Connections();
  Connections(const Connections&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(peers_.size()); }

  const Socket& data(int64_t rank) const { return peers_[rank].data; }
  // What is known of a rank, and why it failed.
  State state(int64_t rank) const { return peers_[rank].state; }
  const std::string& reason(int64_t rank) const { return peers_[rank].reason; }

  // Takes in what news has come. `news` lists the sockets of ranks of which some may still come.
  void ReadNews();
  std::vector<int> news() const;
  // After its data connection has broken: why; a rank of which no news comes has died.
  void AwaitEnd(int64_t rank);
  // Tells all others.
  void Announce(State state, const std::string& reason) noexcept;

 private:
  struct News {
    State state;
    char reason[1532];
  };
  struct Peer {
    Socket data, news;
    State state = State::kHere;
    std::string reason;
    std::vector<char> partial;  // of the next news
  };
  struct Greeting;

  void ConnectTo(const Meeting& meeting, int64_t rank);
  void AcceptOthers(const Meeting& meeting, const Socket& listener, const std::string& password);
  void ReadNews(Peer& peer);

  int64_t rank_;
  pid_t process_;
  bool has_failed_ = false;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace cpu
