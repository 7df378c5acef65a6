#include "passes/size_classes.h"

#include <algorithm>
#include <utility>

#include "hlo/error.h"

namespace passes {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

bool IsAmong(const Dimensions& dimensions, int64_t d) {
  return std::ranges::find(dimensions, d) != dimensions.end();
}

const hlo::Shape& ElementShape(const Instruction* value, size_t element) {
  const hlo::Shape& shape = value->shape();
  return shape.is_tuple() ? shape.tuple_shapes()[element] : shape;
}

}  // namespace

Dimensions OtherDimensions(int64_t rank, const Dimensions& a, const Dimensions& b) {
  Dimensions others;
  for (int64_t d = 0; d < rank; ++d) {
    if (!IsAmong(a, d) && !IsAmong(b, d)) others.push_back(d);
  }
  return others;
}

std::vector<ReshapeGroup> ReshapeGroups(const Dimensions& operand, const Dimensions& result) {
  std::vector<ReshapeGroup> groups;
  size_t i = 0, o = 0;
  const auto skip_ones = [](const Dimensions& dimensions, size_t& at) {
    while (at < dimensions.size() && dimensions[at] == 1) ++at;
  };
  for (;;) {
    skip_ones(operand, i);
    skip_ones(result, o);
    if (i == operand.size() || o == result.size()) return groups;
    ReshapeGroup group{{static_cast<int64_t>(i)}, {static_cast<int64_t>(o)}};
    int64_t in = operand[i++], out = result[o++];
    while (in != out) {
      size_t& at = in < out ? i : o;
      const Dimensions& from = in < out ? operand : result;
      skip_ones(from, at);
      if (at == from.size()) return groups;  // of no elements
      (in < out ? group.operand : group.result).push_back(static_cast<int64_t>(at));
      (in < out ? in : out) *= from[at++];
    }
    groups.push_back(std::move(group));
  }
}

SizeClasses::SizeClasses(const hlo::Computation& computation) {
  for (const auto& instruction : computation.instructions()) Add(instruction.get());
  for (const auto& instruction : computation.instructions()) JoinInstruction(instruction.get());
}

void SizeClasses::Add(const Instruction* value) {
  const size_t elements = value->shape().is_tuple() ? value->shape().tuple_shapes().size() : 1;
  for (size_t e = 0; e < elements; ++e) {
    first_[value].push_back(static_cast<int>(classes_.size()));
    const hlo::Shape& shape = ElementShape(value, e);
    if (!shape.is_array()) continue;
    for (const int64_t size : shape.dimensions()) {
      classes_.emplace_back().size = size;
    }
  }
}

int SizeClasses::Root(int c) const {
  while (classes_[c].parent >= 0) c = classes_[c].parent;
  return c;
}

int SizeClasses::Of(const Instruction* value, int64_t d, int64_t element) const {
  return Root(first_.at(value)[static_cast<size_t>(element)] + static_cast<int>(d));
}

void SizeClasses::Join(int a, int b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  if (classes_[a].size != classes_[b].size) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "dimensions of different sizes are one");
  }
  classes_[b].parent = a;
  classes_[a].varies |= classes_[b].varies;
  classes_[a].is_consistent &= classes_[b].is_consistent;
  if (!classes_[b].factors.empty()) SetFactors(a, std::move(classes_[b].factors));
}

void SizeClasses::SetFactors(int c, std::vector<int> factors) {
  c = Root(c);
  const std::vector<int> known = Factors(c);
  if (known.size() == 1) {
    // A dimension that is made of itself would have no end.
    for (const int factor : factors) {
      for (const int part : Factors(factor)) {
        if (part == c) classes_[c].is_consistent = false;
      }
    }
    if (classes_[c].is_consistent) classes_[c].factors = std::move(factors);
    return;
  }
  std::vector<int> parts;
  for (const int factor : factors) {
    for (const int part : Factors(factor)) parts.push_back(part);
  }
  const bool fits =
      std::ranges::equal(known, parts, [&](int a, int b) { return size(a) == size(b); });
  if (!fits) {
    classes_[c].is_consistent = false;
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i) Join(known[i], parts[i]);
}

std::vector<int> SizeClasses::Factors(int c) const {
  c = Root(c);
  if (classes_[c].factors.empty()) return {c};
  std::vector<int> all;
  for (const int factor : classes_[c].factors) {
    for (const int part : Factors(factor)) all.push_back(part);
  }
  return all;
}

void SizeClasses::MarkVarying(int c) { classes_[Root(c)].varies = true; }

bool SizeClasses::Varies(int c) const {
  const std::vector<int> factors = Factors(c);
  if (classes_[Root(c)].varies && factors.size() == 1) return true;
  return factors.size() > 1 && std::ranges::any_of(factors, [&](int f) { return Varies(f); });
}

