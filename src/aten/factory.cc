// Tensors from nothing: constants, sequences, identity.
#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "aten/layout.h"
#include "aten/number_output.h"
#include "aten/op.h"
#include "aten/open_sizes.h"
#include "aten/refuse.h"
#include "aten/refused_types.h"
#include "lazy/tensor_counts.h"

namespace torch_xla {
namespace {

using Options = std::optional<at::ScalarType>;

Value ConstantFull(Builder& b, Dimensions sizes, ElementType type, int64_t value) {
  return b.Full(Shape(type, sizes), value);
}

Value FullOf(Builder& b, Scalar value, Dimensions sizes) { return Splat(b, value, sizes); }

// start + i * step, computed wide enough that no element is rounded twice.
Value Arange(Builder& b, Scalar start, Scalar step, int64_t count, ElementType type) {
  ElementType compute = start.value->element_type();
  Shape shape(compute, {count});
  Value index = b.Iota(shape, 0);
  Value result = b.Add(Splat(b, start, {count}), b.Multiply(index, Splat(b, step, {count})));
  return b.Convert(result, type);
}

// Both ends exact: the second half counts back from the end.
Value Linspace(Builder& b, Scalar start, Scalar end, int64_t count, ElementType type) {
  ElementType compute = start.value->element_type();
  if (count == 0) return b.Zeros(Shape(type, {0}));
  if (count == 1) return b.Convert(b.Reshape(start, {1}), type);
  Value divisor = b.ConstantScalar(compute, static_cast<double>(count - 1));
  Value step = b.Divide(b.Subtract(end, start), divisor);
  Value number = b.Iota(Shape(hlo::RealType(compute), {count}), 0);
  Value index = b.Convert(number, compute);
  Value steps = Splat(b, step, {count});
  Value forward = b.Add(Splat(b, start, {count}), b.Multiply(index, steps));
  Value back = b.Subtract(Like(b, index, static_cast<double>(count - 1)), index);
  Value backward = b.Subtract(Splat(b, end, {count}), b.Multiply(back, steps));
  Value is_first = b.Lt(number, Like(b, number, static_cast<double>(count / 2)));
  return b.Convert(b.Select(is_first, forward, backward), type);
}

Value Eye(Builder& b, int64_t rows, int64_t columns, ElementType type) {
  Dimensions sizes{rows, columns};
  Value same = b.Eq(Iota(b, sizes, 0), Iota(b, sizes, 1));
  return b.Convert(same, type);
}

c10::Device DeviceOr(std::optional<c10::Device> device) {
  return device.value_or(c10::Device(c10::DeviceType::XLA));
}

at::ScalarType TypeOr(Options dtype) {
  return dtype.value_or(c10::get_default_dtype_as_scalartype());
}

void CheckSizes(at::IntArrayRef sizes) {
  for (int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
  }
}

at::Tensor MakeConstant(at::IntArrayRef sizes, at::ScalarType type, c10::Device device,
                        int64_t value) {
  CheckSizes(sizes);
  return RecordOn<&ConstantFull>(device, sizes, type, value);
}

// As eager marks what nobody has written: with NaN, or the largest number.
bool MarksUninitialized() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

// There is no memory to leave uninitialized: empty tensors are zero.
at::Tensor Empty(at::IntArrayRef size, Options dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pin_memory.value_or(false), "xla tensors cannot be pinned");
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "xla tensors are dense; layout ",
              layout.value_or(at::kStrided), " is not supported");
  at::Tensor empty = MakeConstant(size, TypeOr(dtype), DeviceOr(device), 0);
  if (format) LayOut(empty, FormatStrides(size, *format));
  if (MarksUninitialized()) [[unlikely]]
    at::native::fill_empty_deterministic_(empty);
  return empty;
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef strides, Options dtype,
                        std::optional<at::Layout> layout, std::optional<at::Device> device,
                        std::optional<bool> pin_memory) {
  at::detail::check_size_nonnegative(size);
  TORCH_CHECK(size.size() == strides.size(), "dimensionality of sizes (", size.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  for (int64_t stride : strides) {
    TORCH_CHECK(stride >= 0, "Storage size calculation overflowed with sizes=", size,
                " and strides=", strides);
  }
  const auto empty = [&](at::IntArrayRef sizes) {
    return Empty(sizes, dtype, layout, device, pin_memory, std::nullopt);
  };
  if (IsDense(size, strides)) {
    at::Tensor dense = empty(size);
    LayOut(dense, strides);
    return dense;
  }
  const auto width = c10::elementSize(TypeOr(dtype));
  const auto bytes = at::detail::computeStorageNbytes(size, strides, width);
  return empty({static_cast<int64_t>(bytes / width)}).as_strided(size, strides);
}

at::Tensor Zeros(at::IntArrayRef size, Options dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>) {
  for (int64_t extent : size) {
    TORCH_CHECK(extent >= 0, "zeros: Dimension size must be non-negative.");
  }
  lazy::CountPassingTensor();  // for torch they are an empty tensor that is filled
  return MakeConstant(size, TypeOr(dtype), DeviceOr(device), 0);
}

at::Tensor Ones(at::IntArrayRef size, Options dtype, std::optional<at::Layout>,
                std::optional<at::Device> device, std::optional<bool>) {
  return MakeConstant(size, TypeOr(dtype), DeviceOr(device), 1);
}

at::ScalarType FillType(const at::Scalar& value, Options dtype) {
  if (dtype) return *dtype;
  if (value.isBoolean()) return at::kBool;
  if (value.isIntegral(false)) return at::kLong;
  if (value.isComplex()) return c10::toComplexType(c10::get_default_dtype_as_scalartype());
  return c10::get_default_dtype_as_scalartype();
}

// Rounded once: an integer above 2^53 is not a double first.
float AsFloat(const at::Scalar& number) {
  if (!number.isIntegral(/*includeBool=*/true)) return static_cast<float>(number.toDouble());
  return number.isUnsigned() ? static_cast<float>(number.toUInt64())
                             : static_cast<float>(number.toLong());
}

// As C++ converts it, where one that is too large becomes the type's largest or infinite.
float RoundedTo(float number, at::ScalarType narrow) {
  return AT_DISPATCH_V2(narrow, "fill_",
                        AT_WRAP([&] { return static_cast<float>(static_cast<scalar_t>(number)); }),
                        at::kHalf, at::kBFloat16, AT_EXPAND(AT_FLOAT8_TYPES));
}

// What fills so many elements. Eager writes a single one by another way, on which what is too large
// for a float of 16 bits becomes infinite: `x[mask] = -1e9` and `where(mask, x, -1e9)` rely on it.
Number FillNumber(const at::Scalar& value, at::ScalarType type, int64_t elements) {
  const ElementType element = ToElementType(type);
  const bool is_narrow = type == at::kHalf || type == at::kBFloat16 || c10::isFloat8Type(type);
  if (elements == 1 && is_narrow && !value.isComplex()) {
    return {RoundedTo(AsFloat(value), type), element};
  }
  return {value, element};
}

at::Tensor Full(at::IntArrayRef size, const at::Scalar& value, Options dtype,
                std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  for (int64_t extent : size) {
    if (extent >= 0) continue;
    Refuse(c10::str("Trying to create tensor with negative dimension ", extent, ": ", size),
           "full(): expected concrete sizes (i.e. non-symbolic) to be positive values. However "
           "found negative ones: ",
           size, ".");
  }
  const at::ScalarType type = FillType(value, dtype);
  const Number number = FillNumber(value, type, c10::multiply_integers(size));
  return RecordOn<&FullOf>(DeviceOr(device), number, size);
}

// What a number is made when it is written into a tensor by indexing.
at::Tensor ScalarTensor(const at::Scalar& value, Options dtype, std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>) {
  return RecordOn<&FullOf>(DeviceOr(device), FillNumber(value, TypeOr(dtype), 1),
                           at::IntArrayRef());
}

// The device and type of another tensor, which need not be on xla.
c10::Device DeviceLike(const at::Tensor& self, std::optional<at::Device> device) {
  return device.value_or(self.device());
}

at::Tensor EmptyLike(const at::Tensor& self, Options dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin_memory,
                     std::optional<at::MemoryFormat> format) {
  c10::Device target = DeviceLike(self, device);
  const at::DimVector strides = StridesLike(self, format);
  if (!target.is_xla()) {
    return at::empty_strided(self.sizes(), strides,
                             at::TensorOptions(dtype.value_or(self.scalar_type()))
                                 .device(target)
                                 .pinned_memory(pin_memory));
  }
  at::Tensor empty = OfSizesOf(self, Empty(self.sizes(), dtype.value_or(self.scalar_type()), layout,
                                           target, pin_memory, std::nullopt));
  LayOut(empty, strides);
  return empty;
}

at::Tensor FullLike(const at::Tensor& self, const at::Scalar& value, Options dtype,
                    std::optional<at::Layout>, std::optional<at::Device> device,
                    std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::Device target = DeviceLike(self, device);
  at::ScalarType type = dtype.value_or(self.scalar_type());
  const at::DimVector strides = StridesLike(self, format);
  if (!target.is_xla()) {
    return at::empty_strided(self.sizes(), strides, at::TensorOptions(type).device(target))
        .fill_(value);
  }
  const Number number = FillNumber(value, type, self.numel());
  at::Tensor full = OfSizesOf(self, RecordOn<&FullOf>(target, number, self.sizes()));
  LayOut(full, strides);
  return full;
}

at::Tensor ConstantLike(const at::Tensor& self, Options dtype, std::optional<at::Device> device,
                        std::optional<at::MemoryFormat> format, int64_t value) {
  c10::Device target = DeviceLike(self, device);
  if (!target.is_xla()) {
    return FullLike(self, value, dtype, std::nullopt, target, std::nullopt, format);
  }
  at::Tensor full = OfSizesOf(
      self, MakeConstant(self.sizes(), dtype.value_or(self.scalar_type()), target, value));
  LayOut(full, StridesLike(self, format));
  return full;
}

at::Tensor ZerosLike(const at::Tensor& self, Options dtype, std::optional<at::Layout>,
                     std::optional<at::Device> device, std::optional<bool>,
                     std::optional<at::MemoryFormat> format) {
  return ConstantLike(self, dtype, device, format, 0);
}

at::Tensor OnesLike(const at::Tensor& self, Options dtype, std::optional<at::Layout>,
                    std::optional<at::Device> device, std::optional<bool>,
                    std::optional<at::MemoryFormat> format) {
  return ConstantLike(self, dtype, device, format, 1);
}

at::Tensor& Fill(at::Tensor& self, const at::Scalar& value) {
  const Number number = FillNumber(value, self.scalar_type(), self.numel());
  RecordInto<&FullOf>(self, number, self.sizes());
  return self;
}

at::Tensor& FillTensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  if (!IsXla(value)) return Fill(self, value.item());
  WriteInto(self, OfSizesOf(self, value));
  return self;
}

