// How the ranks of a world connect with each other among strangers.
//
// Each listens, and connects to those below it. All connections come to stand at the same time: one
// that says nothing delays no other, and is closed after a while. On each the one that connects
// says who it is and whom it wants, the other answers, and the first confirms, after the TLS
// handshake where there is one. Who is not answered soon tries again: a flood of strangers may have
// cost it its place.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/collective/link.h"
#include "cpu/collective/rendezvous.h"
#include "cpu/collective/security.h"

namespace cpu {

// What every connection begins with: another number where the bytes that follow, or what the ranks
// tell each other later, have another form.
constexpr char kGreetingMagic[16] = "torch_xla 3";

// A rank's connections with one other: for data, and the control channel.
struct LinkPair {
  Link data, control;
};

class Introduction {
 public:
  explicit Introduction(const Rendezvous& rendezvous);
  Introduction(const Introduction&) = delete;
  ~Introduction();

  // By rank; nothing at this rank's own place. Throws hlo::Error naming the rank that cannot be
  // reached, does not come, or has another secret.
  std::vector<LinkPair> Run();

 private:
  using Clock = std::chrono::steady_clock;

  // What another rank put into the store.
  struct Address {
    std::string host;
    int port = 0;
    std::string ticket;  // of its listener: a connection is for this world, not for an earlier one
    Security::Mode mode = Security::Mode::kOpen;
  };
  class Candidate;

  void ReadAddresses();
  void CheckMode(int64_t rank) const;
  void WarnOfOpenNetwork() const;
  void ConnectTo(int64_t rank, bool is_control, Clock::time_point start,
                 std::chrono::milliseconds patience);
  void AcceptSome();
  void MakeRoom();
  void AwaitEvents(Clock::time_point deadline);
  void Advance();
  void Take(Candidate& candidate);
  void Retire(const Candidate& candidate);
  void NoteRefused(const Candidate& candidate);
  bool IsComplete() const;
  [[noreturn]] void ThrowMissing() const;

  const Rendezvous& rendezvous_;
  const int64_t rank_, size_;
  const Security security_;
  const std::string ticket_;
  Socket listener_;
  std::vector<Address> addresses_;  // by rank
  std::vector<LinkPair> links_;     // by rank
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::minstd_rand random_{std::random_device{}()};  // draws who must go
  std::map<int64_t, std::string> refused_;           // where those with another secret came from
};

}  // namespace cpu
