#include "lazy/size_buckets.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "hlo/hash.h"
#include "hlo/verifier.h"
#include "lazy/metrics.h"
#include "lazy/settings.h"
#include "passes/pad_sizes.h"
#include "passes/passes.h"

namespace lazy {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Structures whose sizes are remembered; beyond that they are all forgotten.
constexpr size_t kMostFamilies = 4096;

// The programs of one structure.
struct Family {
  std::unique_ptr<hlo::Module> first;  // of these sizes
  passes::VaryingParts parts;          // that have been seen to differ from it
  bool varies = false;
};

struct Rung {
  std::unique_ptr<hlo::Module> module;
  std::vector<uint64_t> key;  // besides the module
  std::weak_ptr<pjrt::LoadedExecutable> executable;
};

struct Buckets {
  std::unordered_map<size_t, Family> families;
  std::unordered_map<size_t, std::list<Rung>> rungs;
  static Buckets& Get() {
    static auto* buckets = new Buckets;
    return *buckets;
  }
};

std::vector<const Instruction*> InstructionsOf(const hlo::Module& module) {
  std::vector<const Instruction*> instructions;
  for (const auto& i : module.entry()->instructions()) instructions.push_back(i.get());
  return instructions;
}

// What a module computes but for sizes and constants.
std::vector<size_t> StructureOf(const hlo::Module& module) {
  std::vector<size_t> structure;
  std::unordered_map<const Instruction*, size_t> places;
  for (const Instruction* instruction : InstructionsOf(module)) {
    places.emplace(instruction, places.size());
    structure.push_back(static_cast<size_t>(instruction->opcode()));
    structure.push_back(static_cast<size_t>(instruction->element_type()));
    structure.push_back(static_cast<size_t>(instruction->shape().rank()));
    for (const Instruction* operand : instruction->operands()) {
      structure.push_back(places.at(operand));
    }
  }
  for (const Instruction* result : module.entry()->results()) {
    structure.push_back(places.at(result));
  }
  return structure;
}

size_t HashOf(const std::vector<size_t>& structure) {
  return hlo::HashBytes(std::as_bytes(std::span(structure)));
}

// Whether both are filled with one number, however many of it.
bool IsSameNumber(const hlo::Literal& a, const hlo::Literal& b) {
  if (!a.IsSplat() || !b.IsSplat()) return false;
  const auto width = a.byte_size() / static_cast<size_t>(a.shape().num_elements());
  return std::memcmp(a.bytes(), b.bytes(), width) == 0;
}

bool AttributesVary(const Instruction& a, const Instruction& b) {
  switch (a.opcode()) {
    case Opcode::kConstant:
      return !IsSameNumber(a.literal(), b.literal()) && !(a.literal() == b.literal());
    case Opcode::kSlice:
      return a.as<hlo::SliceAttributes>().start_indices !=
             b.as<hlo::SliceAttributes>().start_indices;
    case Opcode::kPad:
      return a.as<hlo::PadAttributes>().edge_padding_low !=
             b.as<hlo::PadAttributes>().edge_padding_low;
    default:
      return false;
  }
}

// Notes what differs between the module and the family's first, which has the same structure.
void NoteDifferences(Family& family, const hlo::Module& module) {
  const auto before = InstructionsOf(*family.first), now = InstructionsOf(module);
  for (size_t i = 0; i < now.size(); ++i) {
    if (AttributesVary(*before[i], *now[i])) family.parts.attributes[i] = true;
    const hlo::Dimensions& sizes = now[i]->dimensions();
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == before[i]->dimensions()[d]) continue;
      family.parts.dimensions[i][d] = true;
      family.varies = true;
    }
  }
}

Family NewFamily(std::unique_ptr<hlo::Module> module) {
  Family family;
  for (const Instruction* instruction : InstructionsOf(*module)) {
    family.parts.dimensions.emplace_back(instruction->dimensions().size(), false);
    family.parts.attributes.push_back(false);
  }
  family.first = std::move(module);
  return family;
}

// The family of a structure that has come before with other sizes; null if there is none.
const Family* FamilyOf(const hlo::Module& module) {
  auto& families = Buckets::Get().families;
  if (families.size() > kMostFamilies) families.clear();
  const std::vector<size_t> structure = StructureOf(module);
  const auto [it, is_new] = families.try_emplace(HashOf(structure));
  Family& family = it->second;
  if (is_new) {
    family = NewFamily(module.Clone());
    return nullptr;
  }
  if (StructureOf(*family.first) != structure) return nullptr;
  NoteDifferences(family, module);
  return family.varies ? &family : nullptr;
}

// The operations that padding knows.
std::unique_ptr<hlo::Module> PlainOperations(const hlo::Module& module) {
  auto plain = module.Clone();
  passes::ExpandComposites(*plain);
  passes::InlineCalls(*plain);
  passes::ExpandBatchNorm(*plain);
  return plain;
}

void CountRefusal(const passes::PaddingRefused& refusal) {
  const hlo::Metadata& metadata = refusal.metadata();
  std::string name =
      "PaddingRefused::" + (metadata.op_name.empty() ? "?" : std::string(metadata.operation()));
  if (!metadata.source_file.empty()) {
    name += "@" + metadata.source_file.substr(metadata.source_file.rfind('/') + 1) + ":" +
            std::to_string(metadata.source_line);
  }
  Count(Counter(name + " (" + refusal.what() + ")"));
}

