// The templates that op.h declares: recording, and the kernels that registration makes of a
// lowering.
#pragma once

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/eager_form.h"
#include "aten/op.h"
#include "aten/open_sizes.h"
#include "aten/tensor.h"
#include "lazy/programs_of_any_size.h"

namespace torch_xla {
namespace recording {

template <typename P>
struct AtenType {
  using type = P;
};
#define TORCH_XLA_ATEN_TYPE(parameter, aten) \
  template <>                                \
  struct AtenType<parameter> {               \
    using type = aten;                       \
  };
TORCH_XLA_ATEN_TYPE(Value, const at::Tensor&)
TORCH_XLA_ATEN_TYPE(std::optional<Value>, const std::optional<at::Tensor>&)
TORCH_XLA_ATEN_TYPE(std::vector<Value>, at::TensorList)
TORCH_XLA_ATEN_TYPE(std::vector<std::optional<Value>>, const c10::List<std::optional<at::Tensor>>&)
TORCH_XLA_ATEN_TYPE(Scalar, const at::Scalar&)
TORCH_XLA_ATEN_TYPE(std::optional<Scalar>, const std::optional<at::Scalar>&)
TORCH_XLA_ATEN_TYPE(lazy::Index, int64_t)
TORCH_XLA_ATEN_TYPE(std::vector<lazy::Index>, at::IntArrayRef)
TORCH_XLA_ATEN_TYPE(Constant, const at::Scalar&)
TORCH_XLA_ATEN_TYPE(std::optional<Constant>, const std::optional<at::Scalar>&)
TORCH_XLA_ATEN_TYPE(Dimensions, at::IntArrayRef)
TORCH_XLA_ATEN_TYPE(std::optional<Dimensions>, at::OptionalIntArrayRef)
TORCH_XLA_ATEN_TYPE(std::string, c10::string_view)
TORCH_XLA_ATEN_TYPE(std::optional<std::string>, std::optional<c10::string_view>)
TORCH_XLA_ATEN_TYPE(ElementType, at::ScalarType)
TORCH_XLA_ATEN_TYPE(std::optional<ElementType>, std::optional<at::ScalarType>)
TORCH_XLA_ATEN_TYPE(Dimension, int64_t)
TORCH_XLA_ATEN_TYPE(std::optional<Dimension>, std::optional<int64_t>)
#undef TORCH_XLA_ATEN_TYPE
template <typename P, Fit fit>
struct AtenType<Fitting<P, fit>> : AtenType<P> {};
template <typename P, Fit fit>
struct AtenType<std::optional<Fitting<P, fit>>> : AtenType<std::optional<P>> {};

template <auto f, typename List>
struct OperatorKernel;
template <auto f, typename... P>
struct OperatorKernel<f, lazy::TypeList<P...>> {
  using Return = decltype(Wrap<typename lazy::LoweringTraits<decltype(f)>::Result>::From(
      nullptr, std::declval<lazy::Reference<lazy::Node>>()));
  static Return Call(typename AtenType<P>::type... arguments) { return Record<f>(arguments...); }
};

template <auto f, Promotion promotion, typename List>
struct ElementwiseKernel;
template <auto f, Promotion promotion, typename First, typename... P>
struct ElementwiseKernel<f, promotion, lazy::TypeList<First, P...>> {
  static at::Tensor Call(const at::Tensor& self, typename AtenType<P>::type... arguments) {
    return RecordElementwise<f, promotion>(self, arguments...);
  }
  static at::Tensor& CallInPlace(at::Tensor& self, typename AtenType<P>::type... arguments) {
    return RecordElementwiseInto<f, promotion>(self, self, arguments...);
  }
};

template <auto f, Promotion promotion, typename List>
struct ElementwiseScalarKernel;
template <auto f, Promotion promotion, typename... P>
struct ElementwiseScalarKernel<f, promotion, lazy::TypeList<Value, Value, P...>> {
  static at::Tensor Call(const at::Tensor& self, const at::Scalar& other,
                         typename AtenType<P>::type... arguments) {
    return RecordElementwise<f, promotion>(self, other, arguments...);
  }
  static at::Tensor& CallInPlace(at::Tensor& self, const at::Scalar& other,
                                 typename AtenType<P>::type... arguments) {
    return RecordElementwiseInto<f, promotion>(self, self, other, arguments...);
  }
};

// How torch computes an element-wise lowering, by a callable for the lowering's own parameters `P`.
template <typename F, typename Callable, typename List>
class ElementwiseForm;
template <typename F, typename Callable, typename... P>
class ElementwiseForm<F, Callable, lazy::TypeList<P...>> final : public lazy::EagerForm {
 public:
  explicit ElementwiseForm(const auto& what) : callable_(what) {}
  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    using Family = lazy::OperationFamily<F>;
    const auto& attributes = Family::AttributesOf(operation);
    constexpr size_t last = std::tuple_size_v<std::decay_t<decltype(attributes)>> - 1;
    const ElementwiseAttributes& how = std::get<last>(attributes);
    std::vector<at::Tensor> promoting;
    if (how.numbers != 0) {
      promoting.assign(operands.begin(), operands.end());
      eager::Reader reader(operands, Family::CountsOf(operation));
      uint32_t bit = 1;
      (MarkNumber<P>(reader, promoting, how.numbers, bit), ...);
      operands = promoting;
    }
    auto results = eager::CallWith<F>(callable_, operation, operands, lazy::TypeList<P...>());
    if (how.target != ElementType::kInvalid) results[0] = results[0].to(ToScalarType(how.target));
    return results;
  }

