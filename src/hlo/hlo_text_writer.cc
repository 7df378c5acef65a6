#include "hlo/hlo_text_writer.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <utility>

namespace hlo {
namespace {

constexpr int64_t kMostConstantElements = 10;

template <typename T, typename F>
std::string Joined(const std::vector<T>& items, const char* separator, F text) {
  std::string out;
  for (const T& item : items) {
    if (!out.empty()) out += separator;
    out += text(item);
  }
  return out;
}

std::string Braces(const Dimensions& numbers) {
  return "{" + Joined(numbers, ",", [](int64_t n) { return std::to_string(n); }) + "}";
}
std::string Braces(const std::vector<std::vector<int64_t>>& groups) {
  return "{" + Joined(groups, ",", [](const auto& group) { return Braces(group); }) + "}";
}
// "2x2"
std::string Sizes(const Dimensions& sizes) {
  return Joined(sizes, "x", [](int64_t n) { return std::to_string(n); });
}
// "0_1x0_1"
std::string Padding(const Dimensions& low, const Dimensions& high, const Dimensions& interior) {
  std::string out;
  for (size_t i = 0; i < low.size(); ++i) {
    if (i > 0) out += "x";
    out += std::to_string(low[i]) + "_" + std::to_string(high[i]);
    if (i < interior.size() && interior[i] != 0) out += "_" + std::to_string(interior[i]);
  }
  return out;
}

bool AllAre(const Dimensions& numbers, int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [=](int64_t n) { return n == value; });
}

// With the layout: row-major.
std::string ShapeText(const Shape& shape) {
  if (shape.is_tuple()) return "(" + Joined(shape.tuple_shapes(), ", ", ShapeText) + ")";
  if (shape.is_scalar() || !shape.is_array()) return shape.ToString();
  Dimensions order;
  for (int64_t i = shape.rank(); i-- > 0;) order.push_back(i);
  return shape.ToString() + Braces(order);
}

std::string NumberText(const Literal& literal, int64_t index) {
  const ElementType type = literal.shape().element_type();
  if (type == ElementType::kPred) return literal.AsInt(index) != 0 ? "true" : "false";
  if (IsInteger(type)) return std::to_string(literal.AsInt(index));
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), literal.AsDouble(index),
                                          std::chars_format::general, 9);
  return {buffer, end};
}

// Elements from `index` on, in braces for each dimension from `dimension` on.
std::string ElementsText(const Literal& literal, size_t dimension, int64_t& index) {
  const Dimensions& sizes = literal.shape().dimensions();
  if (dimension == sizes.size()) return NumberText(literal, index++);
  std::string out;
  for (int64_t i = 0; i < sizes[dimension]; ++i) {
    out += (i == 0 ? "" : ", ") + ElementsText(literal, dimension + 1, index);
  }
  return "{" + out + "}";
}

std::string LiteralText(const Literal& literal) {
  if (IsComplex(literal.shape().element_type())) return "{...}";
  if (literal.shape().num_elements() > kMostConstantElements) return "{...}";
  int64_t index = 0;
  return ElementsText(literal, 0, index);
}

// --- Attributes: ", name=value" for each.

std::string Attribute(const std::string& name, const std::string& value) {
  return ", " + name + "=" + value;
}
std::string Attribute(const std::string& name, int64_t value) {
  return Attribute(name, std::to_string(value));
}
std::string Attribute(const std::string& name, const Dimensions& value) {
  return Attribute(name, Braces(value));
}
std::string IfAny(const std::string& name, const Dimensions& value) {
  return value.empty() ? "" : Attribute(name, value);
}
std::string IfSet(const std::string& name, bool value) {
  return value ? Attribute(name, std::string("true")) : "";
}

std::string WindowText(const Window& window, const Dimensions& sizes) {
  std::string out = "size=" + Sizes(sizes);
  if (!AllAre(window.strides, 1)) out += " stride=" + Sizes(window.strides);
  if (!AllAre(window.padding_low, 0) || !AllAre(window.padding_high, 0)) {
    out += " pad=" + Padding(window.padding_low, window.padding_high, {});
  }
  if (!AllAre(window.base_dilations, 1)) out += " lhs_dilate=" + Sizes(window.base_dilations);
  if (!AllAre(window.window_dilations, 1)) out += " rhs_dilate=" + Sizes(window.window_dilations);
  return Attribute("window", "{" + out + "}");
}

