// What the threads that give signs of life, and listen for those of others, have alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace cpu {

// It gets no signals, which are for the program's own threads. Throws
// hlo::Error(kResourceExhausted).
std::thread StartHeartbeatThread(std::function<void()> work);

// On the standard error stream: the program may be in no collective that could say so.
void WarnOfSilence(int64_t rank, std::chrono::milliseconds timeout);

}  // namespace cpu
