// A recorded operation that other processes take part in, with the line of the user's program that
// recorded it: errors name the lines of all processes.
#pragma once

#include <cstdint>
#include <string>

#include "lazy/node.h"

namespace lazy {

struct SourceLine {
  std::string file;  // empty: unknown
  int32_t number = 0;
};

struct PendingCollective {
  Reference<Node> node;
  SourceLine line;
};

// The line that this thread carries out while the object lives.
class SourceScope {
 public:
  explicit SourceScope(SourceLine line);
  ~SourceScope();
  SourceScope(const SourceScope&) = delete;
  static SourceLine Current();

 private:
  SourceLine line_;
  const SourceLine* before_;
};

}  // namespace lazy
