// Random numbers: counter-based streams whose seed and offset are data in the graph, so that
// neither a new seed nor the next step compiles anything.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>

#include <optional>

#include "lazy/node.h"

namespace lazy {
class Device;
}

namespace torch_xla {

class XlaGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit XlaGeneratorImpl(c10::Device device);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  // 16 bytes: seed and offset.
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  static c10::DeviceType device_type() { return c10::DeviceType::XLA; }

  // One number that, given to set_current_seed, brings back the numbers that follow now.
  uint64_t Checkpoint();
  // The state to use now, moving the stream on by `count` of its 64-bit counters.
  std::pair<uint64_t, uint64_t> Take(uint64_t count);

 private:
  XlaGeneratorImpl* clone_impl() const override;
  // A default generator follows torch.manual_seed: when the CPU generator's seed has changed since
  // this one was last seeded, it takes that seed.
  void FollowCpuSeed();
  friend at::Generator& DefaultGenerator(int ordinal);

  bool is_default_ = false;
  uint64_t seed_ = 0, offset_ = 0;
  uint64_t followed_seed_ = 0;
};

// The generator that device `ordinal` uses when a call names none. Starts no runtime.
at::Generator& DefaultGenerator(int ordinal);

// Seeds them all, those not made yet included.
void SeedDefaultGenerators(uint64_t seed);

// The state for an operator that draws `count` 64-bit numbers: u64[2] (seed, offset), the state
// that RngBitGenerator with ThreeFry or Philox takes, as data of the graph.
lazy::Value RandomState(const std::optional<at::Generator>& generator, lazy::Device* device,
                        int64_t count);
// The same, for the device of a tensor or a torch device.
lazy::Value RandomState(const std::optional<at::Generator>& generator, c10::Device device,
                        int64_t count);

}  // namespace torch_xla
