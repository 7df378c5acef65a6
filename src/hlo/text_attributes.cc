#include "hlo/text_attributes.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hlo/text_syntax.h"

namespace hlo::text {
namespace {

// Longer constants are written as the hexadecimal digits of their bytes.
constexpr int64_t kMaxListed = 64;

bool IsIdentifier(std::string_view name) {
  if (name.empty() || (!std::isalpha(static_cast<unsigned char>(name[0])) && name[0] != '_')) {
    return false;
  }
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$';
  });
}

std::string Hex(const std::byte* bytes, size_t count, bool big_endian) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    auto byte = static_cast<unsigned>(bytes[big_endian ? count - 1 - i : i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string RealText(double value, const std::byte* bits, size_t width, const char* format) {
  if (!std::isfinite(value)) return "0x" + Hex(bits, width, true);
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.6e", value);  // MLIR's, where it says all
  const double read = std::strtod(buffer, nullptr);
  const bool is_whole =
      width > sizeof(float) ? read == value : static_cast<float>(read) == static_cast<float>(value);
  if (!is_whole) std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

// One element of a dense constant.
std::string ElementText(const Literal& literal, int64_t index) {
  ElementType type = literal.shape().element_type();
  size_t width = ByteWidth(type);
  const std::byte* bytes = literal.bytes() + static_cast<size_t>(index) * width;
  switch (type) {
    case ElementType::kPred:
      return *bytes != std::byte{0} ? "true" : "false";
    case ElementType::kF64:
      return RealText(literal.AsDouble(index), bytes, width, "%.17e");
    case ElementType::kF32:
    case ElementType::kF16:
    case ElementType::kBF16:
      return RealText(literal.AsDouble(index), bytes, width, "%.9e");
    case ElementType::kC64: {
      float parts[2];
      std::memcpy(parts, bytes, sizeof(parts));
      return "(" + RealText(parts[0], bytes, 4, "%.9e") + ", " +
             RealText(parts[1], bytes + 4, 4, "%.9e") + ")";
    }
    case ElementType::kC128: {
      double parts[2];
      std::memcpy(parts, bytes, sizeof(parts));
      return "(" + RealText(parts[0], bytes, 8, "%.17e") + ", " +
             RealText(parts[1], bytes + 8, 8, "%.17e") + ")";
    }
    case ElementType::kU64: {
      uint64_t value;
      std::memcpy(&value, bytes, sizeof(value));
      return std::to_string(value);
    }
    case ElementType::kS2:
    case ElementType::kS4:
      return std::to_string(static_cast<int8_t>(*bytes));
    case ElementType::kU2:
    case ElementType::kU4:
      return std::to_string(static_cast<uint8_t>(*bytes));
    default:
      if (IsFloat(type)) return "0x" + Hex(bytes, width, true);  // floats of a byte or less
      return std::to_string(literal.AsInt(index));
  }
}

void AppendNested(const Literal& literal, int64_t depth, int64_t& index, std::string& out) {
  const Shape& shape = literal.shape();
  if (depth == shape.rank()) {
    out += ElementText(literal, index++);
    return;
  }
  out += "[";
  for (int64_t i = 0; i < shape.dimension(depth); ++i) {
    if (i) out += ", ";
    AppendNested(literal, depth + 1, index, out);
  }
  out += "]";
}

bool HasHexadecimalForm(ElementType type) {
  return type != ElementType::kPred && BitWidth(type) >= 8;
}

std::string DenseBody(const Literal& literal) {
  const Shape& shape = literal.shape();
  int64_t count = shape.num_elements();
  if (count == 0) return "";
  if (literal.IsSplat()) return ElementText(literal, 0);
  if (count > kMaxListed && HasHexadecimalForm(shape.element_type())) {
    return "\"0x" + Hex(literal.bytes(), literal.byte_size(), false) + "\"";
  }
  std::string text;
  int64_t index = 0;
  AppendNested(literal, 0, index, text);
  return text;
}

template <typename T>
std::string NumbersText(const std::vector<T>& values, ElementType type) {
  Literal literal(Shape(type, {static_cast<int64_t>(values.size())}));
  DispatchNative(type, [&]<typename E>() {
    if constexpr (!std::is_same_v<E, std::complex<float>> &&
                  !std::is_same_v<E, std::complex<double>>) {
      auto out = literal.mutable_data<E>();
      for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<E>(values[i]);
    }
  });
  return DenseText(literal);
}

std::string ValueText(const AttributeValue& value) {
  auto type = [&](ElementType fallback) {
    return value.element_type == ElementType::kInvalid ? fallback : value.element_type;
  };
  struct Visitor {
    decltype(type)& element;
    std::string operator()(bool x) { return x ? "true" : "false"; }
    std::string operator()(int64_t x) {
      return std::to_string(x) + " : " + std::string(Name(element(ElementType::kS64)));
    }
    std::string operator()(double x) { return FloatText(x, element(ElementType::kF64)); }
    std::string operator()(const std::string& x) { return StringText(x); }
    std::string operator()(const std::vector<int64_t>& x) {
      return NumbersText(x, element(ElementType::kS64));
    }
    std::string operator()(const std::vector<double>& x) {
      return NumbersText(x, element(ElementType::kF64));
    }
    std::string operator()(const Literal& x) { return DenseText(x); }
    std::string operator()(const AttributeDictionary& x) { return DictionaryText(x); }
    std::string operator()(const std::vector<AttributeValue>& x) {
      std::vector<std::string> parts;
      for (const AttributeValue& part : x) parts.push_back(ValueText(part));
      return "[" + Join(parts) + "]";
    }
  };
  return std::visit(Visitor{type}, value.value);
}

// Collects "name = value" entries.
class Entries {
 public:
  Entries& Add(std::string_view name, const std::string& value) {
    entries_.push_back(std::string(name) + " = " + value);
    return *this;
  }
  Entries& Integer(std::string_view name, int64_t value) {
    return Add(name, std::to_string(value) + " : i64");
  }
  Entries& Bool(std::string_view name, bool value) { return Add(name, value ? "true" : "false"); }
  Entries& Array(std::string_view name, std::span<const int64_t> values) {
    return Add(name, ArrayText(values));
  }
  Entries& Unit(std::string_view name) {
    entries_.emplace_back(name);
    return *this;
  }
  std::string Text() const { return Join(entries_); }

 private:
  std::vector<std::string> entries_;
};

std::string PaddingText(const Window& window) {
  std::vector<std::vector<int64_t>> rows;
  for (size_t i = 0; i < window.padding_low.size(); ++i) {
    rows.push_back({window.padding_low[i], window.padding_high[i]});
  }
  return MatrixText(rows, 2);
}

// "#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>": empty lists are left out.
class DimensionNumbers {
 public:
  explicit DimensionNumbers(std::string_view name) : name_(name) {}
  DimensionNumbers& List(std::string_view name, const Dimensions& values) {
    if (!values.empty()) parts_.push_back(std::string(name) + " = " + ListText(values));
    return *this;
  }
  std::string Text(int64_t index_vector_dim) {
    parts_.push_back("index_vector_dim = " + std::to_string(index_vector_dim));
    return "#stablehlo." + name_ + "<" + Join(parts_) + ">";
  }

 private:
  std::string name_;
  std::vector<std::string> parts_;
};

void AddGather(Entries& out, const GatherAttributes& a, bool static_sizes) {
  out.Add("dimension_numbers",
          DimensionNumbers("gather")
              .List("offset_dims", a.offset_dims)
              .List("collapsed_slice_dims", a.collapsed_slice_dims)
              .List("operand_batching_dims", a.operand_batching_dims)
              .List("start_indices_batching_dims", a.start_indices_batching_dims)
              .List("start_index_map", a.start_index_map)
              .Text(a.index_vector_dim));
  if (static_sizes) out.Array("slice_sizes", a.slice_sizes);
  out.Bool("indices_are_sorted", a.indices_are_sorted);
}

void AddScatter(Entries& out, const ScatterAttributes& a) {
  out.Add("scatter_dimension_numbers",
          DimensionNumbers("scatter")
              .List("update_window_dims", a.update_window_dims)
              .List("inserted_window_dims", a.inserted_window_dims)
              .List("input_batching_dims", a.input_batching_dims)
              .List("scatter_indices_batching_dims", a.scatter_indices_batching_dims)
              .List("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims)
              .Text(a.index_vector_dim));
  out.Bool("indices_are_sorted", a.indices_are_sorted).Bool("unique_indices", a.unique_indices);
}

void AddChannel(Entries& out, Opcode opcode, const CollectiveAttributes& a) {
  bool is_needed = opcode == Opcode::kSend || opcode == Opcode::kRecv;
  if (!is_needed && a.channel_id == 0 && a.channel_type == 0) return;
  out.Add("channel_handle", "#stablehlo.channel_handle<handle = " + std::to_string(a.channel_id) +
                                ", type = " + std::to_string(a.channel_type) + ">");
}

void AddCollective(Entries& out, Opcode opcode, const CollectiveAttributes& a) {
  AddChannel(out, opcode, a);
  switch (opcode) {
    case Opcode::kCollectivePermute:
      out.Add("source_target_pairs", MatrixText(a.source_target_pairs, 2));
      return;
    case Opcode::kSend:
    case Opcode::kRecv:
      out.Bool("is_host_transfer", a.is_host_transfer);
      return;
    case Opcode::kAllToAll:
      out.Integer("split_dimension", a.split_dimension)
          .Integer("concat_dimension", a.concat_dimension)
          .Integer("split_count", a.split_count);
      break;
    case Opcode::kAllGather:
      out.Integer("all_gather_dim", a.dimension);
      break;
    case Opcode::kReduceScatter:
      out.Integer("scatter_dimension", a.dimension);
      break;
    default:
      break;
  }
  out.Add("replica_groups", MatrixText(a.replica_groups, 0));
  if (a.use_global_device_ids) out.Unit("use_global_device_ids");
}

void AddWindow(Entries& out, const Window& window, bool dilated) {
  out.Array("window_dimensions", window.dimensions).Array("window_strides", window.strides);
  if (dilated) {
    out.Array("base_dilations", window.base_dilations)
        .Array("window_dilations", window.window_dilations);
  }
  out.Add("padding", PaddingText(window));
}

void AddDynamicConvolution(Entries& out, const ConvolutionAttributes& a) {
  out.Add("dimension_numbers", "#stablehlo.conv<" + ConvolutionDimensionsText(a.dimensions) + ">");
  out.Integer("feature_group_count", a.feature_group_count)
      .Integer("batch_group_count", a.batch_group_count)
      .Array("window_strides", a.window.strides)
      .Array("lhs_dilation", a.window.base_dilations)
      .Array("rhs_dilation", a.window.window_dilations);
}

std::string LayoutsText(const std::vector<Dimensions>& layouts) {
  std::vector<std::string> parts;
  for (const Dimensions& layout : layouts) {
    parts.push_back("dense<" + (layout.empty() ? "" : ListText(layout)) + "> : tensor<" +
                    std::to_string(layout.size()) + "xindex>");
  }
  return "[" + Join(parts) + "]";
}

std::string AliasesText(const std::vector<OutputOperandAlias>& aliases) {
  std::vector<std::string> parts;
  for (const OutputOperandAlias& alias : aliases) {
    parts.push_back("#stablehlo.output_operand_alias<output_tuple_indices = " +
                    ListText(alias.output_tuple_indices) +
                    ", operand_index = " + std::to_string(alias.operand_index) +
                    ", operand_tuple_indices = " + ListText(alias.operand_tuple_indices) + ">");
  }
  return "[" + Join(parts) + "]";
}

void AddCustomCall(Entries& out, const CustomCallAttributes& a) {
  out.Add("api_version", std::to_string(a.api_version) + " : i32");
  if (a.api_version == 4) {
    out.Add("backend_config", DictionaryText(a.dictionary));
  } else {
    out.Add("backend_config", StringText(a.backend_config));
  }
  if (a.has_side_effect) out.Bool("has_side_effect", true);
  if (!a.operand_layouts.empty()) out.Add("operand_layouts", LayoutsText(a.operand_layouts));
  if (!a.result_layouts.empty()) out.Add("result_layouts", LayoutsText(a.result_layouts));
  if (!a.output_operand_aliases.empty()) {
    out.Add("output_operand_aliases", AliasesText(a.output_operand_aliases));
  }
  if (a.api_version != 4 && !a.dictionary.empty()) {
    out.Add("mhlo.frontend_attributes", DictionaryText(a.dictionary));
  }
}

}  // namespace

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i];
  return text;
}

std::string TypeText(const Shape& shape) {
  if (shape.is_token()) return "!stablehlo.token";
  if (shape.is_tuple()) {
    std::vector<std::string> parts;
    for (const Shape& element : shape.tuple_shapes()) parts.push_back(TypeText(element));
    return "tuple<" + Join(parts) + ">";
  }
  std::string text = "tensor<";
  for (int64_t size : shape.dimensions()) {
    text += size == kDynamic ? "?x" : std::to_string(size) + "x";
  }
  return text + std::string(Name(shape.element_type())) + ">";
}

std::string StringText(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    auto byte = static_cast<std::byte>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c < ' ' || c > '~') {
      quoted += "\\" + Hex(&byte, 1, false);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string SymbolText(std::string_view name) {
  return "@" + (IsIdentifier(name) ? std::string(name) : StringText(name));
}

std::string ListText(std::span<const int64_t> values) {
  std::vector<std::string> parts;
  for (int64_t value : values) parts.push_back(std::to_string(value));
  return "[" + Join(parts) + "]";
}

std::string ArrayText(std::span<const int64_t> values) {
  if (values.empty()) return "array<i64>";
  std::string list = ListText(values);
  return "array<i64: " + list.substr(1, list.size() - 2) + ">";
}

std::string FloatText(double value, ElementType type) {
  std::string suffix = " : " + std::string(Name(type));
  Literal literal = Literal::FromDouble(type, value);
  return ElementText(literal, 0) + suffix;
}

std::string DictionaryText(const AttributeDictionary& dictionary) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : dictionary) {
    parts.push_back((IsIdentifier(name) ? name : StringText(name)) + " = " + ValueText(value));
  }
  return "{" + Join(parts) + "}";
}

