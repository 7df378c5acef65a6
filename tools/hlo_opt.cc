// The passes of the CPU engine from the command line.
//   hlo_opt --list    the table of passes, in the order in which they run
#include <cstdio>
#include <string_view>

#include "cpu/pipeline.h"

namespace {

constexpr char kUsage[] = "usage: hlo_opt --list\n";

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

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") return List();
  std::fputs(kUsage, stderr);
  return 2;
}
