#include "expected_results.h"

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <unordered_map>

#include "hlo/evaluator.h"
#include "hlo/number_conversion.h"
#include "passes/passes.h"

namespace fuzz {
namespace {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using Literals = std::vector<Literal>;

constexpr int kDisturbed = 4, kThorough = 60;

// Digits and smallest numbers of the float types.
struct Precision {
  double epsilon, denormal;
};
Precision PrecisionOf(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return {0x1p-10, 0x1p-24};
    case ElementType::kBF16:
      return {0x1p-7, 0x1p-133};
    case ElementType::kF64:
    case ElementType::kC128:
      return {0x1p-52, 0x1p-1074};
    default:
      return {0x1p-23, 0x1p-149};
  }
}

bool IsInexact(ElementType type) { return hlo::IsFloat(type) || hlo::IsComplex(type); }

// How many units in the last place an engine's result may be off, given exact operands.
double UnitsOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRemainder:
      return hlo::IsComplex(instruction.element_type()) ? 4 : 1;
    case Opcode::kAtan2:
    case Opcode::kCbrt:
    case Opcode::kCosine:
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kPower:
    case Opcode::kRsqrt:
    case Opcode::kSine:
    case Opcode::kTan:
    case Opcode::kTanh:
      return hlo::IsComplex(instruction.element_type()) ? 16 : 4;
    case Opcode::kAbs:
    case Opcode::kSign:
      return hlo::IsComplex(instruction.operand(0)->element_type()) ? 4 : 0;
    default:
      return 0;  // moves, chooses or compares numbers
  }
}

// Adds up many numbers, in an order of the engine's choice.
bool IsSum(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kCholesky:
    case Opcode::kConvolution:
    case Opcode::kDotGeneral:
    case Opcode::kFft:
    case Opcode::kTriangularSolve:
      return true;
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kScatter:
    case Opcode::kSelectAndScatter: {
      const Computation& body = *instruction.called_computations().back();
      for (const auto& inner : body.instructions()) {
        if (inner->opcode() == Opcode::kAdd || inner->opcode() == Opcode::kSubtract ||
            inner->opcode() == Opcode::kMultiply) {
          return true;
        }
      }
      return false;
    }
    default:
      return false;
  }
}

class DisturbedEvaluation {
 public:
  explicit DisturbedEvaluation(unsigned seed) : random_(seed) {}

  Literals Run(const Computation& computation, const Literals& arguments) {
    std::unordered_map<const Instruction*, Literals> values;
    size_t next = 0;
    for (const Instruction* parameter : computation.parameters()) {
      values[parameter] = {arguments.at(next++)};
    }
    for (const auto& instruction : computation.instructions()) {
      if (instruction->opcode() == Opcode::kParameter) continue;
      Literals operands;
      for (const Instruction* operand : instruction->operands()) {
        const Literals& leaves = values.at(operand);
        operands.insert(operands.end(), leaves.begin(), leaves.end());
      }
      values[instruction.get()] = Evaluate(*instruction, operands);
    }
    Literals results;
    for (const Instruction* result : computation.results()) {
      const Literals& leaves = values.at(result);
      results.insert(results.end(), leaves.begin(), leaves.end());
    }
    return results;
  }

 private:
  Literals Evaluate(const Instruction& instruction, Literals operands) {
    const auto& called = instruction.called_computations();
    switch (instruction.opcode()) {
      case Opcode::kCall:
      case Opcode::kComposite:
        return Run(*called[0], operands);
      case Opcode::kIf:
      case Opcode::kCase: {
        // A predicate is 0 or 1, and its first branch is for 1.
        int64_t branch = operands[0].AsInt();
        if (instruction.opcode() == Opcode::kIf) branch = 1 - branch;
        const auto count = static_cast<int64_t>(called.size());
        if (branch < 0 || branch >= count) branch = count - 1;
        return Run(*called[branch], {operands.begin() + 1, operands.end()});
      }
      case Opcode::kWhile:
        while (Run(*called[0], operands)[0].AsInt() != 0) operands = Run(*called[1], operands);
        return operands;
      default:
        break;
    }
    const bool sum = IsSum(instruction);
    if (sum) {
      for (Literal& operand : operands) Disturb(operand, 2);
    }
    Literals results = hlo::EvaluateInstruction(instruction, operands);
    const double units = sum ? 4 : UnitsOf(instruction);
    if (units > 0) {
      for (Literal& result : results) Disturb(result, units);
    }
    if (instruction.opcode() == Opcode::kFft) DisturbByLargest(results[0]);
    return results;
  }

  void Disturb(Literal& literal, double units) {
    const ElementType type = literal.shape().element_type();
    if (!literal.shape().is_array() || !IsInexact(type)) return;
    const Precision precision = PrecisionOf(type);
    auto error = [&](double magnitude) {
      if (!std::isfinite(magnitude) || magnitude == 0) return 0.0;
      return units * Sign() * std::max(magnitude * precision.epsilon, precision.denormal);
    };
    hlo::DispatchNative(type, [&]<typename T>() {
      for (T& element : literal.mutable_data<T>()) {
        if constexpr (hlo::kIsComplex<T>) {
          const double magnitude = std::abs(std::complex<double>(element));
          element = T(element.real() + error(magnitude), element.imag() + error(magnitude));
        } else if constexpr (hlo::kIsReal<T>) {
          const auto value = static_cast<double>(element);
          element = hlo::ConvertNumber<T>(value + error(std::abs(value)));
        }
      }
    });
  }

