// What C++ programs call besides libtorch itself. Linking the library makes torch::Device("xla")
// work:
//
//   find_package(torch_xla REQUIRED)
//   target_link_libraries(program torch_xla::torch_xla)
#pragma once

namespace torch_xla {

// Cuts the graph that was recorded on the current device, compiles it unless that has been done
// before, and starts its execution; with `wait`, returns when it has ended. Call it at the end of
// each step. Does nothing before the first use of a device. Throws c10::Error: a compilation's, or
// an earlier execution's (once), or with `wait` this one's.
__attribute__((visibility("default"))) void Sync(bool wait = false);

}  // namespace torch_xla