at::Tensor& Zero(at::Tensor& self) {
  RecordInto<&ConstantFull>(self, self.sizes(), self.scalar_type(), int64_t{0});
  return self;
}

// A range of integers has whole bounds and steps.
at::Scalar BoundIn(at::ScalarType type, const at::Scalar& x) {
  return at::isIntegralType(type, /*includeBool=*/true) ? at::Scalar(x.to<int64_t>()) : x;
}

at::Tensor ArangeStep(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                      Options dtype, std::optional<at::Layout>, std::optional<at::Device> device,
                      std::optional<bool>) {
  bool is_integral = start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  at::ScalarType type =
      dtype.value_or(is_integral ? at::kLong : c10::get_default_dtype_as_scalartype());
  CheckKernel(type != at::kBool && !at::isComplexType(type), "arange_cpu", type);
  double from = start.to<double>(), to = end.to<double>(), by = step.to<double>();
  TORCH_CHECK(by != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TORCH_CHECK((by > 0 && to >= from) || (by < 0 && to <= from),
              "upper bound and lower bound inconsistent with step sign");
  const at::Scalar first = BoundIn(type, start), each = BoundIn(type, step);
  int64_t count;
  // Of fractions eager counts for int64 alone what lies between the whole bounds.
  if (is_integral || type == at::kLong) {
    int64_t distance = end.to<int64_t>() - start.to<int64_t>(), stride = step.to<int64_t>();
    TORCH_CHECK_VALUE(stride != 0, "step must be nonzero");
    count = (distance + stride - (stride > 0 ? 1 : -1)) / stride;
  } else {
    count = static_cast<int64_t>(std::ceil((to - from) / by));
  }
  ElementType compute = at::isIntegralType(type, true) ? ElementType::kS64
                        : type == at::kDouble          ? ElementType::kF64
                                                       : ElementType::kF32;
  return RecordOn<&Arange>(DeviceOr(device), Number{first, compute}, Number{each, compute}, count,
                           type);
}

at::Tensor ArangeStart(const at::Scalar& start, const at::Scalar& end, Options dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin) {
  return ArangeStep(start, end, at::Scalar(int64_t{1}), dtype, layout, device, pin);
}

at::Tensor ArangeEnd(const at::Scalar& end, Options dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin) {
  return ArangeStep(at::Scalar(int64_t{0}), end, at::Scalar(int64_t{1}), dtype, layout, device,
                    pin);
}

// The bound as eager reads it in the type: of bytes modulo 256.
at::Scalar WrappedBoundIn(at::ScalarType type, const at::Scalar& x) {
  const at::Scalar bound = BoundIn(type, x);
  if (type != at::kByte) return bound;
  return at::Scalar(static_cast<int64_t>(static_cast<uint8_t>(bound.to<int64_t>())));
}

at::Tensor LinspaceScalars(const at::Scalar& start, const at::Scalar& end, int64_t steps,
                           Options dtype, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  at::ScalarType type = TypeOr(dtype);
  if (start.isComplex() || end.isComplex()) {
    const caffe2::TypeMeta inferred = c10::get_default_complex_dtype();
    if (!dtype) type = c10::typeMetaToScalarType(inferred);
    TORCH_CHECK(at::isComplexType(type), "torch.linspace(): inferred dtype ", inferred,
                " can't be safely cast to passed dtype ", type);
  }
  CheckKernel(type != at::kBool, "linspace_cpu", type);
  ElementType compute = at::isComplexType(type) ? ToElementType(type)
                        : type == at::kFloat    ? ElementType::kF32
                                                : ElementType::kF64;
  if (steps > 1 && !at::isComplexType(type)) {
    recording::CheckFits({start, ToElementType(type)});
    recording::CheckFits({end, ToElementType(type)});
  }
  if (steps == 1) recording::CheckFits(FillNumber(start, type, 1));  // eager fills with it
  // Eager does not look at bounds that it does not write.
  const at::Scalar first = steps > 0 ? WrappedBoundIn(type, start) : at::Scalar(0);
  const at::Scalar last = steps > 1 ? WrappedBoundIn(type, end) : at::Scalar(0);
  return RecordOn<&Linspace>(DeviceOr(device), Number{first, compute}, Number{last, compute}, steps,
                             type);
}

at::Tensor EyeRectangle(int64_t rows, int64_t columns, Options dtype, std::optional<at::Layout>,
                        std::optional<at::Device> device, std::optional<bool>) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  return RecordOn<&Eye>(DeviceOr(device), rows, columns, TypeOr(dtype));
}

