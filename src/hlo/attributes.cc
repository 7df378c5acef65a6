#include "hlo/attributes.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "hlo/hash.h"

namespace hlo {
namespace {

// Each overload calls visit(name, field) for the fields of one attributes struct, so that hashing
// and printing need to know them once.
void VisitFields(const NoAttributes&, auto&& visit) {}
void VisitFields(const ParameterAttributes& a, auto&& visit) { visit("number", a.number); }
void VisitFields(const ConstantAttributes& a, auto&& visit) { visit("value", a.value); }
void VisitFields(const TupleIndexAttributes& a, auto&& visit) { visit("index", a.index); }
void VisitFields(const DimensionAttributes& a, auto&& visit) { visit("dimension", a.dimension); }
void VisitFields(const DimensionsAttributes& a, auto&& visit) { visit("dimensions", a.dimensions); }
void VisitFields(const DynamicBroadcastAttributes& a, auto&& visit) {
  visit("broadcast_dimensions", a.broadcast_dimensions);
  visit("known_expanding_dimensions", a.known_expanding_dimensions);
  visit("known_nonexpanding_dimensions", a.known_nonexpanding_dimensions);
}
void VisitFields(const CompareAttributes& a, auto&& visit) {
  visit("direction", a.direction);
  visit("type", a.type);
}
void VisitFields(const SliceAttributes& a, auto&& visit) {
  visit("start_indices", a.start_indices);
  visit("limit_indices", a.limit_indices);
  visit("strides", a.strides);
}
void VisitFields(const PadAttributes& a, auto&& visit) {
  visit("edge_padding_low", a.edge_padding_low);
  visit("edge_padding_high", a.edge_padding_high);
  visit("interior_padding", a.interior_padding);
}
void VisitFields(const Window& a, auto&& visit) {
  visit("window_dimensions", a.dimensions);
  visit("window_strides", a.strides);
  visit("padding_low", a.padding_low);
  visit("padding_high", a.padding_high);
  visit("base_dilations", a.base_dilations);
  visit("window_dilations", a.window_dilations);
  visit("window_reversal", a.reversal);
}
void VisitFields(const ConvolutionDimensions& a, auto&& visit) {
  visit("input_batch_dimension", a.input_batch_dimension);
  visit("input_feature_dimension", a.input_feature_dimension);
  visit("input_spatial_dimensions", a.input_spatial_dimensions);
  visit("kernel_input_feature_dimension", a.kernel_input_feature_dimension);
  visit("kernel_output_feature_dimension", a.kernel_output_feature_dimension);
  visit("kernel_spatial_dimensions", a.kernel_spatial_dimensions);
  visit("output_batch_dimension", a.output_batch_dimension);
  visit("output_feature_dimension", a.output_feature_dimension);
  visit("output_spatial_dimensions", a.output_spatial_dimensions);
}
void VisitFields(const ConvolutionAttributes& a, auto&& visit) {
  VisitFields(a.window, visit);
  VisitFields(a.dimensions, visit);
  visit("feature_group_count", a.feature_group_count);
  visit("batch_group_count", a.batch_group_count);
  visit("precision", a.precision);
}
void VisitFields(const DotAttributes& a, auto&& visit) {
  visit("lhs_batching_dimensions", a.lhs_batching_dimensions);
  visit("rhs_batching_dimensions", a.rhs_batching_dimensions);
  visit("lhs_contracting_dimensions", a.lhs_contracting_dimensions);
  visit("rhs_contracting_dimensions", a.rhs_contracting_dimensions);
  visit("precision", a.precision);
}
void VisitFields(const GatherAttributes& a, auto&& visit) {
  visit("offset_dims", a.offset_dims);
  visit("collapsed_slice_dims", a.collapsed_slice_dims);
  visit("operand_batching_dims", a.operand_batching_dims);
  visit("start_indices_batching_dims", a.start_indices_batching_dims);
  visit("start_index_map", a.start_index_map);
  visit("index_vector_dim", a.index_vector_dim);
  visit("slice_sizes", a.slice_sizes);
  visit("indices_are_sorted", a.indices_are_sorted);
}
void VisitFields(const ScatterAttributes& a, auto&& visit) {
  visit("update_window_dims", a.update_window_dims);
  visit("inserted_window_dims", a.inserted_window_dims);
  visit("input_batching_dims", a.input_batching_dims);
  visit("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
  visit("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims);
  visit("index_vector_dim", a.index_vector_dim);
  visit("indices_are_sorted", a.indices_are_sorted);
  visit("unique_indices", a.unique_indices);
}
void VisitFields(const SortAttributes& a, auto&& visit) {
  visit("dimension", a.dimension);
  visit("is_stable", a.is_stable);
}
void VisitFields(const FftAttributes& a, auto&& visit) {
  visit("fft_type", a.type);
  visit("fft_length", a.length);
}
void VisitFields(const CholeskyAttributes& a, auto&& visit) { visit("lower", a.lower); }
void VisitFields(const TriangularSolveAttributes& a, auto&& visit) {
  visit("left_side", a.left_side);
  visit("lower", a.lower);
  visit("unit_diagonal", a.unit_diagonal);
  visit("transpose_a", a.transpose_a);
}
void VisitFields(const BatchNormAttributes& a, auto&& visit) {
  visit("epsilon", a.epsilon);
  visit("feature_index", a.feature_index);
}
void VisitFields(const ReducePrecisionAttributes& a, auto&& visit) {
  visit("exponent_bits", a.exponent_bits);
  visit("mantissa_bits", a.mantissa_bits);
}
void VisitFields(const RngAttributes& a, auto&& visit) {
  visit("rng_distribution", a.distribution);
}
void VisitFields(const RngBitGeneratorAttributes& a, auto&& visit) {
  visit("rng_algorithm", a.algorithm);
}
void VisitFields(const CollectiveAttributes& a, auto&& visit) {
  visit("replica_groups", a.replica_groups);
  visit("source_target_pairs", a.source_target_pairs);
  visit("channel_id", a.channel_id);
  visit("channel_type", a.channel_type);
  visit("use_global_device_ids", a.use_global_device_ids);
  visit("dimension", a.dimension);
  visit("split_dimension", a.split_dimension);
  visit("concat_dimension", a.concat_dimension);
  visit("split_count", a.split_count);
  visit("is_host_transfer", a.is_host_transfer);
}
void VisitFields(const FeedAttributes& a, auto&& visit) { visit("config", a.config); }
void VisitFields(const AttributeValue& a, auto&& visit) {
  visit("value", a.value);
  visit("element_type", a.element_type);
}
void VisitFields(const OutputOperandAlias& a, auto&& visit) {
  visit("output_tuple_indices", a.output_tuple_indices);
  visit("operand_index", a.operand_index);
  visit("operand_tuple_indices", a.operand_tuple_indices);
}
void VisitFields(const CustomCallAttributes& a, auto&& visit) {
  visit("target", a.target);
  visit("has_side_effect", a.has_side_effect);
  visit("api_version", a.api_version);
  visit("backend_config", a.backend_config);
  visit("dictionary", a.dictionary);
  visit("operand_layouts", a.operand_layouts);
  visit("result_layouts", a.result_layouts);
  visit("output_operand_aliases", a.output_operand_aliases);
}
void VisitFields(const CompositeAttributes& a, auto&& visit) {
  visit("name", a.name);
  visit("attributes", a.attributes);
  visit("version", a.version);
}

class Hasher {
 public:
  size_t hash() const { return hash_; }

  template <typename T>
  void operator()(const char*, const T& field) {
    Add(field);
  }

 private:
  void Mix(size_t value) { hash_ = CombineHash(hash_, value); }

  void Add(const std::string& text) { Mix(HashText(text)); }
  void Add(const Literal& literal) { Mix(literal.Hash()); }
  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void Add(T value) {
    Mix(static_cast<size_t>(value));
  }
  void Add(double value) { Mix(std::bit_cast<uint64_t>(value)); }
  template <typename T>
  void Add(const std::vector<T>& list) {
    Mix(list.size());
    for (const auto& element : list) Add(static_cast<const T&>(element));
  }
  template <typename T>
  void Add(const std::optional<T>& field) {
    Mix(field.has_value());
    if (field) Add(*field);
  }
  template <typename... T>
  void Add(const std::variant<T...>& field) {
    Mix(field.index());
    std::visit([this](const auto& value) { Add(value); }, field);
  }
  void Add(const AttributeDictionary& dictionary) {
    Mix(dictionary.size());
    for (const auto& [key, value] : dictionary) {
      Add(key);
      Add(value);
    }
  }
  void Add(const AttributeValue& value) { VisitFields(value, *this); }
  void Add(const OutputOperandAlias& alias) { VisitFields(alias, *this); }

  size_t hash_ = 0;
};

std::string_view EnumName(ComparisonDirection value) {
  constexpr std::string_view kNames[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(ComparisonType value) {
  constexpr std::string_view kNames[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(FftType value) {
  constexpr std::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(RngAlgorithm value) {
  constexpr std::string_view kNames[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(RngDistribution value) {
  constexpr std::string_view kNames[] = {"UNIFORM", "NORMAL"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(Transpose value) {
  constexpr std::string_view kNames[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  return kNames[static_cast<int>(value)];
}
std::string_view EnumName(Precision value) {
  constexpr std::string_view kNames[] = {"DEFAULT", "HIGH", "HIGHEST"};
  return kNames[static_cast<int>(value)];
}

class Printer {
 public:
  std::string text() const { return out_.str(); }

  template <typename T>
  void operator()(const char* name, const T& field) {
    if (!first_) out_ << ", ";
    first_ = false;
    out_ << name << " = ";
    Print(field);
  }

 private:
  void Print(bool value) { out_ << (value ? "true" : "false"); }
  void Print(int64_t value) { out_ << value; }
  void Print(double value) { out_ << value; }
  void Print(const std::string& text) { out_ << '"' << text << '"'; }
  void Print(const Literal& literal) { out_ << literal.ToString(); }
  template <typename T>
    requires std::is_enum_v<T>
  void Print(T value) {
    out_ << EnumName(value);
  }
  template <typename T>
  void Print(const std::vector<T>& list) {
    out_ << '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ << ", ";
      Print(static_cast<const T&>(list[i]));
    }
    out_ << ']';
  }
  template <typename T>
  void Print(const std::optional<T>& field) {
    field ? Print(*field) : void(out_ << "none");
  }
  template <typename... T>
  void Print(const std::variant<T...>& field) {
    std::visit([this](const auto& value) { Print(value); }, field);
  }
  void Print(const AttributeDictionary& dictionary) {
    out_ << '{';
    bool first = true;
    for (const auto& [key, value] : dictionary) {
      out_ << (first ? "" : ", ") << key << " = ";
      Print(value.value);
      first = false;
    }
    out_ << '}';
  }
  void Print(const AttributeValue& value) { Print(value.value); }
  void Print(const OutputOperandAlias& alias) {
    out_ << "{output " << ToString(alias.output_tuple_indices) << " operand " << alias.operand_index
         << ToString(alias.operand_tuple_indices) << '}';
  }

  std::ostringstream out_;
  bool first_ = true;
};

}  // namespace

Window Window::Trivial(int64_t rank) {
  Window window;
  window.dimensions.assign(rank, 1);
  window.strides.assign(rank, 1);
  window.padding_low.assign(rank, 0);
  window.padding_high.assign(rank, 0);
  window.base_dilations.assign(rank, 1);
  window.window_dilations.assign(rank, 1);
  window.reversal.assign(rank, false);
  return window;
}

ConvolutionDimensions ConvolutionDimensions::ChannelsFirst(int64_t spatial_rank) {
  ConvolutionDimensions dimensions;
  for (int64_t i = 0; i < spatial_rank; ++i) {
    dimensions.input_spatial_dimensions.push_back(i + 2);
    dimensions.kernel_spatial_dimensions.push_back(i + 2);
    dimensions.output_spatial_dimensions.push_back(i + 2);
  }
  return dimensions;
}

bool AttributeValue::operator==(const AttributeValue& other) const {
  if (element_type != other.element_type || value.index() != other.value.index()) return false;
  const auto same_bits = [](double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  return std::visit(
      [&]<typename T>(const T& mine) {
        const T& theirs = std::get<T>(other.value);
        if constexpr (std::is_same_v<T, double>) {
          return same_bits(mine, theirs);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return std::ranges::equal(mine, theirs, same_bits);
        } else {
          return mine == theirs;
        }
      },
      value);
}

size_t HashAttributes(const Attributes& attributes) {
  Hasher hasher;
  std::visit([&](const auto& a) { VisitFields(a, hasher); }, attributes);
  return CombineHash(hasher.hash(), attributes.index());
}

std::string ToString(const Attributes& attributes) {
  Printer printer;
  std::visit([&](const auto& a) { VisitFields(a, printer); }, attributes);
  return printer.text();
}

}  // namespace hlo
