#include "aten/runtime_hooks.h"

#include <ATen/detail/XLAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "aten/generator.h"
#include "lazy/device.h"
#include "lazy/run_queue.h"

namespace torch_xla {
namespace {

thread_local int current_device = 0;

// Streams do not exist: a device runs its work in order.
class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::XLA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device old = getDevice();
    uncheckedSetDevice(device);
    return old;
  }
  c10::Device getDevice() const override {
    return c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(current_device));
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  // Autograd asks this once to start a thread for each device; before the runtime has started (no
  // tensor exists then) it must not start it.
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      if (!lazy::Runtime::IsStarted()) return 1;
      return static_cast<c10::DeviceIndex>(lazy::Runtime::Get().devices().size());
    } catch (...) {
      return 0;
    }
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { lazy::WaitDeviceOps(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { lazy::WaitDeviceOps(); }
};

C10_REGISTER_GUARD_IMPL(XLA, GuardImpl)

}  // namespace

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int ordinal) { current_device = ordinal; }
int DeviceCount() { return static_cast<int>(lazy::Runtime::Get().devices().size()); }

namespace detail {

struct XLAHooks final : at::XLAHooksInterface {
  void init() const override {}
  bool hasXLA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return lazy::Runtime::IsStarted(); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(DeviceCount());
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { current_device = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return static_cast<c10::DeviceIndex>(std::exchange(current_device, static_cast<int>(device)));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return DefaultGenerator(device < 0 ? current_device : device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<XlaGeneratorImpl>(c10::Device(
        c10::DeviceType::XLA, device < 0 ? static_cast<c10::DeviceIndex>(current_device) : device));
  }
  bool isPinnedPtr(const void*) const override { return false; }
  std::string showConfig() const override { return "torch_xla, PJRT"; }
};

}  // namespace detail
}  // namespace torch_xla

namespace at {
REGISTER_XLA_HOOKS(torch_xla::detail::XLAHooks)
}  // namespace at
