// Triangular systems.
#include "aten/linalg.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

Value SolveTriangular(Builder& b, Value a, Value rhs, bool upper, bool left, bool unit_diagonal) {
  auto [matrix, right] = BroadcastBatches(b, a, rhs);
  hlo::TriangularSolveAttributes attributes;
  attributes.left_side = left;
  attributes.lower = !upper;
  attributes.unit_diagonal = unit_diagonal;
  return b.TriangularSolve(matrix, right, attributes);
}

// The older operator: returns the matrix too.
std::pair<Value, Value> TriangularSolve(Builder& b, Value rhs, Value a, bool upper, bool transpose,
                                        bool unit_diagonal) {
  auto [matrix, right] = BroadcastBatches(b, a, rhs);
  hlo::TriangularSolveAttributes attributes;
  attributes.lower = !upper;
  attributes.unit_diagonal = unit_diagonal;
  if (transpose) attributes.transpose_a = hlo::Transpose::kTranspose;
  return {b.TriangularSolve(matrix, right, attributes), matrix};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&SolveTriangular>(m, "linalg_solve_triangular");
  Register<&TriangularSolve>(m, "triangular_solve");
}

}  // namespace torch_xla
