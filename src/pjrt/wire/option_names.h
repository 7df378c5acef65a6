// Names of what our plugins take beside PJRT's own options.
#pragma once

namespace pjrt {

// Of Client_Create, from a client that is one of several processes: the secret of their job, a
// string of any bytes. A plugin says by an attribute of this name that it takes it.
inline constexpr char kJobSecret[] = "job_secret";

// An override in a CompileOptionsProto, for our engine: sizes of the program's that are other ones
// in programs of its structure, so that kernels read them at run time. Text: numbers with commas
// between.
inline constexpr char kVaryingSizesOption[] = "torch_xla_varying_sizes";

}  // namespace pjrt