at::Tensor EyeSquare(int64_t n, Options dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin) {
  return EyeRectangle(n, n, dtype, layout, device, pin);
}

// --- out=: the numbers go into the target in its order, whatever its shape, if they are as many.

}  // namespace

at::Tensor& WriteNumbers(at::Tensor& out, const at::Tensor& numbers) {
  if (out.numel() != numbers.numel()) out.resize_(numbers.sizes());
  at::assert_no_internal_overlap(out);
  WriteInto(out, numbers.view(out.sizes()));
  return out;
}

at::Tensor& WriteRange(at::Tensor& out, const at::Tensor& numbers) {
  if (out.numel() != numbers.numel() && out.numel() > 0) {
    TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ",
               out.numel(), " which does not match the computed number of elements ",
               numbers.numel(),
               ". Note that this may occur as a result of rounding error. The out tensor will be "
               "resized to a tensor of shape (",
               numbers.numel(), ",).");
  }
  return WriteNumbers(out, numbers);
}

namespace {

at::Tensor& ArangeOut(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                      at::Tensor& out) {
  TORCH_CHECK_VALUE(!at::isIntegralType(out.scalar_type(), false) || step.toLong() != 0,
                    "step must be nonzero");
  return WriteRange(out, at::arange(start, end, step, out.options()));
}

at::Tensor& LinspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps,
                        at::Tensor& out) {
  return WriteNumbers(out, at::linspace(start, end, steps, out.options()));
}

