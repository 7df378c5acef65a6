// The counter-based generators behind rng_bit_generator, bit for bit as XLA:CPU numbers their
// output: ThreeFry2x32 (20 rounds) and Philox4x32 (10 rounds), from "Parallel Random Numbers: As
// Easy as 1, 2, 3" (Salmon, Moraes, Dror, Shaw; SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace hlo {

std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> counter);
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter);

}  // namespace hlo