// Which of an array's dimensions is what: "bf01".
std::string Labels(int64_t first, char first_label, int64_t second, char second_label,
                   const Dimensions& spatial) {
  std::string labels(spatial.size() + 2, '?');
  labels[static_cast<size_t>(first)] = first_label;
  labels[static_cast<size_t>(second)] = second_label;
  for (size_t i = 0; i < spatial.size(); ++i) {
    labels[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
  }
  return labels;
}

std::string ConvolutionText(const Instruction& instruction) {
  const auto& convolution = instruction.as<ConvolutionAttributes>();
  const ConvolutionDimensions& d = convolution.dimensions;
  Dimensions sizes;
  for (const int64_t i : d.kernel_spatial_dimensions) {
    sizes.push_back(instruction.operand(1)->dimensions()[static_cast<size_t>(i)]);
  }
  std::string out = WindowText(convolution.window, sizes);
  out += Attribute("dim_labels",
                   Labels(d.input_batch_dimension, 'b', d.input_feature_dimension, 'f',
                          d.input_spatial_dimensions) +
                       "_" +
                       Labels(d.kernel_input_feature_dimension, 'i',
                              d.kernel_output_feature_dimension, 'o', d.kernel_spatial_dimensions) +
                       "->" +
                       Labels(d.output_batch_dimension, 'b', d.output_feature_dimension, 'f',
                              d.output_spatial_dimensions));
  if (convolution.feature_group_count != 1) {
    out += Attribute("feature_group_count", convolution.feature_group_count);
  }
  if (convolution.batch_group_count != 1) {
    out += Attribute("batch_group_count", convolution.batch_group_count);
  }
  return out;
}

std::string DotText(const DotAttributes& dot) {
  return IfAny("lhs_batch_dims", dot.lhs_batching_dimensions) +
         Attribute("lhs_contracting_dims", dot.lhs_contracting_dimensions) +
         IfAny("rhs_batch_dims", dot.rhs_batching_dimensions) +
         Attribute("rhs_contracting_dims", dot.rhs_contracting_dimensions);
}

std::string CompareText(const CompareAttributes& compare) {
  static constexpr const char* kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  std::string out = Attribute("direction", kDirections[static_cast<int>(compare.direction)]);
  if (compare.type == ComparisonType::kTotalOrder) out += ", type=TOTALORDER";
  return out;
}

std::string SliceText(const SliceAttributes& slice) {
  std::string out;
  for (size_t i = 0; i < slice.start_indices.size(); ++i) {
    out += (i == 0 ? "[" : ", [") + std::to_string(slice.start_indices[i]) + ":" +
           std::to_string(slice.limit_indices[i]);
    if (slice.strides[i] != 1) out += ":" + std::to_string(slice.strides[i]);
    out += "]";
  }
  return Attribute("slice", "{" + out + "}");
}

std::string GatherText(const GatherAttributes& gather) {
  return Attribute("offset_dims", gather.offset_dims) +
         Attribute("collapsed_slice_dims", gather.collapsed_slice_dims) +
         Attribute("start_index_map", gather.start_index_map) +
         IfAny("operand_batching_dims", gather.operand_batching_dims) +
         IfAny("start_indices_batching_dims", gather.start_indices_batching_dims) +
         Attribute("index_vector_dim", gather.index_vector_dim) +
         Attribute("slice_sizes", gather.slice_sizes) +
         IfSet("indices_are_sorted", gather.indices_are_sorted);
}

std::string ScatterText(const ScatterAttributes& scatter) {
  return Attribute("update_window_dims", scatter.update_window_dims) +
         Attribute("inserted_window_dims", scatter.inserted_window_dims) +
         Attribute("scatter_dims_to_operand_dims", scatter.scatter_dims_to_operand_dims) +
         IfAny("input_batching_dims", scatter.input_batching_dims) +
         IfAny("scatter_indices_batching_dims", scatter.scatter_indices_batching_dims) +
         Attribute("index_vector_dim", scatter.index_vector_dim) +
         IfSet("indices_are_sorted", scatter.indices_are_sorted) +
         IfSet("unique_indices", scatter.unique_indices);
}

std::string CollectiveText(const Instruction& instruction) {
  const auto& collective = instruction.as<CollectiveAttributes>();
  std::string out;
  if (collective.channel_id != 0) out += Attribute("channel_id", collective.channel_id);
  if (instruction.opcode() == Opcode::kCollectivePermute) {
    return out + Attribute("source_target_pairs", Braces(collective.source_target_pairs));
  }
  out += Attribute("replica_groups", Braces(collective.replica_groups));
  out += IfSet("use_global_device_ids", collective.use_global_device_ids);
  const Opcode opcode = instruction.opcode();
  if (opcode == Opcode::kAllGather || opcode == Opcode::kReduceScatter) {
    out += Attribute("dimensions", Dimensions{collective.dimension});
  }
  if (opcode == Opcode::kAllToAll) {
    out += Attribute("dimensions", Dimensions{collective.split_dimension});
  }
  return out;
}

std::string CustomCallText(const CustomCallAttributes& call) {
  std::string out = Attribute("custom_call_target", "\"" + call.target + "\"");
  out += IfSet("custom_call_has_side_effect", call.has_side_effect);
  if (!call.backend_config.empty()) {
    out += Attribute("backend_config", "\"" + call.backend_config + "\"");
  }
  return out;
}

std::string DimensionText(const Instruction& instruction) {
  const int64_t dimension = instruction.as<DimensionAttributes>().dimension;
  if (instruction.opcode() == Opcode::kIota) return Attribute("iota_dimension", dimension);
  return Attribute("dimensions", Dimensions{dimension});
}

std::string AttributesText(const Instruction& instruction) {
  const Attributes& attributes = instruction.attributes();
  if (const auto* list = std::get_if<DimensionsAttributes>(&attributes)) {
    const bool is_slice = instruction.opcode() == Opcode::kDynamicSlice;
    return Attribute(is_slice ? "dynamic_slice_sizes" : "dimensions", list->dimensions);
  }
  if (const auto* dot = std::get_if<DotAttributes>(&attributes)) return DotText(*dot);
  if (const auto* slice = std::get_if<SliceAttributes>(&attributes)) return SliceText(*slice);
  if (const auto* gather = std::get_if<GatherAttributes>(&attributes)) return GatherText(*gather);
  if (const auto* scatter = std::get_if<ScatterAttributes>(&attributes)) {
    return ScatterText(*scatter);
  }
  if (const auto* compare = std::get_if<CompareAttributes>(&attributes)) {
    return CompareText(*compare);
  }
  if (const auto* window = std::get_if<Window>(&attributes)) {
    return WindowText(*window, window->dimensions);
  }
  if (const auto* call = std::get_if<CustomCallAttributes>(&attributes)) {
    return CustomCallText(*call);
  }
  if (const auto* pad = std::get_if<PadAttributes>(&attributes)) {
    return Attribute("padding",
                     Padding(pad->edge_padding_low, pad->edge_padding_high, pad->interior_padding));
  }
  if (const auto* sort = std::get_if<SortAttributes>(&attributes)) {
    return Attribute("dimensions", Dimensions{sort->dimension}) +
           IfSet("is_stable", sort->is_stable);
  }
  if (const auto* element = std::get_if<TupleIndexAttributes>(&attributes)) {
    return Attribute("index", element->index);
  }
  if (std::holds_alternative<DimensionAttributes>(attributes)) return DimensionText(instruction);
  if (std::holds_alternative<ConvolutionAttributes>(attributes)) {
    return ConvolutionText(instruction);
  }
  if (std::holds_alternative<CollectiveAttributes>(attributes)) return CollectiveText(instruction);
  const std::string rest = ToString(attributes);
  const bool is_said = instruction.opcode() == Opcode::kParameter || instruction.IsConstant();
  return rest.empty() || is_said ? "" : ", " + rest;
}

std::string CalledText(const Instruction& instruction) {
  const auto& called = instruction.called_computations();
  if (called.empty()) return "";
  const auto name = [](const Computation* computation) { return "%" + computation->name(); };
  switch (instruction.opcode()) {
    case Opcode::kWhile:
      return Attribute("condition", name(called[0])) + Attribute("body", name(called[1]));
    case Opcode::kIf:
      return Attribute("true_computation", name(called[0])) +
             Attribute("false_computation", name(called[1]));
    case Opcode::kCase:
      return Attribute("branch_computations", "{" + Joined(called, ", ", name) + "}");
    case Opcode::kSelectAndScatter:
      return Attribute("select", name(called[0])) + Attribute("scatter", name(called[1]));
    default:
      return Attribute("to_apply", name(called[0]));
  }
}

std::string MetadataText(const Metadata& metadata) {
  if (metadata.op_name.empty()) return "";
  std::string out = "op_type=\"" + HloOperationName(metadata.operation()) + "\" op_name=\"" +
                    HloOperationName(metadata.op_name) + "\"";
  if (!metadata.source_file.empty()) {
    out += " source_file=\"" + metadata.source_file +
           "\" source_line=" + std::to_string(metadata.source_line);
  }
  return Attribute("metadata", "{" + out + "}");
}

// --- Computations

// One computation's lines. A loop's condition and body have their parameters in one tuple.
class ComputationWriter {
 public:
  ComputationWriter(const Computation& computation, bool is_entry, bool takes_tuple, int64_t& next)
      : computation_(computation), is_entry_(is_entry), takes_tuple_(takes_tuple), next_(next) {}

  std::string Write() {
    WriteParameters();
    for (const auto& instruction : computation_.instructions()) {
      if (instruction->opcode() != Opcode::kParameter) WriteInstruction(*instruction);
    }
    const auto& results = computation_.results();
    // A computation whose result is its last line has it as the root.
    if (is_entry_ || results.size() != 1) {
      result_ = TupleShape(results);
      Add(Numbered("tuple"), result_, "tuple(" + Operands(results) + ")");
      MarkRoot(lines_.size() - 1);
    } else {
      result_ = results[0]->shape();
      MarkRoot(line_of_.at(results[0]));
    }
    std::string text = is_entry_ ? "ENTRY " : "";
    text += "%" + computation_.name() + " (" + signature_ + ") -> " + ResultText() + " {\n";
    for (const std::string& line : lines_) text += line + "\n";
    return text + "}\n";
  }

 private:
  std::string Numbered(const std::string& name) { return name + "." + std::to_string(next_++); }

  size_t Add(const std::string& name, const Shape& shape, const std::string& rest) {
    lines_.push_back("  %" + name + " = " + ShapeText(shape) + " " + rest);
    return lines_.size() - 1;
  }
  void MarkRoot(size_t line) { lines_[line].insert(2, "ROOT "); }

  static Shape TupleShape(const std::vector<Instruction*>& values) {
    std::vector<Shape> shapes;
    for (const Instruction* value : values) shapes.push_back(value->shape());
    return Shape::Tuple(std::move(shapes));
  }

  std::string Operand(const Instruction* value) const {
    return ShapeText(value->shape()) + " %" + name_of_.at(value);
  }
  std::string Operands(const std::vector<Instruction*>& values) const {
    return Joined(values, ", ", [this](const Instruction* value) { return Operand(value); });
  }
  std::string ResultText() const { return result_.ToString(); }

  void Note(const Instruction* instruction, const std::string& name, size_t line) {
    name_of_[instruction] = name;
    line_of_[instruction] = line;
  }

  void WriteParameters() {
    const auto& parameters = computation_.parameters();
    if (takes_tuple_) {
      const Shape tuple = TupleShape(parameters);
      const std::string name = Numbered("arg_tuple");
      signature_ = name + ": " + tuple.ToString();
      Add(name, tuple, "parameter(0)");
      for (const Instruction* parameter : parameters) {
        const std::string element = Numbered("get-tuple-element");
        Note(parameter, element,
             Add(element, parameter->shape(),
                 "get-tuple-element(" + ShapeText(tuple) + " %" + name + ")" +
                     Attribute("index", parameter->parameter_number())));
      }
      return;
    }
    for (const Instruction* parameter : parameters) {
      const std::string number = std::to_string(parameter->parameter_number());
      const std::string name = Numbered("p" + number);
      if (!signature_.empty()) signature_ += ", ";
      signature_ += name + ": " + parameter->shape().ToString();
      Note(parameter, name, Add(name, parameter->shape(), "parameter(" + number + ")"));
    }
  }

  // A loop's operands, and those of branches, are one tuple.
  std::string TupleOf(const std::vector<Instruction*>& values) {
    const Shape shape = TupleShape(values);
    const std::string name = Numbered("tuple");
    Add(name, shape, "tuple(" + Operands(values) + ")");
    return ShapeText(shape) + " %" + name;
  }

  std::string OperandsOf(const Instruction& instruction) {
    const auto& operands = instruction.operands();
    const Opcode opcode = instruction.opcode();
    if (opcode == Opcode::kWhile) return TupleOf(operands);
    if (opcode == Opcode::kIf || opcode == Opcode::kCase) {
      const std::string tuple = TupleOf({operands.begin() + 1, operands.end()});
      std::string text = Operand(operands[0]);
      for (size_t i = 0; i < instruction.called_computations().size(); ++i) text += ", " + tuple;
      return text;
    }
    return Operands(operands);
  }

  void WriteInstruction(const Instruction& instruction) {
    const std::string opcode = HloOpcodeName(instruction.opcode());
    const std::string operands =
        instruction.IsConstant() ? LiteralText(instruction.literal()) : OperandsOf(instruction);
    // A loop gives a tuple even of one value.
    const bool is_loop = instruction.opcode() == Opcode::kWhile && !instruction.shape().is_tuple();
    const Shape shape = is_loop ? Shape::Tuple({instruction.shape()}) : instruction.shape();
    std::string name = Numbered(opcode);
    size_t line = Add(name, shape,
                      opcode + "(" + operands + ")" + AttributesText(instruction) +
                          CalledText(instruction) + MetadataText(instruction.metadata()));
    if (is_loop) {
      const std::string element = Numbered("get-tuple-element");
      line = Add(element, instruction.shape(),
                 "get-tuple-element(" + ShapeText(shape) + " %" + name + "), index=0");
      name = element;
    }
    Note(&instruction, name, line);
  }

  const Computation& computation_;
  const bool is_entry_, takes_tuple_;
  int64_t& next_;
  std::string signature_;
  Shape result_;
  std::vector<std::string> lines_;
  std::unordered_map<const Instruction*, std::string> name_of_;
  std::unordered_map<const Instruction*, size_t> line_of_;
};

// Those that `while`, `if` and `case` call.
std::unordered_map<const Computation*, bool> TupleTakers(const Module& module) {
  std::unordered_map<const Computation*, bool> takers;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const Opcode opcode = instruction->opcode();
      if (opcode != Opcode::kWhile && opcode != Opcode::kIf && opcode != Opcode::kCase) continue;
      for (const Computation* called : instruction->called_computations()) takers[called] = true;
    }
  }
  return takers;
}

