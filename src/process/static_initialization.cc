// First runs of function-local statics. Who comes to one that another thread is making waits for
// that thread, which no forked child has. So each is made under a NoFork: the compiler's calls
// around it come here (--wrap, CMakeLists.txt), those of the libraries that are linked into ours
// among them. What makes one keeps to the rules of a Mutex: it waits for nobody who may wait for a
// fork, nor for the interpreter's lock.
#include "process/fork.h"

// Of the C++ ABI, with the names that the linker gives to the functions and to those that take
// their place.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real___cxa_guard_acquire(void* guard);
void __real___cxa_guard_release(void* guard);
void __real___cxa_guard_abort(void* guard);

// Whether the caller is to make it, and to say then that it has, or that it has thrown.
int __wrap___cxa_guard_acquire(void* guard) {
  process::BeginNoFork();
  int is_to_make = 0;
  try {
    is_to_make = __real___cxa_guard_acquire(guard);
  } catch (...) {  // it is being made by this thread
    process::EndNoFork();
    throw;
  }
  if (is_to_make == 0) process::EndNoFork();
  return is_to_make;
}

void __wrap___cxa_guard_release(void* guard) {
  __real___cxa_guard_release(guard);
  process::EndNoFork();
}

void __wrap___cxa_guard_abort(void* guard) {
  __real___cxa_guard_abort(guard);
  process::EndNoFork();
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
