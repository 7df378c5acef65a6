// Every collective, type and reduction between processes of one host and of several, against the
// reference evaluator. This program forks: each child is a rank.
#include <gtest/gtest.h>

#include <algorithm>

#include "collective_testing.h"
#include "cpu/collective/reduction.h"
#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using Groups = std::vector<std::vector<int64_t>>;

std::vector<int64_t> GroupOf(const Collective& collective, int64_t rank, int64_t size) {
  for (const auto& group : collective.groups) {
    if (std::ranges::find(group, rank) != group.end()) return group;
  }
  std::vector<int64_t> all(size);
  for (int64_t i = 0; i < size; ++i) all[i] = i;
  return all;
}

// What a rank gets from the values of all, as a program of the evaluator.
class Expectation {
 public:
  Expectation(const Collective& collective, int64_t rank, int64_t size)
      : collective_(collective), rank_(rank), module_("expected") {
    hlo::Computation* entry = module_.AddComputation("main");
    module_.set_entry(entry);
    hlo::Builder b(entry);
    for (int64_t r = 0; r < size; ++r) values_.push_back(b.Parameter(collective.operands[0]));
    members_ = GroupOf(collective, rank, size);
    entry->set_results({Build(b)});
  }

  Literal Evaluate(const std::vector<Literal>& inputs) const {
    return hlo::Evaluate(module_, inputs)[0];
  }

 private:
  hlo::Value Build(hlo::Builder& b) {
    const int64_t me = std::ranges::find(members_, rank_) - members_.begin();
    const auto count = static_cast<int64_t>(members_.size());
    const Shape& shape = collective_.operands[0];
    switch (collective_.kind) {
      case CollectiveKind::kAllReduce:
        return Reduced(b);
      case CollectiveKind::kReduceScatter: {
        const int64_t part = shape.dimensions()[collective_.dimension] / count;
        return b.SliceInDim(Reduced(b), collective_.dimension, me * part, (me + 1) * part);
      }
      case CollectiveKind::kAllGather: {
        std::vector<hlo::Value> parts;
        for (int64_t member : members_) parts.push_back(values_[member]);
        return b.Concatenate(parts, collective_.dimension);
      }
      case CollectiveKind::kAllToAll: {
        const int64_t split = collective_.split_dimension;
        const int64_t part = shape.dimensions()[split] / count;
        std::vector<hlo::Value> parts;
        for (int64_t member : members_) {
          parts.push_back(b.SliceInDim(values_[member], split, me * part, (me + 1) * part));
        }
        return b.Concatenate(parts, collective_.concat_dimension);
      }
      case CollectiveKind::kBroadcast:
        return values_[members_[0]];
      case CollectiveKind::kPermute:
        for (const auto& pair : collective_.pairs) {
          if (pair[1] == rank_) return values_[pair[0]];
        }
        return b.Constant(Literal(shape));
      default:
        throw hlo::Error("no such collective");
    }
  }

  hlo::Value Reduced(hlo::Builder& b) {
    const ElementType type = collective_.operands[0].element_type();
    const bool is_half = type == ElementType::kF16 || type == ElementType::kBF16;
    hlo::Value sum = nullptr;
    for (int64_t member : members_) {
      hlo::Value next = values_[member];
      if (is_half) next = b.Convert(next, ElementType::kF32);
      sum = sum == nullptr ? next : b.Create(Combiner(type), {sum, next});
    }
    return b.Convert(sum, type);
  }

  Opcode Combiner(ElementType type) const {
    const bool is_pred = type == ElementType::kPred;
    switch (collective_.reduction) {
      case Reduction::kSum:
        return is_pred ? Opcode::kOr : Opcode::kAdd;
      case Reduction::kProduct:
        return is_pred ? Opcode::kAnd : Opcode::kMultiply;
      case Reduction::kMin:
        return is_pred ? Opcode::kAnd : Opcode::kMinimum;
      case Reduction::kMax:
        return is_pred ? Opcode::kOr : Opcode::kMaximum;
      case Reduction::kAnd:
        return Opcode::kAnd;
      case Reduction::kOr:
        return Opcode::kOr;
      default:
        return Opcode::kXor;
    }
  }

  Collective collective_;
  int64_t rank_;
  hlo::Module module_;
  std::vector<hlo::Value> values_;
  std::vector<int64_t> members_;
};

