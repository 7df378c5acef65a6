#include "cpu/profile.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpu/step_sequence.h"

namespace cpu {
namespace {

struct Entry {
  std::string text;
  int64_t runs = 0;
  double milliseconds = 0, cpu_milliseconds = 0;
};

struct Profile {
  std::mutex mutex;
  std::unordered_map<const Step*, Entry> entries;
  std::map<std::string, Entry, std::less<>> passes;  // by their names
};

void Print();

// Never destroyed: programs may run while the process ends.
Profile& TheProfile() {
  static Profile* const profile = [] {
    std::atexit(Print);
    return new Profile;
  }();
  return *profile;
}

void PrintPasses(const Profile& profile) {
  if (profile.passes.empty()) return;
  std::vector<const Entry*> passes;
  double total = 0;
  for (const auto& [name, pass] : profile.passes) {
    passes.push_back(&pass);
    total += pass.milliseconds;
  }
  std::ranges::sort(passes, std::greater(), &Entry::milliseconds);
  std::fprintf(stderr,
               "passes of the CPU engine: %.1f ms\n"
               "        ms   runs  pass\n",
               total);
  for (const Entry* pass : passes) {
    std::fprintf(stderr, "%10.2f %6.0f  %s\n", pass->milliseconds, static_cast<double>(pass->runs),
                 pass->text.c_str());
  }
}

void Print() {
  Profile& profile = TheProfile();
  std::lock_guard<std::mutex> lock(profile.mutex);
  PrintPasses(profile);
  std::vector<const Entry*> entries;
  double total = 0;
  for (const auto& [step, entry] : profile.entries) {
    entries.push_back(&entry);
    total += entry.cpu_milliseconds;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return a->cpu_milliseconds > b->cpu_milliseconds;
  });
  std::fprintf(stderr,
               "steps of the CPU engine: %.1f ms of CPU time\n"
               "    CPU ms   runs  CPU us/run  us/run  step\n",
               total);
  for (const Entry* entry : entries) {
    const double runs = static_cast<double>(entry->runs);
    std::fprintf(stderr, "%10.2f %6.0f %11.1f %7.1f  %s\n", entry->cpu_milliseconds, runs,
                 entry->cpu_milliseconds * 1e3 / runs, entry->milliseconds * 1e3 / runs,
                 entry->text.c_str());
  }
}

}  // namespace

bool ProfilesSteps() {
  static const bool profiles = [] {
    const char* value = std::getenv("TORCH_XLA_PROFILE");
    return value != nullptr && std::string(value) != "" && std::string(value) != "0";
  }();
  return profiles;
}

void AddPassTime(std::string_view name, double milliseconds) {
  Profile& profile = TheProfile();
  std::lock_guard<std::mutex> lock(profile.mutex);
  auto pass = profile.passes.find(name);
  if (pass == profile.passes.end()) {
    pass = profile.passes.emplace(name, Entry{std::string(name)}).first;
  }
  ++pass->second.runs;
  pass->second.milliseconds += milliseconds;
}

void AddStepTime(const Step& step, double milliseconds, double cpu_milliseconds) {
  Profile& profile = TheProfile();
  std::lock_guard<std::mutex> lock(profile.mutex);
  Entry& entry = profile.entries[&step];
  // The text now: the program may be gone when it is printed.
  if (entry.runs == 0) entry.text = step.ToString();
  ++entry.runs;
  entry.milliseconds += milliseconds;
  entry.cpu_milliseconds += cpu_milliseconds;
}

double CpuMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace cpu
