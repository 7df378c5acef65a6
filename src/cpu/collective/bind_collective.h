// From HLO's collectives to the engine's.
#pragma once

#include <memory>

#include "cpu/collective/collective.h"
#include "cpu/library_call.h"
#include "hlo/instruction.h"

namespace cpu {

// For an instruction that is a collective (hlo::IsCollective). Replica groups are taken as ranks.
// Throws hlo::Error(kUnimplemented) for a reduction that is none of Reduction's.
Collective CollectiveOf(const hlo::Instruction& instruction);

// replica_id and partition_id, from RunOptions; null for others.
std::unique_ptr<LibraryCall> BindDeviceNumber(const hlo::Instruction& instruction);

}  // namespace cpu