at::Tensor& LogspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base,
                        at::Tensor& out) {
  const at::ScalarType type = out.scalar_type();
  const bool is_complex = at::isComplexType(type);
  // A single number is the power of `start` as it is.
  const auto limit = [&](const at::Scalar& x) { return steps > 1 ? WrappedBoundIn(type, x) : x; };
  if (steps > 1 && !is_complex) {
    recording::CheckFits({start, ToElementType(type)});
    recording::CheckFits({end, ToElementType(type)});
  }
  at::Tensor exponents = at::linspace(limit(start), limit(end), steps,
                                      out.options().dtype(is_complex ? type : at::kDouble));
  return WriteNumbers(out, at::pow(base, exponents).to(type));
}

at::Tensor& EyeOut(int64_t rows, int64_t columns, at::Tensor& out) {
  at::Tensor eye = at::eye(rows, columns, out.options());
  out.resize_(eye.sizes());
  at::assert_no_internal_overlap(out);
  WriteInto(out, eye);
  return out;
}
at::Tensor& EyeSquareOut(int64_t n, at::Tensor& out) { return EyeOut(n, n, out); }

// Where a gradient is first accumulated.
at::Tensor NewEmptyStrided(const at::Tensor& self, c10::SymIntArrayRef size,
                           c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                           std::optional<at::Layout> layout, std::optional<at::Device> device,
                           std::optional<bool> pin_memory) {
  at::TensorOptions options = at::TensorOptions().dtype(dtype).layout(layout).device(device);
  return at::empty_strided_symint(size, stride, self.options().merge_in(options));
}

