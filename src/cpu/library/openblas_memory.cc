// Makes the serial OpenBLAS safe to call from several threads. Its routines take their work areas
// from one table, which the serial build searches without a lock: two threads could be given the
// same area, and both products came out wrong. The linker sends every call of the two functions
// here (--wrap in CMakeLists.txt), where a lock stands around the original. Source: OpenBLAS's
// driver/others/memory.c and its option USE_LOCKING, which Debian's build does not set.
#include <mutex>

#include "process/fork.h"

extern "C" {
void* __real_blas_memory_alloc(int position);
void __real_blas_memory_free(void* area);
}

namespace {

// Never destroyed: threads may still compute while static objects go.
process::Mutex& TableMutex() {
  static auto* mutex = new process::Mutex;
  return *mutex;
}

}  // namespace

extern "C" {

void* __wrap_blas_memory_alloc(int position) {
  std::lock_guard lock(TableMutex());
  return __real_blas_memory_alloc(position);
}

void __wrap_blas_memory_free(void* area) {
  std::lock_guard lock(TableMutex());
  __real_blas_memory_free(area);
}

}  // extern "C"
