#include "cpu/collective/bind_collective.h"

#include <optional>

#include "cpu/collective/reduction.h"
#include "hlo/error.h"
#include "passes/combiner.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

CollectiveKind KindOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAllReduce:
      return CollectiveKind::kAllReduce;
    case Opcode::kAllGather:
      return CollectiveKind::kAllGather;
    case Opcode::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case Opcode::kAllToAll:
      return CollectiveKind::kAllToAll;
    case Opcode::kCollectivePermute:
      return CollectiveKind::kPermute;
    case Opcode::kCollectiveBroadcast:
      return CollectiveKind::kBroadcast;
    default:
      throw hlo::Error(hlo::ErrorCode::kInternal, "no collective: " + instruction.ToString());
  }
}

std::optional<Reduction> ReductionOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return Reduction::kSum;
    case Opcode::kMultiply:
      return Reduction::kProduct;
    case Opcode::kMinimum:
      return Reduction::kMin;
    case Opcode::kMaximum:
      return Reduction::kMax;
    case Opcode::kAnd:
      return Reduction::kAnd;
    case Opcode::kOr:
      return Reduction::kOr;
    case Opcode::kXor:
      return Reduction::kXor;
    default:
      return {};
  }
}

// The body must be one operation on its two parameters.
Reduction ReductionOf(const Instruction& instruction) {
  const hlo::Computation& body = *instruction.called_computations().at(0);
  if (const std::optional<Opcode> combiner = passes::CombinerOf(body)) {
    if (auto reduction = ReductionOf(*combiner)) {
      for (const Instruction* operand : instruction.operands()) {
        if (CanReduce(operand->element_type(), *reduction)) continue;
        throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                         "the CPU engine does not reduce " +
                             std::string(hlo::ShortName(operand->element_type())) + " by " +
                             std::string(hlo::Name(*combiner)) +
                             " between processes: " + instruction.ToString());
      }
      return *reduction;
    }
  }
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "the CPU engine reduces between processes by add, multiply, minimum, maximum, "
                   "and, or and xor alone; this body ends in " +
                       std::string(hlo::Name(body.result()->opcode())) + ": " +
                       instruction.ToString());
}

const hlo::Shape& ResultShape(const Instruction& instruction, size_t i) {
  const hlo::Shape& shape = instruction.shape();
  return shape.is_tuple() ? shape.tuple_shapes()[i] : shape;
}

// How many ranks the results of a collective are those of; 0 if any number fits. The program says
// it, and whoever made that may have thought of another world than this one.
int64_t GroupSizeOf(const Instruction& instruction) {
  const auto& attributes = instruction.as<hlo::CollectiveAttributes>();
  if (instruction.opcode() == Opcode::kAllToAll) return attributes.split_count;
  const bool gathers = instruction.opcode() == Opcode::kAllGather;
  if (!gathers && instruction.opcode() != Opcode::kReduceScatter) return 0;
  int64_t size = 0;
  for (size_t i = 0; i < instruction.operand_count(); ++i) {
    const int64_t before = instruction.operand(i)->shape().dimension(attributes.dimension);
    const int64_t after = ResultShape(instruction, i).dimension(attributes.dimension);
    const int64_t whole = gathers ? after : before, part = gathers ? before : after;
    if (part == 0) continue;
    if (size == 0) size = whole / part;
    if (whole == size * part) continue;
    throw hlo::Error("its results are those of groups of different sizes: " +
                     instruction.ToString());
  }
  return size;
}

std::string SourceOf(const hlo::Metadata& metadata) {
  if (metadata.source_file.empty()) return metadata.op_name;
  return metadata.source_file + ":" + std::to_string(metadata.source_line);
}

class DeviceNumberCall : public LibraryCall {
 public:
  explicit DeviceNumberCall(bool replica) : replica_(replica) {}
  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    const RunOptions& options = context.options;
    *static_cast<uint32_t*>(results[0]) =
        static_cast<uint32_t>(replica_ ? options.replica_id : options.partition_id);
  }
  std::string Description() const override { return replica_ ? "replica_id" : "partition_id"; }

 private:
  bool replica_;
};

}  // namespace

Collective CollectiveOf(const Instruction& instruction) {
  const auto& attributes = instruction.as<hlo::CollectiveAttributes>();
  Collective collective;
  collective.kind = KindOf(instruction);
  if (collective.kind == CollectiveKind::kAllReduce ||
      collective.kind == CollectiveKind::kReduceScatter) {
    collective.reduction = ReductionOf(instruction);
    for (size_t i = 0; i < instruction.operand_count(); ++i) {
      const hlo::ElementType type = instruction.operand(i)->element_type();
      if (ResultShape(instruction, i).element_type() == type) continue;
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "the CPU engine does not widen types while it reduces between processes: " +
                           instruction.ToString());
    }
  }
  for (const Instruction* operand : instruction.operands()) {
    collective.operands.push_back(operand->shape());
  }
  collective.dimension = attributes.dimension;
  collective.split_dimension = attributes.split_dimension;
  collective.concat_dimension = attributes.concat_dimension;
  for (const auto& group : attributes.replica_groups) {
    if (!group.empty()) collective.groups.push_back(group);
  }
  collective.group_size = GroupSizeOf(instruction);
  collective.pairs = attributes.source_target_pairs;
  collective.source = SourceOf(instruction.metadata());
  return collective;
}

std::unique_ptr<LibraryCall> BindDeviceNumber(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kReplicaId:
      return std::make_unique<DeviceNumberCall>(true);
    case Opcode::kPartitionId:
      return std::make_unique<DeviceNumberCall>(false);
    default:
      return nullptr;
  }
}

}  // namespace cpu