std::string DenseText(const Literal& literal, int64_t max_elements) {
  std::string type = " : " + TypeText(literal.shape());
  bool elided =
      max_elements >= 0 && literal.shape().num_elements() > max_elements && !literal.IsSplat();
  if (elided) return "dense_resource<__elided__>" + type;
  return "dense<" + DenseBody(literal) + ">" + type;
}

std::string MatrixText(const std::vector<std::vector<int64_t>>& rows, int64_t columns) {
  auto width = static_cast<size_t>(columns);
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<std::string> parts;
  for (std::vector<int64_t> row : rows) {
    row.resize(width, -1);  // pads ragged groups
    parts.push_back(ListText(row));
  }
  std::string body = rows.empty() || width == 0 ? "" : "[" + Join(parts) + "]";
  return "dense<" + body + "> : tensor<" + std::to_string(rows.size()) + "x" +
         std::to_string(width) + "xi64>";
}

std::string ConvolutionDimensionsText(const ConvolutionDimensions& d) {
  auto side = [](int64_t first, char first_name, int64_t second, char second_name,
                 const Dimensions& spatial) {
    std::vector<std::string> names(spatial.size() + 2);
    names.at(static_cast<size_t>(first)) = first_name;
    names.at(static_cast<size_t>(second)) = second_name;
    for (size_t i = 0; i < spatial.size(); ++i) {
      names.at(static_cast<size_t>(spatial[i])) = std::to_string(i);
    }
    return "[" + Join(names) + "]";
  };
  return side(d.input_batch_dimension, 'b', d.input_feature_dimension, 'f',
              d.input_spatial_dimensions) +
         "x" +
         side(d.kernel_input_feature_dimension, 'i', d.kernel_output_feature_dimension, 'o',
              d.kernel_spatial_dimensions) +
         "->" +
         side(d.output_batch_dimension, 'b', d.output_feature_dimension, 'f',
              d.output_spatial_dimensions);
}

