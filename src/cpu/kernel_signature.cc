#include "cpu/kernel_signature.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <variant>
#include <vector>

#include "hlo/module.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::Literal;
using hlo::Shape;

// Where the instructions of a body stand, by their ids: a body is made at one time, so these lie
// close together.
class Places {
 public:
  explicit Places(const Computation& body) {
    if (body.instructions().empty()) return;
    const auto [first, last] = std::ranges::minmax(
        body.instructions() | std::views::transform([](const auto& i) { return i->id(); }));
    first_ = first;
    places_.assign(static_cast<size_t>(last - first) + 1, -1);
    int64_t place = 0;
    for (const auto& instruction : body.instructions()) {
      places_[static_cast<size_t>(instruction->id() - first_)] = place++;
    }
  }

  int64_t Of(const Instruction* instruction) const {
    return places_.at(static_cast<size_t>(instruction->id() - first_));
  }

 private:
  int64_t first_ = 0;
  std::vector<int64_t> places_;
};

// Lists say first how long they are, so that no two bodies have the same bytes. The attributes'
// fields are taken apart by name: a new one does not compile before it is written here.
class Writer {
 public:
  void Composite(const Instruction& composite) {
    const auto& [name, attributes, version] = composite.as<hlo::CompositeAttributes>();
    complete_ &= attributes.empty();
    const hlo::Computation& body = *composite.called_computations()[0];
    // As most take, so that neither grows piece by piece.
    signature_.structure.reserve(16 * body.instructions().size());
    signature_.numbers.reserve(4 * body.instructions().size());
    Text(name);
    Structure(version);
    Body(body);
  }

  bool complete() const { return complete_; }
  KernelSignature Take() { return std::move(signature_); }

 private:
  void Structure(int64_t number) { AppendNumber(signature_.structure, number); }
  void Number(int64_t number) {
    if (depth_ > 1) signature_.in_code.push_back(signature_.numbers.size());
    signature_.numbers.push_back(number);
  }
  void Text(std::string_view text) {
    Structure(static_cast<int64_t>(text.size()));
    signature_.structure += text;
  }
  void Axes(const Dimensions& axes) {
    Structure(static_cast<int64_t>(axes.size()));
    for (int64_t axis : axes) Structure(axis);
  }
  void Numbers(const Dimensions& numbers) {
    Structure(static_cast<int64_t>(numbers.size()));
    for (int64_t number : numbers) Number(number);
  }

  void Write(const Shape& shape) {
    Structure(static_cast<int64_t>(shape.element_type()));
    Numbers(shape.dimensions());
    Structure(static_cast<int64_t>(shape.tuple_shapes().size()));
    for (const Shape& element : shape.tuple_shapes()) Write(element);
  }

  void Body(const Computation& body) {
    ++depth_;
    const Places numbers(body);
    Structure(static_cast<int64_t>(body.instructions().size()));
    for (const auto& instruction : body.instructions()) {
      Structure(static_cast<int64_t>(instruction->opcode()));
      Write(instruction->shape());
      Structure(static_cast<int64_t>(instruction->operand_count()));
      for (const Instruction* operand : instruction->operands()) Structure(numbers.Of(operand));
      Structure(static_cast<int64_t>(instruction->attributes().index()));
      std::visit([&](const auto& attributes) { Write(*instruction, attributes); },
                 instruction->attributes());
      Structure(static_cast<int64_t>(instruction->called_computations().size()));
      for (const Computation* called : instruction->called_computations()) Body(*called);
    }
    Structure(static_cast<int64_t>(body.results().size()));
    for (const Instruction* result : body.results()) Structure(numbers.Of(result));
    --depth_;
  }

