// The lock under which graphs are cut, compiled and started.
#pragma once

#include <mutex>

namespace lazy {

// Recursive: what is called under it, such as an observer of graphs, may read values.
std::recursive_mutex& SyncMutex();

}  // namespace lazy
