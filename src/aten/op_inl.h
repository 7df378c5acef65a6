// The templates that op.h declares.
#pragma once

#include <c10/core/DefaultDtype.h>

#include <cstring>

#include "aten/eager_form.h"
#include "aten/layout.h"
#include "aten/promotion.h"
#include "process/fork.h"

namespace torch_xla {
namespace recording {

// What the operands say together: the device, and the type and rank that numbers and dimensions
// follow.
struct Context {
  // An operation passes the gate for forks once, and not at each of the locks that it takes.
  const process::NoFork no_fork{};
  const lazy::OperationKind* kind = nullptr;
  lazy::Device* device = nullptr;
  ElementType type = ElementType::kInvalid;
  int64_t rank = 0;
  int64_t position = 0;         // of the tensor argument being added, from 1
  bool lies_otherwise = false;  // an operand is not row-major
};

void NoteTensor(Context& context, const at::Tensor& tensor);
inline void Note(Context& context, const at::Tensor& tensor) { NoteTensor(context, tensor); }
inline void Note(Context& context, const lazy::Value& value) {
  if (context.type == ElementType::kInvalid) {
    context.type = value.shape().element_type();
    context.rank = value.shape().rank();
  }
}
template <typename T>
void Note(Context& context, const std::optional<T>& value) {
  if (value) Note(context, *value);
}
inline void Note(Context& context, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) NoteTensor(context, tensor);
}
inline void Note(Context& context, const std::vector<at::Tensor>& tensors) {
  Note(context, at::TensorList(tensors));
}
inline void Note(Context& context, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) NoteTensor(context, tensor);
}
inline void Note(Context& context, const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor>& tensor : tensors) Note(context, tensor);
}
inline void Note(Context& context, const at::IOptTensorListRef& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.has_value()) NoteTensor(context, *tensor);
  }
}
template <typename T>
void Note(Context&, const T&) {}

// The element type in which a number is passed: its own kind, wide enough for the first operand.
ElementType NumberType(const at::Scalar& scalar, ElementType operand);

// Operands.
lazy::Value ToOperand(Context& context, const at::Tensor& tensor);
inline lazy::Value ToOperand(Context& context, const lazy::Value& value) {
  ++context.position;
  return value;
}
inline lazy::Value ToOperand(Context& context, const at::Scalar& scalar) {
  return ScalarValue(scalar, NumberType(scalar, context.type));
}
// Throws, as eager does, if the number does not fit into the type.
void CheckFits(const Number& number);
inline lazy::Value ToOperand(Context&, const Number& number) {
  CheckFits(number);
  return ScalarValue(number.value, number.type);
}

template <typename P>
struct Add;
template <>
struct Add<Value> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& value) {
    out.Add(ToOperand(context, value));
  }
};
template <>
struct Add<Scalar> : Add<Value> {};
template <>
struct Add<lazy::Index> {
  static void To(lazy::OperandList& out, Context&, int64_t index) {
    out.Add({lazy::Node::MakeIndex(index), 0});
  }
};
template <>
struct Add<std::vector<lazy::Index>> {
  static void To(lazy::OperandList& out, Context&, at::IntArrayRef indices) {
    for (int64_t index : indices) out.Add({lazy::Node::MakeIndex(index), 0});
    out.AddCount(static_cast<uint32_t>(indices.size()));
  }
};
template <>
struct Add<std::optional<Value>> {
  static bool IsAbsent(const at::Tensor& tensor) { return !tensor.defined(); }
  static bool IsAbsent(const at::Scalar&) { return false; }
  static bool IsAbsent(const Number&) { return false; }
  static bool IsAbsent(const lazy::Value& value) { return !value; }
  static void To(lazy::OperandList& out, Context&, std::nullopt_t) { out.AddCount(0); }
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& value) {
    bool absent = IsAbsent(value);
    out.AddCount(absent ? 0 : 1);
    if (!absent) out.Add(ToOperand(context, value));
  }
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const std::optional<T>& value) {
    if (value)
      To(out, context, *value);
    else
      out.AddCount(0);
  }
};
template <>
struct Add<std::optional<Scalar>> : Add<std::optional<Value>> {};
template <>
struct Add<std::vector<Value>> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& list) {
    uint32_t count = 0;
    for (const auto& value : list) {
      out.Add(ToOperand(context, value));
      ++count;
    }
    out.AddCount(count);
  }
};
template <>
struct Add<std::vector<std::optional<Value>>> {
  template <typename T>
  static void To(lazy::OperandList& out, Context& context, const T& list) {
    out.AddCount(static_cast<uint32_t>(list.size()));
    for (const auto& entry : list) {
      const std::optional<at::Tensor> value = [&]() -> std::optional<at::Tensor> {
        if constexpr (requires { entry.has_value(); }) {
          if (!entry.has_value()) return std::nullopt;
          return *entry;
        } else {
          return static_cast<std::optional<at::Tensor>>(entry);
        }
      }();
      bool present = value && value->defined();
      out.AddCount(present ? 1 : 0);
      if (present) out.Add(ToOperand(context, *value));
    }
  }
};

