// What the two forms of recurrent layers, as a program and by torch's kernels, have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "aten/recurrent_layers.h"

namespace torch_xla {

// Where the elements of packed sequences are among those of a whole block, [steps, batch], and the
// other way round; nothing where no sequences are packed.
struct Packing {
  int64_t steps, batch;
  std::vector<int64_t> in_block;   // of each packed element
  std::vector<int64_t> in_packed;  // of each place of the block; any element where there is none
  std::vector<uint8_t> is_there;   // of each place

  explicit Packing(const Dimensions& batch_sizes)
      : steps(static_cast<int64_t>(batch_sizes.size())),
        batch(steps == 0 ? 0 : batch_sizes[0]),
        in_packed(steps * batch),
        is_there(steps * batch) {
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t i = 0; i < batch_sizes[t]; ++i) {
        const int64_t place = t * batch + i;
        in_packed[place] = static_cast<int64_t>(in_block.size());
        is_there[place] = 1;
        in_block.push_back(place);
      }
    }
  }
  explicit operator bool() const { return steps > 0; }
};

// Of a layer in one direction.
template <typename T>
struct LayerParameters {
  T w_ih, w_hh, b_ih, b_hh;  // without biases those are none
};

template <typename T, typename List>
LayerParameters<T> ParametersOf(const List& parameters, int64_t index,
                                const RecurrentAttributes& attributes) {
  const auto of = parameters.begin() + index * attributes.parameters_each();
  if (!attributes.has_biases) return {of[0], of[1], T{}, T{}};
  return {of[0], of[1], of[2], of[3]};
}

// The candidate's bias of GRU's state is multiplied by the reset gate, and stays apart.
inline bool AddsBiasInside(CellKind kind) { return kind == CellKind::kGru; }

// What a step gives after the states for its backward, in widths.
inline std::vector<int64_t> KeptWidths(CellKind kind) {
  if (kind == CellKind::kLstm) return {4, 1};
  if (kind == CellKind::kGru) return {5};
  return {};
}

}  // namespace torch_xla
