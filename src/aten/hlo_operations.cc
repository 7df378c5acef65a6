#include "aten/hlo_operations.h"

#include <utility>

#include "aten/op.h"

namespace torch_xla {
namespace {

Value DotGeneral(Builder& b, Value lhs, Value rhs, Dimensions lhs_contracting,
                 Dimensions rhs_contracting, Dimensions lhs_batching, Dimensions rhs_batching,
                 std::optional<ElementType> result_type) {
  return b.DotGeneral(lhs, rhs,
                      {.lhs_batching_dimensions = lhs_batching,
                       .rhs_batching_dimensions = rhs_batching,
                       .lhs_contracting_dimensions = lhs_contracting,
                       .rhs_contracting_dimensions = rhs_contracting},
                      result_type);
}

struct CustomCallAttribute {
  hlo::CustomCallAttributes call;
  std::vector<Shape> results;
  bool operator==(const CustomCallAttribute&) const = default;
  uint64_t Hash() const {
    uint64_t hash = hlo::HashAttributes(call);
    for (const Shape& shape : results) hash = hlo::CombineHash(hash, shape.Hash());
    return hash;
  }
};

Values CustomCall(Builder& b, Values operands, CustomCallAttribute attribute) {
  const bool is_single = attribute.results.size() == 1;
  const Shape shape = is_single ? attribute.results[0] : Shape::Tuple(attribute.results);
  return ResultsOf(b, b.CustomCall(operands, shape, attribute.call), 0, attribute.results.size());
}

struct CompositeMarkAttribute {
  hlo::CompositeMark mark;
  bool operator==(const CompositeMarkAttribute& other) const {
    return mark.name == other.mark.name && mark.id == other.mark.id &&
           mark.position == other.mark.position && mark.is_input == other.mark.is_input &&
           mark.attributes == other.mark.attributes;
  }
  uint64_t Hash() const {
    uint64_t hash = hlo::CombineHash(hlo::HashText(mark.name), hlo::HashText(mark.id));
    hash = hlo::CombineHash(hash, static_cast<uint64_t>(mark.position) * 2 + mark.is_input);
    return hlo::CombineHash(
        hash, hlo::HashAttributes(hlo::CompositeAttributes{.attributes = mark.attributes}));
  }
};

Value MarkTensor(Builder& b, Value x, CompositeMarkAttribute attribute) {
  return hlo::MarkComposite(b, x, attribute.mark);
}

Value MarkOrigin(Builder& b, Value x, std::string name) { return hlo::MarkLocation(b, x, name); }

Values Barrier(Builder& b, Values xs) {
  return ResultsOf(b, b.OptimizationBarrier(xs), 0, xs.size());
}

// A computation as an attribute of a recorded node: equal if it computes the same.
struct ProgramAttribute {
  HashedModule program;
  bool operator==(const ProgramAttribute& other) const {
    const HashedModule& a = program;
    const HashedModule& b = other.program;
    return a.module == b.module ||
           (a.hash == b.hash && hlo::SameComputation(*a.module->entry(), *b.module->entry()));
  }
  uint64_t Hash() const { return program.hash; }
};

Values CallComputation(Builder& b, Values operands, ProgramAttribute attribute) {
  return hlo::InlineComputation(*attribute.program.module->entry(), *b.computation(), operands);
}

}  // namespace

at::Tensor RecordDotGeneral(const at::Tensor& lhs, const at::Tensor& rhs,
                            const DotDimensions& dimensions, std::optional<at::ScalarType> type) {
  return Record<&DotGeneral>(lhs, rhs, at::IntArrayRef(dimensions.lhs_contracting),
                             at::IntArrayRef(dimensions.rhs_contracting),
                             at::IntArrayRef(dimensions.lhs_batching),
                             at::IntArrayRef(dimensions.rhs_batching), type);
}

std::vector<at::Tensor> RecordCustomCall(c10::Device device,
                                         const std::vector<at::Tensor>& operands,
                                         hlo::CustomCallAttributes call,
                                         std::vector<Shape> results) {
  return RecordOn<&CustomCall>(device, operands,
                               CustomCallAttribute{std::move(call), std::move(results)});
}

at::Tensor RecordCompositeMark(const at::Tensor& x, hlo::CompositeMark mark) {
  return Record<&MarkTensor>(x, CompositeMarkAttribute{std::move(mark)});
}

at::Tensor RecordLocationMark(const at::Tensor& x, const std::string& name) {
  return Record<&MarkOrigin>(x, name);
}

std::vector<at::Tensor> RecordBarrier(const std::vector<at::Tensor>& tensors) {
  return Record<&Barrier>(tensors);
}

std::vector<at::Tensor> RecordProgram(c10::Device device, const std::vector<at::Tensor>& arguments,
                                      HashedModule program) {
  return RecordOn<&CallComputation>(device, arguments, ProgramAttribute{std::move(program)});
}

}  // namespace torch_xla
