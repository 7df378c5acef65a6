// How torch's own CPU kernels compute what a node records, so that a graph can be run node by node
// (interpreter.cc) before a program for it pays. Most operators need no line for it: a lowering
// that Register and RegisterElementwise (op.h) name takes the parameters of its operator, so its
// operands and attributes are the operator's arguments. For the others the lines are
//
//   RunBy<&Concatenate>(+[](at::TensorList tensors, int64_t dimension) { return at::cat(…); });
//   RunElementwiseBy<&AddScaled>(+[](const at::Tensor& x, …) { … });
//
// with a function of the ATen types that op.h's table pairs with the lowering's parameters.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "aten/dtype.h"
#include "aten/lowering.h"
#include "aten/op_arguments.h"
#include "lazy/op.h"

namespace lazy {

// Knows no torch beyond this name: OperationKind points at one.
class EagerForm {
 public:
  virtual ~EagerForm() = default;
  // `operands`: the node's, on the CPU; numbers and indices have rank 0. The results, in order;
  // undefined where there is none. They may share memory with operands, and change
  // none that somebody else holds.
  // Throws what torch throws.
  virtual std::vector<at::Tensor> Run(const Operation& operation,
                                      std::span<const at::Tensor> operands) const = 0;
};

}  // namespace lazy

namespace torch_xla::eager {

// Takes the operands of one call off the list, in the order of the lowering's parameters.
class Reader {
 public:
  Reader(std::span<const at::Tensor> operands, std::span<const uint32_t> counts)
      : operands_(operands), counts_(counts) {}
  const at::Tensor& Next() { return operands_[operand_++]; }
  uint32_t Count() { return counts_[count_++]; }
  size_t position() const { return operand_; }

 private:
  std::span<const at::Tensor> operands_;
  std::span<const uint32_t> counts_;
  size_t operand_ = 0, count_ = 0;
};

// The number in a tensor of one element, as item() gives it, without torch's dispatcher.
at::Scalar NumberOf(const at::Tensor& number);

template <typename P>
struct Read;
template <>
struct Read<Value> {
  static const at::Tensor& From(Reader& reader) { return reader.Next(); }
};
template <>
struct Read<lazy::Scalar> : Read<Value> {};
template <Fit fit>
struct Read<Fitting<lazy::Scalar, fit>> : Read<Value> {};
template <>
struct Read<lazy::Index> {
  static int64_t From(Reader& reader) { return NumberOf(reader.Next()).to<int64_t>(); }
};
template <typename P>
struct Read<std::optional<P>> {
  static auto From(Reader& reader) {
    std::optional<std::decay_t<decltype(Read<P>::From(reader))>> value;
    if (reader.Count() != 0) value = Read<P>::From(reader);
    return value;
  }
};
template <typename P>
struct Read<std::vector<P>> {
  static auto From(Reader& reader) {
    std::vector<std::decay_t<decltype(Read<P>::From(reader))>> values;
    for (uint32_t n = reader.Count(); n > 0; --n) values.push_back(Read<P>::From(reader));
    return values;
  }
};
template <>
struct Read<std::vector<std::optional<Value>>> {
  static c10::List<std::optional<at::Tensor>> From(Reader& reader) {
    c10::List<std::optional<at::Tensor>> values;
    for (uint32_t n = reader.Count(); n > 0; --n) {
      values.push_back(Read<std::optional<Value>>::From(reader));
    }
    return values;
  }
};

// An attribute as the argument it was made of.
template <typename P>
const P& ArgumentOf(const P& attribute) {
  return attribute;
}
inline at::IntArrayRef ArgumentOf(const Dimensions& sizes) { return sizes; }
inline int64_t ArgumentOf(Dimension dimension) { return dimension; }
inline at::ScalarType ArgumentOf(ElementType type) { return ToScalarType(type); }
inline c10::string_view ArgumentOf(const std::string& text) { return text; }
inline at::Scalar ArgumentOf(const Constant& x) {
  return std::visit(
      []<typename T>(const T& value) {
        if constexpr (std::is_same_v<T, std::complex<double>>) {
          return at::Scalar(c10::complex<double>(value));
        } else {
          return at::Scalar(value);
        }
      },
      x);
}
template <Fit fit>
at::Scalar ArgumentOf(const Fitting<Constant, fit>& number) {
  return ArgumentOf(static_cast<const Constant&>(number));
}
inline at::OptionalIntArrayRef ArgumentOf(const std::optional<Dimensions>& sizes) {
  return sizes ? at::OptionalIntArrayRef(*sizes) : std::nullopt;
}
template <typename P>
auto ArgumentOf(const std::optional<P>& attribute) {
  std::optional<std::decay_t<decltype(ArgumentOf(*attribute))>> argument;
  if (attribute) argument = ArgumentOf(*attribute);
  return argument;
}

// What a function that takes `Parameter` gets of an argument: a tensor of rank 0 may be a number.
template <typename Parameter, typename Argument>
decltype(auto) Pass(const Argument& argument) {
  using Wanted = std::decay_t<Parameter>;
  if constexpr (std::is_same_v<Wanted, at::Scalar> && std::is_same_v<Argument, at::Tensor>) {
    return NumberOf(argument);
  } else if constexpr (std::is_same_v<Wanted, std::optional<at::Scalar>> &&
                       std::is_same_v<Argument, std::optional<at::Tensor>>) {
    return argument ? std::optional<at::Scalar>(NumberOf(*argument)) : std::nullopt;
  } else {
    return (argument);
  }
}

inline std::vector<at::Tensor> AsList(at::Tensor tensor) {
  std::vector<at::Tensor> list;
  list.push_back(std::move(tensor));
  return list;
}
inline std::vector<at::Tensor> AsList(std::vector<at::Tensor> tensors) { return tensors; }
template <typename... T>
std::vector<at::Tensor> AsList(const std::tuple<T...>& tensors) {
  return std::apply([](const auto&... tensor) { return std::vector<at::Tensor>{tensor...}; },
                    tensors);
}

// An aten operator by name, "add.Tensor"; found at the first call, by whichever thread that is, and
// under a lock.
class BoxedOperator {
 public:
  explicit BoxedOperator(const std::string& name);
  std::vector<at::Tensor> Call(torch::jit::Stack stack) const;

