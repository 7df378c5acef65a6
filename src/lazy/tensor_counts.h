// The counters of tensors, CreateXlaTensor and DestroyXlaTensor, as PyTorch/XLA counts: it makes
// one for each value, and for each number beside a tensor. Their difference is the tensors that
// live.
#pragma once

#include "lazy/metrics.h"

namespace lazy {

inline void CountTensorMade() {
  static auto* made = Counter("CreateXlaTensor");
  Count(made);
}
inline void CountTensorDestroyed() {
  static auto* destroyed = Counter("DestroyXlaTensor");
  Count(destroyed);
}
// One that is there for a single operation, or the value that another takes the place of.
inline void CountPassingTensor() {
  CountTensorMade();
  CountTensorDestroyed();
}

}  // namespace lazy
