// Random numbers. A generator's stream is a sequence of states, one for each draw (each call of a
// random operator); a state makes the key of a counter-based generator, whose counters are the
// elements. The key is data of the graph, so that neither a new seed nor the next step compiles
// anything.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "lazy/node.h"
#include "lazy/storage.h"

namespace torch_xla {

// Each call by itself is safe among threads; who makes several belong together holds `mutex_`, as
// with torch's own generators, whose callers lock it.
class XlaGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit XlaGeneratorImpl(c10::Device device);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  // 16 bytes: the seed and the number of draws, which is also the offset.
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  static c10::DeviceType device_type() { return c10::DeviceType::XLA; }

  // The seed whose stream begins where this one is now: one number for both words of the state.
  uint64_t state() const;
  // The key of the next draw, which moves the stream on.
  uint64_t TakeKey();

 private:
  XlaGeneratorImpl* clone_impl() const override;
  // The place in the stream.
  struct Place {
    uint64_t seed = 0, draws = 0;
  };
  // A default generator follows torch.manual_seed: when the CPU generator's seed has changed since
  // this one was last seeded, it takes that seed. `move` is the number of draws that are made.
  Place Now(uint64_t move = 0) const;
  void Seed(uint64_t seed, uint64_t draws);
  friend at::Generator& DefaultGenerator(int ordinal);

  bool is_default_ = false;  // from before others see it
  mutable lazy::SpinLock lock_;
  mutable Place place_;                 // under lock_
  mutable uint64_t followed_seed_ = 0;  // under lock_
};

// The generator that device `ordinal` uses when a call names none. Starts no runtime.
at::Generator& DefaultGenerator(int ordinal);

// Seeds them all, those not made yet included.
void SeedDefaultGenerators(uint64_t seed);

// The state for an operator that draws numbers on `device`: u64[2] (key, counter), which
// RngBitGenerator takes, as data of the graph. Throws if the generator or the device is not xla.
lazy::Value RandomState(const std::optional<at::Generator>& generator, c10::Device device);

// For an operator that runs on the CPU in place of device `ordinal`: a CPU generator seeded by the
// next draw.
at::Generator CpuGenerator(const std::optional<at::Generator>& generator, int ordinal);

}  // namespace torch_xla
