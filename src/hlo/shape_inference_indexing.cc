// Shapes of gather and scatter.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// What gather and scatter share: which dimensions of the big tensor the windows cover, and which
// dimensions of the index tensor number the windows.
struct IndexRules {
  const Shape& big;
  const Shape& indices;
  const Dimensions& window_dims;    // of the gather's result, of the scatter's updates
  const Dimensions& inserted_dims;  // collapsed_slice_dims, inserted_window_dims
  const Dimensions& big_batching;
  const Dimensions& index_batching;
  const Dimensions& index_map;
  int64_t index_vector_dim;
};

void RequireIndexRules(const ShapeCheck& check, const IndexRules& rules) {
  check.Require(IsInteger(rules.indices.element_type()), "the indices must be integers");
  check.Require(
      rules.index_vector_dim >= 0 && rules.index_vector_dim <= rules.indices.rank(),
      "index_vector_dim must be a dimension of the indices, or their rank for an implied one");
  int64_t vector_size = rules.index_vector_dim < rules.indices.rank()
                            ? rules.indices.dimension(rules.index_vector_dim)
                            : 1;
  check.Require(SameDimension(vector_size, static_cast<int64_t>(rules.index_map.size())), [&] {
    return "an index vector has " + std::to_string(vector_size) + " entries, but " +
           std::to_string(rules.index_map.size()) + " dimensions are indexed";
  });
  Dimensions inserted = rules.inserted_dims;
  inserted.insert(inserted.end(), rules.big_batching.begin(), rules.big_batching.end());
  check.RequireDimensions(inserted, rules.big.rank(),
                          "collapsed, inserted and batching dimensions");
  Dimensions indexed = rules.index_map;
  indexed.insert(indexed.end(), rules.big_batching.begin(), rules.big_batching.end());
  check.RequireDimensions(indexed, rules.big.rank(), "indexed and batching dimensions");
  check.Require(IsSorted(rules.window_dims), "the window dimensions must be sorted");
  check.Require(IsSorted(rules.inserted_dims) && IsSorted(rules.big_batching),
                "collapsed, inserted and batching dimensions must be sorted");
  check.RequireDimensions(rules.index_batching, rules.indices.rank(),
                          "the indices' batching dimensions");
  check.Require(!Contains(rules.index_batching, rules.index_vector_dim),
                "index_vector_dim must not be a batching dimension");
  check.Require(rules.big_batching.size() == rules.index_batching.size(),
                "operand and indices must have as many batching dimensions");
  for (size_t i = 0; i < rules.big_batching.size(); ++i) {
    check.Require(SameDimension(rules.big.dimension(rules.big_batching[i]),
                                rules.indices.dimension(rules.index_batching[i])),
                  "batching dimensions must have equal sizes");
  }
  auto windowed = static_cast<int64_t>(rules.window_dims.size() + inserted.size());
  check.Require(windowed == rules.big.rank(), [&] {
    return "window dimensions plus collapsed, inserted and batching ones must be the operand's " +
           std::to_string(rules.big.rank()) + ", but are " + std::to_string(windowed);
  });
}

// The indices' dimensions without the one that holds the index vectors.
Dimensions WindowGrid(const Shape& indices, int64_t index_vector_dim) {
  Dimensions grid = indices.dimensions();
  if (index_vector_dim < indices.rank()) grid.erase(grid.begin() + index_vector_dim);
  return grid;
}

// The result of a gather, or the updates of a scatter: window sizes at `window_dims`, the grid
// elsewhere.
Dimensions Interleave(const ShapeCheck& check, const Dimensions& window_dims,
                      const Dimensions& window_sizes, const Dimensions& grid) {
  auto rank = static_cast<int64_t>(window_sizes.size() + grid.size());
  check.RequireDimensions(window_dims, rank, "window dimensions");
  Dimensions dimensions;
  size_t next_window = 0, next_grid = 0;
  for (int64_t i = 0; i < rank; ++i) {
    dimensions.push_back(Contains(window_dims, i) ? window_sizes[next_window++]
                                                  : grid[next_grid++]);
  }
  return dimensions;
}

Dimensions WithoutInserted(const Dimensions& sizes, const IndexRules& rules) {
  Dimensions left;
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto dimension = static_cast<int64_t>(i);
    if (!Contains(rules.inserted_dims, dimension) && !Contains(rules.big_batching, dimension)) {
      left.push_back(sizes[i]);
    }
  }
  return left;
}

