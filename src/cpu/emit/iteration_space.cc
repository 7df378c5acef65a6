#include "cpu/emit/iteration_space.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <tuple>

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

// The dimensions of the space that an array's dimension runs along: [first, last], or none.
struct Origin {
  enum Kind { kNone, kSpace, kOther } kind = kNone;
  int64_t first = 0, last = 0;
  // Of the array's position from the space's, if it runs along one dimension in the same steps.
  std::optional<int64_t> offset = 0;
  // Whatever the offset, the same dimensions have to be boundaries.
  std::strong_ordering operator<=>(const Origin& other) const {
    return std::tie(kind, first, last) <=> std::tie(other.kind, other.first, other.last);
  }
  bool operator==(const Origin& other) const { return (*this <=> other) == 0; }
};
using Origins = std::vector<Origin>;

class Finder {
 public:
  Finder(const Dimensions& space, KernelSizes& sizes) : space_(space), sizes_(sizes) {
    boundaries_ = {0, static_cast<int64_t>(space.size())};
  }

  void Visit(const Instruction* instruction, const Origins& origins) {
    if (!visited_.emplace(instruction, origins).second || visited_.size() > 4096) return;
    const Dimensions& from = instruction->dimensions();
    auto operand = [&](size_t i) { return instruction->operand(i); };
    switch (instruction->opcode()) {
      case Opcode::kParameter:
        return Leaf(from, origins);
      case Opcode::kConstant:
        return;
      case Opcode::kIota:
        return Isolate(origins[instruction->as<hlo::DimensionAttributes>().dimension]);
      case Opcode::kBroadcastInDim:
        return Broadcast(*instruction, origins);
      case Opcode::kTranspose:
        return Transpose(*instruction, origins);
      case Opcode::kReshape:
        return Visit(operand(0), Reshape(from, operand(0)->dimensions(), origins));
      case Opcode::kSlice:
        return Slice(*instruction, origins);
      case Opcode::kDynamicSlice:
        return DynamicSlice(*instruction, origins);
      case Opcode::kReverse:
        return Reverse(*instruction, origins);
      case Opcode::kPad:
        return Pad(*instruction, origins);
      case Opcode::kConcatenate:
        return Concatenate(*instruction, origins);
      case Opcode::kDynamicUpdateSlice:
        for (size_t d = 0; d < from.size(); ++d) {
          if (from[d] != operand(1)->dimensions()[d]) Isolate(origins[d]);
        }
        Visit(operand(0), origins);
        return Visit(operand(1), origins);
      case Opcode::kReduceWindow:
        return ReduceWindow(*instruction, origins);
      case Opcode::kGather:
        return Gather(instruction, origins);
      case Opcode::kReduce:
        return ReduceRows(*instruction);
      default:
        for (const Instruction* x : instruction->operands()) {
          Visit(x, x->shape().is_array() && x->shape().rank() == 0 ? Origins{} : origins);
        }
    }
  }

  std::set<int64_t> boundaries_;
  std::map<int64_t, std::set<int64_t>> seams_;

 private:
  bool Varies(int64_t size) { return sizes_.Size(size).varies; }
  // Something else begins at `position` of an array's dimension of this origin. Neither that nor
  // the dimension is a size that varies.
  void AddSeam(const Origin& origin, int64_t position) {
    if (origin.kind != Origin::kSpace || origin.first != origin.last || !origin.offset) return;
    if (Varies(space_[origin.first])) return;
    const int64_t seam = position - *origin.offset;
    if (seam > 0 && seam < space_[origin.first]) seams_[origin.first].insert(seam);
  }
  // By a size that varies it goes nobody knows where.
  void Forward(Origin& origin, int64_t size) {
    if (Varies(size)) origin.offset.reset();
    if (origin.offset) *origin.offset += size;
  }
  void Back(Origin& origin, int64_t size) {
    if (Varies(size)) origin.offset.reset();
    if (origin.offset) *origin.offset -= size;
  }
  void DynamicSlice(const Instruction& slice, Origins origins) {
    for (size_t d = 0; d < origins.size(); ++d) {
      if (slice.dimensions()[d] == slice.operand(0)->dimensions()[d]) continue;
      StartRun(origins[d]);
      origins[d].offset.reset();
    }
    Visit(slice.operand(0), origins);
  }
  void Reverse(const Instruction& reverse, Origins origins) {
    for (int64_t d : reverse.as<hlo::DimensionsAttributes>().dimensions) {
      Isolate(origins[d]);
      origins[d].offset.reset();
    }
    Visit(reverse.operand(0), origins);
  }
  Origins Sliced(const hlo::SliceAttributes& slice, Origins origins) {
    for (size_t d = 0; d < origins.size(); ++d) {
      if (slice.strides[d] != 1) origins[d].offset.reset();
      Forward(origins[d], slice.start_indices[d]);
    }
    return origins;
  }

