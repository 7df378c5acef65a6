#include "cpu/data_movement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/fusible.h"
#include "cpu/library/row_copy.h"
#include "cpu/library/transpose_tile.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kTile = kTransposeTile;
constexpr int64_t kBlock = 64;

struct Wide {
  uint64_t words[2];
};

// A transpose with joined dimensions: result[o][b][a] = operand[…][a][b], where b is the operand's
// innermost dimension and a the result's, and o the others.
struct TransposePlan {
  Dimensions outer, outer_from, outer_to;  // sizes and strides in elements
  int64_t rows = 1, columns = 1;           // a and b
  int64_t from_stride = 1, to_stride = 1;  // of a in the operand, of b in the result
};

TransposePlan PlanTranspose(const Instruction& transpose) {
  const auto& permutation = transpose.as<hlo::DimensionsAttributes>().dimensions;
  const Dimensions from_strides = hlo::RowMajorStrides(transpose.operand(0)->dimensions());
  // Result dimensions that are neighbours in the operand too are one.
  Dimensions sizes, strides;
  for (size_t i = 0; i < permutation.size(); ++i) {
    const int64_t size = transpose.dimensions()[i];
    const int64_t stride = from_strides[permutation[i]];
    if (size == 1) continue;
    if (!sizes.empty() && strides.back() == stride * size) {
      sizes.back() *= size;
      strides.back() = stride;
    } else {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  }
  const Dimensions to_strides = hlo::RowMajorStrides(sizes);
  TransposePlan plan;
  const size_t last = sizes.size() - 1;
  plan.rows = sizes[last];
  plan.from_stride = strides[last];
  for (size_t i = 0; i < last; ++i) {
    if (strides[i] == 1) {
      plan.columns = sizes[i];
      plan.to_stride = to_strides[i];
    } else {
      plan.outer.push_back(sizes[i]);
      plan.outer_from.push_back(strides[i]);
      plan.outer_to.push_back(to_strides[i]);
    }
  }
  return plan;
}

// One block by way of a dense buffer: rows that are a power of two apart share cache sets, so that
// only whole runs are read and written.
template <typename T>
void TransposeBlock(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                    int64_t columns) {
  if (rows <= kTile) {  // whole runs of the result as they are
    for (int64_t j = 0; j < columns; j += kTile) {
      TransposeTile(from + j, from_stride, to + j * to_stride, to_stride, rows,
                    std::min(kTile, columns - j));
    }
    return;
  }
  alignas(64) T buffer[kBlock * kBlock];
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t j = 0; j < columns; j += kTile) {
      TransposeTile(from + i * from_stride + j, from_stride, buffer + j * kBlock + i, kBlock,
                    std::min(kTile, rows - i), std::min(kTile, columns - j));
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    std::memcpy(to + j * to_stride, buffer + j * kBlock, rows * sizeof(T));
  }
}

template <typename T>
NativeStep::Function MakeTranspose(const TransposePlan& plan) {
  return [plan](const NativeStep::Call& call) {
    const T* from = static_cast<const T*>(call.operands[0]);
    T* to = static_cast<T*>(call.results[0]);
    const int64_t row_blocks = hlo::CeilDivide(plan.rows, kBlock);
    const int64_t column_blocks = hlo::CeilDivide(plan.columns, kBlock);
    int64_t outer = 1;
    for (int64_t size : plan.outer) outer *= size;
    const int64_t blocks = outer * row_blocks * column_blocks;
    auto run = [&](int64_t block) {
      const int64_t column = block % column_blocks * kBlock;
      const int64_t row = block / column_blocks % row_blocks * kBlock;
      int64_t rest = block / (column_blocks * row_blocks);
      const T* source = from + row * plan.from_stride + column;
      T* target = to + column * plan.to_stride + row;
      for (size_t i = plan.outer.size(); i-- > 0;) {
        source += rest % plan.outer[i] * plan.outer_from[i];
        target += rest % plan.outer[i] * plan.outer_to[i];
        rest /= plan.outer[i];
      }
      TransposeBlock(source, plan.from_stride, target, plan.to_stride,
                     std::min(kBlock, plan.rows - row), std::min(kBlock, plan.columns - column));
    };
    const int64_t bytes = outer * plan.rows * plan.columns * static_cast<int64_t>(sizeof(T));
    const int64_t chunks = std::clamp<int64_t>(bytes >> 16, 1, std::min<int64_t>(blocks, 64));
    call.state.threads.ParallelFor(chunks, [&](int64_t chunk) {
      for (int64_t block = chunk * blocks / chunks; block < (chunk + 1) * blocks / chunks;
           ++block) {
        run(block);
      }
    });
  };
}

