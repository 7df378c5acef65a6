#include "cpu/collective/member_parts.h"

#include <algorithm>

#include "cpu/collective/reduction.h"
#include "hlo/size_arithmetic.h"

namespace cpu {

Part PartOf(int64_t bytes, int64_t count, int64_t i) {
  const int64_t size = hlo::RoundUp(hlo::CeilDivide(bytes, count), kPartAlignment);
  return {std::min(bytes, i * size), std::min(bytes, (i + 1) * size)};
}

void ReduceWithOwn(const Exchange& exchange, hlo::ElementType type, const FlatArray& own,
                   int64_t begin, int64_t end, std::vector<const std::byte*> sources,
                   std::byte* target) {
  const auto width = static_cast<int64_t>(hlo::ByteWidth(type));
  own.ForEachRun(begin, end, [&](const std::byte* data, int64_t bytes) {
    sources[exchange.me] = data;
    Reduce(type, exchange.collective.reduction, sources, target, bytes / width);
    for (const std::byte*& source : sources) source += bytes;
    target += bytes;
  });
}

}  // namespace cpu
