#include "cpu/varying_sizes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "hlo/hash.h"

namespace cpu {
namespace {

// More often than this, another size turns out to vary; then all do.
constexpr int kChanges = 3;
// As many kernels of one structure in a program share their code. Layers of a model, which are
// fewer, are better off with constants.
constexpr size_t kRepetitions = 64;

std::string StructureOf(const std::vector<std::optional<KernelSignature>>& kernels) {
  std::string structures;
  for (const auto& kernel : kernels) {
    if (kernel) structures += kernel->structure;
    structures += '\n';
  }
  return std::to_string(hlo::HashText(structures)) + " " + std::to_string(structures.size());
}

std::vector<int64_t> NumbersOf(const std::vector<std::optional<KernelSignature>>& kernels) {
  std::vector<int64_t> numbers;
  for (const auto& kernel : kernels) {
    if (kernel) numbers.insert(numbers.end(), kernel->numbers.begin(), kernel->numbers.end());
  }
  return numbers;
}

using Group = std::vector<size_t>;  // of a program's kernels

// Those whose structure comes with many different numbers.
std::vector<Group> Repeated(const std::vector<std::optional<KernelSignature>>& kernels) {
  std::map<std::string_view, Group> by_structure;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i]) by_structure[kernels[i]->structure].push_back(i);
  }
  std::vector<Group> repeated;
  for (auto& [structure, group] : by_structure) {
    if (group.size() < kRepetitions) continue;
    std::set<std::vector<int64_t>> different;
    for (size_t i : group) different.insert(kernels[i]->numbers);
    if (different.size() >= kRepetitions) repeated.push_back(std::move(group));
  }
  return repeated;
}

// Adds the numbers in which the kernels of a group differ.
void AddDifferences(const std::vector<std::optional<KernelSignature>>& kernels, const Group& group,
                    std::vector<std::set<int64_t>>& varying) {
  const std::vector<int64_t>& first = kernels[group[0]]->numbers;
  for (size_t n = 0; n < first.size(); ++n) {
    const auto is_same = [&](size_t i) { return kernels[i]->numbers[n] == first[n]; };
    if (std::ranges::all_of(group, is_same)) continue;
    for (size_t i : group) {
      if (kernels[i]->numbers[n] > 1) varying[i].insert(kernels[i]->numbers[n]);
    }
  }
}

}  // namespace

std::vector<std::set<int64_t>> VaryingSizes::Observe(
    const std::vector<std::optional<KernelSignature>>& kernels) {
  std::vector<std::set<int64_t>> varying = ObserveProgram(kernels);
  for (const Group& group : Repeated(kernels)) AddDifferences(kernels, group, varying);
  return varying;
}

std::vector<std::set<int64_t>> VaryingSizes::ObserveProgram(
    const std::vector<std::optional<KernelSignature>>& kernels) {
  std::vector<std::set<int64_t>> result(kernels.size());
  const std::string structure = StructureOf(kernels);
  const std::vector<int64_t> numbers = NumbersOf(kernels);
  Program* program = programs_.Find(structure);
  if (program == nullptr || program->numbers.size() != numbers.size()) {
    const auto bytes = static_cast<int64_t>(numbers.size() * (sizeof(int64_t) + 1));
    programs_.Insert(structure, {numbers, std::vector<bool>(numbers.size())}, bytes);
    return result;
  }
  bool changed = false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (program->varies[i] || numbers[i] == program->numbers[i]) continue;
    program->varies[i] = changed = true;
  }
  if (changed && ++program->changes > kChanges) program->varies.assign(numbers.size(), true);
  size_t next = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k]) continue;
    for (int64_t number : kernels[k]->numbers) {
      if (program->varies[next++] && number > 1) result[k].insert(number);
    }
  }
  return result;
}

}  // namespace cpu
