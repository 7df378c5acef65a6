// Threads as the layer knows them.
#pragma once

#include <cstdint>

namespace lazy {

// Of the calling thread, from 1 on, and of no other, as the system's numbers are, which come again.
int64_t ThreadNumber();

}  // namespace lazy
