// Sparse tensors: torch's own classes, whose indices and values are xla tensors.
//
// Many of torch's kernels for sparse tensors of the CPU only call other operators, on indices and
// values, so they serve here as well. Where torch computes in memory, torch_xla/_sparse.py has a
// composition; what is in neither runs on the CPU (fallback.cc).
#include <ATen/Context.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_sparse_compressed_tensor_with_dims.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe_native.h>
#include <ATen/ops/_validate_sparse_compressed_tensor_args.h>
#include <ATen/ops/_validate_sparse_coo_tensor_args.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/sparse_coo_tensor_native.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "aten/fallback.h"
#include "aten/sparse_compressed.h"
#include "lazy/cut_reason.h"

namespace torch_xla {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// torch's kernel for the CPU's tensors of the layout.
template <DispatchKey key>
void RunTorchs(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(DispatchKeySet(key), stack);
}

constexpr const char* kCooOperators[] = {
    "_coalesced_",
    "_dimI",
    "_dimV",
    "_indices",
    "_nnz",
    "_sparse_broadcast_to",
    "_sparse_coo_tensor_with_dims",
    "_sparse_coo_tensor_with_dims_and_tensors",
    "_to_sparse",
    "_to_sparse.sparse_dim",
    "_values",
    "abs",
    "abs_",
    "any",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "atan",
    "atan_",
    "atanh",
    "atanh_",
    "cat",
    "ceil",
    "ceil_",
    "clone",
    "conj_physical.out",
    "copy_",
    "copy_sparse_to_sparse_",
    "deg2rad",
    "deg2rad_",
    "dense_dim",
    "div.Tensor",
    "div.Tensor_mode",
    "div.out",
    "div.out_mode",
    "div_.Tensor",
    "div_.Tensor_mode",
    "empty.memory_format",
    "empty_like",
    "erf",
    "erf_",
    "erfinv",
    "erfinv_",
    "expm1",
    "expm1_",
    "floor",
    "floor_",
    "floor_divide",
    "floor_divide.out",
    "floor_divide_.Tensor",
    "frac",
    "frac_",
    "indices",
    "is_coalesced",
    "is_pinned",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log1p",
    "log1p_",
    "mm",
    "mv",
    "nan_to_num",
    "nan_to_num_",
    "narrow_copy",
    "native_norm",
    "native_norm.ScalarOpt_dim_dtype",
    "neg",
    "neg.out",
    "neg_",
    "norm.ScalarOpt_dim",
    "norm.ScalarOpt_dim_dtype",
    "permute",
    "pow.Tensor_Scalar",
    "pow.Tensor_Scalar_out",
    "rad2deg",
    "rad2deg_",
    "relu",
    "relu_",
    "resize_as_sparse_",
    "round",
    "round_",
    "sgn",
    "sgn_",
    "sign",
    "sign_",
    "signbit",
    "sin",
    "sin_",
    "sinh",
    "sinh_",
    "sparse_dim",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "sqrt",
    "sqrt_",
    "sum",
    "sum.dim_IntList",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "threshold_backward",
    "trunc",
    "trunc_",
    "unsqueeze",
    "values",
    "view_as_complex",
    "view_as_real",
    "zero_",
    "zeros.out",
};

constexpr const char* kCompressedOperators[] = {
    "_nnz",         "ccol_indices", "clone",      "col_indices", "copy_",
    "crow_indices", "dense_dim",    "is_pinned",  "resize_",     "resize_as_sparse_",
    "row_indices",  "select.int",   "sparse_dim", "values",      "zero_",
};

template <DispatchKey key, size_t n>
void RegisterTorchs(torch::Library& m, const char* const (&names)[n]) {
  for (const char* name : names) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&RunTorchs<key>>());
  }
}

// Where torch's compositions make compressed tensors by a function of its own, not by an operator.
constexpr const char* kComposedOperators[] = {"abs",     "deg2rad", "empty_like",    "isinf",
                                              "rad2deg", "sum",     "transpose.int", "zeros_like"};

// --- Checks of invariants

c10::IValue OnCpu(const c10::IValue& value);

