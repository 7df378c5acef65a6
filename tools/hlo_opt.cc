// The passes of the CPU engine from the command line.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "cpu/pipeline.h"
#include "hlo/error.h"
#include "hlo/text_writer.h"
#include "hlo/verifier.h"
#include "program_file.h"

namespace {

constexpr char kUsage[] =
    "usage: hlo_opt [--pass=NAME,…] [--locations] FILE\n"
    "       hlo_opt --list\n"
    "\n"
    "Reads a StableHLO program, text or bytecode (- is stdin), runs passes of the CPU engine on "
    "it\n"
    "in the order given, and prints what they leave as text.\n"
    "\n"
    "  --pass=NAME,…  the passes; a name may come more than once\n"
    "  --locations    with the places in the user's program\n"
    "  --list         print the table of passes, in the order in which the engine runs them\n";

int List() {
  int number = 0;
  std::printf("%2s  %-30s %-25s %-9s %s\n", "", "pass", "when", "need", "what it does");
  for (const cpu::Pass& pass : cpu::Pipeline()) {
    std::printf("%2d  %-30s %-25s %-9s %s\n", ++number, pass.name.data(),
                cpu::ToString(pass.when).data(), cpu::ToString(pass.need).data(),
                pass.summary.data());
  }
  std::printf(
      "\nTORCH_XLA_DISABLE_PASSES=name,… leaves out optional passes, each wherever it runs.\n");
  return 0;
}

const cpu::Pass& FindPass(std::string_view name) {
  for (const cpu::Pass& pass : cpu::Pipeline()) {
    if (pass.name == name) return pass;
  }
  throw hlo::Error("there is no pass " + std::string(name) + "; hlo_opt --list prints them");
}

void RunPasses(hlo::Module& module, std::string_view names) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    const cpu::Pass& pass = FindPass(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    pass.run(module);
    hlo::VerifyModule(module);
  }
}

int Run(int argc, char** argv) {
  std::string passes, file;
  hlo::TextOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view kPass = "--pass=";
    if (argument == "--list") return List();
    if (argument == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (argument.starts_with(kPass)) {
      passes += (passes.empty() ? "" : ",") + std::string(argument.substr(kPass.size()));
    } else if (argument == "--locations") {
      options.locations = true;
    } else if (file.empty() && (argument == "-" || !argument.starts_with('-'))) {
      file = argument;
    } else {
      file.clear();
      break;
    }
  }
  if (file.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const auto module = tools::ReadProgram(file);
  RunPasses(*module, passes);
  std::cout << hlo::WriteStablehloText(*module, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hlo_opt: %s\n", error.what());
    return 1;
  }
}
