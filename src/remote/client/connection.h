// The client's end of a session with a runtime server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pjrt/boundary/error.h"
#include "remote/client/endpoint.h"
#include "remote/messages.h"

namespace remote {

// Requests go out in the order in which they are made. Thread-safe. In a forked child it is the
// parent's: requests throw hlo::Error(kFailedPrecondition), and nothing is given back.
class Connection {
 public:
  // Called on the connection's own thread, once for each reply of a number; with an error as the
  // last one if the server is lost, which other handlers get too: it must be left as it is. One
  // that throws ends the session, and is told so in this way.
  using Handler = std::function<void(wire::Reply& reply)>;

  // What the server says of itself. Throws hlo::Error(kUnavailable) if none answers, and
  // kUnauthenticated if it does not take the token.
  static wire::Description Describe(const Endpoint& endpoint);
  // Throw the same.
  explicit Connection(const Endpoint& endpoint);
  ~Connection();
  Connection(const Connection&) = delete;

  bool InForkedChild() const;

  // From now on messages go through rings in memory that the server shares, of Rings::kBytes.
  // Before there are requests under way.
  void UseRings(const wire::Region& region, const std::shared_ptr<char>& memory);

  // Numbers that this session has not used, `count` in a row.
  uint64_t NewNumbers(uint64_t count = 1);

  // These throw hlo::Error(kUnavailable) once the server is lost.
  //
  // Nobody waits for it: it may go out together with the next request.
  void Post(wire::Request request);
  // Goes out now. `handlers` are for as many replies in a row, the first of which becomes the
  // request's.
  void Call(wire::Request request, std::vector<Handler> handlers);
  // Waits for the reply, and throws the error that it brings.
  wire::Reply Ask(wire::Request request);

  // Gives numbers back; without memory, when the session ends. `bytes` is what waits with it if it
  // waits for the next request.
  void FreeBuffer(uint64_t number, size_t bytes) noexcept;
  void FreeExecutable(uint64_t number) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread reader_, ring_reader_, writer_;
};

// Null unless the reply brings an error.
pjrt::boundary::FailurePtr FailureOf(const wire::Reply& reply) noexcept;

}  // namespace remote