 private:
  const std::string name_, overload_;
  const bool wants_row_major_;
  const bool adds_in_operand_type_;
  mutable std::atomic<bool> is_found_ = false;
  mutable std::optional<c10::OperatorHandle> handle_;
};

// The same for arguments of C++ types. They are boxed: torch's typed calls are several kilobytes of
// code for each signature.
template <typename Signature>
class Operator;
template <typename Return, typename... Arguments>
class Operator<Return(Arguments...)> {
 public:
  explicit Operator(const std::string& name) : operator_(name) {}
  template <typename... Given>
  std::vector<at::Tensor> operator()(const Given&... given) const {
    torch::jit::Stack stack;
    stack.reserve(sizeof...(Given));
    (stack.emplace_back(Pass<Arguments>(given)), ...);
    return operator_.Call(std::move(stack));
  }

 private:
  const BoxedOperator operator_;
};

template <typename Signature>
class Function;
template <typename Return, typename... Arguments>
class Function<Return(Arguments...)> {
 public:
  explicit Function(Return (*function)(Arguments...)) : function_(function) {}
  template <typename... Given>
  std::vector<at::Tensor> operator()(const Given&... given) const {
    return AsList(function_(Pass<Arguments>(given)...));
  }

 private:
  Return (*const function_)(Arguments...);
};

// Calls `callable` with the operands and those attributes of an operation of lowering type F that
// stand for the parameters `P`, the lowering's first ones.
template <typename F, typename... P>
std::vector<at::Tensor> CallWith(const auto& callable, const lazy::Operation& operation,
                                 std::span<const at::Tensor> operands, lazy::TypeList<P...> list) {
  using Family = lazy::OperationFamily<F>;
  Reader reader(operands, Family::CountsOf(operation));
  const auto& attributes = Family::AttributesOf(operation);
  const auto read = [&]<typename Q, size_t attribute>() -> decltype(auto) {
    if constexpr (lazy::kIsOperand<Q>) {
      return Read<Q>::From(reader);
    } else {
      return ArgumentOf(std::get<attribute>(attributes));
    }
  };
  return [&]<size_t... i>(std::index_sequence<i...>) {
    // Braces: evaluated in order.
    const std::tuple<decltype(read.template operator()<P, lazy::AttributesBefore(i, list)>())...>
        arguments {
          read.template operator()<P, lazy::AttributesBefore(i, list)>()...
        };
    return std::apply(callable, arguments);
  }(std::index_sequence_for<P...>());
}

template <typename F, typename Callable>
class Form final : public lazy::EagerForm {
 public:
  explicit Form(const auto& what) : callable_(what) {}
  std::vector<at::Tensor> Run(const lazy::Operation& operation,
                              std::span<const at::Tensor> operands) const override {
    return CallWith<F>(callable_, operation, operands,
                       typename lazy::LoweringTraits<F>::Parameters());
  }

 private:
  const Callable callable_;
};

// The first form that a kind is given stays: where several operators are one lowering, each of them
// computes it.
template <typename Form>
void SetForm(lazy::OperationKind& kind, const auto& what) {
  if (kind.eager_form == nullptr) kind.eager_form = new Form(what);  // kinds live for ever
}

}  // namespace torch_xla::eager
