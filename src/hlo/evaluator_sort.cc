// sort: a merge sort of positions along one dimension, always stable.
#include <numeric>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

// Our own, as std::stable_sort demands a strict weak order, which a program's comparator need not
// be.
template <typename Less>
void MergeSort(std::vector<int64_t>& order, std::vector<int64_t>& scratch, size_t begin, size_t end,
               Less& less) {
  if (end - begin < 2) return;
  size_t middle = begin + (end - begin) / 2;
  MergeSort(order, scratch, begin, middle, less);
  MergeSort(order, scratch, middle, end, less);
  size_t left = begin, right = middle;
  for (size_t i = begin; i < end; ++i) {
    bool take_right = left == middle || (right < end && less(order[right], order[left]));
    scratch[i] = order[take_right ? right++ : left++];
  }
  std::copy(scratch.begin() + begin, scratch.begin() + end, order.begin() + begin);
}

}  // namespace

Leaves EvaluateSort(const Instruction& instruction, const Leaves& operands) {
  ScalarProgram comparator(*instruction.called_computations()[0]);
  const Dimensions& dimensions = operands[0].shape().dimensions();
  int64_t dimension = instruction.as<SortAttributes>().dimension;
  int64_t size = dimensions[dimension];
  Dimensions strides = RowMajorStrides(dimensions), rows = dimensions;
  rows[dimension] = size == 0 ? 0 : 1;

  Leaves results = operands;
  std::vector<int64_t> order(size), scratch(size);
  std::vector<const std::byte*> parameters(2 * operands.size());
  ForEachIndex(rows, [&](const Dimensions& index, int64_t) {
    int64_t origin = Dot(index, strides), stride = strides[dimension];
    auto less = [&](int64_t a, int64_t b) {
      for (size_t i = 0; i < operands.size(); ++i) {
        size_t width = ByteWidth(operands[i].shape().element_type());
        parameters[2 * i] = operands[i].bytes() + (origin + a * stride) * width;
        parameters[2 * i + 1] = operands[i].bytes() + (origin + b * stride) * width;
      }
      return comparator.Test(parameters);
    };
    std::iota(order.begin(), order.end(), 0);
    MergeSort(order, scratch, 0, order.size(), less);
    for (size_t i = 0; i < operands.size(); ++i) {
      for (int64_t k = 0; k < size; ++k) {
        CopyElement(operands[i], origin + order[k] * stride, results[i].mutable_bytes(),
                    origin + k * stride);
      }
    }
  });
  return results;
}

}  // namespace hlo::evaluation
