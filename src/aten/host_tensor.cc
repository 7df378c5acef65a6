#include "aten/host_tensor.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "aten/dtype.h"
#include "lazy/device.h"
#include "lazy/interpreter.h"

namespace torch_xla {
namespace {

// An allocation is no smaller.
constexpr int64_t kLeastBytes = 64;

std::atomic<int64_t> result_bytes{0}, most_result_bytes{0};

// While it lives, the buffer's memory is there.
struct LentMemory {
  explicit LentMemory(std::shared_ptr<const pjrt::Buffer> lender)
      : buffer(std::move(lender)), reference(*buffer) {}
  const std::shared_ptr<const pjrt::Buffer> buffer;
  const pjrt::Buffer::ExternalReference reference;
};

at::Tensor ViewOf(const lazy::Data& data) {
  std::shared_ptr<const pjrt::Buffer> buffer = data.SharedBuffer();
  try {
    buffer->Await();
  } catch (const hlo::Error& error) {
    throw lazy::OperandFailed(error.code(), error.what());
  }
  auto memory = std::make_shared<const LentMemory>(std::move(buffer));
  void* const bytes = memory->reference.data();
  const hlo::Shape& shape = *data.shape();
  return at::from_blob(
      bytes, shape.dimensions(), [memory = std::move(memory)](void*) {},
      at::TensorOptions(ToScalarType(shape.element_type())));
}

// Not lazily conjugated or negated, row-major.
at::Tensor Dense(const at::Tensor& tensor) {
  // Most are neither, and each question to torch's dispatcher takes as long as a small copy.
  if (!tensor.is_conj() && !tensor.is_neg()) return tensor.contiguous();
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// Whether the tensor's memory is torch's, and not much more than the tensor's own: what lies in a
// buffer or in a node of the graph has no allocator of torch's, and ends before the result does.
bool MayStay(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return storage.allocator() != nullptr && storage.nbytes() <= 2 * tensor.nbytes();
}

}  // namespace

ResultBytes::ResultBytes(int64_t count) : count_(count) {
  if (count_ == 0) return;
  const int64_t total = result_bytes.fetch_add(count_, std::memory_order_relaxed) + count_;
  int64_t most = most_result_bytes.load(std::memory_order_relaxed);
  while (total > most && !most_result_bytes.compare_exchange_weak(most, total)) {
  }
}

ResultBytes::~ResultBytes() {
  if (count_ > 0) result_bytes.fetch_sub(count_, std::memory_order_relaxed);
}

int64_t ResultBytes::Total() { return result_bytes.load(std::memory_order_relaxed); }
int64_t ResultBytes::Most() { return most_result_bytes.load(std::memory_order_relaxed); }
void ResultBytes::ForgetMost() { most_result_bytes = Total(); }

at::Tensor TensorOf(lazy::Data& data) {
  if (const auto* kept = dynamic_cast<const HostTensor*>(data.host_contents())) {
    return kept->tensor();
  }
  const hlo::Shape& shape = *data.shape();
  if (shape.num_elements() == 0) {
    return at::empty(shape.dimensions(), ToScalarType(shape.element_type()));
  }
  data.MoveToCurrentClient();
  at::Tensor view = ViewOf(data);
  data.ShowOnHost(std::make_shared<const HostTensor>(view));
  return view;
}

lazy::Reference<lazy::Data> DataOf(lazy::Device* device, lazy::ShapeRef shape, at::Tensor tensor) {
  tensor = Dense(tensor);
  if (shape->byte_size() > kMostHostBytes || ResultBytes::Total() > kMostHostBytesTogether) {
    auto buffer =
        device->client().BufferFromHost(tensor.const_data_ptr(), *shape, device->pjrt_device());
    return lazy::Reference<lazy::Data>(new lazy::Data(device, shape, std::move(buffer)));
  }
  if (!MayStay(tensor)) tensor = tensor.clone();
  const int64_t bytes = std::max(static_cast<int64_t>(tensor.storage().nbytes()), kLeastBytes);
  return lazy::Data::OnHost(device, shape,
                            std::make_shared<const HostTensor>(std::move(tensor), bytes));
}

at::Tensor Writable(const at::Tensor& operand) {
  const bool is_own = operand.use_count() == 1 && operand.storage().use_count() == 1;
  if (is_own && operand.is_contiguous()) return operand;
  const bool are_few_bytes = operand.is_contiguous() && !operand.is_conj() && !operand.is_neg() &&
                             static_cast<int64_t>(operand.nbytes()) <= kMostHostBytes;
  if (!are_few_bytes) return operand.clone(at::MemoryFormat::Contiguous);
  // torch's kernel takes longer to prepare than to copy them.
  at::Tensor copy(at::detail::empty_cpu(operand.sizes(), operand.scalar_type()));
  if (copy.nbytes() > 0)
    std::memcpy(copy.mutable_data_ptr(), operand.const_data_ptr(), copy.nbytes());
  return copy;
}

}  // namespace torch_xla
