// Carries bytes between two ranks of a world, as its collectives do; benchmarks/links.py starts one
// in each of two network namespaces.
//
//   link_collectives RANK FOLDER SECRET WAY MIB COUNT
//
// FOLDER is one that both see; with SECRET "" they trust the network. WAY is `one` (rank 0 sends),
// `both`, or `all_reduce`. Prints a line of JSON: the seconds for COUNT messages of MIB, and the
// seconds of processor time of this rank.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cpu/collective/communicator.h"
#include "hlo/error.h"

namespace {

using Clock = std::chrono::steady_clock;

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

cpu::KeyValueStore StoreIn(const std::filesystem::path& folder) {
  auto path = [folder](std::string key) {
    for (char& c : key) c = c == '/' ? '.' : c;
    return folder / key;
  };
  cpu::KeyValueStore store;
  store.put = [path](const std::string& key, const std::string& value) {
    std::ofstream(path(key + "~"), std::ios::binary) << value;
    std::filesystem::rename(path(key + "~"), path(key));
  };
  store.get = [path](const std::string& key,
                     std::chrono::milliseconds timeout) -> std::optional<std::string> {
    const auto deadline = Clock::now() + timeout;
    while (Clock::now() < deadline) {
      if (std::ifstream file(path(key), std::ios::binary); file) {
        return std::string(std::istreambuf_iterator<char>(file), {});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  };
  return store;
}

cpu::Collective CollectiveOf(const std::string& way, int64_t elements) {
  cpu::Collective collective;
  collective.operands = {hlo::Shape(hlo::ElementType::kF32, {elements})};
  collective.kind =
      way == "all_reduce" ? cpu::CollectiveKind::kAllReduce : cpu::CollectiveKind::kPermute;
  if (way == "one") collective.pairs = {{0, 1}};
  if (way == "both") collective.pairs = {{0, 1}, {1, 0}};
  return collective;
}

void Measure(char** arguments) {
  cpu::CommunicatorOptions options;
  options.rank = std::atoi(arguments[1]);
  options.size = 2;
  options.timeout = std::chrono::seconds(60);
  options.host = arguments[1];
  options.secret = arguments[3];
  const int64_t elements = (std::atoll(arguments[5]) << 20) / 4, count = std::atoll(arguments[6]);
  const auto world = cpu::ConnectCommunicator(options, StoreIn(arguments[2]));
  const cpu::Collective collective = CollectiveOf(arguments[4], elements);
  std::vector<float> source(elements, 1), target(elements);
  const void* operand = source.data();
  void* result = target.data();
  const cpu::Collective barrier;
  world->Run(collective, &operand, &result);  // warm
  world->Run(barrier, nullptr, nullptr);
  const auto begin = Clock::now();
  const double used = ProcessorSeconds();
  for (int64_t i = 0; i < count; ++i) world->Run(collective, &operand, &result);
  world->Run(barrier, nullptr, nullptr);
  std::printf("{\"seconds\": %.6f, \"processor\": %.6f}\n",
              std::chrono::duration<double>(Clock::now() - begin).count(),
              ProcessorSeconds() - used);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: link_collectives RANK FOLDER SECRET WAY MIB COUNT\n");
    return 2;
  }
  try {
    Measure(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %s: %s\n", argv[1], error.what());
    return 1;
  }
}
