// Compile options of our engine's own: the overrides of a PJRT CompileOptionsProto by their names.
#pragma once

namespace pjrt {

// Sizes of the program's that are other ones in programs of its structure: kernels read them at run
// time. Text: numbers with commas between.
inline constexpr const char* kVaryingSizesOption = "torch_xla_varying_sizes";

}  // namespace pjrt
