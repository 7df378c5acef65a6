#include "passes/join_sums_of_dots.h"

#include "pass_test.h"

namespace passes {
namespace {

hlo::DotAttributes ContractRows() {
  hlo::DotAttributes attributes;
  attributes.lhs_contracting_dimensions = {0};
  attributes.rhs_contracting_dimensions = {0};
  return attributes;
}

// Sums of these are exact in any order.
Literal SmallIntegers(const Shape& shape, unsigned seed) {
  Literal literal(shape);
  std::mt19937 random(seed);
  for (float& x : literal.mutable_data<float>()) x = static_cast<float>(random() % 7) - 3;
  return literal;
}

int Dots(const hlo::Module& module) {
  int count = 0;
  for (const auto& i : module.entry()->instructions()) count += i->opcode() == Opcode::kDotGeneral;
  return count;
}

// Builds, rewrites, checks the results, and returns how many products are left.
int DotsLeft(const std::vector<Shape>& parameters, const Body& body) {
  auto module = MakeModule(parameters, body);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    arguments.push_back(SmallIntegers(parameters[i], static_cast<unsigned>(i)));
  }
  const std::vector<Literal> expected = hlo::Evaluate(*module, arguments);
  JoinSumsOfDots(*module);
  hlo::VerifyModule(*module);
  const std::vector<Literal> actual = hlo::Evaluate(*module, arguments);
  EXPECT_EQ(actual, expected);
  return Dots(*module);
}

TEST(JoinSumsOfDots, GradientsOfASharedWeight) {
  const Shape x = F32({3, 40}), y = F32({3, 50});
  EXPECT_EQ(DotsLeft({x, y, x, y, F32({5, 40}), F32({5, 50}), F32({40, 50})},
                     [](Builder& b, const std::vector<Value>& p) {
                       auto dot = [&](int i) {
                         return b.DotGeneral(p[i], p[i + 1], ContractRows());
                       };
                       Value sum = b.Add(b.Add(dot(0), p[6]), b.Add(dot(2), dot(4)));
                       return std::vector<Value>{b.Negate(sum)};
                     }),
            1);
}

TEST(JoinSumsOfDots, LeavesLongContractionsAlone) {
  const Shape x = F32({64, 4}), y = F32({64, 5});
  EXPECT_EQ(DotsLeft({x, y, x, y},
                     [](Builder& b, const std::vector<Value>& p) {
                       return std::vector<Value>{b.Add(b.DotGeneral(p[0], p[1], ContractRows()),
                                                       b.DotGeneral(p[2], p[3], ContractRows()))};
                     }),
            2);
}

TEST(JoinSumsOfDots, LeavesProductsWithOtherUsesAlone) {
  const Shape x = F32({3, 40}), y = F32({3, 50});
  EXPECT_EQ(DotsLeft({x, y, x, y},
                     [](Builder& b, const std::vector<Value>& p) {
                       Value first = b.DotGeneral(p[0], p[1], ContractRows());
                       Value second = b.DotGeneral(p[2], p[3], ContractRows());
                       return std::vector<Value>{b.Add(first, second), first};
                     }),
            2);
}

}  // namespace
}  // namespace passes
