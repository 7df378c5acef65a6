// Where in the user's program the interpreter is.
#pragma once

#include "lazy/collective.h"

namespace torch_xla {

// The innermost line that is in neither torch nor torch_xla: of this thread, or of the main one if
// this thread runs none (autograd's threads). Needs the interpreter's lock; takes a microsecond.
lazy::SourceLine UserLine();

}  // namespace torch_xla