// A check that torch has for its own devices: of copies on the CPU.
void ValidateOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  torch::jit::Stack copies;
  for (const c10::IValue& argument : torch::jit::pop(*stack, op.schema().arguments().size())) {
    copies.push_back(OnCpu(argument));
  }
  op.callBoxed(&copies);
}

constexpr const char* kChecks[] = {
    "_validate_sparse_bsc_tensor_args",        "_validate_sparse_bsr_tensor_args",
    "_validate_sparse_compressed_tensor_args", "_validate_sparse_coo_tensor_args",
    "_validate_sparse_csc_tensor_args",        "_validate_sparse_csr_tensor_args",
};

void RegisterChecks(torch::Library& m) {
  for (const char* name : kChecks) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&ValidateOnCpu>());
  }
}

// Not where nobody has said whether to.
bool ChecksEverything() {
  return at::globalContext().checkSparseTensorInvariants().value_or(false);
}

// A tensor that has been checked. torch's own functions for it check again, on no device but
// theirs.
at::Tensor MakeChecked(const at::Tensor& indices, const at::Tensor& values, at::IntArrayRef size,
                       std::optional<bool> is_coalesced) {
  const at::Tensor elements = values.dim() == 0 ? values.expand({1}) : values;
  const int64_t sparse_dimensions = indices.size(0);
  return at::_sparse_coo_tensor_with_dims_and_tensors(
      sparse_dimensions, elements.dim() - 1, size, indices, elements,
      elements.options().layout(at::kSparse), is_coalesced);
}

at::Tensor MakeCoo(const at::Tensor& indices, const at::Tensor& values, at::IntArrayRef size,
                   std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                   std::optional<at::Device> device, std::optional<bool> pin_memory,
                   std::optional<bool> is_coalesced) {
  if (ChecksEverything()) {
    at::_validate_sparse_coo_tensor_args(indices, values, size, is_coalesced);
    return MakeChecked(indices, values, size, is_coalesced);
  }
  return at::native::sparse_coo_tensor(indices, values, size, dtype, layout, device, pin_memory,
                                       is_coalesced);
}

at::Tensor MakeCooOfAnySize(const at::Tensor& indices, const at::Tensor& values,
                            std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                            std::optional<at::Device> device, std::optional<bool> pin_memory,
                            std::optional<bool> is_coalesced) {
  if (ChecksEverything()) {
    const at::Tensor checked =
        at::sparse_coo_tensor(indices.cpu(), values.detach().cpu(), {}, is_coalesced);
    return MakeChecked(indices, values, checked.sizes(), is_coalesced);
  }
  return at::native::sparse_coo_tensor(indices, values, dtype, layout, device, pin_memory,
                                       is_coalesced);
}

at::Tensor MakeUncheckedCoo(const at::Tensor& indices, const at::Tensor& values,
                            c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device> device,
                            std::optional<bool> pin_memory, std::optional<bool> is_coalesced) {
  if (ChecksEverything()) {
    const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
    at::_validate_sparse_coo_tensor_args(indices, values, sizes, is_coalesced);
    return MakeChecked(indices, values, sizes, is_coalesced);
  }
  return at::native::_sparse_coo_tensor_unsafe_symint(indices, values, size, dtype, layout, device,
                                                      pin_memory, is_coalesced);
}

void RegisterMakersOfCoo(torch::Library& m) {
  m.impl("_sparse_coo_tensor_unsafe", &MakeUncheckedCoo);
  m.impl("sparse_coo_tensor.indices", &MakeCooOfAnySize);
  m.impl("sparse_coo_tensor.indices_size", &MakeCoo);
}

// --- Compressed rows and columns

// Unchecked but where the user has asked for checks of everything.
at::Tensor MakeUnchecked(const at::Tensor& compressed, const at::Tensor& plain,
                         const at::Tensor& values, c10::SymIntArrayRef size,
                         std::optional<at::ScalarType>, std::optional<at::Layout> layout,
                         std::optional<at::Device>, std::optional<bool>) {
  TORCH_CHECK(layout.has_value(), "sparse_compressed_tensor: expected a compressed layout");
  if (ChecksEverything()) {
    at::_validate_sparse_compressed_tensor_args(compressed, plain, values,
                                                C10_AS_INTARRAYREF_SLOW(size), *layout);
  }
  return MakeCompressed(compressed, plain, values, size, *layout);
}