  // Attributes that no kernel has.
  template <typename T>
  void Write(const Instruction&, const T&) {
    complete_ = false;
  }
  void Write(const Instruction&, const hlo::NoAttributes&) {}
  void Write(const Instruction&, const hlo::ParameterAttributes& attributes) {
    const auto& [number] = attributes;
    Structure(number);
  }
  void Write(const Instruction&, const hlo::ConstantAttributes& attributes) {
    const auto& [value] = attributes;
    const std::optional<int64_t> bits = BitsOf(value);
    Structure(bits.has_value());
    if (bits) return Number(*bits);
    Text({reinterpret_cast<const char*>(value.bytes()), value.byte_size()});
  }
  void Write(const Instruction&, const hlo::TupleIndexAttributes& attributes) {
    const auto& [index] = attributes;
    Structure(index);
  }
  void Write(const Instruction&, const hlo::DimensionAttributes& attributes) {
    const auto& [dimension] = attributes;
    Structure(dimension);
  }
  void Write(const Instruction& instruction, const hlo::DimensionsAttributes& attributes) {
    const auto& [dimensions] = attributes;
    instruction.opcode() == hlo::Opcode::kDynamicSlice ? Numbers(dimensions) : Axes(dimensions);
  }
  void Write(const Instruction&, const hlo::CompareAttributes& attributes) {
    const auto& [direction, type] = attributes;
    Structure(static_cast<int64_t>(direction));
    Structure(static_cast<int64_t>(type));
  }
  void Write(const Instruction&, const hlo::SliceAttributes& attributes) {
    const auto& [start_indices, limit_indices, strides] = attributes;
    Numbers(start_indices);
    Numbers(limit_indices);
    Numbers(strides);
  }
  void Write(const Instruction&, const hlo::PadAttributes& attributes) {
    const auto& [edge_padding_low, edge_padding_high, interior_padding] = attributes;
    Numbers(edge_padding_low);
    Numbers(edge_padding_high);
    Numbers(interior_padding);
  }
  void Write(const Instruction&, const hlo::Window& window) {
    const auto& [dimensions, strides, padding_low, padding_high, base_dilations, window_dilations,
                 reversal] = window;
    for (const Dimensions* list :
         {&dimensions, &strides, &padding_low, &padding_high, &base_dilations, &window_dilations}) {
      Numbers(*list);
    }
    Structure(static_cast<int64_t>(reversal.size()));
    for (bool reversed : reversal) Structure(reversed);
  }
  void Write(const Instruction&, const hlo::GatherAttributes& attributes) {
    const auto& [offset_dims, collapsed_slice_dims, operand_batching_dims,
                 start_indices_batching_dims, start_index_map, index_vector_dim, slice_sizes,
                 indices_are_sorted] = attributes;
    for (const Dimensions* list : {&offset_dims, &collapsed_slice_dims, &operand_batching_dims,
                                   &start_indices_batching_dims, &start_index_map}) {
      Axes(*list);
    }
    Structure(index_vector_dim);
    Numbers(slice_sizes);
    Structure(indices_are_sorted);
  }
  void Write(const Instruction&, const hlo::ScatterAttributes& attributes) {
    const auto& [update_window_dims, inserted_window_dims, input_batching_dims,
                 scatter_indices_batching_dims, scatter_dims_to_operand_dims, index_vector_dim,
                 indices_are_sorted, unique_indices] = attributes;
    for (const Dimensions* list : {&update_window_dims, &inserted_window_dims, &input_batching_dims,
                                   &scatter_indices_batching_dims, &scatter_dims_to_operand_dims}) {
      Axes(*list);
    }
    Structure(index_vector_dim);
    Structure(indices_are_sorted);
    Structure(unique_indices);
  }
  void Write(const Instruction&, const hlo::SortAttributes& attributes) {
    const auto& [dimension, is_stable] = attributes;
    Structure(dimension);
    Structure(is_stable);
  }
  void Write(const Instruction&, const hlo::ReducePrecisionAttributes& attributes) {
    const auto& [exponent_bits, mantissa_bits] = attributes;
    Structure(exponent_bits);
    Structure(mantissa_bits);
  }
  void Write(const Instruction&, const hlo::CompositeAttributes& attributes) {
    const auto& [name, dictionary, version] = attributes;
    complete_ &= dictionary.empty();
    Text(name);
    Structure(version);
  }

  KernelSignature signature_;
  bool complete_ = true;
  int depth_ = 0;  // of bodies in each other
};

}  // namespace

void AppendNumber(std::string& bytes, int64_t number) {
  auto rest = static_cast<uint64_t>(number);
  for (; rest >= 0x80; rest >>= 7) bytes += static_cast<char>((rest & 0x7f) | 0x80);
  bytes += static_cast<char>(rest);
}

std::string KernelSignature::ToString() const {
  std::string bytes = structure;
  for (int64_t number : numbers) AppendNumber(bytes, number);
  return bytes;
}

std::optional<int64_t> BitsOf(const Literal& literal) {
  const size_t width = hlo::ByteWidth(literal.shape().element_type());
  if (width > sizeof(int64_t) || !literal.IsSplat()) return std::nullopt;
  int64_t bits = 0;
  std::memcpy(&bits, literal.bytes(), width);
  return bits;
}

std::optional<KernelSignature> SignatureOf(const hlo::Instruction& composite) {
  Writer writer;
  writer.Composite(composite);
  if (!writer.complete()) return std::nullopt;
  return writer.Take();
}

}  // namespace cpu
