// ShapeCheck: what shape inference of one instruction sees, with the checks that most operations
// share. Internal to shape inference; the families are in shape_inference_*.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hlo/error.h"
#include "hlo/module.h"

namespace hlo {

struct ShapeCheck {
  Opcode opcode;
  std::span<const Shape* const> operands;
  const Attributes& attributes;
  std::span<Computation* const> called;
  const std::optional<Shape>& given;

  // Throws Error: the operation, its operands' shapes, attributes, and the rule that is broken.
  [[noreturn]] void Fail(const std::string& rule,
                         ErrorCode code = ErrorCode::kInvalidArgument) const;
  void Require(bool condition, const char* rule) const {
    if (!condition) Fail(rule);
  }
  // For rules whose text costs something to make.
  template <typename Text>
    requires std::is_invocable_r_v<std::string, Text>
  void Require(bool condition, Text&& rule) const {
    if (!condition) Fail(rule());
  }

  const Shape& operand(size_t i) const { return *operands[i]; }
  template <typename T>
  const T& as() const {
    if (const T* value = std::get_if<T>(&attributes)) return *value;
    Fail("its attributes are those of another operation");
  }

  void RequireOperands(size_t count) const;
  void RequireAtLeastOperands(size_t count) const;
  void RequireCalled(size_t count) const;
  // All operands are tensors (neither tuple nor token).
  void RequireArrays() const;
  const Shape& RequireGiven() const;
  // In [0, rank), each once.
  void RequireDimensions(std::span<const int64_t> dimensions, int64_t rank, const char* name) const;
  void RequireDimension(int64_t dimension, int64_t rank, const char* name) const;
  void RequireLength(size_t length, int64_t expected, const char* name) const;
  void RequireIndexScalar(const Shape& shape, const char* name) const;
  // `computation` takes exactly these parameters.
  void RequireParameters(const Computation& computation, const std::vector<Shape>& shapes,
                         const char* name) const;
  void RequireResults(const Computation& computation, const std::vector<Shape>& shapes,
                      const char* name) const;
  // A body that combines N accumulators with N values, all scalars, and returns N scalars of the
  // accumulators' types, to which `inputs` must be convertible without loss of kind. Returns those
  // types.
  std::vector<ElementType> RequireCombiner(const Computation& body,
                                           const std::vector<ElementType>& inputs) const;
};

// Equal, or one of them known only at run time.
inline bool SameDimension(int64_t a, int64_t b) { return a == b || a == kDynamic || b == kDynamic; }
bool SameDimensions(std::span<const int64_t> a, std::span<const int64_t> b);
// The same element type and compatible dimensions; element by element for tuples.
bool CompatibleShapes(const Shape& a, const Shape& b);
// Both floats, both integers, both complex, or equal.
bool SameKind(ElementType a, ElementType b);
bool Contains(std::span<const int64_t> list, int64_t value);
bool IsSorted(std::span<const int64_t> list);
// The shape itself for one, a tuple for several or none.
Shape OneOrTuple(std::vector<Shape> shapes);
std::vector<Shape> ResultShapes(const Computation& computation);
// Cells of a dimension after base dilation and padding, and steps of a window over it.
int64_t WindowedSize(int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                     int64_t base_dilation, int64_t window_dilation);

// The families.
Shape InferElementwise(const ShapeCheck& check);
Shape InferRearrangement(const ShapeCheck& check);
Shape InferDynamic(const ShapeCheck& check);
Shape InferContraction(const ShapeCheck& check);
Shape InferReduction(const ShapeCheck& check);
Shape InferIndexing(const ShapeCheck& check);
Shape InferNumeric(const ShapeCheck& check);
Shape InferControl(const ShapeCheck& check);
Shape InferCollective(const ShapeCheck& check);

}  // namespace hlo