at::Tensor EmptyCompressed(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                           std::optional<at::Layout> layout, std::optional<at::Device> device,
                           std::optional<bool>, std::optional<at::MemoryFormat>) {
  const at::Layout kind = layout.value_or(at::kStrided);
  const bool has_plain_values = kind == at::kSparseCsr || kind == at::kSparseCsc;
  if (size.size() < 2 || !has_plain_values || std::ranges::min(size) < 0) {
    at::empty(size, at::TensorOptions(at::kCPU).dtype(dtype).layout(layout));  // says why not
    TORCH_CHECK(false, "torch.empty: not on xla for size ", size, " and ", kind);
  }
  const at::IntArrayRef batch = size.slice(0, size.size() - 2);
  at::DimVector ends(batch.begin(), batch.end()), elements(batch.begin(), batch.end());
  ends.push_back(size[size.size() - (kind == at::kSparseCsr ? 2 : 1)] + 1);
  elements.push_back(0);
  const auto options = at::TensorOptions(device.value_or(at::Device(at::kXLA)));
  const auto type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return MakeCompressed(
      at::zeros(ends, options.dtype(at::kLong)), at::empty(elements, options.dtype(at::kLong)),
      at::empty(elements, options.dtype(type)), c10::fromIntArrayRefSlow(size), kind);
}

at::Tensor CompressedWithDims(int64_t count, int64_t dense_dim, at::IntArrayRef size,
                              at::IntArrayRef blocksize, at::ScalarType index_type,
                              std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                              std::optional<at::Device> device, std::optional<bool>) {
  TORCH_CHECK(layout.has_value(), "sparse_compressed_tensor_with_dims: expected a layout");
  const auto options = at::TensorOptions(at::kCPU).dtype(dtype).layout(layout);
  const at::Tensor on_cpu = at::_sparse_compressed_tensor_with_dims(count, dense_dim, size,
                                                                    blocksize, index_type, options);
  const auto there = [&](const at::Tensor& part) {
    return at::zeros(part.sizes(), part.options().device(device.value_or(at::Device(at::kXLA))));
  };
  const auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(on_cpu);
  return MakeCompressed(there(compressed), there(plain), there(on_cpu.values()), on_cpu.sym_sizes(),
                        *layout);
}

at::Tensor ToCopyCompressed(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device> device,
                            std::optional<bool>, bool non_blocking,
                            std::optional<at::MemoryFormat>) {
  TORCH_CHECK(layout.value_or(self.layout()) == self.layout(), "to(): a tensor of layout ",
              self.layout(), " becomes one of ", *layout, " by to_sparse or to_dense");
  const at::Device target = device.value_or(self.device());
  auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(self);
  const auto there = [&](const at::Tensor& part, at::ScalarType type) {
    return part.to(target, type, non_blocking, /*copy=*/true);
  };
  const at::Tensor values = there(self.values(), dtype.value_or(self.scalar_type()));
  return at::_sparse_compressed_tensor_unsafe(there(compressed, compressed.scalar_type()),
                                              there(plain, plain.scalar_type()), values,
                                              self.sizes(), values.options().layout(self.layout()));
}

// --- On the CPU

c10::IValue OnCpu(const c10::IValue& value) {
  if (value.isDevice()) return value.toDevice().is_xla() ? at::Device(at::kCPU) : value;
  if (value.isTensor() && value.toTensor().defined()) return value.toTensor().cpu();
  if (value.isOptionalTensorList()) {  // those that tensors are indexed by
    c10::List<std::optional<at::Tensor>> copies;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      copies.push_back(tensor && tensor->defined() ? std::optional(tensor->cpu()) : tensor);
    }
    return copies;
  }
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> copies;
  for (const at::Tensor& tensor : value.toTensorVector()) copies.push_back(tensor.cpu());
  return copies;
}

