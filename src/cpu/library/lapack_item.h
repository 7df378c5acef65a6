// How a routine of LAPACK sees a custom call: one element of the batch at a time, its matrices
// column by column, its attributes by name.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>
#include <vector>

#include "hlo/error.h"
#include "hlo/instruction.h"

namespace cpu {

template <typename T>
inline constexpr bool kComplex = !std::is_floating_point_v<T>;
template <typename T>
struct RealOf {
  using Type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using Type = T;
};

// What a routine sees of one element of the batch.
class Item {
 public:
  Item(const hlo::Instruction& call, const void* const* operands, void* const* results,
       int64_t index, int64_t batch)
      : call_(call), operands_(operands), results_(results), index_(index), batch_(batch) {}

  const hlo::Shape& result_shape(int i) const {
    return call_.shape().is_tuple() ? call_.shape().tuple_shapes()[i] : call_.shape();
  }
  // Rows and columns: the last two dimensions.
  int rows(int operand) const { return Size(call_.operand(operand)->shape(), 2); }
  int columns(int operand) const { return Size(call_.operand(operand)->shape(), 1); }
  int result_rows(int i) const { return Size(result_shape(i), 2); }
  int result_columns(int i) const { return Size(result_shape(i), 1); }

  template <typename T>
  const T* In(int i) const {
    int64_t part = call_.operand(i)->shape().num_elements() / batch_;
    return static_cast<const T*>(operands_[i]) + index_ * part;
  }
  template <typename T>
  T* Out(int i) const {
    return static_cast<T*>(results_[i]) + index_ * (result_shape(i).num_elements() / batch_);
  }
  int64_t ResultElements(int i) const { return result_shape(i).num_elements() / batch_; }

  // A column-major copy of an operand's matrix.
  template <typename T>
  std::vector<T> Load(int i) const {
    int m = rows(i), n = columns(i);
    std::vector<T> matrix(std::max<int64_t>(1, int64_t{m} * n));
    const T* in = In<T>(i);
    for (int r = 0; r < m; ++r) {
      for (int c = 0; c < n; ++c) matrix[int64_t{c} * m + r] = in[int64_t{r} * n + c];
    }
    return matrix;
  }
  // The leading rows and columns of a column-major matrix with `ld` rows.
  template <typename T>
  void Store(int i, const T* matrix, int ld) const {
    int m = result_rows(i), n = result_columns(i);
    T* out = Out<T>(i);
    for (int r = 0; r < m; ++r) {
      for (int c = 0; c < n; ++c) out[int64_t{r} * n + c] = matrix[int64_t{c} * ld + r];
    }
  }

  char Letter(const char* name, char otherwise) const {
    return static_cast<char>(Number(name, otherwise));
  }
  int64_t Number(const char* name, int64_t otherwise) const {
    const auto& dictionary = call_.as<hlo::CustomCallAttributes>().dictionary;
    auto found = dictionary.find(name);
    if (found == dictionary.end()) return otherwise;
    if (auto* number = std::get_if<int64_t>(&found->second.value)) return *number;
    if (auto* flag = std::get_if<bool>(&found->second.value)) return *flag;
    return otherwise;
  }
  double Real(const char* name, double otherwise) const {
    const auto& dictionary = call_.as<hlo::CustomCallAttributes>().dictionary;
    auto found = dictionary.find(name);
    if (found == dictionary.end()) return otherwise;
    auto* number = std::get_if<double>(&found->second.value);
    return number == nullptr ? otherwise : *number;
  }

 private:
  static int Size(const hlo::Shape& shape, int64_t from_end) {
    int64_t size = shape.rank() < from_end ? 1 : shape.dimension(shape.rank() - from_end);
    if (size > std::numeric_limits<int>::max()) {
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "linear algebra: a matrix of " + shape.ToString());
    }
    return static_cast<int>(size);
  }

  const hlo::Instruction& call_;
  const void* const* operands_;
  void* const* results_;
  int64_t index_, batch_;
};

// Calls `routine(work, lwork)` for the size of its workspace, then with it.
template <typename T, typename F>
void WithWorkspace(const F& routine) {
  T query{};
  int lwork = -1;
  routine(&query, &lwork);
  lwork = std::max(1, static_cast<int>(std::real(query)));
  std::vector<T> work(lwork);
  routine(work.data(), &lwork);
}

}  // namespace cpu