bool SizeClasses::IsConsistent(int c) const {
  c = Root(c);
  if (!classes_[c].is_consistent) return false;
  return std::ranges::all_of(classes_[c].factors, [&](int f) { return IsConsistent(f); });
}

void SizeClasses::Join(const Instruction* x, int64_t a, const Instruction* y, int64_t b) {
  const int of_x = Of(x, a), of_y = Of(y, b);
  if (size(of_x) == size(of_y)) Join(of_x, of_y);
}

void SizeClasses::JoinAll(const Instruction* x, const Instruction* y) {
  const hlo::Shape &of_x = ElementShape(x, 0), &of_y = ElementShape(y, 0);
  if (of_x.rank() != of_y.rank()) return;  // a scalar that is spread
  for (int64_t d = 0; d < of_x.rank(); ++d) Join(x, d, y, d);
}

void SizeClasses::JoinReshape(const Instruction* reshape) {
  const Instruction* operand = reshape->operand(0);
  for (const ReshapeGroup& group : ReshapeGroups(operand->dimensions(), reshape->dimensions())) {
    std::vector<int> in, out;
    for (const int64_t d : group.operand) in.push_back(Of(operand, d));
    for (const int64_t d : group.result) out.push_back(Of(reshape, d));
    if (in.size() == 1 && out.size() == 1) {
      Join(in[0], out[0]);
    } else if (out.size() == 1) {
      SetFactors(out[0], in);
    } else if (in.size() == 1) {
      SetFactors(in[0], out);
    }
  }
}

void SizeClasses::JoinReduce(const Instruction* reduce) {
  const size_t count = reduce->operand_count() / 2;
  const Dimensions kept = OtherDimensions(reduce->operand(0)->shape().rank(),
                                          reduce->as<hlo::DimensionsAttributes>().dimensions);
  for (size_t i = 0; i < count; ++i) {
    JoinAll(reduce->operand(0), reduce->operand(i));
    for (size_t d = 0; d < kept.size(); ++d) {
      Join(Of(reduce->operand(0), kept[d]),
           Of(reduce, static_cast<int64_t>(d), static_cast<int64_t>(i)));
    }
  }
}

void SizeClasses::JoinSort(const Instruction* sort) {
  const Instruction* first = sort->operand(0);
  for (size_t i = 0; i < sort->operand_count(); ++i) {
    JoinAll(first, sort->operand(i));
    for (int64_t d = 0; d < first->shape().rank(); ++d) {
      Join(Of(first, d), Of(sort, d, static_cast<int64_t>(i)));
    }
  }
}

void SizeClasses::JoinDot(const Instruction* dot) {
  const auto& a = dot->as<hlo::DotAttributes>();
  const Instruction *lhs = dot->operand(0), *rhs = dot->operand(1);
  int64_t out = 0;
  for (size_t i = 0; i < a.lhs_batching_dimensions.size(); ++i, ++out) {
    Join(lhs, a.lhs_batching_dimensions[i], rhs, a.rhs_batching_dimensions[i]);
    Join(lhs, a.lhs_batching_dimensions[i], dot, out);
  }
  for (size_t i = 0; i < a.lhs_contracting_dimensions.size(); ++i) {
    Join(lhs, a.lhs_contracting_dimensions[i], rhs, a.rhs_contracting_dimensions[i]);
  }
  for (const int64_t d : OtherDimensions(lhs->shape().rank(), a.lhs_batching_dimensions,
                                         a.lhs_contracting_dimensions)) {
    Join(lhs, d, dot, out++);
  }
  for (const int64_t d : OtherDimensions(rhs->shape().rank(), a.rhs_batching_dimensions,
                                         a.rhs_contracting_dimensions)) {
    Join(rhs, d, dot, out++);
  }
}

void SizeClasses::JoinGather(const Instruction* gather) {
  const auto& a = gather->as<hlo::GatherAttributes>();
  const Instruction *operand = gather->operand(0), *indices = gather->operand(1);
  for (size_t i = 0; i < a.operand_batching_dims.size(); ++i) {
    Join(operand, a.operand_batching_dims[i], indices, a.start_indices_batching_dims[i]);
  }
  const Dimensions window =
      OtherDimensions(operand->shape().rank(), a.collapsed_slice_dims, a.operand_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) Join(operand, window[i], gather, a.offset_dims[i]);
  const Dimensions batch = OtherDimensions(gather->shape().rank(), a.offset_dims);
  const Dimensions rows = OtherDimensions(indices->shape().rank(), {a.index_vector_dim});
  for (size_t i = 0; i < batch.size(); ++i) Join(indices, rows[i], gather, batch[i]);
}

