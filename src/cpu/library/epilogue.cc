#include "cpu/library/epilogue.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "cpu/library/strided_copy.h"
#include "cpu/library/vector_clones.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsNarrowFloat(hlo::ElementType type) {
  return type == hlo::ElementType::kF32 || type == hlo::ElementType::kBF16 ||
         type == hlo::ElementType::kF16;
}

// exp with a relative error near one unit in the last place over the range that tanh and logistic
// need.
inline float Exp(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  float n = std::nearbyintf(x * 1.44269504f);
  float r = x - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

CPU_VECTOR_CLONES void Logistic(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float value = 1.0f / (1.0f + Exp(-x[i]));
    x[i] = x[i] != x[i] ? x[i] : value;
  }
}

CPU_VECTOR_CLONES void Tanh(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float a = std::fabs(x[i]);
    float e = Exp(-2.0f * a);
    float large = (1.0f - e) / (1.0f + e);
    float s = a * a;  // a series where the quotient above would cancel
    float small =
        a * (1.0f + s * (-0.333333333f +
                         s * (0.133333333f +
                              s * (-0.0539682540f + s * (0.0218694885f + s * -0.00886323553f)))));
    float value = std::copysign(a < 0.25f ? small : large, x[i]);
    x[i] = x[i] != x[i] ? x[i] : value;
  }
}

// One function per operation and kind, so that each loop vectorises. x op y, or y op x when
// reversed.
#define CPU_EPILOGUE_BINARY(name, expression)                                 \
  CPU_VECTOR_CLONES void name##Row(float* x, const float* y, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) {                                     \
      float a = x[i], b = y[i];                                               \
      x[i] = expression;                                                      \
    }                                                                         \
  }                                                                           \
  CPU_VECTOR_CLONES void name##Scalar(float* x, float b, int64_t count) {     \
    for (int64_t i = 0; i < count; ++i) {                                     \
      float a = x[i];                                                         \
      x[i] = expression;                                                      \
    }                                                                         \
  }
CPU_EPILOGUE_BINARY(Add, a + b)
CPU_EPILOGUE_BINARY(Subtract, a - b)
CPU_EPILOGUE_BINARY(SubtractFrom, b - a)
CPU_EPILOGUE_BINARY(Multiply, a* b)
CPU_EPILOGUE_BINARY(Divide, a / b)
CPU_EPILOGUE_BINARY(DivideInto, b / a)
// A NaN on either side stays.
CPU_EPILOGUE_BINARY(Maximum, a != a ? a : (a > b ? a : b))
CPU_EPILOGUE_BINARY(Minimum, a != a ? a : (a < b ? a : b))
#undef CPU_EPILOGUE_BINARY

using RowFunction = void (*)(float*, const float*, int64_t);
using ScalarFunction = void (*)(float*, float, int64_t);

std::pair<RowFunction, ScalarFunction> BinaryFunctions(Opcode opcode, bool reversed) {
  switch (opcode) {
    case Opcode::kAdd:
      return {AddRow, AddScalar};
    case Opcode::kSubtract:
      if (reversed) return {SubtractFromRow, SubtractFromScalar};
      return {SubtractRow, SubtractScalar};
    case Opcode::kMultiply:
      return {MultiplyRow, MultiplyScalar};
    case Opcode::kDivide:
      if (reversed) return {DivideIntoRow, DivideIntoScalar};
      return {DivideRow, DivideScalar};
    case Opcode::kMaximum:
      return {MaximumRow, MaximumScalar};
    case Opcode::kMinimum:
      return {MinimumRow, MinimumScalar};
    default:
      return {nullptr, nullptr};
  }
}

}  // namespace

// Walks from the contraction to the result, one user at a time.
class EpilogueReader {
 public:
  EpilogueReader(const Instruction& contraction, const Instruction& root,
                 std::function<bool(const Instruction*)> inside)
      : root_(root), inside_(std::move(inside)) {
    epilogue_.contraction_ = &contraction;
  }

  std::optional<Epilogue> Read() {
    const Instruction* value = epilogue_.contraction_;
    while (value != &root_) {
      const Instruction* user = OnlyUser(value);
      if (user == nullptr || !ReadStep(*value, *user)) return std::nullopt;
      value = user;
    }
    return epilogue_;
  }

 private:
  const Instruction* OnlyUser(const Instruction* value) const {
    if (value->users().size() != 1 || !inside_(value->users()[0])) return nullptr;
    for (const Instruction* result : value->parent()->results()) {
      if (result == value) return nullptr;
    }
    return value->users()[0];
  }

