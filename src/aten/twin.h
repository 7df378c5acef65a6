// Twin: a lowering that serves several of torch's operators, as one function for each. What an
// operation is called in metrics, graphs, errors and rules follows from its function.
#pragma once

#include <cstdint>
#include <utility>

namespace torch_xla {

// `which` tells the operators apart: the number of dimensions that each is for, say.
template <int64_t which, auto f, typename Function = decltype(f)>
struct Twin;

template <int64_t which, auto f, typename Result, typename... Parameters>
struct Twin<which, f, Result (*)(Parameters...)> {
  static Result Lower(Parameters... parameters) {
    return f(std::forward<Parameters>(parameters)...);
  }
};

}  // namespace torch_xla