void SizeClasses::JoinScatter(const Instruction* scatter) {
  if (scatter->operand_count() != 3) return;
  const auto& a = scatter->as<hlo::ScatterAttributes>();
  const Instruction *operand = scatter->operand(0), *indices = scatter->operand(1),
                    *updates = scatter->operand(2);
  JoinAll(operand, scatter);
  for (size_t i = 0; i < a.input_batching_dims.size(); ++i) {
    Join(operand, a.input_batching_dims[i], indices, a.scatter_indices_batching_dims[i]);
  }
  const Dimensions window =
      OtherDimensions(operand->shape().rank(), a.inserted_window_dims, a.input_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    Join(operand, window[i], updates, a.update_window_dims[i]);
  }
  const Dimensions batch = OtherDimensions(updates->shape().rank(), a.update_window_dims);
  const Dimensions rows = OtherDimensions(indices->shape().rank(), {a.index_vector_dim});
  for (size_t i = 0; i < batch.size(); ++i) Join(indices, rows[i], updates, batch[i]);
}

void SizeClasses::JoinWindowed(const Instruction* instruction, const hlo::Window& window) {
  for (size_t d = 0; d < window.dimensions.size(); ++d) {
    Join(instruction->operand(0), static_cast<int64_t>(d), instruction, static_cast<int64_t>(d));
  }
}

void SizeClasses::JoinConvolution(const Instruction* convolution) {
  const auto& a = convolution->as<hlo::ConvolutionAttributes>();
  if (a.feature_group_count != 1 || a.batch_group_count != 1) return;
  const auto& d = a.dimensions;
  const Instruction *input = convolution->operand(0), *kernel = convolution->operand(1);
  Join(input, d.input_batch_dimension, convolution, d.output_batch_dimension);
  Join(input, d.input_feature_dimension, kernel, d.kernel_input_feature_dimension);
  Join(kernel, d.kernel_output_feature_dimension, convolution, d.output_feature_dimension);
}

void SizeClasses::JoinInstruction(const Instruction* instruction) {
  const auto join_operands = [&] {
    for (const Instruction* operand : instruction->operands()) JoinAll(operand, instruction);
  };
  if (hlo::IsElementwise(instruction->opcode())) return join_operands();
  switch (instruction->opcode()) {
    case Opcode::kConcatenate:  // (sizes along its dimension differ, and are not joined)
      return join_operands();
    case Opcode::kSort:
      return JoinSort(instruction);
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kBitcastConvert:
      return JoinAll(instruction->operand(0), instruction);
    case Opcode::kDynamicSlice:
      return JoinAll(instruction->operand(0), instruction);
    case Opcode::kDynamicUpdateSlice:
      JoinAll(instruction->operand(0), instruction);
      return JoinAll(instruction->operand(1), instruction);
    case Opcode::kBroadcastInDim:
    case Opcode::kTranspose: {
      const Dimensions& map = instruction->as<hlo::DimensionsAttributes>().dimensions;
      const bool is_transpose = instruction->opcode() == Opcode::kTranspose;
      for (size_t i = 0; i < map.size(); ++i) {
        const auto d = static_cast<int64_t>(i);
        if (is_transpose) {
          Join(instruction->operand(0), map[i], instruction, d);
        } else {
          Join(instruction->operand(0), d, instruction, map[i]);
        }
      }
      return;
    }
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = instruction->operand(0);
      for (int64_t d = 0; d < instruction->shape().rank(); ++d) {
        Join(Of(tuple, d, instruction->tuple_index()), Of(instruction, d));
      }
      return;
    }
    case Opcode::kOptimizationBarrier:
      for (size_t i = 0; i < instruction->operand_count(); ++i) {
        const Instruction* operand = instruction->operand(i);
        for (int64_t d = 0; operand->shape().is_array() && d < operand->shape().rank(); ++d) {
          Join(Of(operand, d), Of(instruction, d, static_cast<int64_t>(i)));
        }
      }
      return;
    case Opcode::kReshape:
      return JoinReshape(instruction);
    case Opcode::kReduce:
      return JoinReduce(instruction);
    case Opcode::kDotGeneral:
      return JoinDot(instruction);
    case Opcode::kGather:
      return JoinGather(instruction);
    case Opcode::kScatter:
      return JoinScatter(instruction);
    case Opcode::kReduceWindow:
      if (instruction->operand_count() == 2)
        JoinWindowed(instruction, instruction->as<hlo::Window>());
      return;
    case Opcode::kConvolution:
      return JoinConvolution(instruction);
    default:
      return;
  }
}

}  // namespace passes
