// The attributes of each operation under VHLO's names. One list serves the reader and the writer:
// `archive` either fills the fields from a file or collects them for one.
#pragma once

#include "hlo/attributes.h"
#include "hlo/bytecode_program.h"
#include "hlo/opcode.h"

namespace hlo::bytecode {

// The attributes struct of `Archive`'s instruction: a fresh one when read, the instruction's when
// written.
template <typename T>
T& Fields(Attributes& attributes) {
  if (T* present = std::get_if<T>(&attributes)) return *present;
  return attributes.emplace<T>();
}

// reduce_window, and with `dilated` false select_and_scatter.
template <typename Archive>
void VisitWindow(Archive& archive, Window& window, bool dilated) {
  archive.Integers("window_dimensions", window.dimensions);
  auto rank = window.dimensions.size();
  if (dilated) {
    archive.Factors("base_dilations", window.base_dilations);
    archive.Factors("window_dilations", window.window_dilations);
  } else {
    window.base_dilations.assign(rank, 1);
    window.window_dilations.assign(rank, 1);
  }
  archive.Padding("padding", window.padding_low, window.padding_high);
  archive.Integers("window_strides", window.strides);
  window.reversal.assign(rank, false);
}

// convolution, and with `static_padding` false dynamic_conv, whose padding is an operand.
template <typename Archive>
void VisitConvolution(Archive& archive, ConvolutionAttributes& a, bool static_padding) {
  ConvolutionDimensions& d = a.dimensions;
  archive.Factor("batch_group_count", a.batch_group_count);
  archive.Factor("feature_group_count", a.feature_group_count);
  archive.Integer("input_batch_dimension", d.input_batch_dimension);
  archive.Integer("input_feature_dimension", d.input_feature_dimension);
  archive.Integers("input_spatial_dimensions", d.input_spatial_dimensions);
  archive.Integer("kernel_input_feature_dimension", d.kernel_input_feature_dimension);
  archive.Integer("kernel_output_feature_dimension", d.kernel_output_feature_dimension);
  archive.Integers("kernel_spatial_dimensions", d.kernel_spatial_dimensions);
  archive.Factors("lhs_dilation", a.window.base_dilations);
  archive.Integer("output_batch_dimension", d.output_batch_dimension);
  archive.Integer("output_feature_dimension", d.output_feature_dimension);
  archive.Integers("output_spatial_dimensions", d.output_spatial_dimensions);
  if (static_padding) {
    archive.Padding("padding", a.window.padding_low, a.window.padding_high);
  } else {
    a.window.padding_low.assign(d.input_spatial_dimensions.size(), 0);
    a.window.padding_high = a.window.padding_low;
  }
  archive.Precisions("precision_config", a.precision);
  archive.Factors("rhs_dilation", a.window.window_dilations);
  archive.Bools("window_reversal", a.window.reversal);
  archive.Integers("window_strides", a.window.strides);
}

template <typename Archive>
void VisitDot(Archive& archive, DotAttributes& a) {
  archive.Integers("lhs_batching_dimensions", a.lhs_batching_dimensions);
  archive.Integers("lhs_contracting_dimensions", a.lhs_contracting_dimensions);
  archive.Precisions("precision_config", a.precision);
  archive.Integers("rhs_batching_dimensions", a.rhs_batching_dimensions);
  archive.Integers("rhs_contracting_dimensions", a.rhs_contracting_dimensions);
  // The dot algorithm, which we neither have nor ask for.
  for (const char* name : {"accumulation_type", "allow_imprecise_accumulation",
                           "lhs_component_count", "lhs_precision_type", "num_primitive_operations",
                           "rhs_component_count", "rhs_precision_type"}) {
    archive.Absent(name);
  }
}

template <typename Archive>
void VisitGather(Archive& archive, GatherAttributes& a, bool static_sizes) {
  archive.Integers("collapsed_slice_dims", a.collapsed_slice_dims);
  archive.Integer("index_vector_dim", a.index_vector_dim);
  archive.Bool("indices_are_sorted", a.indices_are_sorted);
  archive.Integers("offset_dims", a.offset_dims);
  archive.Integers("operand_batching_dims", a.operand_batching_dims);
  if (static_sizes) archive.Integers("slice_sizes", a.slice_sizes);
  archive.Integers("start_index_map", a.start_index_map);
  archive.Integers("start_indices_batching_dims", a.start_indices_batching_dims);
}

template <typename Archive>
void VisitScatter(Archive& archive, ScatterAttributes& a) {
  archive.Integer("index_vector_dim", a.index_vector_dim);
  archive.Bool("indices_are_sorted", a.indices_are_sorted);
  archive.Integers("input_batching_dims", a.input_batching_dims);
  archive.Integers("inserted_window_dims", a.inserted_window_dims);
  archive.Integers("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims);
  archive.Integers("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
  archive.Bool("unique_indices", a.unique_indices);
  archive.Integers("update_window_dims", a.update_window_dims);
}

template <typename Archive>
void VisitCollective(Archive& archive, Opcode opcode, CollectiveAttributes& a) {
  archive.Integer("channel_id", a.channel_id);
  switch (opcode) {
    case Opcode::kCollectivePermute:
      archive.Rows("source_target_pairs", a.source_target_pairs, 2);
      return;
    case Opcode::kSend:
    case Opcode::kRecv:
      archive.Integer("channel_type", a.channel_type);
      archive.Bool("is_host_transfer", a.is_host_transfer);
      return;
    default:
      archive.Rows("replica_groups", a.replica_groups, 0);
  }
  switch (opcode) {
    case Opcode::kAllToAll:
      archive.Integer("concat_dimension", a.concat_dimension);
      archive.Factor("split_count", a.split_count);
      archive.Integer("split_dimension", a.split_dimension);
      return;
    case Opcode::kCollectiveBroadcast:
      return;
    case Opcode::kAllGather:
      archive.Integer("all_gather_dim", a.dimension);
      break;
    case Opcode::kReduceScatter:
      archive.Integer("scatter_dimension", a.dimension);
      break;
    default:
      break;
  }
  archive.Bool("use_global_device_ids", a.use_global_device_ids);
}

// Called computations are the caller's affair: "called_computations", "callee", "decomposition".
// Outside the operation's own attributes.
inline constexpr char kFrontendAttributes[] = "mhlo.frontend_attributes";

template <typename Archive>
void VisitCustomCall(Archive& archive, CustomCallAttributes& a) {
  constexpr int64_t kTypedFfi = 4;
  archive.Enumeration("api_version", AttributeKind::kCustomCallApiVersion, a.api_version,
                      kTypedFfi);
  if (a.api_version == kTypedFfi) {
    archive.Dictionary("backend_config", a.dictionary);
  } else {
    archive.String("backend_config", a.backend_config);
    archive.OptionalDictionary(kFrontendAttributes, a.dictionary);
  }
  archive.TypedCustomCall(a);
  archive.String("call_target_name", a.target);
  archive.Bool("has_side_effect", a.has_side_effect);
  archive.Layouts("operand_layouts", a.operand_layouts);
  archive.Aliases("output_operand_aliases", a.output_operand_aliases);
  archive.Layouts("result_layouts", a.result_layouts);
}

template <typename Archive>
void VisitFields(Archive& archive, Opcode opcode, Attributes& attributes) {
  auto dimension = [&](const char* name) {
    archive.Integer(name, Fields<DimensionAttributes>(attributes).dimension);
  };
  auto dimensions = [&](const char* name) {
    archive.Integers(name, Fields<DimensionsAttributes>(attributes).dimensions);
  };
  switch (opcode) {
    case Opcode::kConstant:
      return archive.Constant("value", Fields<ConstantAttributes>(attributes).value);
    case Opcode::kGetTupleElement:
      return archive.ShortInteger("index", Fields<TupleIndexAttributes>(attributes).index);
    case Opcode::kIota:
    case Opcode::kDynamicIota:
      return dimension("iota_dimension");
    case Opcode::kConcatenate:
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      return dimension("dimension");
    case Opcode::kBroadcastInDim:
      return dimensions("broadcast_dimensions");
    case Opcode::kTranspose:
      return dimensions("permutation");
    case Opcode::kReduce:
    case Opcode::kReverse:
    case Opcode::kMap:
      return dimensions("dimensions");
    case Opcode::kDynamicSlice:
      return dimensions("slice_sizes");
    case Opcode::kDynamicBroadcastInDim: {
      auto& a = Fields<DynamicBroadcastAttributes>(attributes);
      archive.Integers("broadcast_dimensions", a.broadcast_dimensions);
      archive.OptionalIntegers("known_expanding_dimensions", a.known_expanding_dimensions);
      return archive.OptionalIntegers("known_nonexpanding_dimensions",
                                      a.known_nonexpanding_dimensions);
    }
    case Opcode::kCompare: {
      auto& a = Fields<CompareAttributes>(attributes);
      archive.Enumeration("compare_type", AttributeKind::kComparisonType, a.type, 4);
      return archive.Enumeration("comparison_direction", AttributeKind::kComparisonDirection,
                                 a.direction, 5);
    }
    case Opcode::kSlice: {
      auto& a = Fields<SliceAttributes>(attributes);
      archive.Integers("limit_indices", a.limit_indices);
      archive.Integers("start_indices", a.start_indices);
      return archive.Integers("strides", a.strides);
    }
    case Opcode::kPad: {
      auto& a = Fields<PadAttributes>(attributes);
      archive.Integers("edge_padding_high", a.edge_padding_high);
      archive.Integers("edge_padding_low", a.edge_padding_low);
      return archive.Factors("interior_padding", a.interior_padding);
    }
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return VisitWindow(archive, Fields<Window>(attributes), opcode == Opcode::kReduceWindow);
    case Opcode::kConvolution:
    case Opcode::kDynamicConv:
      return VisitConvolution(archive, Fields<ConvolutionAttributes>(attributes),
                              opcode == Opcode::kConvolution);
    case Opcode::kDotGeneral:
      return VisitDot(archive, Fields<DotAttributes>(attributes));
    case Opcode::kGather:
    case Opcode::kDynamicGather:
      return VisitGather(archive, Fields<GatherAttributes>(attributes), opcode == Opcode::kGather);
    case Opcode::kScatter:
      return VisitScatter(archive, Fields<ScatterAttributes>(attributes));
    case Opcode::kSort: {
      auto& a = Fields<SortAttributes>(attributes);
      archive.Integer("dimension", a.dimension);
      return archive.Bool("is_stable", a.is_stable);
    }
    case Opcode::kFft: {
      auto& a = Fields<FftAttributes>(attributes);
      archive.Integers("fft_length", a.length);
      return archive.Enumeration("fft_type", AttributeKind::kFftType, a.type, 3);
    }
    case Opcode::kCholesky:
      return archive.Bool("lower", Fields<CholeskyAttributes>(attributes).lower);
    case Opcode::kTriangularSolve: {
      auto& a = Fields<TriangularSolveAttributes>(attributes);
      archive.Bool("left_side", a.left_side);
      archive.Bool("lower", a.lower);
      archive.Enumeration("transpose_a", AttributeKind::kTranspose, a.transpose_a, 2, 1);
      return archive.Bool("unit_diagonal", a.unit_diagonal);
    }
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining: {
      auto& a = Fields<BatchNormAttributes>(attributes);
      archive.Float("epsilon", a.epsilon);
      return archive.Integer("feature_index", a.feature_index);
    }
    case Opcode::kReducePrecision: {
      auto& a = Fields<ReducePrecisionAttributes>(attributes);
      archive.ShortInteger("exponent_bits", a.exponent_bits);
      return archive.ShortInteger("mantissa_bits", a.mantissa_bits);
    }
    case Opcode::kRng:
      return archive.Enumeration("rng_distribution", AttributeKind::kRngDistribution,
                                 Fields<RngAttributes>(attributes).distribution, 1, 1);
    case Opcode::kRngBitGenerator:
      return archive.Enumeration("rng_algorithm", AttributeKind::kRngAlgorithm,
                                 Fields<RngBitGeneratorAttributes>(attributes).algorithm, 2);
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kReduceScatter:
    case Opcode::kSend:
    case Opcode::kRecv:
      return VisitCollective(archive, opcode, Fields<CollectiveAttributes>(attributes));
    case Opcode::kInfeed:
      archive.String("infeed_config", Fields<FeedAttributes>(attributes).config);
      return archive.NoLayout("layout");
    case Opcode::kOutfeed:
      return archive.String("outfeed_config", Fields<FeedAttributes>(attributes).config);
    case Opcode::kCustomCall:
      return VisitCustomCall(archive, Fields<CustomCallAttributes>(attributes));
    case Opcode::kComposite: {
      auto& a = Fields<CompositeAttributes>(attributes);
      archive.Dictionary("composite_attributes", a.attributes);
      archive.String("name", a.name);
      return archive.ShortInteger("version", a.version);
    }
    default:
      return;
  }
}

}  // namespace hlo::bytecode
