// Recording that does not depend on the lowering.
#include "aten/op.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "aten/broadcast.h"
#include "aten/out_rule.h"
#include "aten/promotion.h"
#include "aten/view_flags.h"
#include "lazy/metrics.h"
#include "lazy/tensor_counts.h"

namespace torch_xla::recording {
namespace {

bool IsHostScalar(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 0;
}

// Arithmetic of two tensors takes one of the CPU along, as PyTorch/XLA does: programs written for
// it add masks and tables that they have never moved.
bool TakesHostTensors(std::string_view name) {
  static const auto* names = new std::unordered_set<std::string_view>{
      "aten::add",
      "aten::sub",
      "aten::rsub",
      "aten::mul",
      "aten::div",
      "aten::pow",
      "aten::fmod",
      "aten::bitwise_and",
      "aten::bitwise_or",
      "aten::bitwise_xor",
      "aten::bitwise_left_shift",
      "aten::bitwise_right_shift",
      "aten::__lshift__",
      "aten::__rshift__",
      "aten::floor_divide",
  };
  return names->contains(name);
}

bool IsPlainHostTensor(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         !tensor.is_nested() && !at::isTensorSubclassLike(tensor);
}

bool IsWrappedNumber(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// The default type of the category, as a Python number has it.
at::ScalarType NumberCategory(at::ScalarType type, at::ScalarType default_type) {
  if (at::isComplexType(type)) return at::toComplexType(default_type);
  if (at::isFloatingType(type)) return default_type;
  return type == at::kBool ? at::kBool : at::kLong;
}

at::ScalarType Promote(at::ScalarType a, at::ScalarType b) {
  return a == at::ScalarType::Undefined ? b : c10::promoteTypes(a, b);
}

}  // namespace

void NoteTensor(Context& context, const at::Tensor& tensor) {
  if (!IsXla(tensor)) return;
  lazy::Device* device = Impl(tensor)->xla_device();
  context.lies_otherwise = context.lies_otherwise || LiesOtherwise(tensor);
  if (context.device == nullptr) {
    context.device = device;
    if (context.type == ElementType::kInvalid) {
      context.type = ToElementType(tensor.scalar_type());
      context.rank = tensor.dim();
    }
  } else {
    TORCH_CHECK(context.device == device,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                ToTorchDevice(context.device), " and ", tensor.device(), "! (in ",
                context.kind == nullptr ? "an in-place operator" : context.kind->name, ")");
  }
}

ElementType NumberType(const at::Scalar& scalar, ElementType operand) {
  bool is_wide = operand == ElementType::kF64 || operand == ElementType::kC128;
  if (scalar.isBoolean()) return ElementType::kPred;
  if (scalar.isIntegral(false)) {
    // torch calls all unsigned that are not negative.
    const bool is_large = scalar.isUnsigned() && scalar.toUInt64() > INT64_MAX;
    return is_large ? ElementType::kU64 : ElementType::kS64;
  }
  if (scalar.isComplex()) return is_wide ? ElementType::kC128 : ElementType::kC64;
  is_wide = is_wide || (c10::get_default_dtype_as_scalartype() == at::kDouble);
  return is_wide ? ElementType::kF64 : ElementType::kF32;
}

lazy::Value ToOperand(Context& context, const at::Tensor& tensor) {
  ++context.position;
  if (IsXla(tensor)) return ResolvedValue(tensor);
  if (!IsHostScalar(tensor)) {
    if (TakesHostTensors(context.kind->name) && IsPlainHostTensor(tensor)) {
      return UploadTensor(context.device, tensor);
    }
    ThrowNotXla(tensor, context.kind->name, context.position);
  }
  at::Scalar scalar = tensor.item();
  if (IsWrappedNumber(tensor)) {
    lazy::CountPassingTensor();
    return ScalarValue(scalar, NumberType(scalar, context.type));
  }
  return ScalarValue(scalar, ToElementType(tensor.scalar_type()));
}

void CheckFits(const Number& number) {
  constexpr double kMostOfHalf = 65504;  // which all floats of 16 bits and more hold
  const at::ScalarType type = ToScalarType(number.type);
  if (at::isFloatingType(type) && !c10::isFloat8Type(type) && !number.value.isComplex() &&
      std::abs(number.value.toDouble()) <= kMostOfHalf) {
    return;
  }
  AT_DISPATCH_V2(type, "number", AT_WRAP([&] { (void)number.value.to<scalar_t>(); }), at::kBool,
                 at::kHalf, at::kBFloat16, AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), AT_EXPAND(AT_FLOAT8_TYPES));
}

ElementType ComputedType(ElementType type) {
  return ToElementType(at::toOpMathType(ToScalarType(type)));
}

void CheckFits(const Context& context, Fit fit, const at::Scalar& number) {
  if (context.type == ElementType::kInvalid) return;
  CheckFits({number, fit == Fit::kOperand ? context.type : ComputedType(context.type)});
}

void ThrowNoDevice(std::string_view op) {
  TORCH_CHECK(false, std::string(op), ": no argument is an XLA tensor, so the device is unknown");
}

bool IsNumber(const at::Tensor& tensor) { return IsWrappedNumber(tensor); }

at::Tensor WrappedNumber(const at::Tensor& number) {
  at::Tensor wrapped = c10::scalar_to_tensor(eager::NumberOf(number));
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wrapped;
}

void ElementwiseOperands::Collect(Value value) { values_.push_back(value); }

void ElementwiseOperands::Decide() {
  at::native::ResultTypeState state;
  const at::ScalarType default_type = attributes_.default_type;
  for (size_t i = 0; i < values_.size(); ++i) {
    at::ScalarType type = ToScalarType(values_[i]->element_type());
    if ((attributes_.numbers >> i) & 1) {
      state.wrappedResult = Promote(state.wrappedResult, NumberCategory(type, default_type));
    } else if (values_[i]->shape().rank() == 0) {
      state.zeroResult = Promote(state.zeroResult, type);
    } else {
      state.dimResult = Promote(state.dimResult, type);
    }
  }
  dimensions_ = ElementwiseDimensions(values_);
  if (promotion_ == Promotion::kNone) return;
  at::ScalarType common = at::native::result_type(state);
  if (promotion_ == Promotion::kToFloat && at::isIntegralType(common, true)) {
    common = default_type;
  }
  common_ = ToElementType(common);
  compute_ = AccumulationType(common_);
}

Value ElementwiseOperands::Prepare(Value value) {
  if (promotion_ != Promotion::kNone) {
    if (compute_ == ElementType::kPred) {
      value = ToPred(b_, value);
    } else {
      // Through the common type, so that rounding is that of eager's cast: f32 numbers, too, become
      // 16-bit floats.
      if (common_ != compute_ && !hlo::IsComplex(value->element_type())) {
        value = b_.Convert(value, common_);
      }
      value = b_.Convert(value, compute_);
    }
  }
  return b_.BroadcastTo(value, dimensions_);
}

Scalar ElementwiseOperands::Prepare(const Scalar& scalar) {
  if (promotion_ == Promotion::kNone) return scalar;
  if (compute_ == ElementType::kPred) return {ToPred(b_, scalar.value)};
  Value value = scalar.value;
  if (IsComplexValue(value) && !hlo::IsComplex(compute_)) value = b_.Real(value);
  return {b_.Convert(value, compute_)};
}

Value ElementwiseOperands::Finish(Value result) {
  if (result == nullptr) return result;
  ElementType type = result->element_type();
  if (promotion_ == Promotion::kDefault || promotion_ == Promotion::kToFloat) {
    type = common_;
  } else if (promotion_ == Promotion::kToReal && type == compute_) {
    type = common_;
  }
  if (type != result->element_type()) {
    result = type == ElementType::kPred ? ToPred(b_, result) : b_.Convert(result, type);
  }
  if (attributes_.target == ElementType::kInvalid || attributes_.target == type) return result;
  at::ScalarType from = ToScalarType(type), to = ToScalarType(attributes_.target);
  if (promotion_ == Promotion::kToReal && at::isComplexType(to)) {
    throw hlo::Error("a real result is not written into a complex tensor in place");
  }
  if (!c10::canCast(from, to)) {
    throw hlo::Error(std::string("result type ") + c10::toString(from) +
                     " can't be cast to the desired output type " + c10::toString(to));
  }
  if (to == at::kBool) return ToPred(b_, result);
  return b_.Convert(result, attributes_.target);
}

void CheckInPlaceShape(const at::Tensor& self, const lazy::Value& result) {
  if (!IsXla(self)) ThrowNotXla(self, result.node->operation()->kind().name, 1);
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    const std::string name = result.node->operation()->kind().name + "_";
    CheckExpanded(OutRuleOf(name, ""), name, self);
  }
  TORCH_CHECK(c10::IntArrayRef(result.shape().dimensions()) == self.sizes(), "output with shape ",
              self.sizes(), " doesn't match the broadcast shape ",
              c10::IntArrayRef(result.shape().dimensions()));
}

void CheckReads(const at::Tensor& self, const at::Tensor& read) {
  if (read.defined()) CheckNoPartialOverlap(self, read);
}

std::string InPlaceName(const char* name) {
  std::string text(name), overload;
  if (size_t dot = text.find('.'); dot != text.npos) {
    overload = text.substr(dot + 1);
    text.resize(dot);
  }
  text += "_";
  if (!c10::Dispatcher::singleton().findSchema({"aten::" + text, overload})) return "";
  return overload.empty() ? text : text + "." + overload;
}

void NameKind(lazy::OperationKind& kind, const char* name) {
  std::string text(name);
  text = text.substr(0, text.find('.'));
  kind.name = "aten::" + text;
  kind.counter = lazy::Counter("xla::" + text);
}

}  // namespace torch_xla::recording
