// What the machine can do at most, for the share of it that profiles show.
#pragma once

namespace cpu {

struct Peaks {
  double flops = 0;  // a second: a large product of f32 matrices
  double bytes = 0;  // a second, read and written: copying more than the caches hold
};

// Measured at the first call, which takes some 100 ms on all threads.
const Peaks& MeasuredPeaks();

}  // namespace cpu
