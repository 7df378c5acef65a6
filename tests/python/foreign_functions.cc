// Foreign functions as a user writes them with XLA's header; test_foreign_functions.py compiles it.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// scale * weights * x + shift, and which elements of that are above 0; "refuse" is an error.
static ffi::Error Scaled(ffi::Buffer<ffi::F32> x, float scale, int64_t shift, bool negate,
                         std::string_view mode, ffi::Span<const int64_t> weights, int32_t device,
                         ffi::ResultBuffer<ffi::F32> y, ffi::ResultBuffer<ffi::PRED> above) {
  if (mode == "refuse") return ffi::Error::InvalidArgument("refused, as asked");
  if (device != 0) return ffi::Error::Internal("on another device");
  for (size_t i = 0; i < x.element_count(); ++i) {
    const auto weight = static_cast<float>(weights[i % weights.size()]);
    const float product = scale * weight * x.typed_data()[i];
    y->typed_data()[i] = (negate ? -product : product) + static_cast<float>(shift);
    above->typed_data()[i] = y->typed_data()[i] > 0;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(scaled, Scaled,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Attr<float>("scale")
                                  .Attr<int64_t>("shift")
                                  .Attr<bool>("negate")
                                  .Attr<std::string_view>("mode")
                                  .Attr<ffi::Span<const int64_t>>("weights")
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::PRED>>());

// The type and sizes of any operand, as numbers.
static ffi::Error Described(ffi::AnyBuffer x, ffi::ResultBuffer<ffi::S64> out) {
  int64_t* numbers = out->typed_data();
  *numbers++ = static_cast<int64_t>(x.element_type());
  std::copy(x.dimensions().begin(), x.dimensions().end(), numbers);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(described, Described,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::S64>>());

// Asks for what the engine does not have.
static ffi::Error Streaming(void*, ffi::AnyBuffer, ffi::ResultBuffer<ffi::F32>) {
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(streaming, Streaming,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
