// Files that the tools read.
#pragma once

#include <memory>
#include <string>

#include "hlo/literal.h"
#include "hlo/module.h"

namespace tools {

// StableHLO, text or bytecode; "-" is stdin. Throws hlo::Error that begins with the file's name.
std::unique_ptr<hlo::Module> ReadProgram(const std::string& path);

// An array that numpy.save wrote, little-endian, in C order and of `shape`, its element type
// included. Types that numpy lacks, such as bfloat16, are arrays of void of their size, "V2", whose
// bytes are taken as they are. Throws hlo::Error that begins with the file's name.
hlo::Literal ReadNumpyFile(const std::string& path, const hlo::Shape& shape);

}  // namespace tools
