// Which processes can share memory with which.
#pragma once

#include <string>

namespace cpu {

// Equal for processes of one host: of the same running kernel that see the same processes (by which
// they open each other's memory) and the same network, and belong to the same user.
std::string HostIdentity();

// An address of this host at which others may reach it: that of the interface GLOO_SOCKET_IFNAME,
// else the one from which MASTER_ADDR is reached, else the first that is not a loopback's.
std::string HostAddress();

}  // namespace cpu
