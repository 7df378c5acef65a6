#include "random_program.h"

#include <algorithm>
#include <limits>
#include <random>

#include "byte_source.h"
#include "hlo/number_conversion.h"
#include "random_generator.h"

namespace fuzz {
namespace {

constexpr int64_t kMostSteps = 40;

// Results that may take a parameter's buffer.
void AddAliases(ByteSource& bytes, hlo::Module& module) {
  const Computation& entry = *module.entry();
  std::vector<bool> taken(entry.parameters().size());
  for (size_t output = 0; output < entry.results().size(); ++output) {
    for (size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] || entry.parameter(p)->shape() != entry.result(output)->shape()) continue;
      if (!bytes.Chance(128)) continue;
      taken[p] = true;
      module.input_output_aliases.push_back(
          {static_cast<int64_t>(output), static_cast<int64_t>(p), false});
      break;
    }
  }
}

template <typename T>
T RandomNumber(std::mt19937& random) {
  const auto number = static_cast<double>(static_cast<int>(random() % 33) - 16) / 4;
  const unsigned kind = random() % 64;
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (kind == 0) return std::numeric_limits<T>::max();
    if (kind == 1) return std::numeric_limits<T>::min();
    if (kind == 2) return static_cast<T>(random());
    return static_cast<T>(static_cast<int>(number * 2));
  } else if constexpr (hlo::kIsComplex<T>) {
    using Part = typename T::value_type;
    return T(RandomNumber<Part>(random) / 4, static_cast<Part>(number));
  } else {
    const double fraction = static_cast<double>(random() % 1000) / 4096;
    if (kind == 0) return static_cast<T>(std::numeric_limits<float>::infinity());
    if (kind == 1) return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    if (kind == 2) return static_cast<T>(-0.0f);
    if (kind == 3) return static_cast<T>(static_cast<float>(number * 1000));
    return static_cast<T>(static_cast<float>(number + fraction));
  }
}

}  // namespace

std::vector<hlo::Literal> MakeArguments(const hlo::Module& module, unsigned seed) {
  std::mt19937 random(seed);
  // Extremes spread through a program until it says nothing else: one in four has any.
  const bool with_extremes = seed % 4 == 0;
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    hlo::Literal literal(parameter->shape());
    hlo::DispatchNative(parameter->element_type(), [&]<typename T>() {
      for (T& element : literal.mutable_data<T>()) {
        element = RandomNumber<T>(random);
        if constexpr (hlo::kIsComplex<T> || hlo::kIsReal<T>) {
          // Nor is it any standard's what infinite complex numbers give.
          const bool may_be_extreme = with_extremes && !hlo::kIsComplex<T>;
          while (!may_be_extreme &&
                 !(std::abs(hlo::ConvertNumber<std::complex<double>>(element)) < 1000)) {
            element = RandomNumber<T>(random);
          }
        }
      }
    });
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

RandomProgram MakeRandomProgram(std::span<const uint8_t> data) {
  ByteSource bytes(data);
  const unsigned seed = bytes.Byte();
  RandomProgram program;
  program.module = std::make_unique<hlo::Module>("random");
  Computation* entry = program.module->AddComputation("main");
  program.module->set_entry(entry);
  Builder builder(entry);
  Values parameters;
  for (int64_t i = 0, count = 1 + bytes.Below(3); i < count; ++i) {
    const ElementType type = kTypes[bytes.Below(std::size(kTypes))];
    Dimensions dimensions(bytes.Below(5), 1);
    for (int64_t& size : dimensions) {
      size = kSizes[bytes.Below(std::size(kSizes))];
      if (Count(dimensions) > kMostElements) size = 1;
    }
    // Another argument of the same shape is what binary operations want.
    const Shape shape =
        i > 0 && bytes.Chance(128) ? parameters[0]->shape() : Shape(type, dimensions);
    parameters.push_back(builder.Parameter(shape));
  }
  Generator generator(bytes, builder, parameters, 0);
  generator.Grow(kMostSteps);
  Values results;
  const Values& pool = generator.pool();
  for (size_t i = 0; i < std::min<size_t>(pool.size(), 4); ++i) {
    results.push_back(pool[pool.size() - 1 - i]);
  }
  if (bytes.Chance(60)) results.push_back(generator.Any());
  entry->set_results(results);
  AddAliases(bytes, *program.module);
  program.module->RemoveUnreachableComputations();
  program.module->SortComputations();
  program.arguments = MakeArguments(*program.module, seed);
  return program;
}

std::vector<uint8_t> BytesOfSeed(unsigned seed, size_t size) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

}  // namespace fuzz
