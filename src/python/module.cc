// The extension module _XLAC. What each function does is said in torch_xla/_XLAC.pyi.
#include <torch/csrc/utils/pybind.h>

#include "lazy/metrics.h"
#include "python/bindings.h"

PYBIND11_MODULE(_XLAC, m) {
  m.doc() = "The C++ core of torch_xla.";
  torch_xla::BindRuntime(m);
  torch_xla::BindTensors(m);
  torch_xla::BindBuffers(m);
  torch_xla::BindDlpack(m);
  torch_xla::BindMetrics(m);
  torch_xla::BindFallback(m);
  torch_xla::BindDebugging(m);
  torch_xla::BindAheadOfTime(m);
  torch_xla::BindCapturedGraphs(m);
  torch_xla::BindControlFlow(m);
  torch_xla::BindProfiler(m);
  torch_xla::BindXlaBuilder(m);
  torch_xla::BindExport(m);
  torch_xla::BindWorld(m);
  // Loading the library has registered its kernels.
  lazy::Count(lazy::Counter("RegisterXLAFunctions"));
}
