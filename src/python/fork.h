// Forks by the interpreter.
#pragma once

namespace torch_xla {

// os.fork takes locks of the interpreter before the system's handlers run. Threads whose work a
// fork waits for may want them, so the runtime is asked first, and waited for without the
// interpreter's lock.
void OrderForks();

}  // namespace torch_xla
