#include "cpu/step_description.h"

#include <algorithm>

#include "cpu/kernel_kind.h"
#include "hlo/module.h"
#include "hlo/opcode.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// "all_reduce" is "all-reduce" to viewers.
std::string WithDashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

int64_t Bytes(const hlo::Shape& shape) {
  if (!shape.is_tuple()) return shape.is_token() ? 0 : shape.byte_size();
  int64_t bytes = 0;
  for (const hlo::Shape& part : shape.tuple_shapes()) bytes += Bytes(part);
  return bytes;
}

int64_t Flops(const Instruction& instruction);

int64_t FlopsOf(const hlo::Computation& computation) {
  int64_t flops = 0;
  for (const auto& instruction : computation.instructions()) flops += Flops(*instruction);
  return flops;
}

int64_t ConvolutionFlops(const Instruction& convolution) {
  const auto& attributes = convolution.as<hlo::ConvolutionAttributes>();
  const hlo::Dimensions& kernel = convolution.operand(1)->dimensions();
  const int64_t per_output =
      hlo::ProductOf(kernel, attributes.dimensions.kernel_spatial_dimensions) *
      kernel[attributes.dimensions.kernel_input_feature_dimension];
  return 2 * convolution.shape().num_elements() * per_output;
}

int64_t Flops(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kDotGeneral: {
      const auto& attributes = instruction.as<hlo::DotAttributes>();
      return 2 * instruction.shape().num_elements() *
             hlo::ProductOf(instruction.operand(0)->dimensions(),
                            attributes.lhs_contracting_dimensions);
    }
    case Opcode::kConvolution:
      return ConvolutionFlops(instruction);
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      return instruction.operand(0)->shape().num_elements();
    case Opcode::kComposite:
      return FlopsOf(*instruction.called_computations()[0]);
    default:
      break;
  }
  const hlo::Shape& shape = instruction.shape();
  const bool is_arithmetic = shape.is_array() && hlo::IsFloat(shape.element_type()) &&
                             hlo::IsElementwise(instruction.opcode());
  return is_arithmetic ? shape.num_elements() : 0;
}

std::string CategoryOf(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kComposite) {
    if (instruction.opcode() == Opcode::kDotGeneral) return "dot";
    return WithDashes(hlo::Name(instruction.opcode()));
  }
  const KernelKind* kind = KindOf(instruction);
  return std::string(kind ? kind->category : "custom-call");
}

std::string NameOf(const Instruction& instruction) {
  const std::string number = "." + std::to_string(instruction.id());
  if (instruction.opcode() != Opcode::kComposite) {
    return WithDashes(hlo::Name(instruction.opcode())) + number;
  }
  if (const KernelKind* kind = KindOf(instruction)) return std::string(kind->step_name) + number;
  return instruction.as<hlo::CompositeAttributes>().name + number;
}

// Where a fused instruction has no line of its own, the last of its parts that has one speaks for
// it.
hlo::Metadata MetadataOf(const Instruction& instruction) {
  hlo::Metadata metadata = instruction.metadata();
  if (instruction.opcode() != Opcode::kComposite) return metadata;
  const auto& parts = instruction.called_computations()[0]->instructions();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const hlo::Metadata& other = (*part)->metadata();
    if (metadata.op_name.empty()) metadata.op_name = other.op_name;
    if (metadata.source_line == 0 && other.source_line != 0) {
      metadata.source_file = other.source_file;
      metadata.source_line = other.source_line;
    }
  }
  return metadata;
}

}  // namespace

StepDescription Describe(const Instruction& instruction) {
  StepDescription description;
  description.name = NameOf(instruction);
  description.text = instruction.ToString();
  description.category = CategoryOf(instruction);
  const hlo::Metadata metadata = MetadataOf(instruction);
  description.operation = metadata.operation();
  description.source_file = metadata.source_file;
  description.source_line = metadata.source_line;
  const bool has_parts = instruction.opcode() == Opcode::kWhile ||
                         instruction.opcode() == Opcode::kIf ||
                         instruction.opcode() == Opcode::kCase;
  if (has_parts) return description;  // its parts are steps too
  description.flops = Flops(instruction);
  description.bytes_written = Bytes(instruction.shape());
  for (const Instruction* operand : instruction.operands()) {
    description.bytes_read += Bytes(operand->shape());
  }
  return description;
}

}  // namespace cpu
