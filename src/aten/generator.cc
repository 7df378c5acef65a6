#include "aten/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstring>
#include <map>
#include <mutex>

#include "aten/tensor.h"
#include "lazy/device.h"

namespace torch_xla {

XlaGeneratorImpl::XlaGeneratorImpl(c10::Device device)
    : GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::XLA)),
      seed_(c10::detail::getNonDeterministicRandom()) {}

void XlaGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
  if (is_default_) followed_seed_ = at::detail::getDefaultCPUGenerator().current_seed();
}

void XlaGeneratorImpl::set_offset(uint64_t offset) { offset_ = offset; }
uint64_t XlaGeneratorImpl::get_offset() const { return offset_; }

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
              "the state of an xla generator is a CPU tensor of 16 bytes (seed, offset)");
  uint64_t words[2];
  std::memcpy(words, new_state.data(), sizeof(words));
  set_current_seed(words[0]);
  offset_ = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> XlaGeneratorImpl::get_state() const {
  uint64_t words[2] = {current_seed(), offset_};
  at::Tensor state = at::empty({16}, at::kByte);
  std::memcpy(state.mutable_data_ptr(), words, sizeof(words));
  return state.getIntrusivePtr();
}

// A stream that has been drawn from continues as the stream whose seed is this number; continuing
// means not repeating, so the generator itself moves to that stream too.
uint64_t XlaGeneratorImpl::Checkpoint() {
  std::lock_guard lock(mutex_);
  FollowCpuSeed();
  if (offset_ != 0) {
    uint64_t mixed = (seed_ ^ (offset_ * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    seed_ = (mixed ^ (mixed >> 33)) & 0x7fffffffffffffffu;
    offset_ = 0;
  }
  return seed_;
}

std::pair<uint64_t, uint64_t> XlaGeneratorImpl::Take(uint64_t count) {
  std::lock_guard lock(mutex_);
  FollowCpuSeed();
  std::pair<uint64_t, uint64_t> state(seed_, offset_);
  offset_ += count;
  return state;
}

XlaGeneratorImpl* XlaGeneratorImpl::clone_impl() const {
  auto* copy = new XlaGeneratorImpl(device());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

void XlaGeneratorImpl::FollowCpuSeed() {
  if (!is_default_) return;
  uint64_t seed = at::detail::getDefaultCPUGenerator().current_seed();
  if (seed == followed_seed_) return;
  followed_seed_ = seed;
  seed_ = seed;
  offset_ = 0;
}

namespace {

struct DefaultGenerators {
  std::mutex mutex;
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

lazy::Value RandomState(const std::optional<at::Generator>& generator, lazy::Device* device,
                        int64_t count) {
  static const lazy::ShapeRef shape = lazy::InternShape(hlo::Shape(hlo::ElementType::kU64, {2}));
  bool is_given = generator.has_value() && generator->defined();
  const at::Generator& used = is_given ? *generator : DefaultGenerator(device->ordinal());
  TORCH_CHECK(used.device().type() == c10::DeviceType::XLA,
              "Expected a 'xla' device type for generator but found '", used.device().type(), "'");
  auto [seed, offset] = used.get<XlaGeneratorImpl>()->Take(static_cast<uint64_t>(count));
  uint64_t words[2] = {seed, offset};
  return {lazy::Node::MakeScalar(shape, words), 0};
}

lazy::Value RandomState(const std::optional<at::Generator>& generator, c10::Device device,
                        int64_t count) {
  return RandomState(generator, ToLazyDevice(device), count);
}

}  // namespace torch_xla