// Products of complex numbers may round differently.
bool SameValues(const Literal& expected, const Literal& actual, bool is_exact) {
  if (expected.shape() != actual.shape()) return false;
  if (is_exact) return std::memcmp(expected.bytes(), actual.bytes(), expected.byte_size()) == 0;
  bool same = true;
  hlo::DispatchNative(expected.shape().element_type(), [&]<typename T>() {
    auto a = expected.data<T>();
    auto b = actual.data<T>();
    for (size_t i = 0; i < a.size(); ++i) {
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        same &= std::abs(a[i] - b[i]) <= 1e-5 * (1 + std::abs(a[i]));
      }
    }
  });
  return same;
}

// Every operand's result is that of a collective of its own.
void Check(Communicator& world, const Collective& collective, unsigned seed) {
  const size_t count = collective.operands.size();
  std::vector<std::vector<Literal>> inputs(count);
  std::vector<Literal> expected, actual;
  std::vector<const void*> operands;
  std::vector<void*> results;
  for (size_t k = 0; k < count; ++k) {
    Collective of_one = collective;
    of_one.operands = {collective.operands[k]};
    for (int64_t rank = 0; rank < world.size(); ++rank) {
      const unsigned own = seed + 100 * static_cast<unsigned>(k) + static_cast<unsigned>(rank);
      inputs[k].push_back(RandomLiteral(of_one.operands[0], own));
    }
    expected.push_back(Expectation(of_one, world.rank(), world.size()).Evaluate(inputs[k]));
    actual.emplace_back(expected[k].shape());
    operands.push_back(inputs[k][world.rank()].bytes());
    auto* const bytes = const_cast<std::byte*>(actual[k].bytes());
    std::fill_n(bytes, actual[k].byte_size(), std::byte{0xcd});  // there may be none
    results.push_back(bytes);
  }
  world.Run(collective, operands.data(), results.data());
  const ElementType type = collective.operands[0].element_type();
  const bool is_complex = type == ElementType::kC64 || type == ElementType::kC128;
  const bool is_exact = !(is_complex && collective.reduction == Reduction::kProduct);
  for (size_t k = 0; k < count; ++k) {
    Require(SameValues(expected[k], actual[k], is_exact),
            "wrong result " + std::to_string(k) + " of " + collective.ToString());
  }
}

constexpr ElementType kTypes[] = {ElementType::kPred, ElementType::kS8,   ElementType::kS16,
                                  ElementType::kS32,  ElementType::kS64,  ElementType::kU8,
                                  ElementType::kU16,  ElementType::kU32,  ElementType::kU64,
                                  ElementType::kF16,  ElementType::kBF16, ElementType::kF32,
                                  ElementType::kF64,  ElementType::kC64,  ElementType::kC128};

std::vector<Collective> EveryKind(const Shape& shape, int64_t size, const Groups& groups) {
  std::vector<Collective> all;
  auto add = [&](CollectiveKind kind) -> Collective& {
    Collective& collective = all.emplace_back();
    collective.kind = kind;
    collective.operands = {shape};
    if (kind != CollectiveKind::kPermute) collective.groups = groups;
    return collective;
  };
  for (int number = 0; number <= static_cast<int>(Reduction::kXor); ++number) {
    const auto reduction = static_cast<Reduction>(number);
    if (!CanReduce(shape.element_type(), reduction)) continue;
    add(CollectiveKind::kAllReduce).reduction = reduction;
    Collective& scatter = add(CollectiveKind::kReduceScatter);
    scatter.reduction = reduction;
    scatter.dimension = number % 2;
  }
  add(CollectiveKind::kAllGather).dimension = 0;
  add(CollectiveKind::kAllGather).dimension = 1;
  Collective& to_all = add(CollectiveKind::kAllToAll);
  to_all.split_dimension = 1;
  to_all.concat_dimension = 0;
  add(CollectiveKind::kBroadcast);
  Collective& ring = add(CollectiveKind::kPermute);
  for (int64_t rank = 0; rank < size; ++rank) ring.pairs.push_back({rank, (rank + 1) % size});
  add(CollectiveKind::kPermute).pairs = {{size - 1, 0}, {0, 0}};
  all.back().pairs.pop_back();
  return all;
}

class CollectiveWorldTest : public testing::TestWithParam<Layout> {};

// Layouts with room for several groups.
class CollectiveGroupsTest : public CollectiveWorldTest {};