// Attributes.
template <typename P>
struct AttributeFrom {
  template <typename T>
  static P Make(const Context&, const T& value) {
    if constexpr (std::is_convertible_v<T, P>) {
      return static_cast<P>(value);
    } else if constexpr (std::is_same_v<T, at::Scalar> && std::is_arithmetic_v<P>) {
      return value.template to<P>();
    } else {
      return P(value);
    }
  }
};
template <>
struct AttributeFrom<ElementType> {
  static ElementType Make(const Context&, at::ScalarType type) { return ToElementType(type); }
  static ElementType Make(const Context&, ElementType type) { return type; }
};
template <>
struct AttributeFrom<Dimensions> {
  static Dimensions Make(const Context&, at::IntArrayRef sizes) { return sizes.vec(); }
};
template <>
struct AttributeFrom<Dimension> {
  static Dimension Make(const Context& context, int64_t dimension) {
    return {c10::maybe_wrap_dim(dimension, context.rank)};
  }
};
template <>
struct AttributeFrom<Constant> {
  static Constant Make(const Context&, const at::Scalar& scalar) {
    if (scalar.isBoolean()) return scalar.toBool();
    if (scalar.isIntegral(false)) return scalar.toLong();
    if (scalar.isComplex()) return std::complex<double>(scalar.toComplexDouble());
    return scalar.toDouble();
  }
  template <typename T>
    requires std::is_arithmetic_v<T>
  static Constant Make(const Context&, T value) {
    return value;
  }
};
template <typename P>
struct AttributeFrom<std::optional<P>> {
  static std::optional<P> Make(const Context&, std::nullopt_t) { return std::nullopt; }
  template <typename T>
  static std::optional<P> Make(const Context& context, const T& value) {
    if constexpr (requires {
                    value.has_value();
                    *value;
                  }) {
      if (!value.has_value()) return std::nullopt;
      return AttributeFrom<P>::Make(context, *value);
    } else {
      return AttributeFrom<P>::Make(context, value);
    }
  }
};

// --- Results

inline at::Tensor WrapResult(lazy::Device* device, const lazy::Reference<lazy::Node>& node,
                             uint32_t index) {
  if (node->shape(index) == nullptr) return at::Tensor();
  return MakeTensor(device, {node, index});
}
template <typename R>
struct Wrap;
template <>
struct Wrap<Value> {
  static at::Tensor From(lazy::Device* device, const lazy::Reference<lazy::Node>& node) {
    return WrapResult(device, node, 0);
  }
};
template <>
struct Wrap<std::vector<Value>> {
  static std::vector<at::Tensor> From(lazy::Device* device,
                                      const lazy::Reference<lazy::Node>& node) {
    std::vector<at::Tensor> out;
    uint32_t count = static_cast<uint32_t>(node->operation()->result_shapes().size());
    for (uint32_t i = 0; i < count; ++i) out.push_back(WrapResult(device, node, i));
    return out;
  }
};
template <size_t... i>
auto WrapTuple(lazy::Device* device, const lazy::Reference<lazy::Node>& node,
               std::index_sequence<i...>) {
  return std::make_tuple(WrapResult(device, node, static_cast<uint32_t>(i))...);
}
template <size_t n>
struct Wrap<std::array<Value, n>> {
  static auto From(lazy::Device* device, const lazy::Reference<lazy::Node>& node) {
    return WrapTuple(device, node, std::make_index_sequence<n>());
  }
};
template <typename... T>
struct Wrap<std::tuple<T...>> : Wrap<std::array<Value, sizeof...(T)>> {};
template <>
struct Wrap<std::pair<Value, Value>> : Wrap<std::array<Value, 2>> {};

// --- Recording

[[noreturn]] void ThrowNoDevice(std::string_view op);

// An argument goes where its parameter says: to the operands, or to its place among the attributes.
template <typename P, size_t attribute, typename Attributes, typename T>
void Take(lazy::OperandList& operands, Attributes& attributes, Context& context, const T& value) {
  if constexpr (lazy::kIsOperand<P>) {
    Add<P>::To(operands, context, value);
  } else {
    std::get<attribute>(attributes) = AttributeFrom<P>::Make(context, value);
  }
}