// The compiled rung that is the same program, or null.
std::shared_ptr<pjrt::LoadedExecutable> FindRung(size_t hash, const hlo::Module& module,
                                                 const std::vector<uint64_t>& key) {
  std::list<Rung>& rungs = Buckets::Get().rungs[hash];
  rungs.remove_if([](const Rung& rung) { return rung.executable.expired(); });
  for (const Rung& rung : rungs) {
    if (rung.key == key && rung.module->input_output_aliases == module.input_output_aliases &&
        hlo::SameComputation(*rung.module->entry(), *module.entry())) {
      return rung.executable.lock();
    }
  }
  return nullptr;
}

void CompileRung(LoweredProgram& lowered, std::unique_ptr<hlo::Module> module,
                 std::vector<uint64_t> key) {
  const size_t hash = module->Hash();
  if (auto found = FindRung(hash, *module, key)) {
    static auto* reused = Counter("PaddedProgramReused");
    Count(reused);
    lowered.program->executable = std::move(found);
    lowered.module.reset();
    return;
  }
  lowered.module = module->Clone();
  lowered.Compile();
  Buckets::Get().rungs[hash].push_back(
      {std::move(module), std::move(key), lowered.program->executable});
}

// What a program's result is, until somebody reads it.
class CutContents final : public HostContents {
 public:
  CutContents(ShapeRef shape, passes::PaddedBox box, std::unique_ptr<pjrt::Buffer> padded)
      : shape_(shape), box_(std::move(box)), padded_(std::move(padded)) {}

  const void* bytes() const override {
    std::call_once(read_, [this] {
      std::vector<std::byte> padded(static_cast<size_t>(padded_->shape().byte_size()));
      padded_->ToHost(padded.data(), padded.size());
      bytes_.resize(static_cast<size_t>(shape_->byte_size()));
      const int64_t width = shape_->byte_size() / shape_->num_elements();
      passes::CopyFromPadded(box_, width, padded.data(), bytes_.data());
    });
    return bytes_.data();
  }
  const passes::PaddedBox& box() const { return box_; }
  const pjrt::Buffer& padded() const { return *padded_; }

 private:
  SharedShape shape_;
  passes::PaddedBox box_;
  std::unique_ptr<pjrt::Buffer> padded_;
  mutable std::once_flag read_;
  mutable std::vector<std::byte> bytes_;
};

}  // namespace

int64_t PaddedSize(int64_t size) {
  constexpr int64_t kLeast = 8;
  return std::max(kLeast, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))));
}

bool CompilePadded(Device* device, LoweredProgram& lowered) {
  // Processes of a world would have to choose alike.
  if (CurrentDynamicMode() != DynamicMode::kBucketed) return false;
  if (Runtime::Get().world_size() > 1) return false;
  const auto plain = PlainOperations(*lowered.module);
  const Family* family = FamilyOf(*plain);
  if (family == nullptr) return false;
  passes::PaddedProgram padded;
  try {
    padded = passes::PadSizes(*plain, family->parts, PaddedSize);
    hlo::VerifyModule(*padded.module);
  } catch (const passes::PaddingRefused& refusal) {
    CountRefusal(refusal);
    return false;
  } catch (const hlo::Error& error) {
    // A defect of ours is no reason to compute nothing.
    Count(Counter(std::string("PaddingRefused::defect (") + error.what() + ")"));
    return false;
  }
  std::vector<uint64_t> key = CustomCompileOptionsKey();
  key.push_back(static_cast<uint64_t>(device->ordinal()));
  auto padding = std::make_shared<Padding>();
  for (const hlo::Literal& argument : padded.arguments) {
    padding->arguments.push_back(
        device->client().BufferFromHost(argument.bytes(), argument.shape(), device->pjrt_device()));
  }
  padding->parameters = std::move(padded.parameters);
  padding->results = std::move(padded.results);
  CompileRung(lowered, std::move(padded.module), std::move(key));
  lowered.program->padding = std::move(padding);
  return true;
}

void ForgetSizeBuckets() {
  Buckets::Get().families.clear();
  Buckets::Get().rungs.clear();
}

const pjrt::Buffer* PaddedArgument(const Data& data, const passes::PaddedBox& box,
                                   std::vector<std::unique_ptr<pjrt::Buffer>>* owned) {
  pjrt::Client& client = data.device()->client();
  const auto* cut = dynamic_cast<const CutContents*>(data.host_contents());
  if (cut != nullptr && cut->box() == box && cut->padded().client().get() == &client) {
    return &cut->padded();
  }
  const hlo::Shape& shape = *data.shape();
  const hlo::Shape padded_shape = shape.WithDimensions(box.dimensions);
  std::vector<std::byte> bytes(static_cast<size_t>(shape.byte_size()));
  std::vector<std::byte> padded(static_cast<size_t>(padded_shape.byte_size()));
  data.ToHost(bytes.data(), bytes.size());
  const int64_t width = shape.byte_size() / shape.num_elements();
  passes::CopyIntoPadded(box, width, bytes.data(), padded.data());
  owned->push_back(
      client.BufferFromHost(padded.data(), padded_shape, data.device()->pjrt_device()));
  return owned->back().get();
}

Reference<Data> CutData(Device* device, ShapeRef shape, passes::PaddedBox box,
                        std::unique_ptr<pjrt::Buffer> padded) {
  return Data::OnHost(device, shape,
                      std::make_unique<CutContents>(shape, std::move(box), std::move(padded)));
}

}  // namespace lazy
