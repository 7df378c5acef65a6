#include "cpu/library/strided_copy.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "cpu/library/row_copy.h"
#include "cpu/library/transpose_tile.h"
#include "cpu/library/vector_clones.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::ElementType;

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

template <typename To, typename From>
To ConvertNumber(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsComplex<To> && kIsComplex<From>) {
    return To(value.real(), value.imag());
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(static_cast<double>(value)));
  } else if constexpr (kIsComplex<From>) {
    return ConvertNumber<To>(value.real());
  } else if constexpr (std::is_same_v<From, hlo::Float16> || std::is_same_v<From, hlo::BFloat16>) {
    return ConvertNumber<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, hlo::Float16> || std::is_same_v<To, hlo::BFloat16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
void CopyRow(const From* source, To* destination, int64_t count) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(destination, source, count * sizeof(To));
  } else {
    for (int64_t i = 0; i < count; ++i) destination[i] = ConvertNumber<To>(source[i]);
  }
}

CPU_VECTOR_CLONES
void FromBFloat16(const uint16_t* source, float* destination, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    destination[i] = std::bit_cast<float>(static_cast<uint32_t>(source[i]) << 16);
  }
}

CPU_VECTOR_CLONES
void ToBFloat16(const float* source, uint16_t* destination, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word = std::bit_cast<uint32_t>(source[i]);
    uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    destination[i] = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : rounded);
  }
}

#if defined(__x86_64__)
bool HasF16C() {
  static const bool has = __builtin_cpu_supports("f16c");
  return has;
}

typedef float Float8 __attribute__((vector_size(32)));
typedef int16_t Short8 __attribute__((vector_size(16)));

__attribute__((target("avx2,f16c"))) int64_t FromFloat16Blocks(const uint16_t* source,
                                                               float* destination, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Short8 half;
    std::memcpy(&half, source + i, 16);
    Float8 full = __builtin_ia32_vcvtph2ps256(half);
    std::memcpy(destination + i, &full, 32);
  }
  return i;
}

__attribute__((target("avx2,f16c"))) int64_t ToFloat16Blocks(const float* source,
                                                             uint16_t* destination, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Float8 full;
    std::memcpy(&full, source + i, 32);
    Short8 half = __builtin_ia32_vcvtps2ph256(full, 0);
    std::memcpy(destination + i, &half, 16);
  }
  return i;
}
#endif

// The pairs that matter for speed; true when done.
bool ConvertFast(const void* source, ElementType from, void* destination, ElementType to,
                 int64_t count) {
  if (from == ElementType::kBF16 && to == ElementType::kF32) {
    FromBFloat16(static_cast<const uint16_t*>(source), static_cast<float*>(destination), count);
    return true;
  }
  if (from == ElementType::kF32 && to == ElementType::kBF16) {
    ToBFloat16(static_cast<const float*>(source), static_cast<uint16_t*>(destination), count);
    return true;
  }
#if defined(__x86_64__)
  if (!HasF16C()) return false;
  if (from == ElementType::kF16 && to == ElementType::kF32) {
    auto* in = static_cast<const hlo::Float16*>(source);
    auto* out = static_cast<float*>(destination);
    int64_t done = FromFloat16Blocks(reinterpret_cast<const uint16_t*>(in), out, count);
    for (int64_t i = done; i < count; ++i) out[i] = in[i];
    return true;
  }
  if (from == ElementType::kF32 && to == ElementType::kF16) {
    auto* in = static_cast<const float*>(source);
    auto* out = static_cast<hlo::Float16*>(destination);
    int64_t done = ToFloat16Blocks(in, reinterpret_cast<uint16_t*>(out), count);
    for (int64_t i = done; i < count; ++i) out[i] = hlo::Float16(in[i]);
    return true;
  }
#endif
  return false;
}

// Calls f with tags of both C++ types.
template <typename F>
void DispatchPair(ElementType from, ElementType to, F f) {
  hlo::DispatchNative(from, [&]<typename From>() {
    hlo::DispatchNative(to, [&]<typename To>() { f.template operator()<From, To>(); });
  });
}

}  // namespace

