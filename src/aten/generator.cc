#include "aten/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <map>
#include <mutex>

#include "aten/tensor.h"
#include "lazy/capture.h"
#include "lazy/device.h"
#include "process/fork.h"

namespace torch_xla {

XlaGeneratorImpl::XlaGeneratorImpl(c10::Device device)
    : GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::XLA)),
      place_{c10::detail::getNonDeterministicRandom(), 0} {}

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

// Without that generator's lock, which torch's kernels hold as long as they draw: recording does
// not wait for them, and a word is read whole.
uint64_t CpuSeed() { return at::detail::getDefaultCPUGenerator().current_seed(); }

}  // namespace

XlaGeneratorImpl::Place XlaGeneratorImpl::Now(uint64_t move) const {
  const uint64_t cpu_seed = is_default_ ? CpuSeed() : 0;
  std::lock_guard lock(lock_);
  if (is_default_ && cpu_seed != followed_seed_) {
    followed_seed_ = cpu_seed;
    place_ = {cpu_seed, 0};
  }
  Place now = place_;
  place_.draws += move;
  return now;
}

void XlaGeneratorImpl::Seed(uint64_t seed, uint64_t draws) {
  const uint64_t cpu_seed = is_default_ ? CpuSeed() : 0;
  std::lock_guard lock(lock_);
  place_ = {seed, draws};
  followed_seed_ = cpu_seed;
}

void XlaGeneratorImpl::set_current_seed(uint64_t seed) { Seed(seed, 0); }

void XlaGeneratorImpl::set_offset(uint64_t offset) {
  std::lock_guard lock(lock_);
  place_.draws = offset;
}

uint64_t XlaGeneratorImpl::get_offset() const {
  std::lock_guard lock(lock_);
  return place_.draws;
}

uint64_t XlaGeneratorImpl::current_seed() const { return Now().seed; }

uint64_t XlaGeneratorImpl::seed() {
  const uint64_t seed = c10::detail::getNonDeterministicRandom();
  set_current_seed(seed);
  return seed;
}

void XlaGeneratorImpl::set_state(const c10::TensorImpl& new_state) {
  TORCH_CHECK(new_state.numel() == 16 && new_state.device_type() == c10::DeviceType::CPU &&
                  c10::typeMetaToScalarType(new_state.dtype()) == at::kByte &&
                  new_state.layout() == c10::kStrided && new_state.is_contiguous(),
              "the state of an xla generator is a contiguous CPU tensor of 16 bytes (seed, draws)");
  uint64_t words[2];
  std::memcpy(words, new_state.data(), sizeof(words));
  Seed(words[0], words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> XlaGeneratorImpl::get_state() const {
  const Place now = Now();
  uint64_t words[2] = {now.seed, now.draws};
  at::Tensor state = at::empty({16}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), words, sizeof(words));
  return state.getIntrusivePtr();
}

uint64_t XlaGeneratorImpl::state() const {
  const Place now = Now();
  return StateAfter(now.seed, now.draws);
}

uint64_t XlaGeneratorImpl::TakeKey() {
  const process::NoFork no_fork;
  std::lock_guard lock(mutex_);
  const Place now = Now(1);
  return KeyOf(StateAfter(now.seed, now.draws));
}

XlaGeneratorImpl* XlaGeneratorImpl::clone_impl() const {
  auto* copy = new XlaGeneratorImpl(device());
  copy->place_ = Now();
  return copy;
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
    impl->set_current_seed(generators.seed.value_or(CpuSeed()));
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
  static const auto* shape =
      new lazy::SharedShape(lazy::InternShape(hlo::Shape(hlo::ElementType::kU64, {2})));
  CheckOnXla(device);
  uint64_t words[2] = {0, 0};
  if (lazy::CaptureScope* capture = lazy::CaptureScope::Current()) {
    capture->NoteDraw();
    TORCH_CHECK(!generator || !generator->defined(),
                "a captured graph draws no numbers from a generator of its own");
  } else {
    words[0] = TakeKey(generator, ToLazyDevice(device)->ordinal());
  }
  return {lazy::Node::MakeScalar(shape->get(), words), 0};
}

at::Generator CpuGenerator(const std::optional<at::Generator>& generator, int ordinal) {
  TORCH_CHECK(lazy::CaptureScope::Current() == nullptr,
              "a captured graph draws its numbers on the device");
  at::Generator on_cpu = at::make_generator<at::CPUGeneratorImpl>();
  on_cpu.set_current_seed(TakeKey(generator, ordinal));
  return on_cpu;
}

}  // namespace torch_xla
