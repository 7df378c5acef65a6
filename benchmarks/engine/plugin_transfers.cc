// How fast arrays go to a plugin's device and back:
//
//   plugin_transfers PLUGIN.so SECONDS BYTES…
//
// A line of JSON for each size: GB/s up, down and of memcpy, the fastest of the rounds that fit
// into the time. Pages on both sides have been used before. An upload counts as done when the
// device has answered a question about it; what is downloaded is the result of a program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "pjrt/client/client.h"

namespace {

double BestSeconds(double seconds, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  run();
  do {
    const auto begin = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  return best;
}

// ~x for each element.
std::unique_ptr<pjrt::Buffer> Inverted(pjrt::Client& client, const pjrt::Buffer& x) {
  hlo::Module module("inverted");
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder builder(entry);
  entry->set_results({builder.Unary(hlo::Opcode::kNot, builder.Parameter(x.shape()))});
  const pjrt::Buffer* arguments[] = {&x};
  return std::move(client.Compile(module)->Execute(arguments).outputs[0]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s PLUGIN.so SECONDS BYTES...\n", argv[0]);
    return 2;
  }
  const auto client = pjrt::Client::Create(pjrt::Plugin::Load(argv[1]));
  pjrt::Device& device = *client->addressable_devices()[0];
  const double seconds = std::atof(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const int64_t bytes = std::atoll(argv[i]);
    const hlo::Shape shape(hlo::ElementType::kU8, {bytes});
    std::vector<char> source(bytes, 1), target(bytes, 2);
    const double copy =
        BestSeconds(seconds, [&] { std::memcpy(target.data(), source.data(), bytes); });
    const double up = BestSeconds(seconds, [&] {
      const auto buffer = client->BufferFromHost(source.data(), shape, device);
      char byte = 0;
      buffer->CopyRawToHost(&byte, bytes - 1, 1).Await();
      if (byte != 1) std::abort();
    });
    const auto buffer = Inverted(*client, *client->BufferFromHost(source.data(), shape, device));
    const double down = BestSeconds(seconds, [&] { buffer->ToHost(target.data(), bytes); });
    if (target != std::vector<char>(bytes, static_cast<char>(~1))) std::abort();
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    std::printf("{\"bytes\": %lld, \"up\": %.3f, \"down\": %.3f, \"memcpy\": %.3f}\n",
                static_cast<long long>(bytes), gigabytes / up, gigabytes / down, gigabytes / copy);
    std::fflush(stdout);
  }
}