void ConvertRow(const void* source, ElementType from, void* destination, ElementType to,
                int64_t count) {
  if (ConvertFast(source, from, destination, to, count)) return;
  DispatchPair(from, to, [&]<typename From, typename To>() {
    CopyRow(static_cast<const From*>(source), static_cast<To*>(destination), count);
  });
}

namespace {

// Elements that are `stride` apart, next to one another.
template <typename T>
void GatherElements(const std::byte* source, int64_t stride, std::byte* destination,
                    int64_t count) {
  constexpr int64_t kWidth = sizeof(T);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * kWidth, source + i * stride * kWidth, kWidth);
  }
}

void GatherRow(const std::byte* source, int64_t stride, size_t width, std::byte* destination,
               int64_t count) {
  switch (width) {
    case 1:
      return GatherElements<uint8_t>(source, stride, destination, count);
    case 2:
      return GatherElements<uint16_t>(source, stride, destination, count);
    case 4:
      return GatherElements<uint32_t>(source, stride, destination, count);
    case 8:
      return GatherElements<uint64_t>(source, stride, destination, count);
    default:
      return GatherElements<std::complex<double>>(source, stride, destination, count);
  }
}

// By way of a block in the first cache, so that each pair of types has one loop.
void ConvertStridedRow(const std::byte* source, int64_t stride, ElementType from,
                       std::byte* destination, ElementType to, int64_t count) {
  const auto width = static_cast<int64_t>(hlo::ByteWidth(from));
  const auto to_width = static_cast<int64_t>(hlo::ByteWidth(to));
  if (from == to) return GatherRow(source, stride, width, destination, count);
  constexpr int64_t kBlock = 512;
  alignas(64) std::byte block[kBlock * sizeof(std::complex<double>)];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t size = std::min(kBlock, count - i);
    GatherRow(source + i * stride * width, stride, width, block, size);
    ConvertRow(block, from, destination + i * to_width, to, size);
  }
}

// One 2-D block of a transposition: destination row i is source column i.
template <typename T>
void TransposeBlock(const T* source, int64_t source_stride, T* destination,
                    int64_t destination_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 16;
  for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
    int64_t j1 = std::min(columns, j0 + kTile);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = j0; j < j1; ++j) {
        destination[i * destination_stride + j] = source[j * source_stride + i];
      }
    }
  }
}

// Rows of which the source is contiguous along another dimension: tiles keep both sides in the
// cache. False if the copy is not of that form.
bool PackTransposed(ThreadPool& threads, const hlo::Dimensions& dimensions,
                    const hlo::Dimensions& strides, const std::byte* source, size_t width,
                    std::byte* destination) {
  int64_t rank = static_cast<int64_t>(dimensions.size());
  int64_t unit = -1;
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (strides[i] == 1 && dimensions[i] > 1) unit = i;
  }
  if (unit < 0 || strides[rank - 1] == 1 || (width != 2 && width != 4 && width != 8)) return false;
  constexpr int64_t kRows = 64;
  hlo::Dimensions out_strides = hlo::RowMajorStrides(dimensions);
  int64_t columns = dimensions[rank - 1], outer = 1;
  int64_t blocks = hlo::CeilDivide(dimensions[unit], kRows);
  for (int64_t i = 0; i + 1 < rank; ++i) outer *= i == unit ? 1 : dimensions[i];
  threads.ParallelFor(outer * blocks, [&](int64_t chunk) {
    int64_t from = chunk % blocks * kRows, to = from * out_strides[unit], rest = chunk / blocks;
    int64_t rows = std::min(kRows, dimensions[unit] - from);
    for (int64_t i = rank - 2; i >= 0; --i) {
      if (i == unit) continue;
      from += rest % dimensions[i] * strides[i];
      to += rest % dimensions[i] * out_strides[i];
      rest /= dimensions[i];
    }
    auto run = [&]<typename T>() {
      TransposeBlock(reinterpret_cast<const T*>(source) + from, strides[rank - 1],
                     reinterpret_cast<T*>(destination) + to, out_strides[unit], rows, columns);
    };
    if (width == 2) return run.template operator()<uint16_t>();
    if (width == 4) return run.template operator()<uint32_t>();
    run.template operator()<uint64_t>();
  });
  return true;
}

