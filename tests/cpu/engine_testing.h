// Runs a module on the engine and on the reference evaluator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cpu/executable.h"
#include "cpu/memory.h"
#include "hlo/builder.h"
#include "hlo/evaluator.h"

namespace cpu {

inline hlo::Shape F32(hlo::Dimensions dimensions) {
  return hlo::Shape(hlo::ElementType::kF32, std::move(dimensions));
}

// Of the last dimension.
inline hlo::Value Softmax(hlo::Builder& b, hlo::Value x) {
  const int64_t last = x->shape().rank() - 1;
  hlo::Dimensions axes;
  for (int64_t d = 0; d < last; ++d) axes.push_back(d);
  auto spread = [&](hlo::Value row) { return b.BroadcastInDim(row, x->dimensions(), axes); };
  hlo::Value shifted = b.Exp(b.Subtract(x, spread(b.Reduce(hlo::Opcode::kMaximum, x, {last}))));
  return b.Divide(shifted, spread(b.Reduce(hlo::Opcode::kAdd, shifted, {last})));
}

// An array between whose end and the block's lie bytes that nobody may write.
class GuardedBlock {
 public:
  explicit GuardedBlock(size_t bytes) : bytes_(bytes), block_(bytes + kGuard) {
    std::memset(block_.data(), 0xcd, bytes + kGuard);
  }
  void* data() const { return block_.data(); }
  bool IsIntact() const {
    const auto* guard = static_cast<const unsigned char*>(block_.data()) + bytes_;
    return std::all_of(guard, guard + kGuard, [](unsigned char byte) { return byte == 0xcd; });
  }

 private:
  static constexpr size_t kGuard = 256;  // two of the widest vectors
  size_t bytes_;
  Block block_;
};

inline std::vector<hlo::Literal> RunOnEngine(const Executable& executable,
                                             const std::vector<hlo::Literal>& arguments) {
  std::vector<GuardedBlock> blocks;
  std::vector<const void*> inputs;
  for (const hlo::Literal& argument : arguments) {
    blocks.emplace_back(argument.byte_size());
    if (argument.byte_size())
      std::memcpy(blocks.back().data(), argument.bytes(), argument.byte_size());
    inputs.push_back(blocks.back().data());
  }
  std::vector<void*> outputs;
  for (const hlo::Shape& shape : executable.result_shapes()) {
    blocks.emplace_back(shape.byte_size());
    outputs.push_back(blocks.back().data());
  }
  executable.Run(inputs, outputs, {});
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_TRUE(blocks[i].IsIntact())
        << "written beyond the end of " << (i < arguments.size() ? "an argument" : "a result");
  }
  std::vector<hlo::Literal> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.emplace_back(executable.result_shapes()[i], outputs[i]);
  }
  return results;
}

inline double Tolerance(hlo::ElementType type) {
  switch (type) {
    case hlo::ElementType::kF16:
      return 2e-3;
    case hlo::ElementType::kBF16:
      return 1.6e-2;
    case hlo::ElementType::kF32:
    case hlo::ElementType::kC64:
      return 2e-6;
    case hlo::ElementType::kF64:
    case hlo::ElementType::kC128:
      return 1e-13;
    default:
      return 0;
  }
}

// Compares element by element; `scale` widens the tolerance (long sums).
inline void ExpectClose(const hlo::Literal& expected, const hlo::Literal& actual,
                        double scale = 1) {
  ASSERT_EQ(expected.shape(), actual.shape());
  const hlo::ElementType type = expected.shape().element_type();
  const double tolerance = Tolerance(type) * scale;
  int mismatches = 0;
  hlo::DispatchNative(type, [&]<typename T>() {
    auto a = expected.data<T>();
    auto b = actual.data<T>();
    auto check = [&](size_t i, double x, double y) {
      if (std::isnan(x) && std::isnan(y)) return;
      if (x == y) return;
      if (std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))) return;
      if (++mismatches <= 5)
        ADD_FAILURE() << "element " << i << ": expected " << x << ", got " << y;
    };
    for (size_t i = 0; i < a.size() && mismatches <= 5; ++i) {
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        check(i, a[i].real(), b[i].real());
        check(i, a[i].imag(), b[i].imag());
      } else {
        check(i, static_cast<double>(a[i]), static_cast<double>(b[i]));
      }
    }
  });
}

// Numbers around zero that are safe for most operations.
inline hlo::Literal RandomLiteral(const hlo::Shape& shape, unsigned seed, double low = -3,
                                  double high = 3) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  hlo::Literal literal(shape);
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& value : literal.mutable_data<T>()) {
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        value = T(uniform(generator), uniform(generator));
      } else if constexpr (std::is_same_v<T, bool>) {
        value = uniform(generator) > (low + high) / 2;
      } else if constexpr (std::is_integral_v<T>) {
        double number = std::round(uniform(generator) * 5);
        value = static_cast<T>(std::is_unsigned_v<T> ? std::abs(number) : number);
      } else {
        value = static_cast<T>(static_cast<float>(uniform(generator)));
      }
    }
  });
  return literal;
}

// For each parameter of the entry, of another seed each.
inline std::vector<hlo::Literal> RandomArguments(const hlo::Module& module, double low = -3,
                                                 double high = 3) {
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(
        RandomLiteral(parameter->shape(), static_cast<unsigned>(arguments.size() + 1), low, high));
  }
  return arguments;
}

// Compiles, runs and compares all results with those that are expected.
inline void CheckCompiled(const hlo::Module& module, const CompileOptions& options,
                          const std::vector<hlo::Literal>& arguments,
                          const std::vector<hlo::Literal>& expected, double scale) {
  SCOPED_TRACE(options.all_sizes_vary ? "sizes in slots" : "constant sizes");
  std::unique_ptr<Executable> executable = Compile(module, options);
  std::vector<hlo::Literal> actual = RunOnEngine(*executable, arguments);
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    ExpectClose(expected[i], actual[i], scale);
  }
  if (::testing::Test::HasFailure()) ADD_FAILURE() << module.ToString() << executable->ToString();
}

// Compares with the evaluator, with kernels for the module's sizes and with such for any sizes.
inline void CheckModule(const hlo::Module& module, const std::vector<hlo::Literal>& arguments,
                        double scale = 1) {
  const std::vector<hlo::Literal> expected = hlo::Evaluate(module, arguments);
  for (const bool all_sizes_vary : {false, true}) {
    CompileOptions options;
    options.all_sizes_vary = all_sizes_vary;
    CheckCompiled(module, options, arguments, expected, scale);
  }
}

// A module whose entry takes parameters of `shapes` and returns what `body` makes of them.
template <typename Body>
void CheckProgram(const std::vector<hlo::Shape>& shapes, Body body, double scale = 1,
                  double low = -3, double high = 3) {
  hlo::Module module;
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder builder(entry);
  std::vector<hlo::Value> parameters;
  for (const hlo::Shape& shape : shapes) parameters.push_back(builder.Parameter(shape));
  entry->set_results(body(builder, parameters));
  CheckModule(module, RandomArguments(module, low, high), scale);
}

}  // namespace cpu