 private:
  // An operand that is a Python number promotes as one.
  template <typename Q>
  static void MarkNumber(eager::Reader& reader, std::vector<at::Tensor>& operands, uint32_t numbers,
                         uint32_t& bit) {
    if constexpr (lazy::kIsOperand<Q>) {
      if constexpr (lazy::ParameterTraits<Q>::kHasCount) {
        if (reader.Count() == 0) return;
      }
      at::Tensor& operand = operands[reader.position()];
      reader.Next();
      if constexpr (std::is_same_v<Q, Value> || std::is_same_v<Q, std::optional<Value>>) {
        if ((numbers & bit) != 0) operand = WrappedNumber(operand);
        bit <<= 1;
      }
    }
  }

  const Callable callable_;
};

// "add.Tensor" → "add_.Tensor"; empty if there is no such operator.
std::string InPlaceName(const char* name);
// Names the operation after the operator: "aten::add", counted as "xla::add".
void NameKind(lazy::OperationKind& kind, const char* name);
template <typename Kernel, typename InPlace>
void RegisterWithInPlace(torch::Library& m, const char* name, Kernel* kernel, InPlace* in_place) {
  m.impl(name, kernel);
  std::string in_place_name = InPlaceName(name);
  if (!in_place_name.empty()) m.impl(in_place_name.c_str(), in_place);
}

// The operator `name`, of the same C++ signature as its kernel for xla.
template <auto f, typename Signature>
void RunByOperator(const char* name, Signature*) {
  using Form = eager::Form<decltype(f), eager::Operator<Signature>>;
  eager::SetForm<Form>(lazy::Op<f>::kind(), std::string(name));
}
template <auto f, Promotion promotion, typename Signature>
void RunElementwiseByOperator(const char* name, Signature*) {
  using F = decltype(&ElementwiseOf<f, promotion>::Lower);
  using Parameters = typename lazy::LoweringTraits<decltype(f)>::Parameters;
  using Form = ElementwiseForm<F, eager::Operator<Signature>, Parameters>;
  eager::SetForm<Form>(ElementwiseFamily<f, promotion>().kind(), std::string(name));
}

}  // namespace recording

template <auto f, typename... Arguments>
auto Record(const Arguments&... arguments) {
  recording::Context context;
  return recording::RecordWith(context, lazy::Op<f>::family(), arguments...);
}

