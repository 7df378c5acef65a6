// The secret of the job that this process belongs to. It goes to a plugin that takes it when the
// runtime starts as a member of a world, and stands in no other option: those are printed, and part
// of keys.
#pragma once

#include <string>

namespace lazy {

// Set by the provider of the world, before it answers. Empty: the job has none. Thread-safe.
void SetJobSecret(std::string secret);
std::string JobSecret();

}  // namespace lazy
