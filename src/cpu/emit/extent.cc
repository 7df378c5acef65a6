#include "cpu/emit/extent.h"

#include <cstdlib>
#include <limits>
#include <numeric>

#include "hlo/hash.h"

namespace cpu {
namespace {

// Of the random numbers that stand for sizes.
constexpr uint64_t kSeed = 0x94d049bb133111eb;

// The least number, the bits of -0.0, has none of this type: what divides it is half of that.
int64_t Magnitude(int64_t number) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  return number == kLeast ? -(kLeast / 2) : std::abs(number);
}

using FormulaPointer = std::shared_ptr<const Formula>;

FormulaPointer FormulaOf(const Extent& extent) {
  if (extent.varies) return extent.formula;
  return std::make_shared<const Formula>(Formula::Kind::kConstant, extent.value);
}

FormulaPointer Combined(Formula::Kind kind, const Extent& a, const Extent& b) {
  return std::make_shared<const Formula>(kind, 0, FormulaOf(a), FormulaOf(b));
}

Extent Varying(int64_t value, int64_t divisor, uint64_t identity, FormulaPointer formula) {
  Extent result(value);
  result.divisor = divisor;
  result.identity = identity;
  result.varies = true;
  result.formula = std::move(formula);
  return result;
}

}  // namespace

Extent::Extent(int64_t constant)
    : value(constant), divisor(Magnitude(constant)), identity(static_cast<uint64_t>(constant)) {}

// Identities are values of the numbers' polynomials, each size that varies being a random number:
// a * b and b * a are the same, and so are a * b - a and a * (b - 1).
Extent operator*(const Extent& a, const Extent& b) {
  if (a.Is(0) || b.Is(0)) return 0;
  if (!a.varies && !b.varies) return a.value * b.value;
  return Varying(a.value * b.value, a.divisor * b.divisor, a.identity * b.identity,
                 Combined(Formula::Kind::kProduct, a, b));
}

Extent operator+(const Extent& a, const Extent& b) {
  if (!a.varies && !b.varies) return a.value + b.value;
  return Varying(a.value + b.value, std::gcd(a.divisor, b.divisor), a.identity + b.identity,
                 Combined(Formula::Kind::kSum, a, b));
}

Extent operator-(const Extent& a, const Extent& b) {
  if (!a.varies && !b.varies) return a.value - b.value;
  if (a.varies && b.varies && a.identity == b.identity && a.value == b.value) return 0;
  return Varying(a.value - b.value, std::gcd(a.divisor, b.divisor), a.identity - b.identity,
                 Combined(Formula::Kind::kDifference, a, b));
}

Extent operator/(const Extent& a, int64_t b) {
  if (!a.varies) return a.value / b;
  return Varying(a.value / b, 1, hlo::CombineHash(a.identity, static_cast<size_t>(b)),
                 Combined(Formula::Kind::kQuotient, a, b));
}

Extent KernelSizes::Size(int64_t value) {
  if (!varying_.contains(value)) return value;
  const uint64_t next = hlo::CombineHash(identities_.size(), kSeed);
  return Varying(value, 1, identities_.emplace(value, next).first->second,
                 std::make_shared<const Formula>(Formula::Kind::kSize, value));
}

Extent KernelSizes::Product(std::span<const int64_t> sizes, size_t begin, size_t end) {
  Extent product(1);
  for (size_t i = begin; i < end; ++i) product = product * Size(sizes[i]);
  return product;
}

int32_t KernelSizes::Slot(const Extent& extent) {
  const auto next = static_cast<int32_t>(slots_.size());
  const auto [found, is_new] =
      slot_of_.emplace(std::make_pair(extent.identity, extent.value), next);
  if (is_new) slots_.push_back(extent);
  return found->second;
}

bool KernelSizes::Decide(Decision::Relation relation, const Extent& left, const Extent& right,
                         bool outcome) {
  const bool is_known = !left.varies && !right.varies;
  if (!is_known && decided_.emplace(relation, left.identity, right.identity).second) {
    decisions_.push_back({relation, left, right, outcome});
  }
  return outcome;
}

}  // namespace cpu