  // A transform's errors are of the size of its largest number.
  void DisturbByLargest(Literal& literal) {
    hlo::DispatchNative(literal.shape().element_type(), [&]<typename T>() {
      if constexpr (hlo::kIsComplex<T> || hlo::kIsReal<T>) {
        using Wide = std::complex<double>;
        double largest = 0;
        bool is_finite = true;
        for (T element : literal.data<T>()) {
          const double magnitude = std::abs(hlo::ConvertNumber<Wide>(element));
          is_finite &= std::isfinite(magnitude);
          largest = std::max(largest, magnitude);
        }
        const double unit = 4 * largest * PrecisionOf(literal.shape().element_type()).epsilon;
        for (T& element : literal.mutable_data<T>()) {
          // What becomes of an infinite number is the algorithm's affair.
          const auto error = is_finite ? Wide(unit * Sign(), unit * Sign()) : Wide(Any(), Any());
          element = hlo::ConvertNumber<T>(hlo::ConvertNumber<Wide>(element) + error);
        }
      }
    });
  }

  double Sign() { return static_cast<double>(random_() % 3) - 1; }
  // An infinity or NaN.
  double Any() { return Sign() / 0.0; }

  std::mt19937 random_;
};

// Reads an element as a number, or the two of a complex one.
void ForEachNumber(const Literal& literal, const std::function<void(double)>& f) {
  hlo::DispatchNative(literal.shape().element_type(), [&]<typename T>() {
    for (T element : literal.data<T>()) {
      if constexpr (hlo::kIsComplex<T>) {
        f(element.real());
        f(element.imag());
      } else {
        f(static_cast<double>(hlo::ConvertNumber<double>(element)));
      }
    }
  });
}

std::vector<double> Numbers(const Literal& literal) {
  std::vector<double> numbers;
  ForEachNumber(literal, [&](double number) { numbers.push_back(number); });
  return numbers;
}

bool SameKind(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return true;
}

}  // namespace

ExpectedResults::ExpectedResults(const hlo::Module& module,
                                 const std::vector<hlo::Literal>& arguments)
    : module_(module.Clone()), arguments_(arguments), results_(hlo::Evaluate(module, arguments)) {
  passes::ExpandBatchNorm(*module_);
  Disturb(kDisturbed);
}

void ExpectedResults::Disturb(int times) {
  for (int i = 0; i < times; ++i) {
    DisturbedEvaluation evaluation(static_cast<unsigned>(disturbed_.size()));
    disturbed_.push_back(evaluation.Run(*module_->entry(), arguments_));
  }
}

std::string ExpectedResults::Difference(const std::vector<hlo::Literal>& actual) {
  std::string difference = FirstDifference(actual);
  if (!difference.empty() && disturbed_.size() < kThorough) {
    Disturb(kThorough - static_cast<int>(disturbed_.size()));
    difference = FirstDifference(actual);
  }
  return difference;
}

std::string ExpectedResults::FirstDifference(const std::vector<hlo::Literal>& actual) {
  known_ = unknown_ = 0;
  if (actual.size() != results_.size()) return "another number of results";
  for (size_t r = 0; r < results_.size(); ++r) {
    const hlo::Shape& shape = results_[r].shape();
    if (actual[r].shape() != shape) return "result " + std::to_string(r) + " has another shape";
    const ElementType type = shape.element_type();
    const Precision precision = PrecisionOf(type);
    const std::vector<double> expected = Numbers(results_[r]), given = Numbers(actual[r]);
    std::vector<std::vector<double>> others;
    for (const Literals& run : disturbed_) others.push_back(Numbers(run[r]));
    const bool complex = hlo::IsComplex(type);
    for (size_t i = 0; i < expected.size(); ++i) {
      double spread = 0;
      bool known = true;
      for (const std::vector<double>& other : others) {
        known &= SameKind(expected[i], other[i]);
        spread = std::max(spread, std::abs(expected[i] - other[i]));
      }
      known &= IsInexact(type) || spread == 0;
      // Arithmetic on infinite complex numbers is no one's standard.
      if (complex) known &= std::isfinite(expected[i & ~size_t{1}] + expected[i | 1]);
      if (!known) {
        ++unknown_;
        continue;
      }
      ++known_;
      if (SameKind(expected[i], given[i])) {
        if (expected[i] == given[i] || !std::isfinite(expected[i])) continue;
        double magnitude = std::abs(expected[i]);
        if (complex) magnitude = std::hypot(expected[i & ~size_t{1}], expected[i | 1]);
        const double tolerance =
            IsInexact(type)
                ? 8 * (spread + std::max(magnitude * precision.epsilon, precision.denormal))
                : 0;
        if (std::abs(expected[i] - given[i]) <= tolerance) continue;
      }
      std::ostringstream text;
      text.precision(17);
      text << "result " << r << " " << shape.ToString() << ", element " << i << ": expected "
           << expected[i] << ", got " << given[i] << " (spread " << spread << ")";
      return text.str();
    }
  }
  return "";
}

}  // namespace fuzz
