// Programs of padded sizes (passes/pad_sizes.h), for plugins whose programs have fixed ones: where
// graphs of one structure come with other sizes, these are padded to a ladder, and each rung is
// compiled once. Under SyncMutex.
//
// What is padded is each graph's own program, lowered with its sizes. Graphs share a compiled
// program if padding makes them the same to the last constant, so that nothing is assumed of how
// one size follows from another; constants that were seen to differ are arguments.
#pragma once

#include <memory>
#include <vector>

#include "lazy/data.h"
#include "lazy/program_compile.h"
#include "passes/padded_box.h"

namespace lazy {

// Where the arguments and the results of a graph lie in those of its padded program.
struct Padding {
  std::vector<passes::PaddedBox> parameters, results;
  std::vector<std::unique_ptr<pjrt::Buffer>> arguments;  // behind the graph's own: true sizes
};

// The rung of the ladder for a size: the next power of two, 8 at least.
int64_t PaddedSize(int64_t size);

// Completes the program with one of padded sizes, found or compiled. False if that is not to be, or
// cannot be, because the mode is another one, no size of its structure has been seen to vary, or an
// operation refuses: the counter "PaddingRefused::<operation>" has it, with the line if programs
// have locations (ProgramsHaveLocations). Throws hlo::Error: what the plugin's compiler says.
bool CompilePadded(Device* device, LoweredProgram& lowered);
void ForgetSizeBuckets();

// The contents of data in the padded array that a program takes. What a program gave in an equal
// one stays there; all else goes through the host into a buffer that `owned` gets.
const pjrt::Buffer* PaddedArgument(const Data& data, const passes::PaddedBox& box,
                                   std::vector<std::unique_ptr<pjrt::Buffer>>* owned);
// What a program gave in a padded array: cut where it is read, on the host.
Reference<Data> CutData(Device* device, ShapeRef shape, passes::PaddedBox box,
                        std::unique_ptr<pjrt::Buffer> padded);

}  // namespace lazy