// Rows [first, end) of neighbours, which are next to one another in the destination.
void PackRows(const hlo::Dimensions& dimensions, const hlo::Dimensions& strides,
              const std::byte* source, int64_t width, std::byte* destination, int64_t first,
              int64_t end) {
  const auto last = std::ssize(dimensions) - 2;  // of those that rows are counted in
  const int64_t bytes = dimensions.back() * width;
  const RowCopy copy = RowCopyOf(bytes);
  hlo::Dimensions at(last + 1);
  int64_t offset = 0;  // negative where a dimension is read backwards
  for (int64_t d = last, rest = first; d >= 0; --d) {
    at[d] = rest % dimensions[d];
    offset += at[d] * strides[d];
    rest /= dimensions[d];
  }
  for (int64_t row = first; row < end;) {
    const int64_t count = std::min(end - row, dimensions[last] - at[last]);
    copy(source + offset * width, strides[last] * width, destination + row * bytes, bytes, bytes,
         count);
    row += count;
    at[last] += count;
    offset += count * strides[last];
    for (int64_t d = last; d > 0 && at[d] == dimensions[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
      offset += strides[d - 1] - dimensions[d] * strides[d];
    }
  }
}

// The same copy with as few dimensions as it has: none of size 1, and neighbours that are walked as
// one are one.
void MergeDimensions(hlo::Dimensions& dimensions, hlo::Dimensions& strides) {
  hlo::Dimensions merged, merged_strides;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] == 1) continue;
    if (!merged.empty() && merged_strides.back() == strides[i] * dimensions[i]) {
      merged.back() *= dimensions[i];
      merged_strides.back() = strides[i];
    } else {
      merged.push_back(dimensions[i]);
      merged_strides.push_back(strides[i]);
    }
  }
  dimensions = std::move(merged);
  strides = std::move(merged_strides);
}

// A dimension of a copy, with its strides on both sides.
struct CopyDimension {
  int64_t size, from, to;
};

// As few as walk the same elements.
std::vector<CopyDimension> CopyDimensions(const hlo::Dimensions& sizes, const hlo::Dimensions& from,
                                          const hlo::Dimensions& to) {
  std::vector<CopyDimension> merged;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    const bool joins = !merged.empty() && merged.back().from == from[i] * sizes[i] &&
                       merged.back().to == to[i] * sizes[i];
    const int64_t size = joins ? merged.back().size * sizes[i] : sizes[i];
    if (joins) merged.pop_back();
    merged.push_back({size, from[i], to[i]});
  }
  return merged;
}

// Takes out the dimension whose elements are neighbours on a side; of size one if there is none.
CopyDimension TakeUnit(std::vector<CopyDimension>& dimensions, int64_t CopyDimension::* side) {
  const auto unit =
      std::ranges::find_if(dimensions, [&](const CopyDimension& d) { return d.*side == 1; });
  if (unit == dimensions.end()) return {1, 1, 1};
  const CopyDimension taken = *unit;
  dimensions.erase(unit);
  return taken;
}

// rows: neighbours in the destination; columns: neighbours in the source.
template <typename T>
void CopyTransposed(const T* source, T* destination, const CopyDimension& rows,
                    const CopyDimension& columns) {
  for (int64_t i = 0; i < rows.size; i += kTransposeTile) {
    const int64_t height = std::min(kTransposeTile, rows.size - i);
    for (int64_t j = 0; j < columns.size; j += kTransposeTile) {
      TransposeTile(source + i * rows.from + j * columns.from, rows.from,
                    destination + i * rows.to + j * columns.to, columns.to, height,
                    std::min(kTransposeTile, columns.size - j));
    }
  }
}