// By the lowering's type, as the family is, so that it is compiled once for all lowerings of one
// type.
template <typename F, typename... P, typename... Arguments>
lazy::Reference<lazy::Node> RecordNode(Context& context, lazy::OperationFamily<F>& family,
                                       lazy::TypeList<P...> list, const Arguments&... arguments) {
  static_assert(sizeof...(P) == sizeof...(Arguments),
                "one argument for each parameter of the lowering after the builder");
  context.kind = &family.kind();
  (Note(context, arguments), ...);
  if (context.device == nullptr) ThrowNoDevice(context.kind->name);
  lazy::OperandList operands;
  typename lazy::LoweringTraits<F>::Attributes attributes{};
  [&]<size_t... i>(std::index_sequence<i...>) {
    (Take<P, lazy::AttributesBefore(i, list)>(operands, attributes, context, arguments), ...);
  }(std::index_sequence_for<P...>());
  try {
    return family.Record(operands, attributes);
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, context.kind->name);
  }
}

// The tensors on xla, or of no dimension, among arguments.
inline void AddTensors(Operands& out, const at::Tensor& tensor) {
  if (tensor.defined()) out.push_back(&tensor);
}
inline void AddTensors(Operands& out, const std::optional<at::Tensor>& tensor) {
  if (tensor) AddTensors(out, *tensor);
}
inline void AddTensors(Operands& out, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) AddTensors(out, tensor);
}
inline void AddTensors(Operands& out, const std::vector<at::Tensor>& tensors) {
  AddTensors(out, at::TensorList(tensors));
}
inline void AddTensors(Operands& out, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) AddTensors(out, tensor);
}
template <typename T>
void AddTensors(Operands&, const T&) {}

template <typename... T>
void AddTensors(Operands& out, const std::tuple<T...>& tensors) {
  std::apply([&](const T&... tensor) { (AddTensors(out, tensor), ...); }, tensors);
}

// What Record does, for all lowerings of a type.
template <typename F, typename... Arguments>
auto RecordWith(Context& context, lazy::OperationFamily<F>& family, const Arguments&... arguments) {
  using Traits = lazy::LoweringTraits<F>;
  auto node = RecordNode(context, family, typename Traits::Parameters(), arguments...);
  auto results = Wrap<typename Traits::Result>::From(context.device, node);
  if (context.lies_otherwise) [[unlikely]] {
    Operands operands, targets;
    (AddTensors(operands, arguments), ...);
    AddTensors(targets, results);
    LayOutResults(context.kind->name, targets, operands);
  }
  return results;
}

// --- Element-wise

// What element-wise recording adds to a lowering's parameters.
struct ElementwiseAttributes {
  uint32_t numbers = 0;  // bit i: operand i (of those that promote) is a Python number
  ElementType target = ElementType::kInvalid;  // in place: the type to return
  at::ScalarType default_type = at::kFloat;    // torch.get_default_dtype()
  bool operator==(const ElementwiseAttributes&) const = default;
  uint64_t Hash() const {
    return (numbers * 64 + static_cast<uint64_t>(target)) * 64 +
           static_cast<uint64_t>(default_type);
  }
};

// The common type and shape of the operands that a lowering collects.
class ElementwiseOperands {
 public:
  ElementwiseOperands(Builder& b, Promotion promotion, const ElementwiseAttributes& attributes)
      : b_(b), promotion_(promotion), attributes_(attributes) {}
  void Collect(Value value);
  void Collect(const std::optional<Value>& value) {
    if (value) Collect(*value);
  }
  template <typename T>
  void Collect(const T&) {}
  void Decide();
  Value Prepare(Value value);
  std::optional<Value> Prepare(const std::optional<Value>& value) {
    return value ? std::optional<Value>(Prepare(*value)) : std::nullopt;
  }
  Scalar Prepare(const Scalar& scalar);
  std::optional<Scalar> Prepare(const std::optional<Scalar>& scalar) {
    return scalar ? std::optional<Scalar>(Prepare(*scalar)) : std::nullopt;
  }
  template <typename T>
  const T& Prepare(const T& attribute) {
    return attribute;
  }
  Value Finish(Value result);

 private:
  Builder& b_;
  Promotion promotion_;
  const ElementwiseAttributes& attributes_;
  std::vector<Value> values_;
  ElementType common_ = ElementType::kInvalid;   // what torch's rules say
  ElementType compute_ = ElementType::kInvalid;  // wide enough to compute in
  Dimensions dimensions_;
};

// f between the operands' preparation and the result's.
template <typename F, typename... P>
Value LowerElementwise(Builder& b, F f, Promotion promotion,
                       const ElementwiseAttributes& attributes, const P&... parameters) {
  ElementwiseOperands operands(b, promotion, attributes);
  (operands.Collect(parameters), ...);
  operands.Decide();
  return operands.Finish(f(b, operands.Prepare(parameters)...));
}

