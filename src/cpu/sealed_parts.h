// Byte strings in one, with a checksum over all of it: what is cut off or changed is refused as a
// whole, before anything of it is used. The checksum finds damage; it does not tell who wrote it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cpu {

// `kind` says what it is, and in which version of the format.
std::string SealParts(std::string_view kind, const std::vector<std::string_view>& parts);

// The parts, which point into `bytes`. Throws hlo::Error(kInvalidArgument) unless they were sealed
// as this kind, at least `at_least` of them.
std::vector<std::string_view> OpenSealed(std::string_view kind, std::string_view bytes,
                                         size_t at_least);

}  // namespace cpu
