// What eager asks of the tensors that an operator writes into (`out=`, in place), beyond what the
// functional operator checks.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace torch_xla {

// Which types the target of `out=` may have.
enum class OutType {
  kCastable,        // any that the result's type can be cast to
  kCastableToReal,  // the same, but not complex, unless it has one element
  kSame,            // the result's own
  kAsked,           // stands for a missing dtype argument, and is the result's own then
  kTruth,           // bool or uint8
  kReal,            // any that is not complex
};

struct OutRule {
  OutType type = OutType::kCastable;
  bool apart = false;  // the target must not share memory with an input
  // The exception for a wrong type.
  enum class Error { kRuntime, kType, kNotImplemented } error = Error::kRuntime;
  // Several elements of the target may be one in memory.
  enum class Expanded { kRefused, kDeprecated, kTaken } expanded = Expanded::kRefused;
  // How eager says that a type is wrong, where it has words of its own for the operator.
  std::string (*words)(at::ScalarType result, at::ScalarType target) = nullptr;
};

// Of the operator of this name ("aten::abs") and overload.
OutRule OutRuleOf(const std::string& name, const std::string& overload);

// Throws, or warns, if several elements of the target of that operator are one in memory.
void CheckExpanded(const OutRule& rule, const std::string& name, const at::Tensor& target);

// Throws unless `target` may hold a result of type `result`. Eager's kernels are not asked for
// their types where they read nothing.
void CheckOutType(const OutRule& rule, at::ScalarType result, const at::Tensor& target,
                  bool reads_nothing);

// Throws if a part of the target is memory of the input's, as far as eager can tell; all of it may
// be, in the same order.
void CheckNoPartialOverlap(const at::Tensor& target, const at::Tensor& input);

// Throws if the two share memory, as far as eager can tell, once the target has `elements`.
void CheckApart(const at::Tensor& target, const at::Tensor& input, int64_t elements);

}  // namespace torch_xla
