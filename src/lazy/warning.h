// Warnings: what the user should know and the program can go on without.
#pragma once

#include <functional>
#include <string>

namespace lazy {

// Hands the text to the handler. Any thread, any lock may be held.
void Warn(const std::string& text);
// Who tells the user; by default it is written to the standard error. The handler may throw nothing
// and may not call this library.
void SetWarningHandler(std::function<void(const std::string&)> handler);

}  // namespace lazy