NativeStep::Function BindTranspose(const Instruction& transpose) {
  const TransposePlan plan = PlanTranspose(transpose);
  switch (hlo::ByteWidth(transpose.element_type())) {
    case 1:
      return MakeTranspose<int8_t>(plan);
    case 2:
      return MakeTranspose<int16_t>(plan);
    case 4:
      return MakeTranspose<int32_t>(plan);
    case 8:
      return MakeTranspose<int64_t>(plan);
    default:
      return MakeTranspose<Wide>(plan);
  }
}

// Rows of single words, one of each operand.
template <typename Word, size_t count>
void Interleave(const NativeStep::Call& call, int64_t begin, int64_t end) {
  std::array<const Word*, count> from;
  for (size_t i = 0; i < count; ++i) from[i] = static_cast<const Word*>(call.operands[i]);
  auto* __restrict to = static_cast<Word*>(call.results[0]) + begin * static_cast<int64_t>(count);
  for (int64_t r = begin; r < end; ++r, to += count) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i][r];
  }
}

using Interleaving = void (*)(const NativeStep::Call& call, int64_t begin, int64_t end);

template <typename Word>
Interleaving InterleavingOf(size_t count) {
  switch (count) {
    case 2:
      return Interleave<Word, 2>;
    case 3:
      return Interleave<Word, 3>;
    case 4:
      return Interleave<Word, 4>;
    default:
      return nullptr;
  }
}

// Null if the rows of these bytes are none of single words.
Interleaving InterleavingOf(const std::vector<int64_t>& parts) {
  const auto all = [&](int64_t bytes) {
    return std::ranges::all_of(parts, [&](int64_t part) { return part == bytes; });
  };
  if (all(1)) return InterleavingOf<uint8_t>(parts.size());
  if (all(2)) return InterleavingOf<uint16_t>(parts.size());
  if (all(4)) return InterleavingOf<uint32_t>(parts.size());
  if (all(8)) return InterleavingOf<uint64_t>(parts.size());
  return nullptr;
}

struct Part {
  size_t operand;
  int64_t bytes, place;  // of a row, and where it begins in the result's
  RowCopy copy;
};