template <auto f, typename... Arguments>
auto RecordOn(c10::Device device, const Arguments&... arguments) {
  lazy::Device* const lazy_device = ToLazyDevice(device);  // may start the runtime, and wait
  recording::Context context;
  context.device = lazy_device;
  return recording::RecordWith(context, lazy::Op<f>::family(), arguments...);
}

template <auto f, typename... Arguments>
void RecordInto(const at::Tensor& self, const Arguments&... arguments) {
  if (lazy::HasOpenSizes()) [[unlikely]] {
    return WriteInto(self, OfSizesOf(self, RecordOn<f>(self.device(), arguments...)));
  }
  using Parameters = typename lazy::LoweringTraits<decltype(f)>::Parameters;
  recording::Context context;
  context.device = CheckedImpl(self)->xla_device();
  WriteInto(self, lazy::Value{recording::RecordNode(context, lazy::Op<f>::family(), Parameters(),
                                                    arguments...),
                              0});
}

template <size_t n>
auto AsTuple(std::vector<at::Tensor> tensors) {
  tensors.resize(n);
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return std::make_tuple(std::move(tensors[i])...);
  }(std::make_index_sequence<n>());
}

template <auto f, typename Signature>
void RunBy(Signature* function) {
  using Form = eager::Form<decltype(f), eager::Function<Signature>>;
  eager::SetForm<Form>(lazy::Op<f>::kind(), function);
}
template <auto f, Promotion promotion, typename Signature>
void RunElementwiseBy(Signature* function) {
  using F = decltype(&recording::ElementwiseOf<f, promotion>::Lower);
  using Parameters = typename lazy::LoweringTraits<decltype(f)>::Parameters;
  using Form = recording::ElementwiseForm<F, eager::Function<Signature>, Parameters>;
  eager::SetForm<Form>(recording::ElementwiseFamily<f, promotion>().kind(), function);
}

// Kernels are registered as function pointers, not as types of their own (TORCH_FN): torch's
// wrappers are then compiled once for each signature, at the price of one indirect call.
template <auto f, typename Signature>
void Register(torch::Library& m, const char* name, Signature* kernel) {
  recording::NameKind(lazy::Op<f>::kind(), name);
  recording::RunByOperator<f>(name, kernel);
  m.impl(name, kernel);
}

template <auto f>
void Register(torch::Library& m, const char* name) {
  using K = recording::OperatorKernel<f, typename lazy::LoweringTraits<decltype(f)>::Parameters>;
  Register<f>(m, name, &K::Call);
}

template <auto f, Promotion promotion, typename... Arguments>
at::Tensor RecordElementwise(const Arguments&... arguments) {
  return recording::RecordElementwiseWith(recording::ElementwiseFamily<f, promotion>(),
                                          arguments...);
}

template <auto f, Promotion promotion, typename... Arguments>
at::Tensor& RecordElementwiseInto(at::Tensor& self, const Arguments&... arguments) {
  return recording::RecordElementwiseIntoWith(recording::ElementwiseFamily<f, promotion>(), self,
                                              arguments...);
}

template <auto f, Promotion promotion>
void RegisterElementwise(torch::Library& m, const char* name) {
  using K = recording::ElementwiseKernel<f, promotion,
                                         typename lazy::LoweringTraits<decltype(f)>::Parameters>;
  recording::NameKind(recording::ElementwiseFamily<f, promotion>().kind(), name);
  recording::RunElementwiseByOperator<f, promotion>(name, &K::Call);
  recording::RegisterWithInPlace(m, name, &K::Call, &K::CallInPlace);
}

template <auto f, Promotion promotion>
void RegisterElementwiseScalar(torch::Library& m, const char* name) {
  using K =
      recording::ElementwiseScalarKernel<f, promotion,
                                         typename lazy::LoweringTraits<decltype(f)>::Parameters>;
  recording::NameKind(recording::ElementwiseFamily<f, promotion>().kind(), name);
  recording::RunElementwiseByOperator<f, promotion>(name, &K::Call);
  recording::RegisterWithInPlace(m, name, &K::Call, &K::CallInPlace);
}

}  // namespace torch_xla
