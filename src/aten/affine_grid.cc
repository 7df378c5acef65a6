// affine_grid_generator: where each element of a grid comes from under an affine map, as
// products and sums of the grid's coordinates.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/library.h>

#include <vector>

namespace torch_xla {
namespace {

// Coordinates of [-1, 1] along spatial dimension i of a grid [batch, spatial…, coordinates]: of the
// corners' centers, or of all elements' within their edges.
at::Tensor GridCoordinates(at::IntArrayRef spatial, size_t i, bool align_corners,
                           const at::TensorOptions& options) {
  const int64_t count = spatial[i];
  at::Tensor x = count > 1 ? at::linspace(-1, 1, count, options) : at::zeros({count}, options);
  if (!align_corners) {
    x = x.mul(static_cast<double>(count - 1) / static_cast<double>(count));
  }
  std::vector<int64_t> sizes(spatial.size() + 2, 1);
  sizes[i + 1] = count;
  return x.view(sizes);
}

at::IntArrayRef SpatialSizes(at::IntArrayRef size) {
  TORCH_CHECK(size.size() == 4 || size.size() == 5,
              "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  return size.slice(2);
}

// The map's last column is its translation; its others belong to the coordinates, the innermost
// dimension's first.
at::Tensor AffineGrid(const at::Tensor& theta, at::IntArrayRef size, bool align_corners) {
  const at::IntArrayRef spatial = SpatialSizes(size);
  const auto rank = static_cast<int64_t>(spatial.size());
  TORCH_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == rank &&
                  theta.size(2) == rank + 1,
              "Expected a batch of affine matrices of shape ", size[0], "x", rank, "x", rank + 1,
              " for size ", size, ". Got ", theta.sizes(), ".");
  const at::Tensor map = theta.to(at::toOpMathType(theta.scalar_type()));
  std::vector<int64_t> column(spatial.size() + 2, 1);
  column.front() = size[0], column.back() = rank;
  at::Tensor grid = map.select(2, rank).reshape(column);
  for (int64_t i = 0; i < rank; ++i) {
    at::Tensor x = GridCoordinates(spatial, i, align_corners, map.options());
    grid = grid + x * map.select(2, rank - 1 - i).reshape(column);
  }
  return grid.to(theta.scalar_type());
}

at::Tensor AffineGridBackward(const at::Tensor& gradient, at::IntArrayRef size,
                              bool align_corners) {
  const at::IntArrayRef spatial = SpatialSizes(size);
  const auto rank = static_cast<int64_t>(spatial.size());
  const at::Tensor wide = gradient.to(at::toOpMathType(gradient.scalar_type()));
  std::vector<int64_t> summed(spatial.size());
  for (int64_t i = 0; i < rank; ++i) summed[i] = i + 1;
  std::vector<at::Tensor> columns;
  for (int64_t i = rank - 1; i >= 0; --i) {
    at::Tensor x = GridCoordinates(spatial, i, align_corners, wide.options());
    columns.push_back((wide * x).sum(summed));
  }
  columns.push_back(wide.sum(summed));
  return at::stack(columns, 2).to(gradient.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) { m.impl("affine_grid_generator", &AffineGrid); }

// Has a derivative of its own by its parts'.
TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  m.impl("affine_grid_generator_backward", &AffineGridBackward);
}

}  // namespace torch_xla
