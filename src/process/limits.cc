#include "process/limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

namespace process {
namespace {

// More than any machine has: version 1 writes "no limit" as a number of pages.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// The parts between the separators.
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// mountinfo writes blanks and backslashes as \040.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '\\' && i + 3 < text.size() &&
        text.find_first_not_of("01234567", i + 1) >= std::min(i + 4, text.size());
    if (is_escape) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// By controller the process's cgroup; version 2 has the empty name.
std::map<std::string, std::string> CgroupPaths(const std::string& root) {
  std::map<std::string, std::string> paths;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) paths[""] = path;
    for (const std::string& controller : Split(controllers, ',')) paths[controller] = path;
  }
  return paths;
}

struct Mount {
  std::string top;    // the cgroup that is mounted
  std::string point;  // where
  std::string type;   // "cgroup", "cgroup2"
  std::vector<std::string> options;
};

std::vector<Mount> CgroupMounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  // "36 35 98:0 /top /point rw,noatime master:1 - cgroup source rw,memory"
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    const std::vector<std::string> where = Split(line.substr(0, dash), ' ');
    const std::vector<std::string> what = Split(line.substr(dash + 3), ' ');
    if (where.size() < 5 || what.size() < 3 || !what[0].starts_with("cgroup")) continue;
    mounts.push_back({Unescape(where[3]), Unescape(where[4]), what[0], Split(what[2], ',')});
  }
  return mounts;
}

// The cgroup's folder, then those above it up to the mount point. A cgroup that is outside of what
// is mounted is not visible: the mount's own is the nearest that is.
std::vector<std::string> FoldersUpwards(const Mount& mount, const std::string& cgroup) {
  const std::string top = mount.top == "/" ? "" : mount.top;
  std::string below;
  const bool is_inside = cgroup.starts_with(top) &&
                         (cgroup.size() == top.size() || cgroup[top.size()] == '/') &&
                         cgroup.find("/..") == cgroup.npos;
  if (is_inside) below = cgroup.substr(top.size());
  while (!below.empty() && below.back() == '/') below.pop_back();
  std::vector<std::string> folders;
  while (true) {
    folders.push_back(mount.point + below);
    if (below.empty()) return folders;
    below.resize(below.rfind('/'));
  }
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Nothing if the file is missing or begins with another word, "max" for instance.
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::istringstream in(ReadText(path));
  int64_t number = 0;
  if (in >> number) return number;
  return {};
}

// The number after a name in a file of such lines; 0 if there is none.
int64_t ReadField(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string field;
  for (int64_t number = 0; file >> field >> number;) {
    if (field == name) return number;
  }
  return 0;
}

}  // namespace

Cgroups::Cgroups(const std::string& root) {
  const std::map<std::string, std::string> paths = CgroupPaths(root);
  for (const Mount& mount : CgroupMounts(root)) {
    const bool unified = mount.type == "cgroup2";
    for (const auto& [controller, folders] : {std::pair("memory", &memory_), {"cpu", &cpu_}}) {
      const auto found = paths.find(unified ? "" : controller);
      if (found == paths.end()) continue;
      const auto& options = mount.options;
      if (!unified && std::find(options.begin(), options.end(), controller) == options.end()) {
        continue;
      }
      for (const std::string& folder : FoldersUpwards(mount, found->second)) {
        folders->push_back({root + folder, unified});
      }
    }
  }
}

std::vector<Cgroups::Memory> Cgroups::memory() const {
  std::vector<Memory> limits;
  for (const auto& [path, unified] : memory_) {
    const std::string prefix = path + "/memory.";
    const auto limit = ReadNumber(prefix + (unified ? "max" : "limit_in_bytes"));
    if (!limit || *limit < 0 || *limit >= kNoLimit) continue;
    const int64_t all = ReadNumber(prefix + (unified ? "current" : "usage_in_bytes")).value_or(0);
    const std::string statistics = prefix + "stat", total = unified ? "" : "total_";
    const int64_t files = ReadField(statistics, total + "active_file") +
                          ReadField(statistics, total + "inactive_file");
    limits.push_back({*limit, std::max<int64_t>(all - files, 0)});
  }
  return limits;
}

std::optional<int64_t> Cgroups::memory_limit() const {
  std::optional<int64_t> smallest;
  for (const Memory& memory : memory()) {
    smallest = std::min(smallest.value_or(memory.limit), memory.limit);
  }
  return smallest;
}

std::optional<double> Cgroups::cpu_quota() const {
  std::optional<double> smallest;
  for (const auto& [path, unified] : cpu_) {
    // Microseconds of processor time in each period. "max" or -1: no limit.
    int64_t quota = -1, period = 0;
    if (unified) {
      std::istringstream(ReadText(path + "/cpu.max")) >> quota >> period;
    } else {
      quota = ReadNumber(path + "/cpu.cfs_quota_us").value_or(-1);
      period = ReadNumber(path + "/cpu.cfs_period_us").value_or(0);
    }
    if (quota <= 0 || period <= 0) continue;
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    smallest = std::min(smallest.value_or(cpus), cpus);
  }
  return smallest;
}

int64_t MemoryLimit() {
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(machine, Cgroups().memory_limit().value_or(machine));
}

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Machines with more processors than a cpu_set_t has room for answer with an error.
  int cpus = sched_getaffinity(0, sizeof set, &set) == 0
                 ? CPU_COUNT(&set)
                 : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const auto quota = Cgroups().cpu_quota()) {
    cpus = std::min(cpus, static_cast<int>(std::min(std::ceil(*quota), 1e6)));
  }
  return std::max(cpus, 1);
}

}  // namespace process
