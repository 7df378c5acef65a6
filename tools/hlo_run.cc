// Runs a program on the reference evaluator, on a PJRT plugin, or on both and compares.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/error.h"
#include "hlo/evaluator.h"
#include "pjrt/client/client.h"
#include "pjrt/client/executable.h"
#include "pjrt/client/plugin.h"
#include "program_file.h"

namespace {

using hlo::Literal;

constexpr char kUsage[] =
    "usage: hlo_run [--evaluator] [--plugin=LIBRARY] [--input=FILE.npy]… [--seed=N]\n"
    "               [--tolerance=X] FILE\n"
    "\n"
    "Runs a StableHLO program, text or bytecode (- is stdin), and prints its results. With both\n"
    "--evaluator and --plugin it compares them, and exits with 1 if they differ.\n"
    "\n"
    "  --evaluator       on the reference evaluator; the default\n"
    "  --plugin=LIBRARY  on the first device of a PJRT plugin, such as "
    "torch_xla/lib/libpjrt_cpu.so\n"
    "  --input=FILE.npy  an argument, as numpy.save wrote it; the first is the first parameter's.\n"
    "                    Parameters without one are random\n"
    "  --seed=N          of the random arguments (0)\n"
    "  --tolerance=X     how far numbers may differ, relative to those over 1 (1e-4); integers\n"
    "                    must be equal\n";

struct Command {
  bool evaluator = false;
  std::string plugin, file;
  std::vector<std::string> inputs;
  unsigned seed = 0;
  double tolerance = 1e-4;
};

// Nothing if the arguments make no sense.
std::optional<Command> Parse(int argc, char** argv) {
  Command command;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&](std::string_view name) -> const char* {
      return argument.starts_with(name) ? argv[i] + name.size() : nullptr;
    };
    if (argument == "--evaluator") {
      command.evaluator = true;
    } else if (const char* library = value("--plugin=")) {
      command.plugin = library;
    } else if (const char* input = value("--input=")) {
      command.inputs.emplace_back(input);
    } else if (const char* seed = value("--seed=")) {
      command.seed = static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
    } else if (const char* tolerance = value("--tolerance=")) {
      command.tolerance = std::strtod(tolerance, nullptr);
    } else if (command.file.empty() && (argument == "-" || !argument.starts_with('-'))) {
      command.file = argument;
    } else {
      return {};
    }
  }
  if (command.file.empty()) return {};
  command.evaluator |= command.plugin.empty();
  return command;
}

// Numbers of both signs up to 2, and integers up to 7, which are indices more often than not.
Literal RandomLiteral(const hlo::Shape& shape, std::mt19937& random) {
  Literal literal(shape);
  const auto real = [&] { return (static_cast<int>(random() % 4001) - 2000) / 1000.0F; };
  hlo::DispatchNative(shape.element_type(), [&]<typename T>() {
    for (T& element : literal.mutable_data<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        element = random() % 2 == 0;
      } else if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(random() % 8);
      } else {
        element = static_cast<T>(real());
      }
    }
  });
  return literal;
}

std::vector<Literal> Arguments(const hlo::Module& module, const Command& command) {
  const auto& parameters = module.entry()->parameters();
  if (command.inputs.size() > parameters.size()) {
    throw hlo::Error("there are " + std::to_string(command.inputs.size()) + " inputs and " +
                     std::to_string(parameters.size()) + " parameters");
  }
  std::mt19937 random(command.seed);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const hlo::Shape& shape = parameters[i]->shape();
    if (!shape.is_array() || shape.is_dynamic()) {
      throw hlo::Error("parameter " + std::to_string(i) + " is " + shape.ToString() +
                       ", which no file or random number can be");
    }
    arguments.push_back(i < command.inputs.size() ? tools::ReadNumpyFile(command.inputs[i], shape)
                                                  : RandomLiteral(shape, random));
  }
  return arguments;
}

std::vector<Literal> RunOnPlugin(const std::string& library, const hlo::Module& module,
                                 const std::vector<Literal>& arguments) {
  const auto client = pjrt::Client::Create(pjrt::Plugin::Load(library));
  const pjrt::Device& device = *client->devices()[0];
  const auto executable = client->Compile(module);
  std::vector<std::unique_ptr<pjrt::Buffer>> buffers;
  std::vector<const pjrt::Buffer*> pointers;
  for (const Literal& argument : arguments) {
    buffers.push_back(client->BufferFromLiteral(argument, device));
    pointers.push_back(buffers.back().get());
  }
  std::vector<Literal> results;
  for (const auto& output : executable->Execute(pointers).outputs) {
    results.push_back(output->ToLiteral());
  }
  return results;
}

void Print(const std::vector<Literal>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    std::printf("result %zu: %s\n", i, results[i].ToString().c_str());
  }
}

// How far two numbers are from each other, relative to those over 1; 0 for what is the same.
template <typename T>
double Difference(T one, T other) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return std::max(Difference(one.real(), other.real()), Difference(one.imag(), other.imag()));
  } else if constexpr (std::is_integral_v<T>) {
    return one == other ? 0 : HUGE_VAL;
  } else {
    const auto x = static_cast<double>(one), y = static_cast<double>(other);
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
    const double difference = std::abs(x - y) / std::max(1.0, std::abs(x));
    return std::isnan(difference) ? HUGE_VAL : difference;
  }
}

bool Same(size_t number, const Literal& expected, const Literal& actual, double tolerance) {
  if (expected.shape() != actual.shape()) {
    std::printf("result %zu: %s on the evaluator, %s on the plugin\n", number,
                expected.shape().ToString().c_str(), actual.shape().ToString().c_str());
    return false;
  }
  if (expected == actual) {
    std::printf("result %zu: the same bits\n", number);
    return true;
  }
  size_t different = 0, first = 0;
  double largest = 0;
  hlo::DispatchNative(expected.shape().element_type(), [&]<typename T>() {
    const auto x = expected.data<T>(), y = actual.data<T>();
    for (size_t i = x.size(); i-- > 0;) {
      const double difference = Difference<T>(x[i], y[i]);
      largest = std::max(largest, difference);
      if (difference <= tolerance) continue;
      ++different;
      first = i;
    }
  });
  std::printf("result %zu: the largest difference is %g\n", number, largest);
  if (different == 0) return true;
  std::printf(
      "  %zu of %lld elements differ; the first is number %zu\n  evaluator: %s\n"
      "  plugin:    %s\n",
      different, static_cast<long long>(expected.shape().num_elements()), first,
      expected.ToString().c_str(), actual.ToString().c_str());
  return false;
}

int Run(const Command& command) {
  const auto module = tools::ReadProgram(command.file);
  const std::vector<Literal> arguments = Arguments(*module, command);
  std::vector<Literal> expected, actual;
  if (!command.plugin.empty()) actual = RunOnPlugin(command.plugin, *module, arguments);
  if (command.evaluator) expected = hlo::Evaluate(*module, arguments);
  if (command.plugin.empty() || !command.evaluator) {
    Print(command.evaluator ? expected : actual);
    return 0;
  }
  bool same = expected.size() == actual.size();
  for (size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    same = Same(i, expected[i], actual[i], command.tolerance) && same;
  }
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    const std::optional<Command> command = Parse(argc, argv);
    if (command) return Run(*command);
    std::fputs(kUsage, stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hlo_run: %s\n", error.what());
    return 2;
  }
}
