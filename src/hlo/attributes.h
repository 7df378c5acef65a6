// Attributes of instructions, one struct per family, with StableHLO's field names and meanings
// (https://openxla.org/stablehlo/spec). An instruction holds exactly one of them.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hlo/literal.h"
#include "hlo/shape.h"

namespace hlo {

enum class ComparisonDirection : uint8_t { kEq, kNe, kGe, kGt, kLe, kLt };
enum class ComparisonType : uint8_t { kNotype, kFloat, kTotalOrder, kSigned, kUnsigned };
enum class FftType : uint8_t { kFft, kIfft, kRfft, kIrfft };
enum class RngAlgorithm : uint8_t { kDefault, kThreeFry, kPhilox };
enum class RngDistribution : uint8_t { kUniform, kNormal };
enum class Transpose : uint8_t { kNoTranspose, kTranspose, kAdjoint };
enum class Precision : uint8_t { kDefault, kHigh, kHighest };

struct NoAttributes {
  bool operator==(const NoAttributes&) const = default;
};

// parameter: its number.
struct ParameterAttributes {
  int64_t number = 0;
  bool operator==(const ParameterAttributes&) const = default;
};

// constant.
struct ConstantAttributes {
  Literal value;
  bool operator==(const ConstantAttributes&) const = default;
};

// get_tuple_element.
struct TupleIndexAttributes {
  int64_t index = 0;
  bool operator==(const TupleIndexAttributes&) const = default;
};

// One dimension: iota, concatenate, get_dimension_size, set_dimension_size.
struct DimensionAttributes {
  int64_t dimension = 0;
  bool operator==(const DimensionAttributes&) const = default;
};

// A list of dimensions: broadcast_in_dim (output dimension of each operand dimension), transpose
// (permutation: output dimension i is operand dimension p[i]), reduce, reverse, map; dynamic_slice
// (slice sizes).
struct DimensionsAttributes {
  Dimensions dimensions;
  bool operator==(const DimensionsAttributes&) const = default;
};

// dynamic_broadcast_in_dim.
struct DynamicBroadcastAttributes {
  Dimensions broadcast_dimensions;
  std::optional<Dimensions> known_expanding_dimensions;
  std::optional<Dimensions> known_nonexpanding_dimensions;
  bool operator==(const DynamicBroadcastAttributes&) const = default;
};

struct CompareAttributes {
  ComparisonDirection direction = ComparisonDirection::kEq;
  ComparisonType type = ComparisonType::kNotype;  // kNotype: by the operands' element type
  bool operator==(const CompareAttributes&) const = default;
};

struct SliceAttributes {
  Dimensions start_indices, limit_indices, strides;
  bool operator==(const SliceAttributes&) const = default;
};

// Negative edge padding crops, after the interior padding is inserted.
struct PadAttributes {
  Dimensions edge_padding_low, edge_padding_high, interior_padding;
  bool operator==(const PadAttributes&) const = default;
};

// The window of reduce_window and select_and_scatter (which has no dilations) over all dimensions
// of the operand, and of convolution over its spatial dimensions. All lists have the same length.
struct Window {
  Dimensions dimensions;  // sizes; for a convolution empty: the kernel's shape says them
  Dimensions strides;
  Dimensions padding_low, padding_high;  // may be negative
  Dimensions base_dilations;             // lhs_dilation of a convolution
  Dimensions window_dilations;           // rhs_dilation of a convolution
  std::vector<bool> reversal;            // convolution only; true flips the kernel
  bool operator==(const Window&) const = default;

  // Size 1 everywhere, stride 1, no padding, no dilation; `rank` dimensions.
  static Window Trivial(int64_t rank);
};

struct ConvolutionDimensions {
  int64_t input_batch_dimension = 0;
  int64_t input_feature_dimension = 1;
  Dimensions input_spatial_dimensions;
  int64_t kernel_input_feature_dimension = 1;
  int64_t kernel_output_feature_dimension = 0;
  Dimensions kernel_spatial_dimensions;
  int64_t output_batch_dimension = 0;
  int64_t output_feature_dimension = 1;
  Dimensions output_spatial_dimensions;
  bool operator==(const ConvolutionDimensions&) const = default;

