// The custom calls TopK and mhlo.topk: the k largest (or smallest) of the last dimension, in order,
// with their indices; equal ones by index.
#include <algorithm>
#include <numeric>
#include <vector>

#include "cpu/library/bind.h"
#include "hlo/number_conversion.h"

namespace cpu {
namespace {

// Larger first; NaN above everything, as in a descending total order.
template <typename T>
bool Larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a && b == b;
  }
  return a > b;
}

class TopKCall : public LibraryCall {
 public:
  TopKCall(const hlo::Shape& shape, int64_t k, bool largest)
      : shape_(shape), k_(k), largest_(largest) {}

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    int64_t row = shape_.dimensions().back();
    if (k_ == 0 || row == 0) return;
    hlo::DispatchNative(shape_.element_type(), [&]<typename T>() {
      if constexpr (std::is_arithmetic_v<hlo::ComputeType<T>>) {
        context.threads.ParallelFor(shape_.num_elements() / row, [&](int64_t i) {
          RunRow(static_cast<const T*>(operands[0]) + i * row, row,
                 static_cast<T*>(results[0]) + i * k_, static_cast<int32_t*>(results[1]) + i * k_);
        });
      }
    });
  }
  std::string Description() const override { return "top " + std::to_string(k_); }

 private:
  template <typename T>
  void RunRow(const T* values, int64_t count, T* best, int32_t* indices) const {
    using O = hlo::ComputeType<T>;
    std::vector<int32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    auto before = [&](int32_t i, int32_t j) {
      O a = static_cast<O>(values[i]), b = static_cast<O>(values[j]);
      if (!largest_) std::swap(a, b);
      if (Larger(a, b)) return true;
      if (Larger(b, a)) return false;
      return i < j;
    };
    std::partial_sort(order.begin(), order.begin() + k_, order.end(), before);
    for (int64_t i = 0; i < k_; ++i) {
      indices[i] = order[i];
      best[i] = values[order[i]];
    }
  }

  hlo::Shape shape_;
  int64_t k_;
  bool largest_;
};

}  // namespace

std::unique_ptr<LibraryCall> BindTopK(const hlo::Instruction& instruction) {
  const auto& attributes = instruction.as<hlo::CustomCallAttributes>();
  if (attributes.target != "TopK" && attributes.target != "mhlo.topk") return nullptr;
  if (!instruction.shape().is_tuple() || instruction.shape().tuple_shapes().size() != 2 ||
      instruction.operand_count() == 0) {
    return nullptr;
  }
  const hlo::Shape& shape = instruction.operand(0)->shape();
  const hlo::Shape& values = instruction.shape().tuple_shapes()[0];
  const hlo::Shape& indices = instruction.shape().tuple_shapes()[1];
  if (shape.rank() == 0 || values.rank() != shape.rank() || hlo::IsComplex(shape.element_type()) ||
      indices.element_type() != hlo::ElementType::kS32 ||
      values.dimensions().back() > shape.dimensions().back()) {
    return nullptr;
  }
  bool largest = true;
  auto found = attributes.dictionary.find("largest");
  if (found != attributes.dictionary.end()) {
    if (auto* flag = std::get_if<bool>(&found->second.value)) largest = *flag;
  }
  return std::make_unique<TopKCall>(shape, values.dimensions().back(), largest);
}

}  // namespace cpu
