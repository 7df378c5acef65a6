// The counter-based generators behind rng_bit_generator, bit for bit as XLA:CPU numbers their
// output: ThreeFry2x32 (20 rounds) and Philox4x32 (10 rounds), from "Parallel Random Numbers: As
// Easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw; SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace hlo {

std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

// The blocks of a draw: take(number, words) for each, whose counter is (low, high) moved on by its
// number.
template <typename Take>
void ForEachPhiloxBlock(uint64_t key, uint64_t low, uint64_t high, uint64_t count,
                        const Take& take) {
  const auto half = [](uint64_t word, int i) { return static_cast<uint32_t>(word >> (32 * i)); };
  for (uint64_t number = 0; number < count; ++number) {
    const uint64_t counter = low + number, carried = high + (counter < low);
    take(number, Philox4x32({half(key, 0), half(key, 1)}, {half(counter, 0), half(counter, 1),
                                                           half(carried, 0), half(carried, 1)}));
  }
}

}  // namespace hlo