std::string GenericAttributes(const Instruction& instruction) {
  Entries out;
  Opcode opcode = instruction.opcode();
  switch (opcode) {
    case Opcode::kDynamicIota:
      out.Integer("iota_dimension", instruction.as<DimensionAttributes>().dimension);
      break;
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      out.Integer("dimension", instruction.as<DimensionAttributes>().dimension);
      break;
    case Opcode::kReduce:
    case Opcode::kMap:
      out.Array("dimensions", instruction.as<DimensionsAttributes>().dimensions);
      break;
    case Opcode::kDynamicBroadcastInDim: {
      const auto& a = instruction.as<DynamicBroadcastAttributes>();
      out.Array("broadcast_dimensions", a.broadcast_dimensions);
      if (a.known_expanding_dimensions) {
        out.Array("known_expanding_dimensions", *a.known_expanding_dimensions);
      }
      if (a.known_nonexpanding_dimensions) {
        out.Array("known_nonexpanding_dimensions", *a.known_nonexpanding_dimensions);
      }
      break;
    }
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      AddWindow(out, instruction.as<Window>(), opcode == Opcode::kReduceWindow);
      break;
    case Opcode::kDynamicConv:
      AddDynamicConvolution(out, instruction.as<ConvolutionAttributes>());
      break;
    case Opcode::kGather:
    case Opcode::kDynamicGather:
      AddGather(out, instruction.as<GatherAttributes>(), opcode == Opcode::kGather);
      break;
    case Opcode::kScatter:
      AddScatter(out, instruction.as<ScatterAttributes>());
      break;
    case Opcode::kSort: {
      const auto& a = instruction.as<SortAttributes>();
      out.Integer("dimension", a.dimension).Bool("is_stable", a.is_stable);
      break;
    }
    case Opcode::kFft: {
      const auto& a = instruction.as<FftAttributes>();
      out.Add("fft_type",
              "#stablehlo<fft_type " + std::string(EnumeratorText("fft_type", a.type)) + ">")
          .Array("fft_length", a.length);
      break;
    }
    case Opcode::kTriangularSolve: {
      const auto& a = instruction.as<TriangularSolveAttributes>();
      out.Bool("left_side", a.left_side)
          .Bool("lower", a.lower)
          .Bool("unit_diagonal", a.unit_diagonal)
          .Add("transpose_a", "#stablehlo<transpose " +
                                  std::string(EnumeratorText("transpose", a.transpose_a)) + ">");
      break;
    }
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining: {
      const auto& a = instruction.as<BatchNormAttributes>();
      out.Add("epsilon", FloatText(a.epsilon, ElementType::kF32))
          .Integer("feature_index", a.feature_index);
      break;
    }
    case Opcode::kInfeed:
      out.Add("infeed_config", StringText(instruction.as<FeedAttributes>().config));
      break;
    case Opcode::kOutfeed:
      out.Add("outfeed_config", StringText(instruction.as<FeedAttributes>().config));
      break;
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kRecv:
    case Opcode::kReduceScatter:
    case Opcode::kSend:
      AddCollective(out, opcode, instruction.as<CollectiveAttributes>());
      break;
    case Opcode::kCustomCall:
      AddCustomCall(out, instruction.as<CustomCallAttributes>());
      break;
    default:
      break;
  }
  return out.Text();
}

}  // namespace hlo::text