// An argument that is also written to is one tensor there, too: `torch.smm` gives its result as
// what is to be added, and torch's kernel makes it larger before it reads it.
std::vector<c10::IValue> AllOnCpu(at::ArrayRef<c10::IValue> arguments) {
  std::vector<c10::IValue> copies;
  for (const c10::IValue& argument : arguments) {
    const auto same = std::ranges::find_if(arguments, [&](const c10::IValue& earlier) {
      return argument.isTensor() && earlier.isTensor() &&
             argument.toTensor().is_same(earlier.toTensor());
    });
    const size_t place = same - arguments.begin();
    copies.push_back(place < copies.size() ? copies[place] : OnCpu(argument));
  }
  return copies;
}

c10::IValue OnDevice(const c10::IValue& value, at::Device device) {
  if (value.isTensor() && value.toTensor().defined()) return value.toTensor().to(device);
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> copies;
  for (const at::Tensor& tensor : value.toTensorVector()) copies.push_back(tensor.to(device));
  return copies;
}

at::Device DeviceOf(at::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().defined() &&
        argument.toTensor().device().is_xla()) {
      return argument.toTensor().device();
    }
    if (!argument.isTensorList()) continue;
    for (const at::Tensor& tensor : argument.toTensorVector()) {
      if (tensor.device().is_xla()) return tensor.device();
    }
  }
  return at::kXLA;
}

void WriteBack(const at::Tensor& target, const at::Tensor& result) {
  if (target.layout() == at::kStrided && target.sizes() != result.sizes()) {
    target.resize_(result.sizes());
  }
  target.copy_(result);
}

// torch's own fallback takes dense tensors only.
void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const lazy::CutScope scope(lazy::CutReason::Kind::kFallback, op.schema().name());
  CountFallback(op);
  const auto& parameters = op.schema().arguments();
  const auto arguments = torch::jit::pop(*stack, parameters.size());
  const at::Device device = DeviceOf(arguments);
  const std::vector<c10::IValue> copies = AllOnCpu(arguments);
  torch::jit::Stack results(copies.begin(), copies.end());
  op.callBoxed(&results);
  std::vector<c10::IValue> written;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const c10::AliasInfo* alias = parameters[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !arguments[i].isTensor()) continue;
    WriteBack(arguments[i].toTensor(), copies[i].toTensor());
    written.push_back(arguments[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    stack->push_back(i < written.size() ? written[i] : OnDevice(results[i], device));
  }
}

void FallBackOfSparse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!RunByOthers(op, stack)) RunOnCpu(op, stack);
}

torch::CppFunction Fallback() {
  return torch::CppFunction::makeFromBoxedFunction<&FallBackOfSparse>();
}

TORCH_LIBRARY_IMPL(_, SparseXLA, m) { m.fallback(Fallback()); }
TORCH_LIBRARY_IMPL(_, SparseCsrXLA, m) { m.fallback(Fallback()); }

TORCH_LIBRARY_IMPL(aten, SparseXLA, m) {
  RegisterMakersOfCoo(m);
  RegisterTorchs<DispatchKey::SparseCPU>(m, kCooOperators);
  // Not by the operator that gives a new tensor: that would read `out` as it is.
  m.impl("sspaddmm.out", torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
}

TORCH_LIBRARY_IMPL(aten, SparseCsrXLA, m) {
  RegisterTorchs<DispatchKey::SparseCsrCPU>(m, kCompressedOperators);
  for (const char* name : kComposedOperators) m.impl(name, Fallback());
  m.impl("_sparse_compressed_tensor_unsafe", &MakeUnchecked);
  m.impl("_to_copy", &ToCopyCompressed);
  m.impl("_sparse_compressed_tensor_with_dims", &CompressedWithDims);
  m.impl("empty.memory_format", &EmptyCompressed);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) { RegisterChecks(m); }

// Where the operator is a composition of others, this key would take torch's.
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  RegisterChecks(m);
  RegisterMakersOfCoo(m);
  m.impl("_sparse_compressed_tensor_unsafe", &MakeUnchecked);
}

}  // namespace
}  // namespace torch_xla
