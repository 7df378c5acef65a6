// How an ATen operator is added: one lowering function (lowering.h) and one line of registration.
//
//   Value Gelu(Builder& b, Value x, std::string approximate) { … }
//
//   TORCH_LIBRARY_IMPL(aten, XLA, m) {
//     Register<&Gelu>(m, "gelu");                              // the signature follows from Gelu's
//     RegisterElementwise<&Atan2, Promotion::kToFloat>(m, "atan2");  // atan2 and atan2_
//     m.impl("mm", [](const at::Tensor& a, const at::Tensor& b) { return Record<&Mm>(a, b); });
//   }
//
// What a lowering may take and return is told in lazy/op.h. In-place (`foo_`) and `out=` variants
// that nobody registers go, through the fallback (fallback.cc), to the functional operator and are
// written into their target; an operator that no lowering, composite or decomposition covers runs
// on the CPU and is counted as `aten::name`.
#pragma once

#include <ATen/ATen.h>
#include <torch/library.h>

#include <vector>

#include "aten/lowering.h"        // IWYU pragma: export
#include "aten/op_arguments.h"    // IWYU pragma: export
#include "aten/op_elementwise.h"  // IWYU pragma: export

namespace torch_xla {

// --- Recording

// Records one node of lowering `f`. `arguments` correspond to f's parameters after the builder:
//   Value                             const at::Tensor& (on xla, or a 0-dimensional CPU tensor,
//                                     which becomes a Scalar), or a lazy::Value
//   std::optional<Value>              const std::optional<at::Tensor>&, at::Tensor (may be
//                                     undefined: absent)
//   std::vector<Value>                at::TensorList, at::ITensorListRef, std::vector<at::Tensor>
//   std::vector<std::optional<Value>> c10::List<std::optional<at::Tensor>>, at::IOptTensorListRef
//   Scalar, std::optional<Scalar>     at::Scalar, Number, std::optional of them
//   lazy::Index, a std::vector of them   int64_t, at::IntArrayRef; within bounds and not negative
//   ElementType                       at::ScalarType (its optional likewise)
//   Dimensions                        at::IntArrayRef, at::OptionalIntArrayRef
//   Constant, double, int64_t, bool   at::Scalar, or the C++ type
//   std::string                       std::string_view
//   Dimension                         int64_t
//   any other attribute               itself
// Returns an at::Tensor for a Value, a tuple of tensors for an array, tuple or pair of Values, a
// std::vector<at::Tensor> for a std::vector<Value>. A null Value becomes an undefined tensor.
// The device is that of the first tensor that is on xla; another xla device is an error. Throws
// c10::Error (RuntimeError in Python; IndexError for kOutOfRange) when the lowering refuses.
template <auto f, typename... Arguments>
auto Record(const Arguments&... arguments);

// For operators without a tensor operand.
template <auto f, typename... Arguments>
auto RecordOn(c10::Device device, const Arguments&... arguments);

// The same, whose one result is written into `self` as WriteInto does: no tensor is made for it.
template <auto f, typename... Arguments>
void RecordInto(const at::Tensor& self, const Arguments&... arguments);

// A vector of results as the tuple that ATen wants; a missing result is undefined.
template <size_t n>
auto AsTuple(std::vector<at::Tensor> tensors);

// --- Registration

// Registers `f` as aten operator `name` ("gelu", "add.Tensor"). f's parameters must be the schema's
// in order, in the types that Record's table pairs with the ATen C++ signature:
//   Tensor → Value, Tensor? → optional<Value>, Tensor[] → vector<Value>, Scalar → Scalar or
//   Constant, int/SymInt → int64_t, lazy::Index or Dimension, int[]/SymInt[] → Dimensions, int[]? →
//   optional<Dimensions>, int? → optional<int64_t>, float → double, bool → bool, bool[n] →
//   array<bool, n>, str → std::string, ScalarType → ElementType, ScalarType? →
//   optional<ElementType>
// A wrong signature is an error when the library is loaded.
template <auto f>
void Register(torch::Library& m, const char* name);

// The same for a kernel written by hand, which records `f`; its C++ signature is the operator's.
template <auto f, typename Signature>
void Register(torch::Library& m, const char* name, Signature* kernel);

// Registers an element-wise operator and, where the schema has one, its in-place form `name_`.
// Every Value and Scalar arrives in `f` in the common dtype (f32 for f16 and bf16, rounded after),
// the Values stretched to the common shape, the Scalars of rank 0. f's parameters are the schema's;
// a Value whose schema type is Scalar ("eq.Scalar") is named by its C++ type in
// `RegisterElementwiseScalar`. 0-dimensional CPU tensors and Python numbers promote as in eager and
// are passed as data.
template <auto f, Promotion promotion = Promotion::kDefault>
void RegisterElementwise(torch::Library& m, const char* name);

// The same for overloads whose last tensor operand is a Scalar: "eq.Scalar", "pow.Tensor_Scalar",
// "remainder.Scalar". f's second Value receives the number.
template <auto f, Promotion promotion = Promotion::kDefault>
void RegisterElementwiseScalar(torch::Library& m, const char* name);

// The element-wise record by itself, for hand-written kernels. Arguments as for Record; an
// at::Scalar where f has a Value is a number that promotes.
template <auto f, Promotion promotion, typename... Arguments>
at::Tensor RecordElementwise(const Arguments&... arguments);

// Writes the element-wise result into `self` (a tensor on xla, possibly a view): the result must
// have self's shape, and its type must be castable to self's. Returns self.
template <auto f, Promotion promotion, typename... Arguments>
at::Tensor& RecordElementwiseInto(at::Tensor& self, const Arguments&... arguments);

// How torch's CPU kernels compute what `f` records (eager_form.h), where no registration above says
// it: `function` takes f's parameters in the ATen types of the table.
template <auto f, typename Signature>
void RunBy(Signature* function);
template <auto f, Promotion promotion, typename Signature>
void RunElementwiseBy(Signature* function);

// Writes `value` (same shape, on xla; converted to self's dtype) into `self`, through self's view
// and into everything that shares its memory: what every in-place operator ends with. Declared in
// tensor.h:
//   void WriteInto(const at::Tensor& self, const at::Tensor& value);

}  // namespace torch_xla

#include "aten/op_inl.h"  // IWYU pragma: export