NativeStep::Function BindConcatenate(const Instruction& concatenate) {
  const int64_t dimension = concatenate.as<hlo::DimensionAttributes>().dimension;
  const int64_t width = static_cast<int64_t>(hlo::ByteWidth(concatenate.element_type()));
  auto row_bytes = [&](const Dimensions& dimensions) {
    return hlo::Product(std::span(dimensions).subspan(dimension)) * width;
  };
  const int64_t row = row_bytes(concatenate.dimensions());
  const int64_t rows = row == 0 ? 0 : concatenate.shape().byte_size() / row;
  std::vector<Part> parts;
  std::vector<int64_t> sizes;
  int64_t place = 0;
  for (size_t i = 0; i < concatenate.operand_count(); ++i) {
    const int64_t bytes = row_bytes(concatenate.operand(i)->dimensions());
    sizes.push_back(bytes);
    // (An empty operand may have no memory.)
    if (bytes > 0) parts.push_back({i, bytes, place, RowCopyOf(bytes)});
    place += bytes;
  }
  const Interleaving interleave = InterleavingOf(sizes);
  // So many short rows that they stay in the first cache until they have all their parts; a long
  // one by itself.
  constexpr int64_t kBlockBytes = 1 << 13, kLongRow = 512;
  const int64_t block = row >= kLongRow ? 1 : kBlockBytes / std::max<int64_t>(row, 1);
  return [=](const NativeStep::Call& call) {
    const int64_t chunks = std::clamp<int64_t>(rows * row >> 17, 1, std::max<int64_t>(rows, 1));
    call.state.threads.ParallelFor(chunks, [&](int64_t chunk) {
      const int64_t begin = chunk * rows / chunks, end = (chunk + 1) * rows / chunks;
      if (interleave) return interleave(call, begin, end);
      auto* to = static_cast<std::byte*>(call.results[0]);
      for (int64_t r = begin; r < end; r += block) {
        const int64_t count = std::min(block, end - r);
        for (const Part& part : parts) {
          const auto* from = static_cast<const std::byte*>(call.operands[part.operand]);
          part.copy(from + r * part.bytes, part.bytes, to + r * row + part.place, row, part.bytes,
                    count);
        }
      }
    });
  };
}

int64_t ReadIndex(const void* data, hlo::ElementType type) {
  return hlo::DispatchNative(type, [&]<typename T>() -> int64_t {
    if constexpr (std::is_integral_v<T>) {
      const T value = *static_cast<const T*>(data);
      if constexpr (std::is_same_v<T, uint64_t>) {
        return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
      }
      return static_cast<int64_t>(value);
    } else {
      return 0;
    }
  });
}

NativeStep::Function BindDynamicUpdateSlice(const Instruction& instruction) {
  const Dimensions dimensions = instruction.dimensions();
  const Dimensions update = instruction.operand(1)->dimensions();
  const int64_t width = static_cast<int64_t>(hlo::ByteWidth(instruction.element_type()));
  const Dimensions strides = hlo::RowMajorStrides(dimensions);
  const int64_t bytes = instruction.shape().byte_size();
  std::vector<hlo::ElementType> types;
  for (size_t i = 2; i < instruction.operand_count(); ++i) {
    types.push_back(instruction.operand(i)->element_type());
  }
  // Whole trailing dimensions are copied in one piece.
  size_t split = dimensions.size();
  int64_t run = width;
  while (split > 0) {
    run *= update[split - 1];
    --split;
    if (update[split] != dimensions[split]) break;
  }
  int64_t runs = 1;
  for (size_t i = 0; i < split; ++i) runs *= update[i];
  return [=](const NativeStep::Call& call) {
    ParallelCopy(call.state.threads, call.results[0], call.operands[0], bytes);
    auto* to = static_cast<std::byte*>(call.results[0]);
    const auto* from = static_cast<const std::byte*>(call.operands[1]);
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const int64_t start = ReadIndex(call.operands[2 + i], types[i]);
      to += std::clamp<int64_t>(start, 0, dimensions[i] - update[i]) * strides[i] * width;
    }
    if (run == 0) return;
    for (int64_t r = 0; r < runs; ++r) {
      int64_t rest = r, offset = 0;
      for (size_t i = split; i-- > 0;) {
        offset += rest % update[i] * strides[i];
        rest /= update[i];
      }
      std::memcpy(to + offset * width, from + r * run, run);
    }
  };
}

}  // namespace

NativeStep::Function BindDataMovement(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kTranspose:
      return IsBlockTranspose(instruction) ? BindTranspose(instruction) : nullptr;
    case Opcode::kConcatenate:
      return BindConcatenate(instruction);
    case Opcode::kDynamicUpdateSlice:
      return BindDynamicUpdateSlice(instruction);
    default:
      return nullptr;
  }
}

}  // namespace cpu
