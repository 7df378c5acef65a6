#include "hlo/text_syntax.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/error.h"
#include "hlo/opcode.h"

namespace hlo::text {
namespace {

using bytecode::AttributeKind;

struct Row {
  std::string_view operation;
  std::string_view form;
};

// clang-format off
constexpr Row kRows[] = {
    {"func.call", "symbol:callee ( $ ) {} :"},
    {"func.return", "{} $ :uses"},
    {"sdy.reshard", "$ <skip> :result"},
    {"sdy.sharding_constraint", "$ <skip> :result"},
    {"stablehlo.after_all", "$ {} :result"},
    {"stablehlo.bitcast_convert", "$ {} :"},
    {"stablehlo.broadcast", "$ , sizes = list:broadcast_sizes {} :"},
    {"stablehlo.broadcast_in_dim", "$ , dims = list:broadcast_dimensions {} :"},
    {"stablehlo.cholesky", "$ (? , lower = bool:lower ?) {} :"},
    {"stablehlo.clamp", "$ {} :"},
    {"stablehlo.compare", "enum:comparison_direction , $ (? , enum:compare_type ?) {} :"},
    {"stablehlo.complex", "$ {} :result"},
    {"stablehlo.composite", "string:name $ {} :"},
    {"stablehlo.concatenate", "$ , dim = int:dimension {} :"},
    {"stablehlo.constant", "{} <constant>"},
    {"stablehlo.convert", "$ {} :"},
    {"stablehlo.convolution", "( $ ) dim_numbers = <convolution> , window = { <window> } {} :"},
    {"stablehlo.create_token", "{} :result"},
    {"stablehlo.custom_call", "symbol:call_target_name ( $ ) {} :"},
    {"stablehlo.dot", "$ (? , precision = enums:precision_config ?) {} :"},
    {"stablehlo.dot_general", "$ (? , batching_dims = list:lhs_batching_dimensions x list:rhs_batching_dimensions ?) (? , contracting_dims = list:lhs_contracting_dimensions x list:rhs_contracting_dimensions ?) (? , precision = enums:precision_config ?) (? , algorithm = <skip> ?) {} :"},
    {"stablehlo.dynamic_broadcast_in_dim", "$ , dims = list:broadcast_dimensions {} :"},
    {"stablehlo.dynamic_iota", "$ , dim = int:iota_dimension {} :"},
    {"stablehlo.dynamic_pad", "$ {} :"},
    {"stablehlo.dynamic_reshape", "$ {} :"},
    {"stablehlo.dynamic_slice", "$ , sizes = list:slice_sizes {} :"},
    {"stablehlo.dynamic_update_slice", "$ {} :"},
    {"stablehlo.fft", "$ , type = enum:fft_type , length = list:fft_length {} :"},
    {"stablehlo.get_dimension_size", "$ , dim = int:dimension {} :"},
    {"stablehlo.get_tuple_element", "$ [ int32:index ] {} :"},
    {"stablehlo.iota", "dim = int:iota_dimension {} :result"},
    {"stablehlo.optimization_barrier", "{} (? ( ) ?) $ {} :each"},
    {"stablehlo.pad", "$ , low = list:edge_padding_low , high = list:edge_padding_high , interior = list:interior_padding {} :"},
    {"stablehlo.partition_id", "{} :result"},
    {"stablehlo.real_dynamic_slice", "$ {} :"},
    {"stablehlo.reduce_precision", "$ , format = <format> {} :"},
    {"stablehlo.replica_id", "{} :result"},
    {"stablehlo.reshape", "$ {} :"},
    {"stablehlo.return", "{} $ :uses"},
    {"stablehlo.reverse", "$ , dims = list:dimensions {} :"},
    {"stablehlo.rng", "$ , distribution = enum:rng_distribution {} :"},
    {"stablehlo.rng_bit_generator", "$ , algorithm = enum:rng_algorithm {} :"},
    {"stablehlo.select", "$ {} :select"},
    {"stablehlo.set_dimension_size", "$ , dim = int:dimension {} :"},
    {"stablehlo.slice", "$ <ranges> {} :"},
    {"stablehlo.transpose", "$ , dims = list:permutation {} :"},
    {"stablehlo.tuple", "$ {} :result"},
    {"stablehlo.uniform_dequantize", "$ {} :"},
    {"stablehlo.uniform_quantize", "$ {} :"},
};
// clang-format on

using enum Default::Value;
constexpr std::string_view kSpatial = "input_spatial_dimensions", kSizes = "window_dimensions";
constexpr Default kDefaults[] = {
    {"stablehlo.convolution", "lhs_dilation", kOnes, kSpatial},
    {"stablehlo.convolution", "padding", kZeroPairs, kSpatial},
    {"stablehlo.convolution", "rhs_dilation", kOnes, kSpatial},
    {"stablehlo.convolution", "window_reversal", kFalse, kSpatial},
    {"stablehlo.convolution", "window_strides", kOnes, kSpatial},
    {"stablehlo.dynamic_conv", "lhs_dilation", kOnes, kSpatial},
    {"stablehlo.dynamic_conv", "rhs_dilation", kOnes, kSpatial},
    {"stablehlo.dynamic_conv", "window_reversal", kFalse, kSpatial},
    {"stablehlo.dynamic_conv", "window_strides", kOnes, kSpatial},
    {"stablehlo.reduce_window", "base_dilations", kOnes, kSizes},
    {"stablehlo.reduce_window", "padding", kZeroPairs, kSizes},
    {"stablehlo.reduce_window", "window_dilations", kOnes, kSizes},
    {"stablehlo.reduce_window", "window_strides", kOnes, kSizes},
    {"stablehlo.select_and_scatter", "padding", kZeroPairs, kSizes},
    {"stablehlo.select_and_scatter", "window_strides", kOnes, kSizes},
    {"stablehlo.sort", "dimension", kMinusOne, ""},
};

// Sorted by operation.
constexpr Required kRequired[] = {
    {"all_gather", "all_gather_dim", "all_gather_dim"},
    {"all_gather", "replica_groups", "replica_groups"},
    {"all_reduce", "replica_groups", "replica_groups"},
    {"all_to_all", "concat_dimension", "concat_dimension"},
    {"all_to_all", "replica_groups", "replica_groups"},
    {"all_to_all", "split_count", "split_count"},
    {"all_to_all", "split_dimension", "split_dimension"},
    {"batch_norm_grad", "epsilon", "epsilon"},
    {"batch_norm_grad", "feature_index", "feature_index"},
    {"batch_norm_inference", "epsilon", "epsilon"},
    {"batch_norm_inference", "feature_index", "feature_index"},
    {"batch_norm_training", "epsilon", "epsilon"},
    {"batch_norm_training", "feature_index", "feature_index"},
    {"broadcast", "broadcast_sizes", "broadcast_sizes"},
    {"broadcast_in_dim", "broadcast_dimensions", "broadcast_dimensions"},
    {"collective_broadcast", "replica_groups", "replica_groups"},
    {"collective_permute", "source_target_pairs", "source_target_pairs"},
    {"compare", "comparison_direction", "comparison_direction"},
    {"composite", "decomposition", "decomposition"},
    {"composite", "name", "name"},
    {"concatenate", "dimension", "dimension"},
    {"constant", "value", "value"},
    {"convolution", "batch_group_count", "batch_group_count"},
    {"convolution", "input_batch_dimension", "dimension_numbers"},
    {"convolution", "feature_group_count", "feature_group_count"},
    {"cross-replica-sum", "replica_groups", "replica_groups"},
    {"custom_call", "call_target_name", "call_target_name"},
    {"dot_general", "lhs_contracting_dimensions", "dot_dimension_numbers"},
    {"dynamic_broadcast_in_dim", "broadcast_dimensions", "broadcast_dimensions"},
    {"dynamic_conv", "batch_group_count", "batch_group_count"},
    {"dynamic_conv", "input_batch_dimension", "dimension_numbers"},
    {"dynamic_conv", "feature_group_count", "feature_group_count"},
    {"dynamic_gather", "index_vector_dim", "dimension_numbers"},
    {"dynamic_iota", "iota_dimension", "iota_dimension"},
    {"dynamic_slice", "slice_sizes", "slice_sizes"},
    {"fft", "fft_length", "fft_length"},
    {"fft", "fft_type", "fft_type"},
    {"gather", "index_vector_dim", "dimension_numbers"},
    {"gather", "slice_sizes", "slice_sizes"},
    {"get_dimension_size", "dimension", "dimension"},
    {"get_tuple_element", "index", "index"},
    {"iota", "iota_dimension", "iota_dimension"},
    {"map", "dimensions", "dimensions"},
    {"pad", "edge_padding_high", "edge_padding_high"},
    {"pad", "edge_padding_low", "edge_padding_low"},
    {"pad", "interior_padding", "interior_padding"},
    {"recv", "channel_id", "channel_handle"},
    {"reduce", "dimensions", "dimensions"},
    {"reduce_precision", "exponent_bits", "exponent_bits"},
    {"reduce_precision", "mantissa_bits", "mantissa_bits"},
    {"reduce_scatter", "replica_groups", "replica_groups"},
    {"reduce_scatter", "scatter_dimension", "scatter_dimension"},
    {"reduce_window", "window_dimensions", "window_dimensions"},
    {"reverse", "dimensions", "dimensions"},
    {"rng", "rng_distribution", "rng_distribution"},
    {"rng_bit_generator", "rng_algorithm", "rng_algorithm"},
    {"scatter", "index_vector_dim", "scatter_dimension_numbers"},
    {"send", "channel_id", "channel_handle"},
    {"set_dimension_size", "dimension", "dimension"},
    {"slice", "limit_indices", "limit_indices"},
    {"slice", "start_indices", "start_indices"},
    {"slice", "strides", "strides"},
    {"transpose", "permutation", "permutation"},
    {"triangular_solve", "left_side", "left_side"},
    {"triangular_solve", "lower", "lower"},
    {"triangular_solve", "transpose_a", "transpose_a"},
    {"triangular_solve", "unit_diagonal", "unit_diagonal"},
};

constexpr std::string_view kElementwise = "$ {} :";

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kComparisons[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr std::string_view kFfts[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kPrecisions[] = {"DEFAULT", "HIGH", "HIGHEST"};
constexpr std::string_view kAlgorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
constexpr std::string_view kDistributions[] = {"UNIFORM", "NORMAL"};
constexpr std::string_view kTransposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};

constexpr Enumeration kEnumerations[] = {
    {"comparison_direction", AttributeKind::kComparisonDirection, 0, kDirections},
    {"comparison_type", AttributeKind::kComparisonType, 0, kComparisons},
    {"fft_type", AttributeKind::kFftType, 0, kFfts},
    {"precision", AttributeKind::kPrecision, 0, kPrecisions},
    {"rng_algorithm", AttributeKind::kRngAlgorithm, 0, kAlgorithms},
    {"rng_distribution", AttributeKind::kRngDistribution, 1, kDistributions},
    {"transpose", AttributeKind::kTranspose, 1, kTransposes},
};

std::unordered_map<std::string_view, std::string_view> MakeForms() {
  std::unordered_map<std::string_view, std::string_view> forms;
#define HLO_ELEMENTWISE_FORM(name, mnemonic, kinds) forms["stablehlo." mnemonic] = kElementwise;
  HLO_ELEMENTWISE_UNARY_OPCODES(HLO_ELEMENTWISE_FORM)
  HLO_ELEMENTWISE_BINARY_OPCODES(HLO_ELEMENTWISE_FORM)
#undef HLO_ELEMENTWISE_FORM
  for (const Row& row : kRows) forms[row.operation] = row.form;
  return forms;
}

}  // namespace

std::string_view ShortForm(std::string_view operation) {
  static const auto* forms =
      new std::unordered_map<std::string_view, std::string_view>(MakeForms());
  auto found = forms->find(operation);
  return found == forms->end() ? std::string_view() : found->second;
}

std::span<const Default> Defaults() { return kDefaults; }

std::span<const Required> RequiredAttributes(std::string_view operation) {
  auto found = std::ranges::equal_range(kRequired, operation, {}, &Required::operation);
  return {found.begin(), found.end()};
}

const Enumeration* FindEnumeration(std::string_view name) {
  const auto* found = std::ranges::find(kEnumerations, name, &Enumeration::name);
  return found == std::end(kEnumerations) ? nullptr : found;
}

const Enumeration& EnumerationOfAttribute(std::string_view attribute) {
  if (attribute == "compare_type") attribute = "comparison_type";
  if (attribute == "precision_config") attribute = "precision";
  const Enumeration* found = FindEnumeration(attribute);
  if (!found) throw Error(ErrorCode::kInternal, "not an enumeration");
  return *found;
}

}  // namespace hlo::text
