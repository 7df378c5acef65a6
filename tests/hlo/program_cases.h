// Test cases that are programs: files *.mlir, each of StableHLO programs with "// -----" between
// them. What is expected of one stands in its comments as "// NAME: value" or "// NAME"; comments
// that do not look like it are for people. The first says "// CASE: what the case is called".
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlo {

struct ProgramCase {
  struct Directive {
    std::string name, value;
  };

  std::string file, name, text;
  std::vector<Directive> directives;

  std::vector<std::string> All(std::string_view directive) const {
    std::vector<std::string> values;
    for (const Directive& d : directives) {
      if (d.name == directive) values.push_back(d.value);
    }
    return values;
  }
  bool Has(std::string_view directive) const { return !All(directive).empty(); }
  std::string One(std::string_view directive, const std::string& otherwise = "") const {
    const std::vector<std::string> values = All(directive);
    return values.empty() ? otherwise : values[0];
  }
};

inline std::ostream& operator<<(std::ostream& out, const ProgramCase& c) { return out << c.file; }

// What is shouted and none of `known` becomes a directive UNKNOWN, for the test to refuse.
inline void AddDirective(const std::string& line, std::span<const std::string_view> known,
                         ProgramCase& out) {
  constexpr std::string_view kComment = "// ";
  if (!line.starts_with(kComment)) return;
  const std::string_view rest = std::string_view(line).substr(kComment.size());
  const size_t end = std::min(rest.find(':'), rest.size());
  const std::string_view name = rest.substr(0, end);
  const bool is_known = std::ranges::find(known, name) != known.end();
  const bool shouted = std::ranges::all_of(name, [](char c) { return c == '-' || isupper(c); });
  if (!is_known && !(shouted && name.size() > 1 && name != "-----")) return;
  const size_t value = std::min(end + 2, rest.size());
  out.directives.push_back(
      {std::string(is_known ? name : "UNKNOWN"), std::string(rest.substr(value))});
}

// Of all files of the folder, in the order of their names. `known`: the directives.
inline std::vector<ProgramCase> ReadProgramCases(const std::filesystem::path& folder,
                                                 std::span<const std::string_view> known) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".mlir") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<ProgramCase> cases;
  for (const auto& path : paths) {
    std::ifstream in(path);
    ProgramCase current;
    const auto finish = [&] {
      current.file = path.filename().string();
      current.name = path.stem().string() + "_" + current.One("CASE", "unnamed");
      cases.push_back(std::exchange(current, {}));
    };
    for (std::string line; std::getline(in, line);) {
      if (line == "// -----") {
        finish();
        continue;
      }
      AddDirective(line, known, current);
      current.text += line + "\n";
    }
    finish();
  }
  return cases;
}

}  // namespace hlo
