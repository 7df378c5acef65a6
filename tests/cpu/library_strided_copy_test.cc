#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cpu/library/strided_copy.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::BFloat16;
using hlo::Dimensions;
using hlo::ElementType;

struct Copy {
  Dimensions dimensions, strides;
  int64_t first = 0;  // where element 0 is read, of the source
};

// How long copies look to PackStrided, which sees neighbouring dimensions as one where it can.
const Copy kCopies[] = {
    {{}, {}},
    {{0, 5}, {5, 1}},
    {{1, 1}, {7, 9}},
    {{2, 3, 5}, {15, 5, 1}},                    // one run
    {{3, 50021}, {50021, 1}},                   // one that several threads share
    {{3, 50021}, {50030, 1}},                   // long rows with room between them
    {{40, 7, 3, 3}, {63, 9, 3, 1}},             // weights of a convolution
    {{40, 7, 3, 3}, {63, 9, -3, -1}, 8},        // and flipped ones
    {{4, 1, 300}, {300, 0, 1}},                 // a dimension of size 1, whatever its stride
    {{300, 200}, {1, 300}},                     // a transposition
    {{2, 30, 20, 10}, {6000, 10, 300, 1}},      // dimensions that change places
    {{2, 30, 20, 10}, {6000, 1, 300, 30}},      // channels that become the first dimension
    {{5, 40000}, {0, 1}},                       // the same row again
    {{20000, 3}, {0, 0}},                       // the same element again
    {{70, 300}, {-300, 1}, int64_t{69} * 300},  // rows from the last to the first
    // Blocks of an image, the same from its last row on, rows that overlap, and long ones.
    {{50, 60, 3, 4, 4}, {960, 4, 48000, 240, 1}},
    {{30, 40, 3, 5, 3}, {-1000, 5, 30000, -200, 1}, int64_t{149} * 200},
    {{4000, 2, 7}, {14, 5, 1}},
    {{900, 130}, {131, 1}},
};

int64_t Extent(const Copy& copy) {
  int64_t end = copy.first;
  for (size_t i = 0; i < copy.dimensions.size(); ++i) {
    if (copy.strides[i] > 0) end += std::max<int64_t>(0, copy.dimensions[i] - 1) * copy.strides[i];
  }
  return end + 1;
}

// Element i, in row-major order, is read there.
int64_t Position(const Copy& copy, int64_t i) {
  int64_t position = copy.first;
  for (size_t d = copy.dimensions.size(); d-- > 0;) {
    position += i % copy.dimensions[d] * copy.strides[d];
    i /= copy.dimensions[d];
  }
  return position;
}

template <typename From, typename To>
void CopiesAs(ElementType from, ElementType to, int threads) {
  ThreadPool pool(threads);
  for (const Copy& copy : kCopies) {
    std::vector<From> source;
    for (int64_t i = 0; i < Extent(copy); ++i) {
      source.push_back(static_cast<From>(static_cast<float>(i % 1009) / 7 - 60));
    }
    const int64_t count = hlo::Product(copy.dimensions);
    const To untouched = static_cast<To>(-12345.0f);
    std::vector<To> result(count + 1, untouched);
    PackStrided(pool, copy.dimensions, copy.strides, source.data() + copy.first, from,
                result.data(), to);
    for (int64_t i = 0; i < count; ++i) {
      const To wanted = static_cast<To>(static_cast<float>(source[Position(copy, i)]));
      ASSERT_EQ(static_cast<float>(result[i]), static_cast<float>(wanted))
          << hlo::ToString(copy.dimensions) << " by " << hlo::ToString(copy.strides) << ", " << i;
    }
    EXPECT_EQ(static_cast<float>(result[count]), static_cast<float>(untouched));
  }
}

TEST(StridedCopy, ReadsEachElementWhereTheStridesSay) {
  for (int threads : {1, 3}) {
    CopiesAs<float, float>(ElementType::kF32, ElementType::kF32, threads);
    CopiesAs<BFloat16, BFloat16>(ElementType::kBF16, ElementType::kBF16, threads);
    CopiesAs<BFloat16, float>(ElementType::kBF16, ElementType::kF32, threads);
    CopiesAs<float, BFloat16>(ElementType::kF32, ElementType::kBF16, threads);
    CopiesAs<float, double>(ElementType::kF32, ElementType::kF64, threads);
  }
}

struct Placing {
  Dimensions dimensions, from, to;
};

TEST(StridedCopy, PutsEachElementWhereTheStridesSay) {
  const Placing placings[] = {
      {{}, {}, {}},
      {{0, 5}, {5, 1}, {5, 1}},
      {{7}, {3}, {1}},                            // no neighbours in the source
      {{7}, {1}, {3}},                            // none in the result
      {{3, 5}, {20, 2}, {30, 4}},                 // none at all
      {{2, 3, 50}, {200, 60, 1}, {150, 50, 1}},   // rows
      {{2, 19, 37}, {703, 37, 1}, {703, 1, 19}},  // channels become the last dimension
      {{2, 33, 8, 16}, {8448, 256, 16, 1}, {4224, 1, 528, 33}},  // of some rows of an image
      {{2, 33, 8, 16}, {4224, 1, 528, 33}, {8448, 256, 16, 1}},  // and back
      {{16, 16, 1}, {1, 16, 99}, {16, 1, 77}},  // a whole tile, a dimension of size one
  };
  const auto at = [](const Placing& p, const Dimensions& strides, int64_t i) {
    return Position({p.dimensions, strides}, i);
  };
  for (const Placing& p : placings) {
    const auto check = [&]<typename T>() {
      std::vector<T> source(Extent({p.dimensions, p.from}));
      for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<T>(i * 7 + 1);
      std::vector<T> wanted(Extent({p.dimensions, p.to}), T{0}), result = wanted;
      for (int64_t i = 0; i < hlo::Product(p.dimensions); ++i) {
        wanted[at(p, p.to, i)] = source[at(p, p.from, i)];
      }
      CopyStrided(p.dimensions, p.from, p.to, source.data(), result.data(), sizeof(T));
      EXPECT_EQ(result, wanted) << hlo::ToString(p.dimensions) << " of " << sizeof(T) << " bytes";
    };
    check.operator()<uint16_t>();
    check.operator()<float>();
    check.operator()<double>();
  }
}

}  // namespace
}  // namespace cpu
