// Files that the tools read.
#pragma once

#include <memory>
#include <string>

#include "hlo/literal.h"
#include "hlo/module.h"

namespace tools {

// StableHLO, text or bytecode; "-" is stdin. Throws hlo::Error that begins with the file's name.
std::unique_ptr<hlo::Module> ReadProgram(const std::string& path);

// An array that numpy.save wrote, in C order and of the shape and the element's size that `shape`
// has: numpy has no name for bfloat16, so its bytes are taken as they are. Throws hlo::Error.
hlo::Literal ReadNumpyFile(const std::string& path, const hlo::Shape& shape);

}  // namespace tools