std::string EntryLayout(const Computation& entry) {
  const auto shape = [](const Instruction* value) { return ShapeText(value->shape()); };
  return "{(" + Joined(entry.parameters(), ", ", shape) + ")->(" +
         Joined(entry.results(), ", ", shape) + ")}";
}

}  // namespace

std::string HloOperationName(std::string_view name) {
  std::string out(name);
  for (size_t at = out.find("::"); at != std::string::npos; at = out.find("::")) {
    out.replace(at, 2, "__");
  }
  return out;
}

std::string HloOpcodeName(Opcode opcode) {
  static const auto* others = new std::map<Opcode, std::string>{
      {Opcode::kBroadcastInDim, "broadcast"}, {Opcode::kCase, "conditional"},
      {Opcode::kComposite, "call"},           {Opcode::kDotGeneral, "dot"},
      {Opcode::kIf, "conditional"},           {Opcode::kOptimizationBarrier, "opt-barrier"},
  };
  if (const auto other = others->find(opcode); other != others->end()) return other->second;
  std::string text(Name(opcode));
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string WriteHloText(const Module& module) {
  std::string text = "HloModule " + module.name();
  if (!module.input_output_aliases.empty()) {
    text += Attribute(
        "input_output_alias",
        "{ " + Joined(module.input_output_aliases, ", ", [](const InputOutputAlias& alias) {
          return "{" + std::to_string(alias.output) + "}: (" + std::to_string(alias.parameter) +
                 ", {}, " + (alias.must_alias ? "must-alias)" : "may-alias)");
        }) + " }");
  }
  text += Attribute("entry_computation_layout", EntryLayout(*module.entry())) + "\n";
  const auto takers = TupleTakers(module);
  int64_t next = 1;
  for (const auto& computation : module.computations()) {
    const bool is_entry = computation.get() == module.entry();
    ComputationWriter writer(*computation, is_entry, takers.contains(computation.get()), next);
    text += "\n" + writer.Write();
  }
  return text;
}

}  // namespace hlo
