// Classes as rows of a table, and as positions of ones.
#include <ATen/ops/embedding_sparse_backward_native.h>
#include <ATen/ops/one_hot_native.h>

#include <cstdint>
#include <limits>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/value_check.h"
#include "lazy/cut_reason.h"

namespace torch_xla {
namespace {

// --- Embeddings

Value Embedding(Builder& b, Value weight, Value index, int64_t padding_index,
                bool scale_by_frequency, bool sparse) {
  if (weight->shape().rank() != 2) throw hlo::Error("'weight' must be 2-D");
  RequireIndexType(index, true, "embedding");
  CheckBounds(b, index, Positions(weight->shape().dimension(0)), OutOfRange());
  return TakeRows(b, weight, index);
}

// Nobody may want the forward pass's rows, whose indices are checked there. Eager passes over those
// that are padding, whatever they are.
void CheckRows(Builder& b, Value index, int64_t rows, int64_t padding_index) {
  Value is_padding = b.Eq(index, b.Full(index->shape(), padding_index));
  CheckBounds(b, b.Select(is_padding, b.Zeros(index->shape()), index), Positions(rows),
              OutOfRange());
}

// Rows that several indices name receive the sum of their gradients; the padding row none.
Value EmbeddingDenseBackward(Builder& b, Value gradient, Value index, int64_t rows,
                             int64_t padding_index, bool scale_by_frequency) {
  CheckRows(b, index, rows, padding_index);
  ElementType type = gradient->element_type(), wide = AccumulationType(type);
  int64_t width = gradient->shape().dimension(gradient->shape().rank() - 1);
  int64_t count = index->shape().num_elements();
  Value flat = b.Convert(b.Reshape(gradient, {count, width}), wide);
  index = b.Reshape(index, {count});
  if (scale_by_frequency) {
    Value ones = b.Full(Shape(wide, {count}), 1.0), none = b.Zeros(Shape(wide, {rows}));
    Value frequency = ScatterSlices(b, none, index, ones, 0, Opcode::kAdd);
    flat = b.Divide(flat, AlongDimension(b, TakeRows(b, frequency, index), {count, width}, 0));
  }
  if (padding_index >= 0) {
    Value kept = b.Ne(index, b.Full(index->shape(), padding_index));
    flat = ZeroUnless(b, AlongDimension(b, kept, {count, width}, 0), flat);
  }
  Value zeros = b.Zeros(Shape(wide, {rows, width}));
  return b.Convert(ScatterSlices(b, zeros, index, flat, 0, Opcode::kAdd), type);
}

Value RowIndex(Builder& b, Value index, int64_t rows, int64_t padding_index) {
  CheckRows(b, index, rows, padding_index);
  return index;
}

// torch's composition takes the indices as they are.
at::Tensor EmbeddingSparseBackward(const at::Tensor& gradient, const at::Tensor& index,
                                   int64_t rows, int64_t padding_index, bool scale_by_frequency) {
  return at::native::embedding_sparse_backward(gradient,
                                               Record<&RowIndex>(index, rows, padding_index), rows,
                                               padding_index, scale_by_frequency);
}

// --- Classes

Value OneHot(Builder& b, Value x, int64_t classes) {
  constexpr auto kLimits = std::numeric_limits<int64_t>();
  CheckBounds(b, x, {0, kLimits.max()}, {kRuntimeError, "Class values must be non-negative."});
  CheckBounds(b, x, {kLimits.min(), classes},
              {kRuntimeError, "Class values must be smaller than num_classes."});
  Dimensions dimensions = x->dimensions();
  dimensions.push_back(classes);
  const int64_t last = x->shape().rank();
  Value own = b.BroadcastInDim(x, dimensions, AllDimensions(last));
  return b.Convert(b.Eq(own, Iota(b, dimensions, last)), ElementType::kS64);
}

// torch's composition has the words for what is no tensor of classes. How many there are has to be
// known here, which computes what is pending.
at::Tensor OneHotTensor(const at::Tensor& self, int64_t classes) {
  if (classes == 0 || classes < -1 || self.numel() == 0 || self.scalar_type() != at::kLong) {
    return at::native::one_hot(self, classes);
  }
  if (classes == -1) {
    const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::one_hot");
    const auto [least, largest] = at::aminmax(self);
    TORCH_CHECK(least.item<int64_t>() >= 0, "Class values must be non-negative.");
    classes = largest.item<int64_t>() + 1;
  }
  return Record<&OneHot>(self, classes);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Embedding>(m, "embedding");
  RunBy<&EmbeddingDenseBackward>(+[](const at::Tensor& gradient, const at::Tensor& index,
                                     int64_t rows, int64_t padding_index, bool scale_by_frequency) {
    // torch's kernel checks no index: out of range it writes beyond its result.
    if (index.numel() > 0) {
      const auto [least, largest] = at::aminmax(index);
      TORCH_CHECK_INDEX(least.item<int64_t>() >= 0 && largest.item<int64_t>() < rows,
                        "index out of range in self");
    }
    // torch's kernel rounds each sum of a 16-bit type.
    const at::ScalarType type = gradient.scalar_type();
    const bool is_narrow = type == at::kHalf || type == at::kBFloat16;
    return at::embedding_dense_backward(is_narrow ? gradient.to(at::kFloat) : gradient, index, rows,
                                        padding_index, scale_by_frequency)
        .to(type);
  });
  Register<&EmbeddingDenseBackward>(m, "embedding_dense_backward");
  m.impl("embedding_sparse_backward", &EmbeddingSparseBackward);
  m.impl("one_hot", &OneHotTensor);
  RunBy<&OneHot>(+[](const at::Tensor& x, int64_t classes) { return at::one_hot(x, classes); });
}

// Of a composition this key would take torch's.
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  m.impl("embedding_sparse_backward", &EmbeddingSparseBackward);
}

}  // namespace torch_xla