// Zeros of the sizes and strides of `other`, in a storage of the same size, for forward
// derivatives: torch compares the two. Before them stand `batch` dimensions of `self`.
at::Tensor NewZerosLaidOutAs(const at::Tensor& self, const at::Tensor& other, int64_t batch) {
  const auto span = static_cast<int64_t>(other.storage().nbytes() / other.itemsize());
  Dimensions flat(self.sizes().begin(), self.sizes().begin() + batch);
  Dimensions sizes = flat, strides(batch);
  flat.push_back(span);
  int64_t stride = span;
  for (int64_t i = batch - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= flat[i];
  }
  sizes.insert(sizes.end(), other.sizes().begin(), other.sizes().end());
  strides.insert(strides.end(), other.strides().begin(), other.strides().end());
  return self.new_zeros(flat, other.options()).as_strided(sizes, strides, other.storage_offset());
}

// Zeros are mostly what is asked for, and few: they are zero bytes, whatever their type. Ones of
// float32 are where backward begins.
at::Tensor ConstantOnHost(at::IntArrayRef sizes, at::ScalarType type, int64_t value) {
  constexpr int64_t kMostNumbers = 4096;
  const bool are_few = c10::multiply_integers(sizes) <= kMostNumbers;
  const bool are_zeros = value == 0 && (at::isFloatingType(type) || at::isIntegralType(type, true));
  if (!are_few || (!are_zeros && type != at::kFloat)) return at::full(sizes, value, type);
  at::Tensor numbers(at::detail::empty_cpu(sizes, type));
  if (!are_zeros) {
    std::fill_n(numbers.mutable_data_ptr<float>(), numbers.numel(), static_cast<float>(value));
  } else if (numbers.nbytes() > 0) {
    std::memset(numbers.mutable_data_ptr(), 0, numbers.nbytes());
  }
  return numbers;
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&ConstantFull>(&ConstantOnHost);
  RunBy<&FullOf>(
      +[](const at::Tensor& value, at::IntArrayRef sizes) { return value.expand(sizes); });
  RunBy<&Arange>(
      +[](const at::Tensor& start, const at::Tensor& step, int64_t count, at::ScalarType type) {
        return at::arange(count, start.scalar_type()).mul(step).add(start).to(type);
      });
  RunBy<&Eye>(+[](int64_t rows, int64_t columns, at::ScalarType type) {
    return at::eye(rows, columns, type);
  });
  m.impl("empty.memory_format", &Empty);
  m.impl("empty_strided", &EmptyStrided);
  m.impl("new_empty_strided", &NewEmptyStrided);
  m.impl("_new_zeros_with_same_feature_meta", &NewZerosLaidOutAs);
  m.impl("empty_like", &EmptyLike);
  m.impl("zeros", &Zeros);
  m.impl("ones", &Ones);
  m.impl("full", &Full);
  m.impl("scalar_tensor", &ScalarTensor);
  m.impl("zeros_like", &ZerosLike);
  m.impl("ones_like", &OnesLike);
  m.impl("full_like", &FullLike);
  m.impl("fill_.Scalar", &Fill);
  m.impl("fill_.Tensor", &FillTensor);
  m.impl("zero_", &Zero);
  m.impl("arange", &ArangeEnd);
  m.impl("arange.start", &ArangeStart);
  m.impl("arange.start_step", &ArangeStep);
  m.impl("linspace", &LinspaceScalars);
  m.impl("arange.start_out", &ArangeOut);
  m.impl("linspace.out", &LinspaceOut);
  m.impl("logspace.out", &LogspaceOut);
  m.impl("eye.out", &EyeSquareOut);
  m.impl("eye.m_out", &EyeOut);
  m.impl("eye", &EyeSquare);
  m.impl("eye.m", &EyeRectangle);
}

}  // namespace
}  // namespace torch_xla
