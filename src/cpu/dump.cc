#include "cpu/dump.h"

#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hlo/error.h"
#include "hlo/text_writer.h"

namespace cpu {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  static std::atomic<bool> reported = false;
  if (!out && !reported.exchange(true)) {
    std::fprintf(stderr, "TORCH_XLA_DUMP: %s cannot be written\n", path.c_str());
  }
}

}  // namespace

Dump::Dump(std::optional<int64_t> rank) {
  static const char* const folder = std::getenv("TORCH_XLA_DUMP");
  if (!folder || !*folder) return;
  static std::atomic<int> compilations = 0;
  std::error_code ignored;  // Write reports it
  std::filesystem::create_directories(folder, ignored);
  char number[16];
  std::snprintf(number, sizeof(number), "%04d", compilations++);
  prefix_ = std::string(folder) + "/";
  if (rank) prefix_ += "rank" + std::to_string(*rank) + ".";
  prefix_ += number;
}

bool Dump::WriteModule(int number, std::string_view name, const hlo::Module& module) {
  std::string text;
  try {
    text = hlo::WriteStablehloText(module);
  } catch (const hlo::Error& error) {
    text = std::string("// ") + error.what() + "\n";
  }
  if (text == text_) return false;
  char digits[16];
  std::snprintf(digits, sizeof(digits), ".%02d-", number);
  Write(prefix_ + digits + std::string(name) + ".mlir", text);
  text_ = std::move(text);
  return true;
}

void Dump::Input(const hlo::Module& module) {
  if (*this) WriteModule(0, "input", module);
}

void Dump::AfterPass(const PassRun& run, const hlo::Module& module) {
  if (!*this) return;
  PassOutcome outcome = run.outcome;
  if (outcome == PassOutcome::kChanged && !WriteModule(run.number, run.pass.name, module)) {
    outcome = PassOutcome::kUnchanged;
  }
  char line[128];
  std::snprintf(line, sizeof(line), "%02d %-30s %9.3f ms  %s\n", run.number, run.pass.name.data(),
                run.milliseconds, ToString(outcome).data());
  passes_ += line;
  Write(prefix_ + ".passes", passes_);
}

void Dump::Program(const std::string& text) const {
  if (*this) Write(prefix_ + ".program", text);
}

void Dump::Kernel(int64_t number, const llvm::Module& module) const {
  if (!*this) return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  Write(prefix_ + "." + std::to_string(number) + ".ll", text);
}

}  // namespace cpu
