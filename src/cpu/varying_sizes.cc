#include "cpu/varying_sizes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
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
      if (MayVary(kernels[i]->numbers[n])) varying[i].insert(kernels[i]->numbers[n]);
    }
  }
}

// Tells numbers of one class apart whose values are not the same. `classes` are one kernel's, and
// begin at 1.
void TellApart(std::span<const int64_t> numbers, std::span<uint32_t> classes) {
  struct Class {
    uint32_t was;
    int64_t value;
  };
  std::vector<Class> found;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto same = std::ranges::find_if(found, [&](const Class& known) {
      return known.was == classes[i] && known.value == numbers[i];
    });
    const auto place = static_cast<uint32_t>(same - found.begin());
    if (same == found.end()) found.push_back({classes[i], numbers[i]});
    classes[i] = place + 1;
  }
}

// Whether all numbers of each class have one value.
bool AreApart(std::span<const int64_t> numbers, std::span<const uint32_t> classes,
              std::vector<std::optional<int64_t>>& values) {
  values.assign(numbers.size() + 1, std::nullopt);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (classes[i] >= values.size()) return false;  // of another structure with the same hash
    std::optional<int64_t>& value = values[classes[i]];
    if (value && *value != numbers[i]) return false;
    value = numbers[i];
  }
  return true;
}

// Whether it is one of the sizes, or its negative.
bool IsOneOf(int64_t number, const std::set<int64_t>& sizes) {
  return sizes.contains(number) ||
         (number < 0 && number >= -std::numeric_limits<int64_t>::max() && sizes.contains(-number));
}

// `known` without what is seen to vary.
std::set<int64_t> NotSeen(const std::set<int64_t>& known, const std::vector<int64_t>& numbers,
                          const std::vector<bool>& varies) {
  std::set<int64_t> others = known;
  for (size_t i = 0; i < numbers.size() && !others.empty(); ++i) {
    if (varies[i]) others.erase(numbers[i]);
  }
  return others;
}

}  // namespace

bool MayVary(int64_t number) { return number < 0 || number > 1; }

VaryingNumbers AllNumbers(const KernelSignature& signature) {
  VaryingNumbers classes(signature.numbers.size(), 1);
  TellApart(signature.numbers, classes);
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!MayVary(signature.numbers[i])) classes[i] = 0;
  }
  return classes;
}

VaryingNumbers OfEqualValues(const KernelSignature& signature, const VaryingNumbers& varying) {
  std::set<int64_t> values;
  for (size_t i = 0; i < varying.size(); ++i) {
    if (varying[i] != 0) values.insert(signature.numbers[i]);
  }
  VaryingNumbers classes = AllNumbers(signature);
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!values.contains(signature.numbers[i])) classes[i] = 0;
  }
  return classes;
}

std::vector<VaryingNumbers> VaryingSizes::Observe(
    const std::vector<std::optional<KernelSignature>>& kernels, const std::set<int64_t>& known) {
  const std::string structure = StructureOf(kernels);
  const std::vector<int64_t> numbers = NumbersOf(kernels);
  Program* found = programs_.Find(structure);
  if (found != nullptr && found->numbers.size() == numbers.size()) {
    Note(kernels, numbers, *found);
    return VaryingOf(kernels, numbers, *found, known);
  }
  const size_t count = numbers.size();
  Program program{numbers, std::vector<bool>(count), std::vector<uint32_t>(count, 1)};
  Note(kernels, numbers, program);
  std::vector<VaryingNumbers> varying = VaryingOf(kernels, numbers, program, known);
  constexpr size_t kBytesOfNumber = sizeof(int64_t) + sizeof(uint32_t) + 1;
  programs_.Insert(structure, std::move(program), static_cast<int64_t>(count * kBytesOfNumber));
  return varying;
}

void VaryingSizes::Note(const std::vector<std::optional<KernelSignature>>& kernels,
                        const std::vector<int64_t>& numbers, Program& program) {
  bool changed = false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (program.varies[i] || numbers[i] == program.numbers[i]) continue;
    program.varies[i] = changed = true;
  }
  if (changed && ++program.changes > kChanges) program.varies.assign(numbers.size(), true);
  std::vector<std::optional<int64_t>> values;
  size_t first = 0;
  for (const auto& kernel : kernels) {
    if (!kernel) continue;
    const std::span<const int64_t> own(kernel->numbers);
    const std::span<uint32_t> classes(program.classes.data() + first, own.size());
    if (!AreApart(own, classes, values)) TellApart(own, classes);
    first += own.size();
  }
}

std::vector<VaryingNumbers> VaryingSizes::VaryingOf(
    const std::vector<std::optional<KernelSignature>>& kernels, const std::vector<int64_t>& numbers,
    const Program& program, const std::set<int64_t>& known) {
  const std::set<int64_t> others = NotSeen(known, numbers, program.varies);
  std::vector<std::set<int64_t>> repeated(kernels.size());
  for (const Group& group : Repeated(kernels)) AddDifferences(kernels, group, repeated);
  std::vector<VaryingNumbers> varying(kernels.size());
  size_t next = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k]) continue;
    const size_t count = kernels[k]->numbers.size();
    for (size_t i = 0; i < count; ++i, ++next) {
      const int64_t number = numbers[next];
      const bool varies =
          program.varies[next] || repeated[k].contains(number) || IsOneOf(number, others);
      if (!varies || !MayVary(number)) continue;
      varying[k].resize(count);
      varying[k][i] = program.classes[next];
    }
  }
  return varying;
}

}  // namespace cpu
