// What is too large for one message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "remote/client/connection.h"

namespace remote {

// Sends it in pieces; the number is for the request that uses it.
uint64_t SendBlob(Connection& connection, std::string_view bytes);

// What comes as Contents in several replies.
struct Text {
  std::string text, format;
};
// Waits for all of them. Throws the error that they bring.
Text AskText(Connection& connection, wire::Request request);

}  // namespace remote