  bool ReadStep(const Instruction& value, const Instruction& user) {
    if (!IsNarrowFloat(user.element_type()) || user.dimensions() != value.dimensions())
      return false;
    Epilogue::Step step{.opcode = user.opcode()};
    switch (user.opcode()) {
      case Opcode::kConvert:
        return true;  // the values are f32 until they are stored
      case Opcode::kNegate:
        step.opcode = Opcode::kMultiply;
        step.kind = Epilogue::Operand::kScalar;
        step.scalar = -1;
        break;
      case Opcode::kTanh:
      case Opcode::kLogistic:
        break;
      default: {
        if (BinaryFunctions(user.opcode(), false).first == nullptr) return false;
        if (user.operand(0) == user.operand(1)) return false;
        step.reversed = user.operand(1) == &value;
        const Instruction* other = user.operand(step.reversed ? 0 : 1);
        if (!ReadOperand(*other, user.dimensions(), step)) return false;
      }
    }
    epilogue_.steps_.push_back(step);
    return true;
  }

  bool ReadOperand(const Instruction& other, const hlo::Dimensions& dimensions,
                   Epilogue::Step& step) {
    if (inside_(&other)) {
      if (other.IsConstant() && other.literal().IsSplat() && IsNarrowFloat(other.element_type())) {
        step.kind = Epilogue::Operand::kScalar;
        step.scalar = static_cast<float>(other.literal().AsDouble());
        return true;
      }
      if (other.opcode() == Opcode::kBroadcastInDim) return ReadBroadcast(other, step);
      if (other.opcode() != Opcode::kParameter) return false;
    }
    step.kind = Epilogue::Operand::kFull;
    return ReadOutside(other, step);
  }

  // The parameter (in a body) or the value from outside.
  bool ReadOutside(const Instruction& other, Epilogue::Step& step) {
    if (!IsNarrowFloat(other.element_type())) return false;
    if (other.opcode() == Opcode::kParameter) {
      step.operand = static_cast<int>(other.parameter_number());
    } else if (inside_(&other)) {
      return false;
    }
    step.type = other.element_type();
    return true;
  }

  bool ReadBroadcast(const Instruction& broadcast, Epilogue::Step& step) {
    const Instruction* source = broadcast.operand(0);
    const auto& map = broadcast.as<hlo::DimensionsAttributes>().dimensions;
    const hlo::Dimensions& output = broadcast.dimensions();
    int64_t channel = -1;
    for (size_t i = 0; i < map.size(); ++i) {
      if (source->dimensions()[i] == 1) continue;
      if (channel >= 0 || source->dimensions()[i] != output[map[i]]) return false;
      channel = map[i];
    }
    while (inside_(source) && source->opcode() == Opcode::kReshape) source = source->operand(0);
    if (channel < 0) {
      step.kind = Epilogue::Operand::kScalar;
      if (source->IsConstant() && inside_(source)) {
        step.scalar = static_cast<float>(source->literal().AsDouble());
        return IsNarrowFloat(source->element_type());
      }
      step.scalar = std::nanf("");
      return ReadOutside(*source, step);
    }
    step.kind = Epilogue::Operand::kChannel;
    step.channels = output[channel];
    for (size_t i = channel + 1; i < output.size(); ++i) step.channel_inner *= output[i];
    return ReadOutside(*source, step);
  }

  const Instruction& root_;
  std::function<bool(const Instruction*)> inside_;
  Epilogue epilogue_;
};

std::optional<Epilogue> Epilogue::FromBody(const hlo::Computation& body) {
  const Instruction* contraction = nullptr;
  for (const auto& instruction : body.instructions()) {
    if (instruction->opcode() != Opcode::kDotGeneral &&
        instruction->opcode() != Opcode::kConvolution) {
      continue;
    }
    if (contraction != nullptr) return std::nullopt;
    contraction = instruction.get();
  }
  if (contraction == nullptr || body.results().size() != 1) return std::nullopt;
  const auto is_from_outside = [&](const Instruction* operand) {
    if (operand->opcode() == Opcode::kParameter) return true;
    return operand->opcode() == Opcode::kConvert && operand == contraction->operand(1) &&
           operand->operand(0)->opcode() == Opcode::kParameter;
  };
  if (!std::ranges::all_of(contraction->operands(), is_from_outside)) return std::nullopt;
  return EpilogueReader(*contraction, *body.result(), [](const Instruction*) { return true; })
      .Read();
}

std::optional<Epilogue> Epilogue::FromInstructions(const Instruction& contraction,
                                                   std::span<const Instruction* const> epilogue) {
  if (epilogue.empty()) return std::nullopt;
  std::unordered_set<const Instruction*> inside(epilogue.begin(), epilogue.end());
  return EpilogueReader(contraction, *epilogue.back(),
                        [&](const Instruction* x) { return inside.contains(x); })
      .Read();
}

