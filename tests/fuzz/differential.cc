#include "differential.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "cpu/executable.h"
#include "cpu/memory.h"
#include "expected_results.h"
#include "hlo/error.h"
#include "hlo/evaluator.h"
#include "hlo/verifier.h"

namespace fuzz {
namespace {

constexpr size_t kGuardBytes = 256;  // two of the widest vectors
constexpr int kGuard = 0xcd;

// An array, behind whose end nobody may write.
cpu::Block MakeArray(size_t bytes) {
  cpu::Block block(bytes + kGuardBytes);
  std::memset(block.data(), kGuard, bytes + kGuardBytes);
  return block;
}

bool IsIntact(const cpu::Block& block, size_t bytes) {
  const auto* guard = static_cast<const unsigned char*>(block.data()) + bytes;
  return std::all_of(guard, guard + kGuardBytes, [](unsigned char b) { return b == kGuard; });
}

// Runs it, with results in the buffers of the arguments that they may take over if `donate`.
std::string Run(const cpu::Executable& executable, const std::vector<hlo::Literal>& arguments,
                bool donate, std::vector<hlo::Literal>* results) {
  std::vector<cpu::Block> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const hlo::Literal& argument : arguments) {
    inputs.push_back(MakeArray(argument.byte_size()));
    if (argument.byte_size() > 0) {
      std::memcpy(inputs.back().data(), argument.bytes(), argument.byte_size());
    }
    in.push_back(inputs.back().data());
  }
  const std::vector<hlo::Shape>& shapes = executable.result_shapes();
  for (size_t r = 0; r < shapes.size(); ++r) {
    const int64_t taken = donate ? executable.aliased_parameters()[r] : -1;
    outputs.push_back(MakeArray(shapes[r].byte_size()));
    out.push_back(taken >= 0 ? inputs[taken].data() : outputs.back().data());
  }
  executable.Run(in, out, {});
  results->clear();
  for (size_t r = 0; r < shapes.size(); ++r) results->emplace_back(shapes[r], out[r]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const hlo::Literal& argument = arguments[i];
    if (!IsIntact(inputs[i], argument.byte_size())) return "written beyond the end of an argument";
    const bool given_up =
        donate && std::count(executable.aliased_parameters().begin(),
                             executable.aliased_parameters().end(), static_cast<int64_t>(i)) > 0;
    if (!given_up && argument.byte_size() > 0 &&
        std::memcmp(inputs[i].data(), argument.bytes(), argument.byte_size()) != 0) {
      return "an argument was changed";
    }
  }
  for (size_t r = 0; r < shapes.size(); ++r) {
    if (!IsIntact(outputs[r], shapes[r].byte_size())) return "written beyond the end of a result";
  }
  return "";
}

// Runs `check`, which returns a failure, and adds what it was about.
template <typename Check>
Outcome Checked(const RandomProgram& program, Check check) {
  Outcome outcome;
  ExpectedResults expected(*program.module, program.arguments);
  std::string where;
  try {
    outcome.failure = check(expected, where);
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  outcome.known = expected.known();
  outcome.unknown = expected.unknown();
  if (!outcome.failure.empty()) {
    outcome.failure = where + ": " + outcome.failure + "\n" + program.module->ToString();
  }
  return outcome;
}

}  // namespace

Outcome CheckPasses(const RandomProgram& program) {
  return Checked(program, [&](ExpectedResults& expected, std::string& where) {
    std::unique_ptr<hlo::Module> module = program.module->Clone();
    std::string before = module->ToString();
    size_t hash = module->Hash();
    cpu::RunPipeline(*module, {}, [&](const cpu::PassRun& run, const hlo::Module& after) {
      where = "after " + std::string(run.pass.name);
      hlo::VerifyModule(after);
      const size_t old = std::exchange(hash, after.Hash());
      if (old == hash) return;
      std::string difference = expected.Difference(hlo::Evaluate(after, program.arguments));
      if (run.outcome != cpu::PassOutcome::kChanged) difference += "a silent change";
      const std::string previous = std::exchange(before, after.ToString());
      if (difference.empty()) return;
      throw hlo::Error(difference + "\nbefore the pass:\n" + previous + "\nafter it:\n" + before +
                       "\nthe program:");
    });
    return std::string();
  });
}

Outcome CheckEngine(const RandomProgram& program, const cpu::PassNames& disabled) {
  return Checked(program, [&](ExpectedResults& expected, std::string& where) {
    where = "compiled";
    cpu::CompileOptions options;
    options.disabled_passes = disabled;
    const std::unique_ptr<cpu::Executable> executable = cpu::Compile(*program.module, options);
    std::vector<hlo::Literal> results;
    auto run = [&](const char* how, const cpu::Executable& code, bool donate) {
      where = how;
      std::string failure = Run(code, program.arguments, donate, &results);
      if (failure.empty()) failure = expected.Difference(results);
      if (!failure.empty()) failure += "\n" + executable->ToString() + "\nthe program:";
      return failure;
    };
    std::string failure = run("run", *executable, false);
    if (failure.empty()) failure = run("run with donated arguments", *executable, true);
    if (!failure.empty()) return failure;
    where = "loaded";
    const std::unique_ptr<cpu::Executable> loaded =
        cpu::LoadExecutable(executable->Serialize(), options);
    return run("run after it was loaded", *loaded, false);
  });
}

bool IsSmall(const hlo::Module& module) {
  constexpr int64_t kMostElements = 1 << 16;
  for (const auto& computation : module.computations()) {
    int64_t work = 0;
    for (const auto& instruction : computation->instructions()) {
      // Nobody knows when a loop ends.
      if (instruction->opcode() == hlo::Opcode::kWhile) return false;
      int64_t elements = 1;
      auto add = [&](const hlo::Shape& shape) {
        if (shape.is_array() && !shape.is_dynamic()) elements += shape.num_elements();
      };
      add(instruction->shape());
      if (instruction->shape().is_tuple()) {
        for (const hlo::Shape& shape : instruction->shape().tuple_shapes()) add(shape);
      }
      work += elements;
      // What is computed for each element.
      switch (instruction->opcode()) {
        case hlo::Opcode::kConvolution:
        case hlo::Opcode::kDotGeneral:
          if (elements > kMostElements) return false;
          work += elements * (1 + instruction->operand(1)->shape().num_elements());
          break;
        case hlo::Opcode::kReduceWindow:
        case hlo::Opcode::kSelectAndScatter:
          if (elements > kMostElements) return false;
          for (int64_t size : instruction->as<hlo::Window>().dimensions) {
            if (size > kMostElements) return false;
            elements *= std::max<int64_t>(size, 1);
            if (elements > kMostElements * 64) return false;
          }
          work += elements;
          break;
        default:
          break;
      }
      if (work > kMostElements * 64 || elements > kMostElements * 64) return false;
    }
  }
  return true;
}

}  // namespace fuzz
