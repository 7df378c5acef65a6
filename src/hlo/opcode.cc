#include "hlo/opcode.h"

#include <unordered_map>

namespace hlo {

std::string_view Name(Opcode opcode) {
  switch (opcode) {
#define HLO_NAME_CASE(name, text, ...) \
  case Opcode::name:                   \
    return text;
    HLO_OPCODES(HLO_NAME_CASE)
#undef HLO_NAME_CASE
  }
  return "unknown";
}

std::optional<Opcode> OpcodeFromName(std::string_view name) {
  static const auto* const opcodes = new std::unordered_map<std::string_view, Opcode>{
#define HLO_NAME_ENTRY(name, text, ...) {text, Opcode::name},
      HLO_OPCODES(HLO_NAME_ENTRY)
#undef HLO_NAME_ENTRY
  };
  auto found = opcodes->find(name);
  if (found == opcodes->end()) return std::nullopt;
  return found->second;
}

bool IsElementwiseUnary(Opcode opcode) {
  switch (opcode) {
#define HLO_CASE(name, ...) case Opcode::name:
    HLO_ELEMENTWISE_UNARY_OPCODES(HLO_CASE)
#undef HLO_CASE
    return true;
    default:
      return false;
  }
}

bool IsElementwiseBinary(Opcode opcode) {
  switch (opcode) {
#define HLO_CASE(name, ...) case Opcode::name:
    HLO_ELEMENTWISE_BINARY_OPCODES(HLO_CASE)
#undef HLO_CASE
    return true;
    default:
      return false;
  }
}

bool IsElementwise(Opcode opcode) {
  switch (opcode) {
    case Opcode::kCompare:
    case Opcode::kSelect:
    case Opcode::kClamp:
    case Opcode::kConvert:
    case Opcode::kReducePrecision:
      return true;
    default:
      return IsElementwiseUnary(opcode) || IsElementwiseBinary(opcode);
  }
}

bool IsCollective(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kReduceScatter:
      return true;
    default:
      return false;
  }
}

bool IsOfWorld(Opcode opcode) {
  return IsCollective(opcode) || opcode == Opcode::kReplicaId || opcode == Opcode::kPartitionId;
}

}  // namespace hlo
