// rng_bit_generator, bit-exact with XLA:CPU, and rng, which is a function of nothing but a
// process-wide counter, as its specification asks for no particular numbers.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>

#include "hlo/counter_random.h"
#include "hlo/error.h"
#include "hlo/evaluation.h"
#include "hlo/size_arithmetic.h"

namespace hlo::evaluation {
namespace {

uint32_t Low(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t High(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
uint64_t Join(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

// Bits of elements, each in the low bits of a word, and how many blocks were used.
struct Bits {
  std::vector<uint64_t> words;
  uint64_t blocks;
};

// A 64-bit element is one block. Narrower ones come two to a block, as neighbours along the first
// even dimension, or the largest if none is even, whose odd last block wastes a word.
Bits ThreeFryBits(uint64_t key, uint64_t counter, const Shape& shape) {
  auto block = [&](uint64_t number) {
    return ThreeFry2x32({Low(key), High(key)}, {Low(counter + number), High(counter + number)});
  };
  int64_t count = shape.num_elements();
  Bits bits{std::vector<uint64_t>(count), 0};
  if (BitWidth(shape.element_type()) == 64) {
    for (int64_t i = 0; i < count; ++i) {
      auto words = block(i);
      bits.words[i] = Join(words[0], words[1]);
    }
    bits.blocks = count;
    return bits;
  }
  Dimensions dimensions = shape.dimensions();
  if (dimensions.empty()) dimensions = {1};
  auto split = std::ranges::find_if(dimensions, [](int64_t size) { return size % 2 == 0; });
  if (split == dimensions.end()) split = std::ranges::max_element(dimensions);
  size_t axis = split - dimensions.begin();
  Dimensions grid = dimensions;
  grid[axis] = (grid[axis] + 1) / 2;
  Dimensions strides = RowMajorStrides(dimensions);
  ForEachIndex(grid, [&](const Dimensions& index, int64_t number) {
    auto words = block(number);
    Dimensions at = index;
    for (int64_t k = 0; k < 2; ++k) {
      at[axis] = 2 * index[axis] + k;
      if (at[axis] < dimensions[axis]) bits.words[Dot(at, strides)] = words[k];
    }
    bits.blocks = number + 1;
  });
  return bits;
}

Bits PhiloxBits(uint64_t key, uint64_t low, uint64_t high, const Shape& shape) {
  int64_t count = shape.num_elements();
  Bits bits{std::vector<uint64_t>(count), 0};
  bool wide = BitWidth(shape.element_type()) == 64;
  int64_t per_block = wide ? 2 : 4;
  bits.blocks = CeilDivide(count, per_block);
  ForEachPhiloxBlock(key, low, high, bits.blocks, [&](uint64_t number, auto words) {
    for (int64_t k = 0; k < per_block; ++k) {
      int64_t at = static_cast<int64_t>(number) * per_block + k;
      if (at >= count) break;
      bits.words[at] = wide ? Join(words[2 * k], words[2 * k + 1]) : words[k];
    }
  });
  return bits;
}

// The low bytes of each word.
Literal Truncate(const Shape& shape, const std::vector<uint64_t>& words) {
  Literal result(shape);
  size_t width = ByteWidth(shape.element_type());
  for (size_t i = 0; i < words.size(); ++i) {
    std::memcpy(result.mutable_bytes() + i * width, &words[i], width);
  }
  return result;
}

Leaves BitGenerator(const Instruction& instruction, const Literal& operand) {
  const Shape& shape = instruction.shape().tuple_shapes()[1];
  if (BitWidth(shape.element_type()) % 8 != 0 || shape.element_type() == ElementType::kInvalid) {
    ThrowUnimplemented(instruction, "elements narrower than a byte");
  }
  std::vector<uint64_t> state(operand.byte_size() / 8);
  std::memcpy(state.data(), operand.bytes(), operand.byte_size());
  bool three_fry = instruction.as<RngBitGeneratorAttributes>().algorithm == RngAlgorithm::kThreeFry;
  // With a state of two words, Philox takes the key for the counter's upper half.
  uint64_t high = state.size() > 2 ? state[2] : state[0];
  Bits bits = three_fry ? ThreeFryBits(state[0], state[1], shape)
                        : PhiloxBits(state[0], state[1], high, shape);
  state[1] += bits.blocks;
  if (state.size() > 2 && state[1] < bits.blocks) ++state[2];
  return {Literal(operand.shape(), state.data()), Truncate(shape, bits.words)};
}

std::atomic<uint64_t> next_number{0};

// In [0, 1), with 53 random bits.
double NextUniform() {
  uint64_t number = next_number++;
  auto words = Philox4x32({0x5EED, 0}, {Low(number), High(number), 0, 0});
  return static_cast<double>(Join(words[0], words[1]) >> 11) * 0x1p-53;
}

double NextNormal() {
  double radius = std::sqrt(-2 * std::log(1 - NextUniform()));
  return radius * std::cos(2 * std::numbers::pi * NextUniform());
}

template <typename T>
T UniformBetween(T low, T high) {
  if constexpr (std::is_same_v<T, bool>) {
    return NextUniform() < 0.5 ? low : high;
  } else if constexpr (std::is_integral_v<T>) {
    auto range = static_cast<double>(high) - static_cast<double>(low);
    auto steps = static_cast<uint64_t>(NextUniform() * range);
    return static_cast<T>(static_cast<uint64_t>(low) + steps);
  } else {
    auto from = ConvertNumber<double>(low), to = ConvertNumber<double>(high);
    T value = ConvertNumber<T>(from + NextUniform() * (to - from));
    // Rounding may reach the excluded end.
    return ConvertNumber<double>(value) < to ? value : low;
  }
}

Literal Rng(const Instruction& instruction, const Leaves& operands) {
  if (ReadIntegers(operands[2]) != instruction.dimensions()) {
    throw Error(instruction.ToString() + ": the shape operand is not the declared shape");
  }
  bool normal = instruction.as<RngAttributes>().distribution == RngDistribution::kNormal;
  return DispatchNative(instruction.element_type(), [&]<typename T>() -> Literal {
    Literal result(instruction.shape());
    T a = operands[0].data<T>()[0], b = operands[1].data<T>()[0];
    for (T& element : result.mutable_data<T>()) {
      if constexpr (kIsReal<T>) {
        if (normal) {
          element =
              ConvertNumber<T>(ConvertNumber<double>(a) + NextNormal() * ConvertNumber<double>(b));
          continue;
        }
      }
      if constexpr (!kIsComplex<T>) element = UniformBetween(a, b);
    }
    return result;
  });
}

}  // namespace

Leaves EvaluateRandom(const Instruction& instruction, const Leaves& operands) {
  if (instruction.opcode() == Opcode::kRng) return {Rng(instruction, operands)};
  return BitGenerator(instruction, operands[0]);
}

}  // namespace hlo::evaluation
