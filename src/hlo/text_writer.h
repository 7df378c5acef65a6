// StableHLO in MLIR's textual form, for people and for plugins that take "mlir" programs as text.
#pragma once

#include <string>

#include "hlo/module.h"

namespace hlo {

struct TextOptions {
  bool locations = false;  // append loc("op"("file":line:column)) from the metadata
  // Each of them once, after the module, under a name by which operations refer to it: #loc1.
  bool location_aliases = false;
  int64_t max_constant_elements = -1;  // longer constants are elided (not parseable); -1: never
};

// Accepted by MLIR's parser with the stablehlo dialect at version 1.8.0.
std::string WriteStablehloText(const Module& module, const TextOptions& options = {});

}  // namespace hlo
