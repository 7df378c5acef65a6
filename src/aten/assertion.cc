// Assertions about values that the device computes: torch._assert_async, which is checked when the
// program has run.
#include <ATen/ops/_assert_async.h>

#include <string>
#include <string_view>

#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/value_check.h"
#include "lazy/capture.h"
#include "lazy/eager.h"
#include "lazy/sync.h"
#include "lazy/value_check.h"

namespace torch_xla {
namespace {

Value Assertion(Builder& b, Value x, std::string words) {
  Value holds = ToPred(b, b.Reshape(x, {}));
  CheckNone(b, b.Not(holds), {kRuntimeError, words});
  return holds;
}

void AssertWithWords(const at::Tensor& self, std::string_view words) {
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with ",
              self.numel() == 0 ? "no values" : "more than one value", " is ambiguous");
  if (!lazy::ValuesAreChecked()) return;
  if (lazy::RunsAsCalled()) {
    TORCH_CHECK(at::is_nonzero(self), words);
    return;
  }
  // What a capture keeps is what its results need.
  if (lazy::CaptureScope::Current() != nullptr) return;
  const at::Tensor holds = Record<&Assertion>(self, words);
  lazy::NoteAssertion(Impl(self)->xla_device(), ReadValue(holds).node);
}

void Assert(const at::Tensor& self) {
  AssertWithWords(self, "Expected Tensor with single nonzero value, but got zero");
}

// The operator of functional graphs: what is asserted is needed by those who take the token.
Value AssertionForToken(Builder& b, Value x, std::string words, Value token) {
  Assertion(b, x, words);
  return token;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Assertion>(+[](const at::Tensor& x, std::string_view words) {
    at::_assert_async(x, words);
    return x.to(at::kBool).reshape({});
  });
  m.impl("_assert_async", &Assert);
  m.impl("_assert_async.msg", &AssertWithWords);
  Register<&AssertionForToken>(m, "_functional_assert_async.msg");
}

}  // namespace torch_xla