  // NCHW activations, OIHW kernel.
  static ConvolutionDimensions ChannelsFirst(int64_t spatial_rank);
};

struct ConvolutionAttributes {
  Window window;
  ConvolutionDimensions dimensions;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  std::vector<Precision> precision;
  bool operator==(const ConvolutionAttributes&) const = default;
};

// Result: batching dimensions, then the lhs's free dimensions, then the rhs's.
struct DotAttributes {
  Dimensions lhs_batching_dimensions, rhs_batching_dimensions;
  Dimensions lhs_contracting_dimensions, rhs_contracting_dimensions;
  std::vector<Precision> precision;
  bool operator==(const DotAttributes&) const = default;
};

struct GatherAttributes {
  Dimensions offset_dims, collapsed_slice_dims;
  Dimensions operand_batching_dims, start_indices_batching_dims;
  Dimensions start_index_map;
  int64_t index_vector_dim = 0;
  Dimensions slice_sizes;  // empty for dynamic_gather, where they are an operand
  bool indices_are_sorted = false;
  bool operator==(const GatherAttributes&) const = default;
};

struct ScatterAttributes {
  Dimensions update_window_dims, inserted_window_dims;
  Dimensions input_batching_dims, scatter_indices_batching_dims;
  Dimensions scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false;
  bool unique_indices = false;
  bool operator==(const ScatterAttributes&) const = default;
};

struct SortAttributes {
  int64_t dimension = 0;
  bool is_stable = false;
  bool operator==(const SortAttributes&) const = default;
};

struct FftAttributes {
  FftType type = FftType::kFft;
  Dimensions length;
  bool operator==(const FftAttributes&) const = default;
};

struct CholeskyAttributes {
  bool lower = false;
  bool operator==(const CholeskyAttributes&) const = default;
};

struct TriangularSolveAttributes {
  bool left_side = true;
  bool lower = true;
  bool unit_diagonal = false;
  Transpose transpose_a = Transpose::kNoTranspose;
  bool operator==(const TriangularSolveAttributes&) const = default;
};

// batch_norm_*. Equal if they are the same bits: NaN is itself, and 0 is not -0.
struct BatchNormAttributes {
  float epsilon = 0;
  int64_t feature_index = 0;
  bool operator==(const BatchNormAttributes& other) const {
    return std::bit_cast<uint32_t>(epsilon) == std::bit_cast<uint32_t>(other.epsilon) &&
           feature_index == other.feature_index;
  }
};

struct ReducePrecisionAttributes {
  int64_t exponent_bits = 0, mantissa_bits = 0;
  bool operator==(const ReducePrecisionAttributes&) const = default;
};

// rng (distribution) and rng_bit_generator (algorithm).
struct RngAttributes {
  RngDistribution distribution = RngDistribution::kUniform;
  bool operator==(const RngAttributes&) const = default;
};
struct RngBitGeneratorAttributes {
  RngAlgorithm algorithm = RngAlgorithm::kDefault;
  bool operator==(const RngBitGeneratorAttributes&) const = default;
};

// The collectives share one struct; each uses what its StableHLO op has.
struct CollectiveAttributes {
  std::vector<std::vector<int64_t>> replica_groups;  // empty: everybody; -1 pads a ragged group
  std::vector<std::vector<int64_t>> source_target_pairs;  // collective_permute
  int64_t channel_id = 0, channel_type = 0;               // 0: none
  bool use_global_device_ids = false;
  int64_t dimension = 0;  // all_gather_dim, scatter_dimension
  int64_t split_dimension = 0, concat_dimension = 0, split_count = 1;  // all_to_all
  bool is_host_transfer = false;                                       // send, recv
  bool operator==(const CollectiveAttributes&) const = default;
};

// infeed and outfeed.
struct FeedAttributes {
  std::string config;
  bool operator==(const FeedAttributes&) const = default;
};

// A value in the dictionary of a typed custom call (api_version 4) or a composite.
struct AttributeValue;
using AttributeDictionary = std::map<std::string, AttributeValue>;
struct AttributeValue {
  // bool, integer, float, string, dense array of integers or floats, tensor, nested dictionary,
  // list.
  std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
               Literal, AttributeDictionary, std::vector<AttributeValue>>
      value;
  // For scalars and arrays of numbers: the element type written in the program.
  ElementType element_type = ElementType::kInvalid;
  // Numbers are equal if they are the same bits.
  bool operator==(const AttributeValue& other) const;
};

struct OutputOperandAlias {
  Dimensions output_tuple_indices;
  int64_t operand_index = 0;
  Dimensions operand_tuple_indices;
  bool operator==(const OutputOperandAlias&) const = default;
};

struct CustomCallAttributes {
  std::string target;
  bool has_side_effect = false;
  int64_t api_version = 1;
  std::string backend_config;      // api versions 1 to 3
  AttributeDictionary dictionary;  // api version 4; of the others mhlo.frontend_attributes
  std::vector<Dimensions> operand_layouts, result_layouts;  // minor to major; empty: row-major
  std::vector<OutputOperandAlias> output_operand_aliases;
  bool operator==(const CustomCallAttributes&) const = default;
};

// The decomposition is the instruction's called computation.
struct CompositeAttributes {
  std::string name;
  AttributeDictionary attributes;
  int64_t version = 0;
  bool operator==(const CompositeAttributes&) const = default;
};

using Attributes =
    std::variant<NoAttributes, ParameterAttributes, ConstantAttributes, TupleIndexAttributes,
                 DimensionAttributes, DimensionsAttributes, DynamicBroadcastAttributes,
                 CompareAttributes, SliceAttributes, PadAttributes, Window, ConvolutionAttributes,
                 DotAttributes, GatherAttributes, ScatterAttributes, SortAttributes, FftAttributes,
                 CholeskyAttributes, TriangularSolveAttributes, BatchNormAttributes,
                 ReducePrecisionAttributes, RngAttributes, RngBitGeneratorAttributes,
                 CollectiveAttributes, FeedAttributes, CustomCallAttributes, CompositeAttributes>;

// Equal attributes have equal hashes.
size_t HashAttributes(const Attributes& attributes);
// "dimension = 1, is_stable = true"; empty for none.
std::string ToString(const Attributes& attributes);

}  // namespace hlo