  Origins Padded(const Instruction& pad, Origins origins) {
    const auto& attributes = pad.as<hlo::PadAttributes>();
    for (size_t d = 0; d < origins.size(); ++d) {
      const int64_t low = attributes.edge_padding_low[d];
      if (attributes.interior_padding[d] != 0) {
        origins[d].offset.reset();
        continue;
      }
      const int64_t size = pad.operand(0)->dimensions()[d];
      if (!Varies(low)) AddSeam(origins[d], low);
      if (!Varies(low) && !Varies(size)) AddSeam(origins[d], low + size);
      Back(origins[d], low);
    }
    return origins;
  }

  void Concatenate(const Instruction& concatenate, Origins origins) {
    Origin& origin = origins[concatenate.as<hlo::DimensionAttributes>().dimension];
    Isolate(origin);
    for (const Instruction* part : concatenate.operands()) {
      Visit(part, origins);
      const int64_t size = part->dimensions()[concatenate.as<hlo::DimensionAttributes>().dimension];
      if (!Varies(size)) AddSeam(origin, size);
      Back(origin, size);
    }
  }

  void Broadcast(const Instruction& broadcast, const Origins& origins) {
    const auto& map = broadcast.as<hlo::DimensionsAttributes>().dimensions;
    Origins inner(map.size());
    for (size_t i = 0; i < map.size(); ++i) {
      if (broadcast.operand(0)->dimensions()[i] != 1) inner[i] = origins[map[i]];
    }
    Visit(broadcast.operand(0), inner);
  }

  void Transpose(const Instruction& transpose, const Origins& origins) {
    const auto& permutation = transpose.as<hlo::DimensionsAttributes>().dimensions;
    Origins inner(permutation.size());
    for (size_t i = 0; i < permutation.size(); ++i) inner[permutation[i]] = origins[i];
    Visit(transpose.operand(0), inner);
  }

  void Slice(const Instruction& slice, const Origins& origins) {
    const auto& attributes = slice.as<hlo::SliceAttributes>();
    for (size_t d = 0; d < origins.size(); ++d) {
      if (slice.dimensions()[d] == slice.operand(0)->dimensions()[d]) continue;
      if (attributes.strides[d] != 1) {
        Isolate(origins[d]);
      } else {
        StartRun(origins[d]);
      }
    }
    Visit(slice.operand(0), Sliced(attributes, origins));
  }

  void Pad(const Instruction& pad, const Origins& origins) {
    for (size_t d = 0; d < origins.size(); ++d) {
      if (pad.dimensions()[d] != pad.operand(0)->dimensions()[d]) Isolate(origins[d]);
    }
    Visit(pad.operand(0), Padded(pad, origins));
  }

  void ReduceWindow(const Instruction& reduce, const Origins& origins) {
    const auto& window = reduce.as<hlo::Window>();
    const Dimensions& from = reduce.operand(0)->dimensions();
    const Dimensions& to = reduce.shape().is_tuple() ? reduce.shape().tuple_shapes()[0].dimensions()
                                                     : reduce.dimensions();
    for (size_t d = 0; d < origins.size(); ++d) {
      if (window.dimensions[d] != 1 || from[d] != to[d]) Isolate(origins[d]);
    }
    for (size_t i = 0; i < reduce.operand_count() / 2; ++i) Visit(reduce.operand(i), origins);
  }

  // Of trailing dimensions, in a row kernel; the kept ones are the space's first.
  void ReduceRows(const Instruction& reduce) {
    Origins rows;
    for (int64_t i = 0; i < static_cast<int64_t>(space_.size()); ++i) {
      rows.push_back({Origin::kSpace, i, i});
    }
    for (size_t i = 0; i < reduce.operand_count() / 2; ++i) Visit(reduce.operand(i), rows);
  }

  void StartRun(const Origin& origin) {
    if (origin.kind == Origin::kSpace) boundaries_.insert(origin.first);
  }
  void Isolate(const Origin& origin) {
    if (origin.kind != Origin::kSpace) return;
    boundaries_.insert(origin.first);
    boundaries_.insert(origin.last + 1);
  }
  bool Unit(int64_t begin, int64_t end) const {
    for (int64_t d = begin; d < end; ++d) {
      if (space_[d] != 1) return false;
    }
    return true;
  }

  // An access is affine along each run of the space's dimensions that the array has next to each
  // other.
  void Leaf(const Dimensions& dimensions, const Origins& origins) {
    int64_t run_end = -1;
    for (size_t i = 0; i < dimensions.size(); ++i) {
      if (dimensions[i] == 1) continue;
      const Origin& origin = origins[i];
      if (origin.kind != Origin::kSpace) {
        if (run_end >= 0) boundaries_.insert(run_end);
        run_end = -1;
        continue;
      }
      const bool continues = run_end >= 0 && origin.first >= run_end && Unit(run_end, origin.first);
      if (!continues) {
        if (run_end >= 0) boundaries_.insert(run_end);
        if (!Unit(0, origin.first)) boundaries_.insert(origin.first);
      }
      run_end = origin.last + 1;
    }
    if (run_end >= 0 && !Unit(run_end, space_.size())) boundaries_.insert(run_end);
  }

