#include "cpu/library/onednn.h"

#ifdef __clang__
// GCC's header of its OpenMP is not for clang.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);
#else
#include <omp.h>
#endif

#include "cpu/isa.h"
#include "cpu/memory.h"

namespace cpu {

namespace {

// Before oneDNN generates any code, which fixes what it uses.
void CapIsa() {
  static const bool capped = [] {
    switch (IsaCap()) {
      case Isa::kBaseline:
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
        break;
      case Isa::kAvx2:
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
        break;
      case Isa::kAvx512:
        dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
        break;
      case Isa::kAll:
        break;
    }
    return true;
  }();
  (void)capped;
}

}  // namespace

dnnl::cpu_isa OneDnnIsa() {
  CapIsa();
  return dnnl::get_effective_cpu_isa();
}

const dnnl::engine& OneDnnEngine() {
  CapIsa();
  static const dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& OneDnnStream() {
  thread_local dnnl::stream stream(OneDnnEngine());
  return stream;
}

OneThread::OneThread() : previous_(omp_get_max_threads()) {
  CapIsa();
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
