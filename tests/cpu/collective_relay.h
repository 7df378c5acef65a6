// A process between ranks on the network: it passes on what they send each other, keeps what it has
// seen, and may change it, or stop doing so.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "collective_testing.h"

namespace cpu {

class Relay {
 public:
  // To rank 0, of the world at `store`. The byte of number `changed` of a connection is changed on
  // its way to rank 0, unless that is negative.
  explicit Relay(const KeyValueStore& store, int64_t changed = -1) : store_(store) {
    char name[] = "/tmp/collective_relay_XXXXXX";
    close(mkstemp(name));
    seen_ = name;
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = AddressOf("127.0.0.1", 0);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 16);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    process_ = fork();
    if (process_ != 0) return;
    alarm(120);
    Work(changed);
  }
  Relay(const Relay&) = delete;
  ~Relay() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(listener_);
    unlink(seen_.c_str());
  }

  // The same store, in which rank 0 stands at the relay's address.
  KeyValueStore Store() const {
    KeyValueStore through = store_;
    through.get = [get = store_.get, port = port_](const std::string& key,
                                                   std::chrono::milliseconds timeout) {
      auto value = get(key, timeout);
      if (!value || key != kRankZero) return value;
      std::istringstream text(*value);
      std::string host, old_port, rest;
      text >> host >> old_port;
      std::getline(text, rest);
      return std::optional("127.0.0.1 " + std::to_string(port) + rest);
    };
    return through;
  }

  void Stop() const { kill(process_, SIGSTOP); }
  void GoOn() const { kill(process_, SIGCONT); }

  bool HasSeen(const std::string& bytes) const {
    std::ifstream file(seen_, std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    return all.find(bytes) != std::string::npos;
  }

 private:
  static constexpr char kRankZero[] = "collectives/network/0";

  static sockaddr_in AddressOf(const std::string& host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
  }

  int ConnectToRankZero() const {
    std::istringstream text(*store_.get(kRankZero, std::chrono::seconds(10)));
    std::string host;
    int port = 0;
    text >> host >> port;
    sockaddr_in address = AddressOf(host, port);
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(1);
    return file;
  }

  [[noreturn]] void Work(int64_t changed) const {
    struct Way {
      int to;
      bool changes;
      int64_t passed = 0;
    };
    std::map<int, Way> ways;
    std::ofstream seen(seen_, std::ios::binary);
    std::vector<char> bytes(1 << 16);
    while (true) {
      std::vector<pollfd> entries{{listener_, POLLIN, 0}};
      for (const auto& [from, way] : ways) entries.push_back({from, POLLIN, 0});
      poll(entries.data(), entries.size(), -1);
      for (size_t i = 1; i < entries.size(); ++i) {
        auto found = ways.find(entries[i].fd);
        if (entries[i].revents == 0 || found == ways.end()) continue;
        Way& way = found->second;
        const ssize_t count = recv(entries[i].fd, bytes.data(), bytes.size(), 0);
        if (count <= 0) {
          const int other = way.to;
          ways.erase(entries[i].fd);
          ways.erase(other);
          close(entries[i].fd);
          close(other);
          continue;
        }
        seen.write(bytes.data(), count);
        seen.flush();
        if (way.changes && way.passed <= changed && changed < way.passed + count) {
          bytes[changed - way.passed] ^= 1;
        }
        way.passed += count;
        for (ssize_t sent = 0; sent < count;) {
          const ssize_t more = send(way.to, bytes.data() + sent, count - sent, MSG_NOSIGNAL);
          if (more <= 0) break;
          sent += more;
        }
      }
      if (entries[0].revents == 0) continue;
      const int from = accept(listener_, nullptr, nullptr), to = ConnectToRankZero();
      ways[from] = {to, true};
      ways[to] = {from, false};
    }
  }

  KeyValueStore store_;
  std::string seen_;
  int listener_ = -1, port_ = 0;
  pid_t process_ = 0;
};

}  // namespace cpu
