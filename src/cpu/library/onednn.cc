#include "cpu/library/onednn.h"

#ifdef __clang__
// GCC's header of its OpenMP is not for clang.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);
#else
#include <omp.h>
#endif

#include "cpu/memory.h"

namespace cpu {

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& OneDnnStream() {
  thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

OneThread::OneThread() : previous_(omp_get_max_threads()) {
  if (previous_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (previous_ != 1) omp_set_num_threads(previous_);
}

void* ThreadScratch(size_t bytes) {
  thread_local Block block;
  if (block.bytes() < bytes) {
    block = Block();
    block = Block(bytes);
  }
  return block.data();
}

}  // namespace cpu
