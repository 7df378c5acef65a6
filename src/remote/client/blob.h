// What is too large for one message.
#pragma once

#include <cstdint>
#include <string_view>

#include "remote/client/connection.h"

namespace remote {

// Sends it in pieces; the number is for the request that uses it.
uint64_t SendBlob(Connection& connection, std::string_view bytes);

}  // namespace remote
