// Drives the readers and writers of programs from a script:
//   hlo_tool rewrite IN OUT   reads a program, bytecode or text, and writes bytecode
//   hlo_tool text IN OUT      reads one and writes StableHLO text
//   hlo_tool same IN IN       fails unless both files hold the same module
//   hlo_tool dump IN          prints the module in its short form
// Reading what was written must give the same module. Exit status 1 with the message on stderr for
// an error.
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"

namespace {

std::unique_ptr<hlo::Module> Read(const std::string& bytes) {
  return hlo::ReadStablehlo(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::string ReadFile(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw hlo::Error(std::string("cannot read ") + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const char* path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void CheckRoundTrip(const hlo::Module& module, const std::string& bytes) {
  auto again = Read(bytes);
  if (again->Hash() != module.Hash()) {
    throw hlo::Error("written and read again, the module differs:\n" + module.ToString() + "\n" +
                     again->ToString());
  }
}

int Run(int argc, char** argv) {
  std::string command = argc > 2 ? argv[1] : "";
  auto module = command.empty() ? nullptr : Read(ReadFile(argv[2]));
  if (command == "dump") {
    std::cout << module->ToString();
  } else if (command == "rewrite" && argc == 4) {
    std::string bytes = hlo::WriteBytecode(*module);
    CheckRoundTrip(*module, bytes);
    WriteFile(argv[3], bytes);
  } else if (command == "same" && argc == 4) {
    auto other = Read(ReadFile(argv[3]));
    if (other->Hash() != module->Hash()) {
      throw hlo::Error("the modules differ:\n" + module->ToString() + "\n" + other->ToString());
    }
  } else if (command == "text" && argc == 4) {
    std::string text = hlo::WriteStablehloText(*module);
    CheckRoundTrip(*module, text);
    if (hlo::WriteStablehloText(*Read(text)) != text) {
      throw hlo::Error("read and printed again, the text differs:\n" + text);
    }
    WriteFile(argv[3], text);
  } else {
    std::cerr << "usage: hlo_tool rewrite|text IN OUT, hlo_tool same IN IN, hlo_tool dump IN\n";
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
