#include "cpu/collective/reduction.h"

#include <algorithm>
#include <type_traits>

#include "cpu/library/vector_clones.h"
#include "hlo/error.h"
#include "hlo/number_conversion.h"

namespace cpu {
namespace {

constexpr int64_t kBlock = 1024;

struct Sum {
  template <typename A>
  static A Apply(A x, A y) {
    if constexpr (std::is_same_v<A, bool>) return x | y;
    if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool>) {
      using U = std::make_unsigned_t<A>;
      return static_cast<A>(static_cast<U>(x) + static_cast<U>(y));
    }
    return x + y;
  }
};
struct Product {
  template <typename A>
  static A Apply(A x, A y) {
    if constexpr (std::is_same_v<A, bool>) {
      return x & y;
    } else if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    } else {
      return x * y;
    }
  }
};
// NaN wins.
struct Min {
  template <typename A>
  static A Apply(A x, A y) {
    if constexpr (std::is_floating_point_v<A>) return x < y || x != x ? x : y;
    return x < y ? x : y;
  }
};
struct Max {
  template <typename A>
  static A Apply(A x, A y) {
    if constexpr (std::is_floating_point_v<A>) return x > y || x != x ? x : y;
    return x > y ? x : y;
  }
};
struct And {
  template <typename A>
  static A Apply(A x, A y) {
    return static_cast<A>(x & y);
  }
};
struct Or {
  template <typename A>
  static A Apply(A x, A y) {
    return static_cast<A>(x | y);
  }
};
struct Xor {
  template <typename A>
  static A Apply(A x, A y) {
    return static_cast<A>(x ^ y);
  }
};

template <typename Op, typename T>
inline constexpr bool kDefined =
    !hlo::kIsComplex<T> || std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>;

template <typename T, typename Op>
inline __attribute__((always_inline)) void ReduceBlocks(const std::byte* const* sources,
                                                        size_t num_sources, T* target,
                                                        int64_t count) {
  using A = hlo::ComputeType<T>;  // what sums are kept in
  A sum[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const T* first = reinterpret_cast<const T*>(sources[0]) + begin;
    for (int64_t i = 0; i < size; ++i) sum[i] = static_cast<A>(first[i]);
    for (size_t k = 1; k < num_sources; ++k) {
      const T* next = reinterpret_cast<const T*>(sources[k]) + begin;
      for (int64_t i = 0; i < size; ++i) sum[i] = Op::Apply(sum[i], static_cast<A>(next[i]));
    }
    for (int64_t i = 0; i < size; ++i) target[begin + i] = static_cast<T>(sum[i]);
  }
}

// Cloned for the instruction sets: of a template there would be one instance only.
#define CPU_DEFINE_REDUCE(T, name, Op)                                                 \
  CPU_VECTOR_CLONES void name##Op(const std::byte* const* sources, size_t num_sources, \
                                  std::byte* target, int64_t count) {                  \
    if constexpr (kDefined<Op, T>) {                                                   \
      ReduceBlocks<T, Op>(sources, num_sources, reinterpret_cast<T*>(target), count);  \
    }                                                                                  \
  }
#define CPU_DEFINE_REDUCTIONS(T, name) \
  CPU_DEFINE_REDUCE(T, name, Sum)      \
  CPU_DEFINE_REDUCE(T, name, Product)  \
  CPU_DEFINE_REDUCE(T, name, Min)      \
  CPU_DEFINE_REDUCE(T, name, Max)
HLO_NATIVE_TYPES(CPU_DEFINE_REDUCTIONS)
// Of integers of any width, byte by byte.
CPU_DEFINE_REDUCE(uint8_t, kBytes, And)
CPU_DEFINE_REDUCE(uint8_t, kBytes, Or)
CPU_DEFINE_REDUCE(uint8_t, kBytes, Xor)

using Function = void (*)(const std::byte* const*, size_t, std::byte*, int64_t);

bool IsBitwise(Reduction reduction) {
  return reduction == Reduction::kAnd || reduction == Reduction::kOr ||
         reduction == Reduction::kXor;
}

Function BitwiseFunctionFor(Reduction reduction) {
  if (reduction == Reduction::kAnd) return kBytesAnd;
  return reduction == Reduction::kOr ? kBytesOr : kBytesXor;
}

// By Reduction's order.
#define CPU_LIST_REDUCTION(T, name, Op) kDefined<Op, T> ? name##Op : nullptr
#define CPU_LIST_REDUCTIONS(T, name)                                            \
  case hlo::ElementType::name: {                                                \
    static constexpr Function kFunctions[] = {                                  \
        CPU_LIST_REDUCTION(T, name, Sum), CPU_LIST_REDUCTION(T, name, Product), \
        CPU_LIST_REDUCTION(T, name, Min), CPU_LIST_REDUCTION(T, name, Max)};    \
    return kFunctions[static_cast<size_t>(reduction)];                          \
  }

Function FunctionFor(hlo::ElementType type, Reduction reduction) {
  if (IsBitwise(reduction)) {
    const bool has_bits = hlo::IsInteger(type) || type == hlo::ElementType::kPred;
    return has_bits && hlo::IsNative(type) ? BitwiseFunctionFor(reduction) : nullptr;
  }
  switch (type) {
    HLO_NATIVE_TYPES(CPU_LIST_REDUCTIONS)
    default:
      return nullptr;
  }
}

}  // namespace

bool CanReduce(hlo::ElementType type, Reduction reduction) {
  return FunctionFor(type, reduction) != nullptr;
}

void Reduce(hlo::ElementType type, Reduction reduction, std::span<const std::byte* const> sources,
            std::byte* target, int64_t count) {
  const Function function = FunctionFor(type, reduction);
  if (function == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "this reduction is not defined for " + std::string(hlo::ShortName(type)));
  }
  const int64_t width = IsBitwise(reduction) ? static_cast<int64_t>(hlo::ByteWidth(type)) : 1;
  function(sources.data(), sources.size(), target, count * width);
}

}  // namespace cpu