  Origins Reshape(const Dimensions& from, const Dimensions& to, const Origins& origins) {
    Origins result(to.size());
    size_t i = 0, j = 0;
    while (i < from.size() || j < to.size()) {
      size_t i_end = i, j_end = j;
      Extent a(1), b(1);
      do {
        if (j_end >= to.size() || (i_end < from.size() && !sizes_.IsLess(b, a))) {
          a = a * sizes_.Size(from[i_end++]);
        } else {
          b = b * sizes_.Size(to[j_end++]);
        }
      } while (!sizes_.IsEqual(a, b));
      Join(from, to, origins, i, i_end, j, j_end, result);
      i = i_end;
      j = j_end;
    }
    return result;
  }

  void Join(const Dimensions& from, const Dimensions& to, const Origins& origins, size_t i,
            size_t i_end, size_t j, size_t j_end, Origins& result) {
    Origin joined;
    bool joinable = true;
    for (size_t d = i; d < i_end; ++d) {
      if (from[d] == 1) continue;
      if (joined.kind == Origin::kNone && joinable) {
        joined = origins[d];
        joinable = joined.kind == Origin::kSpace;
      } else if (joinable && origins[d].kind == Origin::kSpace && origins[d].first > joined.last &&
                 Unit(joined.last + 1, origins[d].first)) {
        joined.last = origins[d].last;
        joined.offset.reset();
      } else {
        joinable = false;
      }
    }
    int64_t wide = 0;
    for (size_t d = j; d < j_end; ++d) wide += to[d] != 1;
    if (joinable && wide <= 1) {
      for (size_t d = j; d < j_end; ++d) {
        if (to[d] != 1) result[d] = joined;
      }
      return;
    }
    for (size_t d = i; d < i_end; ++d) Isolate(origins[d]);
    for (size_t d = j; d < j_end; ++d) result[d].kind = to[d] == 1 ? Origin::kNone : Origin::kOther;
  }

  void Gather(const Instruction* instruction, const Origins& origins) {
    const auto& attributes = instruction->as<hlo::GatherAttributes>();
    const Dimensions& operand = instruction->operand(0)->dimensions();
    const Dimensions& starts = instruction->operand(1)->dimensions();
    auto contains = [](const Dimensions& list, int64_t d) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    Origins inner(operand.size());
    size_t offset = 0;
    for (size_t d = 0; d < operand.size(); ++d) {
      if (contains(attributes.operand_batching_dims, d) ||
          contains(attributes.collapsed_slice_dims, d)) {
        inner[d].kind = Origin::kOther;
        continue;
      }
      inner[d] = origins[attributes.offset_dims[offset++]];
      if (attributes.slice_sizes[d] != operand[d]) Isolate(inner[d]);
    }
    Origins start_origins(starts.size());
    size_t next = 0;
    for (size_t d = 0; d < instruction->dimensions().size(); ++d) {
      if (contains(attributes.offset_dims, d)) continue;
      if (static_cast<int64_t>(next) == attributes.index_vector_dim) ++next;
      start_origins[next++] = origins[d];
      if (!attributes.operand_batching_dims.empty()) Isolate(origins[d]);
    }
    Leaf(operand, inner);
    Visit(instruction->operand(0), inner);
    Visit(instruction->operand(1), start_origins);
  }

  const Dimensions& space_;
  KernelSizes& sizes_;
  std::set<std::pair<const Instruction*, Origins>> visited_;
};

}  // namespace

namespace {

Finder Found(const Dimensions& space, const std::vector<const Instruction*>& roots,
             KernelSizes& sizes) {
  Finder finder(space, sizes);
  Origins identity;
  for (size_t d = 0; d < space.size(); ++d) {
    int64_t i = static_cast<int64_t>(d);
    identity.push_back({Origin::kSpace, i, i});
  }
  for (const Instruction* root : roots) {
    Origins origins = identity;
    origins.resize(std::min(origins.size(), root->dimensions().size()));
    finder.Visit(root, origins);
  }
  return finder;
}

}  // namespace

std::set<int64_t> RunBoundaries(const Dimensions& space,
                                const std::vector<const Instruction*>& roots, KernelSizes& sizes) {
  return Found(space, roots, sizes).boundaries_;
}

std::map<int64_t, std::set<int64_t>> Seams(const Dimensions& space,
                                           const std::vector<const Instruction*>& roots,
                                           KernelSizes& sizes) {
  return Found(space, roots, sizes).seams_;
}

}  // namespace cpu
