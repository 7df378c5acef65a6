#include "aten/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstring>
#include <map>
#include <mutex>

#include "aten/tensor.h"
#include "lazy/device.h"
#include "process/fork.h"

namespace torch_xla {

XlaGeneratorImpl::XlaGeneratorImpl(c10::Device device)
    : GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::XLA)),
      seed_(c10::detail::getNonDeterministicRandom()) {}

namespace {

// The states that a stream passes, one for each draw, are this far from each other: the golden
// ratio, whose multiples modulo 2^63 are all different.
constexpr uint64_t kStride = 0x1e3779b97f4a7c15u;
constexpr uint64_t kStateMask = ~uint64_t{0} >> 1;

uint64_t StateAfter(uint64_t seed, uint64_t draws) { return (seed + draws * kStride) & kStateMask; }

// A bijection whose results are unrelated for related states (MurmurHash3's last step).
uint64_t KeyOf(uint64_t state) {
  state = (state ^ (state >> 33)) * 0xff51afd7ed558ccdu;
  state = (state ^ (state >> 33)) * 0xc4ceb9fe1a85ec53u;
  return state ^ (state >> 33);
}

}  // namespace

void XlaGeneratorImpl::set_current_seed(uint64_t seed) { Seed(seed, 0); }

void XlaGeneratorImpl::Seed(uint64_t seed, uint64_t draws) {
  seed_ = seed;
  draws_ = draws;
  if (is_default_) followed_seed_ = at::detail::getDefaultCPUGenerator().current_seed();
}

void XlaGeneratorImpl::set_offset(uint64_t offset) { draws_ = offset; }
uint64_t XlaGeneratorImpl::get_offset() const { return draws_; }

uint64_t XlaGeneratorImpl::current_seed() const {
  const_cast<XlaGeneratorImpl*>(this)->FollowCpuSeed();
  return seed_;
}

uint64_t XlaGeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void XlaGeneratorImpl::set_state(const c10::TensorImpl& new_state) {
  TORCH_CHECK(new_state.numel() == 16 && new_state.device_type() == c10::DeviceType::CPU &&
                  c10::typeMetaToScalarType(new_state.dtype()) == at::kByte,
              "the state of an xla generator is a CPU tensor of 16 bytes (seed, draws)");
  uint64_t words[2];
  std::memcpy(words, new_state.data(), sizeof(words));
  Seed(words[0], words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> XlaGeneratorImpl::get_state() const {
  uint64_t words[2] = {current_seed(), draws_};
  at::Tensor state = at::empty({16}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), words, sizeof(words));
  return state.getIntrusivePtr();
}

uint64_t XlaGeneratorImpl::state() const { return StateAfter(current_seed(), draws_); }

uint64_t XlaGeneratorImpl::TakeKey() {
  const process::NoFork no_fork;
  std::lock_guard lock(mutex_);
  FollowCpuSeed();
  return KeyOf(StateAfter(seed_, draws_++));
}

XlaGeneratorImpl* XlaGeneratorImpl::clone_impl() const {
  auto* copy = new XlaGeneratorImpl(device());
  copy->seed_ = seed_;
  copy->draws_ = draws_;
  return copy;
}

void XlaGeneratorImpl::FollowCpuSeed() {
  if (!is_default_) return;
  uint64_t seed = at::detail::getDefaultCPUGenerator().current_seed();
  if (seed == followed_seed_) return;
  Seed(seed, 0);
}

namespace {

struct DefaultGenerators {
  process::Mutex mutex;
  std::map<int, at::Generator> made;
  std::optional<uint64_t> seed;  // for those not made yet
  static DefaultGenerators& Get() {
    static DefaultGenerators* generators = new DefaultGenerators;
    return *generators;
  }
};

}  // namespace

void SeedDefaultGenerators(uint64_t seed) {
  DefaultGenerators& generators = DefaultGenerators::Get();
  std::lock_guard lock(generators.mutex);
  generators.seed = seed;
  for (auto& [ordinal, generator] : generators.made) generator.set_current_seed(seed);
}

at::Generator& DefaultGenerator(int ordinal) {
  DefaultGenerators& generators = DefaultGenerators::Get();
  std::lock_guard lock(generators.mutex);
  auto it = generators.made.find(ordinal);
  if (it == generators.made.end()) {
    auto generator = at::make_generator<XlaGeneratorImpl>(
        c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(ordinal)));
    auto* impl = generator.get<XlaGeneratorImpl>();
    impl->is_default_ = true;
    impl->FollowCpuSeed();
    if (generators.seed) impl->set_current_seed(*generators.seed);
    it = generators.made.emplace(ordinal, generator).first;
  }
  return it->second;
}

namespace {

uint64_t TakeKey(const std::optional<at::Generator>& generator, int ordinal) {
  bool is_given = generator.has_value() && generator->defined();
  const at::Generator& used = is_given ? *generator : DefaultGenerator(ordinal);
  TORCH_CHECK(used.device().type() == c10::DeviceType::XLA,
              "Expected a 'xla' device type for generator but found '", used.device().type(), "'");
  return used.get<XlaGeneratorImpl>()->TakeKey();
}

// A generator on xla leads here whatever the tensor.
void CheckOnXla(c10::Device device) {
  TORCH_CHECK(device.is_xla(), "Expected a '", device.type(),
              "' device type for generator but found 'xla'");
}

}  // namespace

lazy::Value RandomState(const std::optional<at::Generator>& generator, c10::Device device) {
  static const lazy::ShapeRef shape = lazy::InternShape(hlo::Shape(hlo::ElementType::kU64, {2}));
  CheckOnXla(device);
  uint64_t words[2] = {TakeKey(generator, ToLazyDevice(device)->ordinal()), 0};
  return {lazy::Node::MakeScalar(shape, words), 0};
}

at::Generator CpuGenerator(const std::optional<at::Generator>& generator, int ordinal) {
  at::Generator on_cpu = at::make_generator<at::CPUGeneratorImpl>();
  on_cpu.set_current_seed(TakeKey(generator, ordinal));
  return on_cpu;
}

}  // namespace torch_xla
