// Warnings: what the user should know and the program can go on without.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lazy {

// Hands the text to the handler. Any thread, any lock may be held.
void Warn(const std::string& text);
// Who tells the user; by default it is written to the standard error. The handler may throw nothing
// and may not call this library.
void SetWarningHandler(std::function<void(const std::string&)> handler);

// While one lives, what its thread warns of is added to `texts` instead: a thread of this library's
// own is none that the user's filters of warnings know.
class KeptWarnings {
 public:
  explicit KeptWarnings(std::vector<std::string>& texts);
  ~KeptWarnings();
  KeptWarnings(const KeptWarnings&) = delete;
};

}  // namespace lazy
