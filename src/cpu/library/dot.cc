// dot_general. Products go to the routines of product.h: f32 to the quickest of several, bf16 to
// oneDNN, f64, c64 and c128 to OpenBLAS, integers to loops. Few rows times the lines of a matrix of
// a narrow type go to row_product.h. Other types are converted on the way in and out. The work is
// cut into slices of the batch and of the result's rows or columns, one thread each.
#include "cpu/library/dot.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu/library/bind.h"
#include "cpu/library/contraction_shape.h"
#include "cpu/library/onednn.h"
#include "cpu/library/product.h"
#include "cpu/library/row_product.h"
#include "cpu/library/small_products.h"
#include "cpu/library/strided_copy.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::ElementType;

bool HasBFloat16Routine() {
  static const bool native = [] {
    try {
      MakeBFloat16Routine(false)->Prepare({.m = 64,
                                           .n = 64,
                                           .k = 64,
                                           .a_row = 64,
                                           .a_column = 1,
                                           .b_row = 64,
                                           .b_column = 1,
                                           .ldc = 64});
      return OneDnnIsa() >= dnnl::cpu_isa::avx512_core_bf16;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return native;
}

// The type that products are computed in.
ElementType ComputeType(const hlo::Instruction& dot) {
  ElementType lhs = dot.operand(0)->element_type(), rhs = dot.operand(1)->element_type();
  ElementType result = dot.element_type();
  if (result == ElementType::kBF16 || result == ElementType::kF16 || result == ElementType::kF32) {
    bool bf16 = lhs == ElementType::kBF16 && rhs == ElementType::kBF16 && HasBFloat16Routine();
    return bf16 ? ElementType::kBF16 : ElementType::kF32;
  }
  return result;
}

bool FitsFloat(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
}

// What the lines of the right operand are to a product that reads them where they lie and converts
// each number in registers, if that is the quickest: it reads the matrix once for each four rows.
// `stored` is the type in memory.
std::optional<LineType> NarrowLines(const hlo::Instruction& dot, ElementType stored) {
  // A row of sums: see SumLines.
  constexpr int64_t kMostRows = 16, kMostRowsOfSums = 2, kLeastSummedColumns = 64;
  const ElementType read = dot.operand(1)->element_type();
  if (!RunsRows() || (stored == ElementType::kF32 && read == ElementType::kF32)) {
    return std::nullopt;
  }
  if (!FitsFloat(dot.operand(0)->element_type()) || !FitsFloat(dot.element_type())) {
    return std::nullopt;
  }
  const bool packs_lhs = dot.operand(0)->element_type() != ElementType::kF32;
  const ContractionShape shape = AnalyzeDot(dot, packs_lhs, false);
  const bool transposed = shape.rhs.contracted_stride == 1;
  if (shape.m > (transposed ? kMostRows : kMostRowsOfSums) || shape.k == 0) return std::nullopt;
  if (shape.lhs.contracted_stride != 1 || shape.rhs.packed) return std::nullopt;
  if (!transposed && (shape.n < kLeastSummedColumns || shape.k > kMostSummedRows)) {
    return std::nullopt;
  }
  return LineTypeOf(stored, read);
}

// The value outside a composite's body that an operand of its product is, or is converted from.
const hlo::Instruction& Source(const hlo::Instruction& operand) {
  return operand.opcode() == hlo::Opcode::kConvert ? *operand.operand(0) : operand;
}

class DotCall : public LibraryCall {
 public:
  DotCall(const hlo::Instruction& dot, const Epilogue* epilogue, const hlo::Shape& result_shape)
      : lhs_type_(dot.operand(0)->element_type()),
        rhs_type_((epilogue == nullptr ? *dot.operand(1) : Source(*dot.operand(1))).element_type()),
        result_type_(result_shape.element_type()),
        lines_(NarrowLines(dot, rhs_type_)),
        compute_type_(lines_ ? ElementType::kF32 : ComputeType(dot)),
        shape_(AnalyzeDot(dot, lhs_type_ != compute_type_, !lines_ && rhs_type_ != compute_type_)) {
    if (epilogue != nullptr) {
      epilogue_ = *epilogue;
      lhs_operand_ = static_cast<int>(dot.operand(0)->parameter_number());
      rhs_operand_ = static_cast<int>(Source(*dot.operand(1)).parameter_number());
    }
    ChooseRoutine();
    PlanSlices();
    PlanScratch(dot);
    are_small_ = compute_type_ == ElementType::kF32 && !lines_ && direct_ && batch_ > 1 &&
                 shape_.batch.size() == 1 && (!epilogue_ || epilogue_->empty()) &&
                 row_slices_ == 1 && column_slices_ == 1 &&
                 IsSmallProduct(MakeProduct(shape_.m, shape_.n));
  }

  int64_t scratch_bytes() const override { return lhs_bytes_ + rhs_bytes_; }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (batch_ * shape_.m * shape_.n == 0) return;
    auto* scratch = static_cast<std::byte*>(context.scratch);
    const void* lhs = Pack(context, shape_.lhs, operands[lhs_operand_], lhs_type_, scratch);
    const void* rhs =
        Pack(context, shape_.rhs, operands[rhs_operand_], rhs_type_, scratch + lhs_bytes_);
    context.threads.ParallelFor(chunks_, [&](int64_t chunk) {
      int64_t begin = chunk * slices_per_chunk_;
      int64_t end = std::min(begin + slices_per_chunk_, batch_ * row_slices_ * column_slices_);
      if (are_small_) return RunSmall(begin, end, lhs, rhs, results[0]);
      for (int64_t slice = begin; slice < end; ++slice) {
        RunSlice(slice, lhs, rhs, operands, results[0]);
      }
    });
  }

  std::string Description() const override {
    std::string text = routine_->Name(MakeProduct(row_block_, column_block_));
    text.append(" ").append(hlo::ShortName(compute_type_));
    if (batch_ > 1) text.append(" ").append(std::to_string(batch_)).append(" x");
    text.append(" ").append(hlo::ToString(std::vector{shape_.m, shape_.k}));
    text.append(" x ").append(hlo::ToString(std::vector{shape_.k, shape_.n}));
    if (shape_.lhs.packed) text += ", packs lhs";
    if (shape_.rhs.packed) text += ", packs rhs";
    return text + (epilogue_ ? epilogue_->Description() : "");
  }

 private:
  Product MakeProduct(int64_t m, int64_t n) const {
    return {.m = m,
            .n = n,
            .k = shape_.k,
            .a_row = shape_.lhs.free_stride,
            .a_column = shape_.lhs.contracted_stride,
            .b_row = shape_.rhs.contracted_stride,
            .b_column = shape_.rhs.free_stride,
            .ldc = direct_ ? shape_.n : n};
  }

  void ChooseRoutine() {
    bool plain = !epilogue_ || epilogue_->empty();
    product_type_ = compute_type_ == ElementType::kBF16 ? ElementType::kF32 : compute_type_;
    direct_ = result_type_ == product_type_;
    int64_t volume = shape_.m * shape_.n * shape_.k;
    if (lines_) {
      routine_ = MakeRowRoutine(*lines_);
      return;
    }
    switch (compute_type_) {
      case ElementType::kBF16: {
        bool narrow = plain && result_type_ == ElementType::kBF16;
        if (narrow) {
          product_type_ = ElementType::kBF16;
          direct_ = true;
        }
        routine_ = MakeBFloat16Routine(narrow);
        break;
      }
      case ElementType::kF32:
        routine_ = volume <= 512 ? MakeLoopRoutine(compute_type_) : MakeFloatRoutine();
        break;
      case ElementType::kF64:
      case ElementType::kC64:
      case ElementType::kC128:
        routine_ = MakeBlasRoutine(compute_type_);
        break;
      default:
        routine_ = MakeLoopRoutine(compute_type_);
    }
  }

  // Several slices per thread, so that a thread that is held up delays the others little, but none
  // so small that packing inside the routine or the hand-over shows.
  void PlanSlices() {
    batch_ = shape_.batch_count();
    double work = 2.0 * shape_.m * shape_.n * std::max<int64_t>(shape_.k, 1);
    double rate = compute_type_ == ElementType::kF32    ? 1
                  : compute_type_ == ElementType::kBF16 ? 0.3
                                                        : 4;
    double minimum = 0.5e6 / rate;  // floating point operations worth a hand-over
    int64_t threads = ThreadPool::Default().num_threads();
    double total = work * static_cast<double>(batch_);
    int64_t wanted = threads == 1 || total < 2 * minimum
                         ? 1
                         : std::min<int64_t>(static_cast<int64_t>(total / minimum),
                                             total > 100 * minimum ? 4 * threads : threads);
    row_block_ = shape_.m;
    column_block_ = shape_.n;
    if (wanted > batch_) SplitMatrix(hlo::CeilDivide(wanted, std::max<int64_t>(batch_, 1)));
    row_slices_ = row_block_ == 0 ? 0 : hlo::CeilDivide(shape_.m, row_block_);
    column_slices_ = column_block_ == 0 ? 0 : hlo::CeilDivide(shape_.n, column_block_);
    int64_t slices = batch_ * row_slices_ * column_slices_;
    slices_per_chunk_ = std::max<int64_t>(1, slices / std::max<int64_t>(wanted, 1));
    chunks_ = hlo::CeilDivide(slices, slices_per_chunk_);
    if (batch_ * shape_.m * shape_.n * shape_.k == 0) return;
    for (int64_t m : {row_block_, shape_.m - (row_slices_ - 1) * row_block_}) {
      for (int64_t n : {column_block_, shape_.n - (column_slices_ - 1) * column_block_}) {
        routine_->Prepare(MakeProduct(m, n));
      }
    }
  }

  // What the routines pack for a piece of m x n is m + n elements for each m * n multiplications:
  // of pieces below this they spend a good part of the time packing.
  static bool PacksTooMuch(int64_t m, int64_t n) { return m * n < 64 * (m + n); }

  // Halves the longer side until there are enough pieces, or one for each thread that are worth it.
  void SplitMatrix(int64_t pieces) {
    constexpr int64_t kRows = 16, kColumns = 48;  // multiples of the routines' register blocks
    const int64_t threads = ThreadPool::Default().num_threads();
    int64_t made = 1;
    while (made < pieces) {
      if (made * batch_ >= threads && PacksTooMuch(row_block_ / 2, column_block_)) {
        return;
      }
      bool rows = row_block_ >= 2 * kRows && row_block_ * 2 >= column_block_;
      bool columns = column_block_ >= 2 * kColumns;
      if (!rows && !columns) {
        if (row_block_ < 2 * kRows) return;
        rows = true;
      }
      int64_t& block = rows ? row_block_ : column_block_;
      int64_t unit = rows ? kRows : kColumns;
      block = hlo::RoundUp(hlo::CeilDivide(block, 2), unit);
      made *= 2;
    }
  }

  void PlanScratch(const hlo::Instruction& dot) {
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(compute_type_));
    auto bytes = [&](const ContractionOperand& operand, int64_t index) {
      return operand.packed ? AlignedSize(dot.operand(index)->shape().num_elements() * width) : 0;
    };
    lhs_bytes_ = bytes(shape_.lhs, 0);
    rhs_bytes_ = bytes(shape_.rhs, 1);
  }

  const void* Pack(const CallContext& context, const ContractionOperand& operand, const void* data,
                   ElementType type, void* scratch) const {
    if (!operand.packed) return data;
    PackStrided(context.threads, operand.packing_dimensions, operand.packing_strides, data, type,
                scratch, compute_type_);
    return scratch;
  }

  // Products [begin, end) of the batch.
  void RunSmall(int64_t begin, int64_t end, const void* lhs, const void* rhs, void* result) const {
    const ProductSteps steps{shape_.lhs.batch_strides[0], shape_.rhs.batch_strides[0],
                             shape_.m * shape_.n};
    RunSmallProducts(MakeProduct(shape_.m, shape_.n), steps, end - begin,
                     static_cast<const float*>(lhs) + begin * steps.a,
                     static_cast<const float*>(rhs) + begin * steps.b,
                     static_cast<float*>(result) + begin * steps.c);
  }

  void RunSlice(int64_t slice, const void* lhs, const void* rhs, const void* const* operands,
                void* result) const {
    int64_t column = slice % column_slices_ * column_block_;
    int64_t row = slice / column_slices_ % row_slices_ * row_block_;
    int64_t index = slice / column_slices_ / row_slices_;
    int64_t m = std::min(row_block_, shape_.m - row),
            n = std::min(column_block_, shape_.n - column);
    const auto width = [](ElementType type) { return static_cast<int64_t>(hlo::ByteWidth(type)); };
    auto* a =
        static_cast<const std::byte*>(lhs) +
        (shape_.Offset(shape_.lhs, index) + row * shape_.lhs.free_stride) * width(compute_type_);
    auto* b = static_cast<const std::byte*>(rhs) +
              (shape_.Offset(shape_.rhs, index) + column * shape_.rhs.free_stride) *
                  width(lines_ ? rhs_type_ : compute_type_);
    int64_t position = (index * shape_.m + row) * shape_.n + column;
    auto* out = static_cast<std::byte*>(result) + position * hlo::ByteWidth(result_type_);
    Product product = MakeProduct(m, n);
    if (direct_) {
      Multiply(product, a, b, out);
      Finish(reinterpret_cast<float*>(out), shape_.n, m, n, position, operands, nullptr);
      return;
    }
    Block values(m * n * hlo::ByteWidth(product_type_));
    Multiply(product, a, b, values.data());
    Finish(static_cast<float*>(values.data()), n, m, n, position, operands, out);
  }

  void Multiply(const Product& p, const void* a, const void* b, void* c) const {
    if (p.k > 0) return routine_->Run(p, a, b, c);
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(product_type_));
    for (int64_t i = 0; i < p.m; ++i) {
      std::memset(static_cast<std::byte*>(c) + i * p.ldc * width, 0, p.n * width);
    }
  }

  // The epilogue in place, then the conversion to `out` when there is one.
  void Finish(float* values, int64_t stride, int64_t m, int64_t n, int64_t position,
              const void* const* operands, std::byte* out) const {
    bool has_epilogue = epilogue_ && !epilogue_->empty();
    if (!has_epilogue && out == nullptr) return;
    for (int64_t i = 0; i < m; ++i) {
      if (has_epilogue) {
        epilogue_->Apply(values + i * stride, position + i * shape_.n, n, operands);
      }
      if (out != nullptr) {
        ConvertRow(values + i * stride, product_type_,
                   out + i * shape_.n * hlo::ByteWidth(result_type_), result_type_, n);
      }
    }
  }

  ElementType lhs_type_, rhs_type_, result_type_;
  std::optional<LineType> lines_;  // of the right operand, if it is not of compute_type_
  ElementType compute_type_, product_type_ = ElementType::kF32;
  ContractionShape shape_;
  std::optional<Epilogue> epilogue_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
  std::unique_ptr<ProductRoutine> routine_;
  bool direct_ = true;      // the routine writes into the result
  bool are_small_ = false;  // many products, each of a few elements
  int64_t batch_ = 1, row_block_ = 0, column_block_ = 0, row_slices_ = 0, column_slices_ = 0;
  int64_t slices_per_chunk_ = 1, chunks_ = 0;
  int64_t lhs_bytes_ = 0, rhs_bytes_ = 0;
};

}  // namespace

bool ReadsThroughConvert(const hlo::Instruction& dot) {
  const hlo::Instruction& rhs = *dot.operand(1);
  return dot.operand(0) != &rhs && rhs.opcode() == hlo::Opcode::kConvert &&
         NarrowLines(dot, rhs.operand(0)->element_type()).has_value();
}

std::unique_ptr<LibraryCall> BindDot(const hlo::Instruction& dot, const Epilogue* epilogue,
                                     const hlo::Shape& result_shape) {
  for (ElementType type : {dot.operand(0)->element_type(), dot.operand(1)->element_type(),
                           dot.element_type(), result_shape.element_type()}) {
    if (!hlo::IsNative(type)) return nullptr;
  }
  if (epilogue != nullptr) {
    ElementType compute = ComputeType(dot);
    if (compute != ElementType::kF32 && compute != ElementType::kBF16) return nullptr;
  }
  return std::make_unique<DotCall>(dot, epilogue, result_shape);
}

}  // namespace cpu
