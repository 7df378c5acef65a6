// Shapes of operations between devices and between device and host.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// The number of devices in each group; nothing when the group is "everybody".
std::optional<int64_t> GroupSize(const CollectiveAttributes& collective) {
  if (collective.replica_groups.empty() || collective.replica_groups[0].empty()) return {};
  return static_cast<int64_t>(collective.replica_groups[0].size());
}

// What `dimension` becomes when it is multiplied or divided by the group's size; where that is not
// known, the stated shape decides.
Shape ScaleDimension(const ShapeCheck& check, size_t i, bool multiply) {
  const Shape& x = check.operand(i);
  const auto& collective = check.as<CollectiveAttributes>();
  int64_t dimension = collective.dimension;
  check.RequireDimension(dimension, x.rank(), "the dimension");
  Dimensions dimensions = x.dimensions();
  int64_t& size = dimensions[dimension];
  if (size == kDynamic) return x;
  if (auto group = GroupSize(collective)) {
    check.Require(multiply || size % *group == 0,
                  "the scattered dimension must be a multiple of the group's size");
    size = multiply ? size * *group : size / *group;
    return x.WithDimensions(std::move(dimensions));
  }
  const Shape& given = check.RequireGiven();
  const Shape& stated = given.is_tuple() ? given.tuple_shapes().at(i) : given;
  check.Require(stated.rank() == x.rank(), "the result must have the operand's rank");
  int64_t other = stated.dimension(dimension);
  int64_t larger = multiply ? other : size, smaller = multiply ? size : other;
  check.Require(other == kDynamic || larger == smaller || (smaller > 0 && larger % smaller == 0),
                "the gathered size must be a multiple of a device's share");
  size = other;
  return x.WithDimensions(std::move(dimensions));
}

Shape InferAllToAll(const ShapeCheck& check) {
  const auto& collective = check.as<CollectiveAttributes>();
  int64_t count = collective.split_count;
  check.Require(count > 0, "split_count must be positive");
  std::vector<Shape> results;
  for (const Shape* x : check.operands) {
    check.RequireDimension(collective.split_dimension, x->rank(), "split_dimension");
    check.RequireDimension(collective.concat_dimension, x->rank(), "concat_dimension");
    Dimensions dimensions = x->dimensions();
    int64_t& split = dimensions[collective.split_dimension];
    if (split != kDynamic) {
      check.Require(split % count == 0, "the split dimension must be a multiple of split_count");
      split /= count;
    }
    int64_t& concat = dimensions[collective.concat_dimension];
    if (concat != kDynamic) concat *= count;
    results.push_back(x->WithDimensions(std::move(dimensions)));
  }
  return OneOrTuple(std::move(results));
}

// all_reduce and reduce_scatter: `shapes` with the element types that the body returns.
Shape WithBody(const ShapeCheck& check, std::vector<Shape> shapes) {
  check.RequireCalled(1);
  for (Shape& shape : shapes) {
    shape =
        shape.WithElementType(check.RequireCombiner(*check.called[0], {shape.element_type()})[0]);
  }
  return OneOrTuple(std::move(shapes));
}

Shape InferPermute(const ShapeCheck& check) {
  check.RequireOperands(1);
  std::vector<int64_t> sources, targets;
  for (const auto& pair : check.as<CollectiveAttributes>().source_target_pairs) {
    check.RequireLength(pair.size(), 2, "each of source_target_pairs");
    check.Require(!Contains(sources, pair[0]) && !Contains(targets, pair[1]),
                  "sources and targets of source_target_pairs must be unique");
    sources.push_back(pair[0]);
    targets.push_back(pair[1]);
  }
  return check.operand(0);
}

Shape InferFeed(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  check.Require(check.operands.back()->is_token(), "its last operand must be a token");
  if (check.opcode == Opcode::kOutfeed || check.opcode == Opcode::kSend) return Shape::Token();
  check.RequireOperands(1);
  const Shape& given = check.RequireGiven();
  bool ends_in_token = given.is_tuple()
                           ? !given.tuple_shapes().empty() && given.tuple_shapes().back().is_token()
                           : given.is_token();
  check.Require(ends_in_token, "its last result must be a token");
  return given;
}

Shape InferOnTensors(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  check.RequireArrays();
  std::vector<Shape> shapes;
  switch (check.opcode) {
    case Opcode::kAllGather:
      for (size_t i = 0; i < check.operands.size(); ++i) {
        shapes.push_back(ScaleDimension(check, i, true));
      }
      return OneOrTuple(std::move(shapes));
    case Opcode::kAllReduce:
      for (const Shape* shape : check.operands) shapes.push_back(*shape);
      check.as<CollectiveAttributes>();
      return WithBody(check, std::move(shapes));
    case Opcode::kReduceScatter:
      check.RequireOperands(1);
      return WithBody(check, {ScaleDimension(check, 0, false)});
    case Opcode::kAllToAll:
      return InferAllToAll(check);
    case Opcode::kCollectivePermute:
      return InferPermute(check);
    default:
      check.RequireOperands(1);
      check.as<CollectiveAttributes>();
      return check.operand(0);
  }
}

}  // namespace

Shape InferCollective(const ShapeCheck& check) {
  switch (check.opcode) {
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      check.RequireOperands(0);
      return Shape::Scalar(ElementType::kU32);
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRecv:
    case Opcode::kSend:
      return InferFeed(check);
    default:
      return InferOnTensors(check);
  }
}

}  // namespace hlo
