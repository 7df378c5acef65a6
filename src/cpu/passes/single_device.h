// Programs for one device: collectives and device numbers have known answers.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces collectives of a world of one by their operands (collective_permute without a pair to
// itself by zeros), and replica_id and partition_id by 0. Returns true if the module changed.
bool ResolveSingleDevice(hlo::Module& module);

}  // namespace cpu
