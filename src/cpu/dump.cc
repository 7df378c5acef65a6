#include "cpu/dump.h"

#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

Dump::Dump() {
  static const char* const folder = std::getenv("TORCH_XLA_DUMP");
  if (!folder || !*folder) return;
  static std::atomic<int> compilations = 0;
  std::error_code ignored;  // Write reports it
  std::filesystem::create_directories(folder, ignored);
  char number[16];
  std::snprintf(number, sizeof(number), "/%04d", compilations++);
  prefix_ = std::string(folder) + number;
}

void Dump::Program(const std::string& text) const {
  if (*this) Write(prefix_ + ".program", text);
}

void Dump::Kernels(int thread, const llvm::Module& module) const {
  if (!*this) return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  Write(prefix_ + "." + std::to_string(thread) + ".ll", text);
}

}  // namespace cpu
