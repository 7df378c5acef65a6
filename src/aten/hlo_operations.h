// Operations of the program form that no ATen operator stands for, recorded as any other: what
// torch_xla's own functions ask for.
//
// Each throws c10::Error where the operands do not fit, or are on another device than xla.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hlo/marks.h"
#include "hlo/module.h"

namespace torch_xla {

// The dimensions that a product sums over, and those that its operands have in common, of each
// operand: 0 or more.
struct DotDimensions {
  std::vector<int64_t> lhs_contracting, rhs_contracting, lhs_batching, rhs_batching;
};

// dot_general, of the type that the operands' promote to unless one is given.
at::Tensor RecordDotGeneral(const at::Tensor& lhs, const at::Tensor& rhs,
                            const DotDimensions& dimensions, std::optional<at::ScalarType> type);

// custom_call, whose results have these shapes.
std::vector<at::Tensor> RecordCustomCall(c10::Device device,
                                         const std::vector<at::Tensor>& operands,
                                         hlo::CustomCallAttributes call,
                                         std::vector<hlo::Shape> results);

// The tensor, as an input or a result of a composite (hlo/marks.h).
at::Tensor RecordCompositeMark(const at::Tensor& x, hlo::CompositeMark mark);

// The tensor, whose operation an export says to come from `name`.
at::Tensor RecordLocationMark(const at::Tensor& x, const std::string& name);

// The same values, which the compiler moves no work across.
std::vector<at::Tensor> RecordBarrier(const std::vector<at::Tensor>& tensors);

// A program, and its Hash().
struct HashedModule {
  std::shared_ptr<const hlo::Module> module;
  size_t hash = 0;
};

// The results of the program's entry, whose parameters have the arguments' shapes.
std::vector<at::Tensor> RecordProgram(c10::Device device, const std::vector<at::Tensor>& arguments,
                                      HashedModule program);

}  // namespace torch_xla
