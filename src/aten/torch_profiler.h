// torch.profiler sees the spans of the lazy layer as it sees record_function's.
#pragma once

namespace torch_xla {

void ShowSpansToTorchProfiler();

}  // namespace torch_xla
