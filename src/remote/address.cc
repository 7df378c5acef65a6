#include "remote/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "hlo/error.h"

namespace remote {
namespace {

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return false;
}

}  // namespace

bool IsLoopback(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    throw hlo::Error("'" + address +
                     "' is no address of a runtime server; it must be host:port, "
                     "such as " +
                     kDefaultAddress);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, "the host of the runtime server's address '" +
                                                    address +
                                                    "' is not known: " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (!IsLoopback(entry->ai_addr)) return false;
  }
  return true;
}

std::string ReadFile(const std::string& path, const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || text.empty()) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, what + " cannot be read from '" + path + "'");
  }
  return text;
}

std::string ReadToken(const std::string& path) {
  constexpr char kSpace[] = " \t\r\n";
  std::string text = ReadFile(path, "the runtime server's token");
  const size_t begin = text.find_first_not_of(kSpace);
  const size_t end = text.find_last_not_of(kSpace);
  if (begin == std::string::npos) throw hlo::Error("the token in '" + path + "' is empty");
  return text.substr(begin, end - begin + 1);
}

}  // namespace remote
