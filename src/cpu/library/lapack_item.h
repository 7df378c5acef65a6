// How a routine of LAPACK sees a custom call: one element of the batch at a time, its matrices
// column by column, its attributes by name.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
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

// The sizes of one operand's or result's part: as a matrix, and in all.
struct ItemPart {
  ItemPart(const hlo::Shape& shape, int64_t batch)
      : rows(Size(shape, 2)),
        columns(Size(shape, 1)),
        elements(shape.num_elements() / std::max<int64_t>(1, batch)) {}

  int64_t rows, columns, elements;

 private:
  static int64_t Size(const hlo::Shape& shape, int64_t from_end) {
    return shape.rank() < from_end ? 1 : shape.dimension(shape.rank() - from_end);
  }
};

// What all elements of the batch have in common, looked up once: of small matrices this would take
// longer than the arithmetic.
struct ItemForm {
  ItemForm(const hlo::Instruction& call, int64_t batch) : call(call) {
    for (const hlo::Instruction* operand : call.operands()) {
      operands.emplace_back(operand->shape(), batch);
    }
    const hlo::Shape& shape = call.shape();
    if (!shape.is_tuple()) results.emplace_back(shape, batch);
    for (int64_t i = 0; shape.is_tuple() && i < std::ssize(shape.tuple_shapes()); ++i) {
      results.emplace_back(shape.tuple_shapes()[i], batch);
    }
  }

  const hlo::Instruction& call;
  std::vector<ItemPart> operands, results;
};

// What a routine sees of one element of the batch.
class Item {
 public:
  Item(const ItemForm& form, const void* const* operands, void* const* results, int64_t index)
      : form_(form), operands_(operands), results_(results), index_(index) {}

  // Rows and columns: the last two dimensions.
  int rows(int operand) const { return Size(form_.operands[operand].rows); }
  int columns(int operand) const { return Size(form_.operands[operand].columns); }
  int result_rows(int i) const { return Size(form_.results[i].rows); }
  int result_columns(int i) const { return Size(form_.results[i].columns); }

  template <typename T>
  const T* In(int i) const {
    return static_cast<const T*>(operands_[i]) + index_ * form_.operands[i].elements;
  }
  template <typename T>
  T* Out(int i) const {
    return static_cast<T*>(results_[i]) + index_ * form_.results[i].elements;
  }
  int64_t ResultElements(int i) const { return form_.results[i].elements; }

  // A column-major copy of an operand's matrix.
  template <typename T>
  std::vector<T> Load(int i) const {
    int m = rows(i), n = columns(i);
    std::vector<T> matrix(std::max<int64_t>(1, int64_t{m} * n));
    LoadInto(i, matrix.data());
    return matrix;
  }
  template <typename T>
  void LoadInto(int i, T* matrix) const {
    const int m = rows(i), n = columns(i);
    const T* in = In<T>(i);
    for (int r = 0; r < m; ++r) {
      for (int c = 0; c < n; ++c) matrix[int64_t{c} * m + r] = in[int64_t{r} * n + c];
    }
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
    const auto& dictionary = form_.call.as<hlo::CustomCallAttributes>().dictionary;
    auto found = dictionary.find(name);
    if (found == dictionary.end()) return otherwise;
    if (auto* number = std::get_if<int64_t>(&found->second.value)) return *number;
    if (auto* flag = std::get_if<bool>(&found->second.value)) return *flag;
    return otherwise;
  }
  double Real(const char* name, double otherwise) const {
    const auto& dictionary = form_.call.as<hlo::CustomCallAttributes>().dictionary;
    auto found = dictionary.find(name);
    if (found == dictionary.end()) return otherwise;
    auto* number = std::get_if<double>(&found->second.value);
    return number == nullptr ? otherwise : *number;
  }

 private:
  static int Size(int64_t size) {
    if (size > std::numeric_limits<int>::max()) {
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "linear algebra: a matrix of " + std::to_string(size) + " rows or columns");
    }
    return static_cast<int>(size);
  }

  const ItemForm& form_;
  const void* const* operands_;
  void* const* results_;
  int64_t index_;
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
