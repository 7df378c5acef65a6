// Windows over several dimensions as windows over one.
#pragma once

#include <vector>

#include "hlo/attributes.h"

namespace cpu {

// The windows of each dimension by themselves, in the order in which they are best combined: those
// that leave fewer results first, and the last dimension, which vectors lie along, late.
std::vector<hlo::Window> OneByOne(const hlo::Window& window);

}  // namespace cpu
