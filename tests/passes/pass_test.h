// What every pass must do: keep the module well formed and its results as they were.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "hlo/builder.h"
#include "hlo/evaluator.h"
#include "hlo/verifier.h"

namespace passes {

using hlo::Builder;
using hlo::ElementType;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

using Body = std::function<std::vector<Value>(Builder&, const std::vector<Value>&)>;

inline Shape F32(hlo::Dimensions dimensions) {
  return Shape(ElementType::kF32, std::move(dimensions));
}
inline Shape S32(hlo::Dimensions dimensions) {
  return Shape(ElementType::kS32, std::move(dimensions));
}

// A module whose entry `body` builds.
inline std::unique_ptr<hlo::Module> MakeModule(const std::vector<Shape>& parameters,
                                               const Body& body) {
  auto module = std::make_unique<hlo::Module>("test");
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder builder(entry);
  std::vector<Value> values;
  for (const Shape& shape : parameters) values.push_back(builder.Parameter(shape));
  entry->set_results(body(builder, values));
  module->SortComputations();
  hlo::VerifyModule(*module);
  return module;
}

// Small numbers, among them both zeros, NaN and infinity for floats.
inline Literal TestLiteral(const Shape& shape, unsigned seed) {
  Literal literal(shape);
  std::mt19937 random(seed);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& element : literal.mutable_data<T>()) {
      element = static_cast<T>(static_cast<int>(random() % 9) - 4);
      if constexpr (std::is_same_v<T, bool>) element = random() % 2 == 0;
      if constexpr (std::is_floating_point_v<T>) {
        switch (random() % 12) {
          case 0:
            element = -T{0};
            break;
          case 1:
            element = std::numeric_limits<T>::infinity();
            break;
          case 2:
            element = std::numeric_limits<T>::quiet_NaN();
            break;
          default:
            element += static_cast<T>(random() % 8) / 8;
        }
      }
    }
  });
  return literal;
}

// Equal bytes, except that any NaN equals any other; with a tolerance, close numbers are equal too.
inline void ExpectSame(const Literal& expected, const Literal& actual, double tolerance) {
  ASSERT_EQ(expected.shape(), actual.shape());
  if (expected == actual) return;
  ASSERT_TRUE(hlo::IsFloat(expected.shape().element_type()))
      << expected.ToString() << " became " << actual.ToString();
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    double x = expected.AsDouble(i), y = actual.AsDouble(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (tolerance > 0) {
      ASSERT_NEAR(x, y, tolerance * std::max(1.0, std::abs(x))) << "element " << i;
    } else {
      ASSERT_TRUE(x == y && std::signbit(x) == std::signbit(y))
          << "element " << i << ": " << x << " became " << y;
    }
  }
}

// Applies `pass`, and checks that the module stays well formed and computes the same. Returns
// whether the pass says that it changed something.
inline bool ApplyAndCompare(hlo::Module& module, const std::function<bool(hlo::Module&)>& pass,
                            const std::vector<Literal>& arguments, double tolerance = 0) {
  std::vector<Literal> expected = hlo::Evaluate(module, arguments);
  size_t hash = module.Hash();
  bool changed = pass(module);
  hlo::VerifyModule(module);
  EXPECT_TRUE(changed || hash == module.Hash()) << "a silent change:\n" << module.ToString();
  std::vector<Literal> actual = hlo::Evaluate(module, arguments);
  EXPECT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ExpectSame(expected[i], actual[i], tolerance);
    if (testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "result " << i << " of\n" << module.ToString();
    }
  }
  return changed;
}

// The same with a TestLiteral for each parameter.
inline bool ApplyAndCompare(hlo::Module& module, const std::function<bool(hlo::Module&)>& pass) {
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(TestLiteral(parameter->shape(), static_cast<unsigned>(arguments.size())));
  }
  return ApplyAndCompare(module, pass, arguments);
}

inline int64_t CountOpcode(const hlo::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      count += instruction->opcode() == opcode;
    }
  }
  return count;
}

inline int64_t CountInstructions(const hlo::Module& module) {
  int64_t count = 0;
  for (const auto& computation : module.computations()) {
    count += static_cast<int64_t>(computation->instructions().size());
  }
  return count;
}

}  // namespace passes