template <auto f, Promotion promotion, typename List>
struct Elementwise;
template <auto f, Promotion promotion, typename... P>
struct Elementwise<f, promotion, lazy::TypeList<P...>> {
  static Value Lower(Builder& b, P... parameters, ElementwiseAttributes attributes) {
    return LowerElementwise(b, f, promotion, attributes, parameters...);
  }
};

template <auto f, Promotion promotion>
using ElementwiseOf =
    Elementwise<f, promotion, typename lazy::LoweringTraits<decltype(f)>::Parameters>;

// A tensor of rank 0 as a number that promotes as Python's do.
at::Tensor WrappedNumber(const at::Tensor& number);

// Bit of each operand that promotes, if the argument for it is a number.
bool IsNumber(const at::Tensor& tensor);
inline bool IsNumber(const at::Scalar&) { return true; }
inline bool IsNumber(const Number&) { return true; }
template <typename T>
bool IsNumber(const std::optional<T>& value) {
  return value && IsNumber(*value);
}
template <typename T>
bool IsNumber(const T&) {
  return false;
}
template <typename T>
bool IsPresent(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    if (!value.has_value()) return false;
    if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) return value->defined();
  }
  return true;
}
template <typename... P, typename... Arguments>
uint32_t NumberMask(lazy::TypeList<P...>, const Arguments&... arguments) {
  uint32_t mask = 0, bit = 1;
  auto add = [&](bool promotes, bool present, bool number) {
    if (!promotes || !present) return;
    if (number) mask |= bit;
    bit <<= 1;
  };
  (add(std::is_same_v<P, Value> || std::is_same_v<P, std::optional<Value>>, IsPresent(arguments),
       IsNumber(arguments)),
   ...);
  return mask;
}

template <auto f, Promotion promotion>
auto& ElementwiseFamily() {
  return lazy::Op<&ElementwiseOf<f, promotion>::Lower>::family();
}

// `family` of a lowering whose last parameter is what the element-wise ones have in addition.
template <typename F, typename... Arguments>
lazy::Value RecordElementwiseValue(Context& context, lazy::OperationFamily<F>& family,
                                   ElementType target, const Arguments&... arguments) {
  using Parameters = typename lazy::LoweringTraits<F>::Parameters;
  ElementwiseAttributes attributes{.target = target,
                                   .default_type = c10::get_default_dtype_as_scalartype()};
  attributes.numbers = NumberMask(Parameters(), arguments..., attributes);
  return {RecordNode(context, family, Parameters(), arguments..., attributes), 0};
}

void CheckInPlaceShape(const at::Tensor& self, const lazy::Value& result);

// Throws if `self`, which is written in place, shares a part of its memory with what is read.
void CheckReads(const at::Tensor& self, const at::Tensor& read);
inline void CheckReads(const at::Tensor& self, const std::optional<at::Tensor>& read) {
  if (read) CheckReads(self, *read);
}
template <typename T>
void CheckReads(const at::Tensor&, const T&) {}

// What RecordElementwise and RecordElementwiseInto do, for all lowerings of a type.
template <typename F, typename... Arguments>
at::Tensor RecordElementwiseWith(lazy::OperationFamily<F>& family, const Arguments&... arguments) {
  Context context;
  auto value = RecordElementwiseValue(context, family, ElementType::kInvalid, arguments...);
  at::Tensor result = MakeTensor(context.device, std::move(value));
  if (context.lies_otherwise) [[unlikely]] {
    Operands operands;
    (AddTensors(operands, arguments), ...);
    LayOutElementwise(result, operands, (std::is_same_v<Arguments, at::Scalar> || ...));
  }
  return result;
}
template <typename F, typename... Arguments>
at::Tensor& RecordElementwiseIntoWith(lazy::OperationFamily<F>& family, at::Tensor& self,
                                      const Arguments&... arguments) {
  Context context;
  Note(context, self);
  ElementType target = ToElementType(self.scalar_type());
  auto value = RecordElementwiseValue(context, family, target, arguments...);
  CheckInPlaceShape(self, value);
  (CheckReads(self, arguments), ...);
  WriteInto(self, value);
  return self;
}

// --- Registration

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
    std::vector<at::Tensor> promoting(operands.begin(), operands.end());
    if (how.numbers != 0) {
      eager::Reader reader(operands, Family::CountsOf(operation));
      uint32_t bit = 1;
      (MarkNumber<P>(reader, promoting, how.numbers, bit), ...);
    }
    auto results = eager::CallWith<F>(callable_, operation, promoting, lazy::TypeList<P...>());
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
template <auto f>
void Register(torch::Library& m, const char* name) {
  using K = recording::OperatorKernel<f, typename lazy::LoweringTraits<decltype(f)>::Parameters>;
  recording::NameKind(lazy::Op<f>::kind(), name);
  recording::RunByOperator<f>(name, &K::Call);
  m.impl(name, &K::Call);
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