IndexRules RulesOf(const ShapeCheck& check, const GatherAttributes& gather) {
  return {check.operand(0),
          check.operand(1),
          gather.offset_dims,
          gather.collapsed_slice_dims,
          gather.operand_batching_dims,
          gather.start_indices_batching_dims,
          gather.start_index_map,
          gather.index_vector_dim};
}

Shape InferGather(const ShapeCheck& check) {
  bool dynamic = check.opcode == Opcode::kDynamicGather;
  check.RequireOperands(dynamic ? 3 : 2);
  const auto& gather = check.as<GatherAttributes>();
  IndexRules rules = RulesOf(check, gather);
  RequireIndexRules(check, rules);
  const Shape& x = check.operand(0);
  Dimensions sizes = dynamic ? Dimensions(x.rank(), kDynamic) : gather.slice_sizes;
  if (dynamic) {
    check.Require(IsInteger(check.operand(2).element_type()) && check.operand(2).rank() == 1 &&
                      SameDimension(check.operand(2).dimension(0), x.rank()),
                  "slice_sizes must be a vector with an integer for each operand dimension");
  }
  check.RequireLength(sizes.size(), x.rank(), "slice_sizes");
  for (int64_t i = 0; i < x.rank() && !dynamic; ++i) {
    check.Require(sizes[i] >= 0 && (x.dimension(i) == kDynamic || sizes[i] <= x.dimension(i)), [&] {
      return "slice size " + std::to_string(sizes[i]) + " of dimension " + std::to_string(i) +
             " is not in [0, " + std::to_string(x.dimension(i)) + "]";
    });
    bool removed = Contains(rules.inserted_dims, i) || Contains(rules.big_batching, i);
    check.Require(!removed || sizes[i] <= 1,
                  "slice sizes of collapsed and batching dimensions must be at most 1");
  }
  return x.WithDimensions(Interleave(check, rules.window_dims, WithoutInserted(sizes, rules),
                                     WindowGrid(rules.indices, rules.index_vector_dim)));
}

Shape InferScatter(const ShapeCheck& check) {
  check.RequireAtLeastOperands(3);
  check.RequireCalled(1);
  check.Require(check.operands.size() % 2 == 1, "it takes N inputs, the indices and N updates");
  size_t count = check.operands.size() / 2;
  const auto& scatter = check.as<ScatterAttributes>();
  const Shape& x = check.operand(0);
  IndexRules rules{x,
                   check.operand(count),
                   scatter.update_window_dims,
                   scatter.inserted_window_dims,
                   scatter.input_batching_dims,
                   scatter.scatter_indices_batching_dims,
                   scatter.scatter_dims_to_operand_dims,
                   scatter.index_vector_dim};
  RequireIndexRules(check, rules);
  Dimensions grid = WindowGrid(rules.indices, rules.index_vector_dim);
  // Window sizes bound the updates from above.
  Dimensions largest =
      Interleave(check, rules.window_dims, WithoutInserted(x.dimensions(), rules), grid);
  std::vector<ElementType> types;
  for (size_t i = 0; i < count; ++i) {
    const Shape &input = check.operand(i), &updates = check.operand(count + 1 + i);
    check.Require(SameDimensions(input.dimensions(), x.dimensions()),
                  "all inputs must have the same dimensions");
    check.Require(updates.element_type() == input.element_type(),
                  "updates must have their input's element type");
    check.Require(updates.rank() == static_cast<int64_t>(largest.size()) &&
                      SameDimensions(updates.dimensions(), check.operand(count + 1).dimensions()),
                  [&] { return "updates must have the rank of " + ToString(largest); });
    for (int64_t d = 0; d < updates.rank(); ++d) {
      bool window = Contains(rules.window_dims, d);
      int64_t size = updates.dimension(d), limit = largest[d];
      bool fits = size == kDynamic || limit == kDynamic || (window ? size <= limit : size == limit);
      check.Require(fits, [&] {
        return "dimension " + std::to_string(d) + " of the updates must be " +
               (window ? "at most " : "") + std::to_string(limit);
      });
    }
    types.push_back(input.element_type());
  }
  std::vector<Shape> results;
  std::vector<ElementType> result_types = check.RequireCombiner(*check.called[0], types);
  for (ElementType type : result_types) results.push_back(x.WithElementType(type));
  return OneOrTuple(std::move(results));
}

}  // namespace

Shape InferIndexing(const ShapeCheck& check) {
  check.RequireArrays();
  return check.opcode == Opcode::kScatter ? InferScatter(check) : InferGather(check);
}

}  // namespace hlo