TEST_P(CollectiveWorldTest, EveryKindAndType) {
  InWorld(GetParam(), [](Communicator& world) {
    unsigned seed = 1;
    for (ElementType type : kTypes) {
      for (const Collective& collective : EveryKind(Shape(type, {12, 24}), world.size(), {})) {
        Check(world, collective, seed++);
      }
    }
  });
}

// Of several types where nothing is reduced.
TEST_P(CollectiveWorldTest, SeveralOperands) {
  InWorld(GetParam(), [](Communicator& world) {
    unsigned seed = 1;
    const Shape shape(ElementType::kF32, {12, 24});
    for (Collective collective : EveryKind(shape, world.size(), {})) {
      collective.operands.push_back(Shape(ElementType::kF32, {24, 12}));
      const bool reduces = collective.kind == CollectiveKind::kAllReduce ||
                           collective.kind == CollectiveKind::kReduceScatter;
      if (!reduces) {
        collective.operands.push_back(Shape(ElementType::kS8, {12, 12}));
        collective.operands.push_back(Shape(ElementType::kF64, {12, 0}));
      }
      Check(world, collective, seed++);
    }
  });
}

// Larger than every buffer on the way; rows that are short and long.
TEST_P(CollectiveWorldTest, LargeArrays) {
  InWorld(GetParam(), [](Communicator& world) {
    unsigned seed = 1;
    // (The evaluator's time goes by elements, so they are wide.)
    for (const Shape& shape :
         {Shape(ElementType::kC128, {12, 6000}), Shape(ElementType::kF64, {12000, 12}),
          Shape(ElementType::kC128, {12, 24000})}) {
      for (const Collective& collective : EveryKind(shape, world.size(), {})) {
        if (collective.reduction != Reduction::kSum) continue;
        const bool is_largest = shape.byte_size() > 4 << 20;
        if (is_largest && collective.kind != CollectiveKind::kAllReduce) continue;
        Check(world, collective, seed++);
      }
    }
  });
}

TEST_P(CollectiveGroupsTest, Groups) {
  for (const Groups& groups :
       {Groups{{0, 1}, {2, 3}}, Groups{{3, 0}, {2, 1}}, Groups{{0, 2, 1}, {3}}}) {
    InWorld(GetParam(), [&](Communicator& world) {
      unsigned seed = 1;
      for (const Shape& shape :
           {Shape(ElementType::kF32, {6, 6}), Shape(ElementType::kC128, {6, 6000})}) {
        for (const Collective& c : EveryKind(shape, world.size(), groups)) Check(world, c, seed++);
      }
    });
  }
}

// Many at once, of several operands and types, in place, awaited in another order.
TEST_P(CollectiveWorldTest, ManyStarted) {
  InWorld(GetParam(), [](Communicator& world) {
    constexpr int kCount = 20;
    Collective collective;
    collective.kind = CollectiveKind::kAllReduce;
    collective.operands = {Shape(ElementType::kF32, {100}), Shape(ElementType::kS32, {70000}),
                           Shape(ElementType::kF32, {3})};
    std::vector<std::vector<float>> small(kCount), tiny(kCount);
    std::vector<std::vector<int32_t>> large(kCount);
    std::vector<uint64_t> tickets;
    for (int i = 0; i < kCount; ++i) {
      small[i].assign(100, static_cast<float>(world.rank() + i));
      large[i].assign(70000, static_cast<int32_t>(10 * world.rank() + i));
      tiny[i].assign(3, 1);
      void* arrays[] = {small[i].data(), large[i].data(), tiny[i].data()};
      tickets.push_back(world.Start(collective, arrays, arrays));
    }
    for (size_t i = tickets.size(); i-- > 0;) world.Wait(tickets[i]);
    const auto n = static_cast<int32_t>(world.size());
    for (int i = 0; i < kCount; ++i) {
      const int32_t ranks = n * (n - 1) / 2;
      Require(small[i] == std::vector<float>(100, static_cast<float>(ranks + n * i)), "small");
      Require(large[i] == std::vector<int32_t>(70000, 10 * ranks + n * i), "large");
      Require(tiny[i] == std::vector<float>(3, static_cast<float>(n)), "tiny");
    }
    Collective barrier;
    for (int i = 0; i < 100; ++i) world.Run(barrier, nullptr, nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, CollectiveGroupsTest,
                         testing::Values("aaaa", "abcd", "aabb", "abab"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Layouts, CollectiveWorldTest,
                         testing::Values("a", "aa", "ab", "aaaa", "abcd", "aabb", "abab", "aab"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cpu
