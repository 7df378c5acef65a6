// Who may speak to a server on a local address: processes of its user at a Unix socket, and those
// that know the token on loopback TCP.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "remote/local_socket.h"

namespace remote {

// Strangers cost a descriptor each for a few seconds, are few at a time, and never make others
// wait: all of them are served by one thread that waits for none.
class Acceptor {
 public:
  // `take` gets each connection that has proven itself, on the acceptor's thread. Throws
  // hlo::Error, and std::system_error if there is no thread.
  Acceptor(Listener listener, std::string token, std::function<void(Descriptor)> take);
  // Takes nobody any more, and ends the handshakes under way.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

 private:
  class Pending;
  void Run() noexcept;
  void RunOnce();
  void Accept(const Descriptor& socket);

  Listener listener_;
  const std::string token_;
  const std::function<void(Descriptor)> take_;
  Descriptor wake_;  // readable once it is to end
  std::list<Pending> pending_;
  std::thread thread_;
};

}  // namespace remote
