// The operations of the VHLO dialect: what their versioned names stand for, and the order of their
// attributes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hlo::bytecode {

struct OperationSpec {
  std::string_view name;      // "gather_v2"
  std::string_view mnemonic;  // "gather"
  // In the order in which bytecode properties list them, which is alphabetical.
  std::vector<std::string_view> attributes;
};

// `name` is "vhlo.gather_v2". Null for operations outside VHLO or newer than the table.
const OperationSpec* FindOperation(std::string_view name);

// The versioned VHLO name, with dialect, that StableHLO 1.8.0 uses for a mnemonic:
// "vhlo.gather_v2".
std::string OperationName(std::string_view mnemonic);

}  // namespace hlo::bytecode
