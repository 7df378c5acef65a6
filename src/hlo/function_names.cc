#include "hlo/function_names.h"

#include <unordered_map>
#include <unordered_set>

namespace hlo {

bool CallsByName(Opcode opcode) {
  return opcode == Opcode::kCall || opcode == Opcode::kComposite || opcode == Opcode::kCustomCall;
}

FunctionNames NameFunctions(const Module& module) {
  FunctionNames result;
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> next;  // the first number that may be free, by name
  auto add = [&](const Computation* computation, const std::string& name) {
    if (result.names.contains(computation)) return;
    std::string unique = name;
    while (!taken.insert(unique).second) unique = name + "_" + std::to_string(next[name]++);
    result.names.emplace(computation, unique);
    result.functions.push_back(computation);
  };
  std::vector<const Computation*> stack = {module.entry()};
  std::unordered_set<const Computation*> visited = {module.entry()};
  add(module.entry(), "main");
  while (!stack.empty()) {
    const Computation* computation = stack.back();
    stack.pop_back();
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* called : instruction->called_computations()) {
        if (CallsByName(instruction->opcode())) add(called, called->name());
        if (visited.insert(called).second) stack.push_back(called);
      }
    }
  }
  return result;
}

}  // namespace hlo