template <typename T>
void CopyEach(const std::vector<CopyDimension>& outer, size_t level, const T* source,
              T* destination, const CopyDimension& rows, const CopyDimension& columns) {
  if (level < outer.size()) {
    const CopyDimension& d = outer[level];
    for (int64_t i = 0; i < d.size; ++i) {
      CopyEach(outer, level + 1, source + i * d.from, destination + i * d.to, rows, columns);
    }
  } else if (rows.from == 1 && columns.size == 1) {
    std::memcpy(destination, source, rows.size * sizeof(T));
  } else {
    CopyTransposed(source, destination, rows, columns);
  }
}

}  // namespace

void CopyStrided(const hlo::Dimensions& dimensions, const hlo::Dimensions& from,
                 const hlo::Dimensions& to, const void* source, void* destination, size_t width) {
  if (hlo::Product(dimensions) == 0) return;
  std::vector<CopyDimension> outer = CopyDimensions(dimensions, from, to);
  const CopyDimension rows = TakeUnit(outer, &CopyDimension::to);
  const CopyDimension columns = rows.from == 1 && rows.size > 1
                                    ? CopyDimension{1, 1, 1}
                                    : TakeUnit(outer, &CopyDimension::from);
  const auto run = [&]<typename T>() {
    CopyEach(outer, 0, static_cast<const T*>(source), static_cast<T*>(destination), rows, columns);
  };
  if (width == 2) return run.template operator()<uint16_t>();
  if (width == 4) return run.template operator()<float>();
  run.template operator()<double>();
}

void PackStrided(ThreadPool& threads, const hlo::Dimensions& all_dimensions,
                 const hlo::Dimensions& all_strides, const void* source, ElementType from,
                 void* destination, ElementType to) {
  if (hlo::Product(all_dimensions) == 0) return;
  hlo::Dimensions dimensions = all_dimensions, strides = all_strides;
  MergeDimensions(dimensions, strides);
  int64_t rank = static_cast<int64_t>(dimensions.size());
  int64_t row = rank == 0 ? 1 : dimensions[rank - 1];
  int64_t row_stride = rank == 0 ? 1 : strides[rank - 1];
  int64_t rows = hlo::Product(dimensions) / row;
  const auto from_width = static_cast<int64_t>(hlo::ByteWidth(from));
  const auto to_width = static_cast<int64_t>(hlo::ByteWidth(to));
  if (from == to &&
      PackTransposed(threads, dimensions, strides, static_cast<const std::byte*>(source),
                     hlo::ByteWidth(from), static_cast<std::byte*>(destination))) {
    return;
  }
  auto copy_part = [&](int64_t index, int64_t begin, int64_t count) {
    int64_t offset = begin * row_stride;
    for (int64_t i = rank - 2, rest = index; i >= 0; --i) {
      offset += rest % dimensions[i] * strides[i];
      rest /= dimensions[i];
    }
    // The offset is negative where a dimension is read backwards.
    auto* in = static_cast<const std::byte*>(source) + offset * from_width;
    auto* out = static_cast<std::byte*>(destination) + (index * row + begin) * to_width;
    if (row_stride == 1 || row == 1) {
      ConvertRow(in, from, out, to, count);
      return;
    }
    ConvertStridedRow(in, row_stride, from, out, to, count);
  };
  // A chunk is some whole rows, or a part of a long one.
  constexpr int64_t kChunk = 16384;
  const int64_t rows_per_chunk = std::max<int64_t>(1, kChunk / row);
  const int64_t parts = rows_per_chunk > 1 ? 1 : hlo::CeilDivide(row, kChunk);
  threads.ParallelFor(hlo::CeilDivide(rows, rows_per_chunk) * parts, [&](int64_t chunk) {
    const int64_t begin = chunk % parts * kChunk;
    const int64_t count = parts == 1 ? row : std::min(kChunk, row - begin);
    const int64_t first = chunk / parts * rows_per_chunk;
    const int64_t end = std::min(rows, first + rows_per_chunk);
    if (from == to && row_stride == 1 && rank > 1 && parts == 1) {
      return PackRows(dimensions, strides, static_cast<const std::byte*>(source), from_width,
                      static_cast<std::byte*>(destination), first, end);
    }
    for (int64_t index = first; index < end; ++index) copy_part(index, begin, count);
  });
}

}  // namespace cpu