bool CanFuseEpilogue(const Instruction& contraction, std::span<const Instruction* const> epilogue) {
  return (contraction.opcode() == Opcode::kDotGeneral ||
          contraction.opcode() == Opcode::kConvolution) &&
         IsNarrowFloat(contraction.element_type()) &&
         IsNarrowFloat(contraction.operand(0)->element_type()) &&
         Epilogue::FromInstructions(contraction, epilogue).has_value();
}

namespace {

// The run of a full-shape or channel operand as f32: in place, or converted into `buffer`.
const float* AsFloats(const void* data, hlo::ElementType type, int64_t offset, int64_t count,
                      float* buffer) {
  if (type == hlo::ElementType::kF32) return static_cast<const float*>(data) + offset;
  auto* begin = static_cast<const uint16_t*>(data) + offset;
  ConvertRow(begin, type, buffer, hlo::ElementType::kF32, count);
  return buffer;
}

}  // namespace

void Epilogue::Apply(float* values, int64_t position, int64_t count,
                     const void* const* operands) const {
  constexpr int64_t kBlock = 512;  // one block goes through all steps while it is in the L1 cache
  float buffer[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t n = std::min(kBlock, count - begin);
    float* x = values + begin;
    for (const Step& step : steps_) {
      if (step.opcode == Opcode::kTanh) {
        Tanh(x, n);
        continue;
      }
      if (step.opcode == Opcode::kLogistic) {
        Logistic(x, n);
        continue;
      }
      auto [row, scalar] = BinaryFunctions(step.opcode, step.reversed);
      const void* data = step.operand < 0 ? nullptr : operands[step.operand];
      int64_t at = position + begin;
      if (step.kind == Operand::kFull) {
        row(x, AsFloats(data, step.type, at, n, buffer), n);
      } else if (step.kind == Operand::kScalar) {
        scalar(x, data == nullptr ? step.scalar : *AsFloats(data, step.type, 0, 1, buffer), n);
      } else {
        ApplyChannels(step, x, at, n, data);
      }
    }
  }
}

void Epilogue::ApplyChannels(const Step& step, float* x, int64_t position, int64_t count,
                             const void* data) {
  constexpr int64_t kBlock = 512;
  float buffer[kBlock];
  const auto [row, scalar] = BinaryFunctions(step.opcode, step.reversed);
  for (int64_t done = 0; done < count;) {
    const int64_t at = position + done, channel = at / step.channel_inner % step.channels;
    const int64_t end = step.channel_inner == 1 ? step.channels - channel
                                                : step.channel_inner - at % step.channel_inner;
    const int64_t n = std::min({count - done, end, kBlock});
    if (step.channel_inner == 1) {
      row(x + done, AsFloats(data, step.type, channel, n, buffer), n);
    } else {
      scalar(x + done, *AsFloats(data, step.type, channel, 1, buffer), n);
    }
    done += n;
  }
}

std::string Epilogue::Description() const {
  std::string text;
  for (const Step& step : steps_) text.append(" + ").append(hlo::Name(step.opcode));
  return text;
}

void StoreResult(ThreadPool& threads, const Epilogue* epilogue, const hlo::Shape& result_shape,
                 const hlo::Dimensions& strides, const void* staged, hlo::ElementType staged_type,
                 const void* const* operands, void* result) {
  hlo::ElementType type = result_shape.element_type();
  if (epilogue == nullptr || epilogue->empty()) {
    PackStrided(threads, result_shape.dimensions(), strides, staged, staged_type, result, type);
    return;
  }
  Block buffer(type == hlo::ElementType::kF32 ? 0 : result_shape.num_elements() * 4);
  auto* values = static_cast<float*>(type == hlo::ElementType::kF32 ? result : buffer.data());
  PackStrided(threads, result_shape.dimensions(), strides, staged, staged_type, values,
              hlo::ElementType::kF32);
  int64_t row = result_shape.rank() == 0 ? 1 : result_shape.dimensions().back();
  int64_t rows = result_shape.num_elements() / row;
  int64_t per_chunk = std::max<int64_t>(1, 8192 / row);
  threads.ParallelFor(hlo::CeilDivide(rows, per_chunk), [&](int64_t chunk) {
    for (int64_t i = chunk * per_chunk; i < std::min(rows, (chunk + 1) * per_chunk); ++i) {
      epilogue->Apply(values + i * row, i * row, row, operands);
      if (type == hlo::ElementType::kF32) continue;
      auto* out = static_cast<std::byte*>(result) + i * row * hlo::ByteWidth(type);
      ConvertRow(values + i * row, hlo::ElementType::kF32, out, type, row);
    }
  });
}

}  // namespace cpu
