// Runs programs on the reference evaluator for a script. Reads one request a line from stdin:
//   PROGRAM INPUT OUTPUT
// three paths: bytecode, the arguments' bytes one after another, and where the results' bytes go.
// Answers each with a line: "ok", or "error CODE MESSAGE" without line breaks.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/evaluator.h"

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw hlo::Error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<hlo::Literal> SplitArguments(const hlo::Module& module, const std::string& bytes) {
  std::vector<hlo::Literal> arguments;
  size_t offset = 0;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    auto size = static_cast<size_t>(parameter->shape().byte_size());
    if (offset + size > bytes.size()) throw hlo::Error("too few bytes of arguments");
    arguments.emplace_back(parameter->shape(), bytes.data() + offset);
    offset += size;
  }
  return arguments;
}

void Evaluate(const std::string& program, const std::string& input, const std::string& output) {
  std::string bytes = ReadFile(program);
  auto module = hlo::ReadBytecode(std::as_bytes(std::span(bytes.data(), bytes.size())));
  std::ofstream out(output, std::ios::binary);
  for (const hlo::Literal& result :
       hlo::Evaluate(*module, SplitArguments(*module, ReadFile(input)))) {
    out.write(reinterpret_cast<const char*>(result.bytes()),
              static_cast<std::streamsize>(result.byte_size()));
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string program, input, output;
    words >> program >> input >> output;
    try {
      Evaluate(program, input, output);
      std::cout << "ok" << std::endl;
    } catch (const hlo::Error& error) {
      std::string message = error.what();
      std::ranges::replace(message, '\n', ' ');
      std::cout << "error " << static_cast<int>(error.code()) << " " << message << std::endl;
    }
  }
}
