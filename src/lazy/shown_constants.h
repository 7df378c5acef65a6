// Numbers that are attributes of an operation here, and constants among its operands in
// PyTorch/XLA, such as the exponent of a power: the text of a graph shows them as those.
#pragma once

#include <string>
#include <unordered_map>

#include "lazy/operation.h"

namespace lazy {

struct ShownConstant {
  hlo::ElementType type;
  std::string value;
};
using ConstantOf = ShownConstant (*)(const Operation&);

inline std::unordered_map<const OperationKind*, ConstantOf>& ShownConstants() {
  static auto* constants = new std::unordered_map<const OperationKind*, ConstantOf>;
  return *constants;
}

// Of each operation of the kind. Kernels are registered by one thread, before graphs are made.
inline void ShowConstant(const OperationKind& kind, ConstantOf constant) {
  ShownConstants()[&kind] = constant;
}

}  // namespace lazy
