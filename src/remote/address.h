// Addresses of runtime servers: "host:port".
#pragma once

#include <string>

namespace remote {

inline constexpr char kDefaultAddress[] = "localhost:51011";

// True if only this host reaches the address: every address that the name stands for is a loopback
// one. Throws hlo::Error for what is no "host:port" and for names that are not known.
bool IsLoopback(const std::string& address);

// The whole of a file. Throws hlo::Error(kNotFound) that says what it should have held.
std::string ReadFile(const std::string& path, const std::string& what);
// The same without white space at the ends; throws if nothing is left.
std::string ReadToken(const std::string& path);

}  // namespace remote
