#include "hlo/text_writer.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/error.h"
#include "hlo/function_names.h"
#include "hlo/text_attributes.h"
#include "hlo/text_syntax.h"

namespace hlo {
namespace text {
namespace {

bool IsBranch(Opcode opcode) { return opcode == Opcode::kIf || opcode == Opcode::kCase; }

// True for an instruction whose tuple shape stands for several results. Custom calls that are not
// typed have one, a tuple, as in all programs that XLA itself writes.
bool IsList(const Instruction& instruction) {
  if (!instruction.shape().is_tuple()) return false;
  if (instruction.opcode() == Opcode::kCustomCall) {
    return instruction.as<CustomCallAttributes>().api_version == 4;
  }
  return instruction.opcode() != Opcode::kTuple && instruction.opcode() != Opcode::kParameter &&
         instruction.opcode() != Opcode::kGetTupleElement;
}

// Default is what no precision means.
bool HasPrecision(const std::vector<Precision>& precision) {
  return std::ranges::count(precision, Precision::kDefault) != std::ssize(precision);
}

std::string LocationText(const Metadata& metadata) {
  std::string file = metadata.source_file.empty()
                         ? "unknown"
                         : StringText(metadata.source_file) + ":" +
                               std::to_string(std::max(metadata.source_line, 0)) + ":0";
  if (metadata.op_name.empty()) return file;
  if (metadata.source_file.empty()) return StringText(metadata.op_name);
  return StringText(metadata.op_name) + "(" + file + ")";
}

class ModuleText {
 public:
  ModuleText(const Module& module, const TextOptions& options)
      : module_(module), options_(options) {}

  std::string Write() {
    if (!module_.entry()) throw Error("module " + module_.name() + " has no entry to write");
    functions_ = NameFunctions(module_);
    out_ = "module " + SymbolText(module_.name()) +
           " attributes {mhlo.num_partitions = " + std::to_string(module_.num_partitions) +
           " : i32, mhlo.num_replicas = " + std::to_string(module_.num_replicas) + " : i32} {\n";
    for (const Computation* function : functions_.functions) WriteFunction(*function);
    return out_ + "}\n" + alias_definitions_;
  }

 private:
  void WriteFunction(const Computation& computation) {
    next_argument_ = next_value_ = 0;
    values_.clear();
    bool is_entry = &computation == module_.entry();
    std::vector<std::string> arguments, results;
    for (size_t i = 0; i < computation.parameters().size(); ++i) {
      arguments.push_back(Argument(*computation.parameter(i)) +
                          (is_entry ? ArgumentAttributes(static_cast<int64_t>(i)) : ""));
    }
    for (const Instruction* result : computation.results()) {
      results.push_back(TypeText(result->shape()));
    }
    Line(1, "func.func " + std::string(is_entry ? "public " : "private ") +
                SymbolText(functions_.names.at(&computation)) + "(" + Join(arguments) + ") -> (" +
                Join(results) + ") {");
    WriteBody(computation, 2);
    WriteReturn(computation, "func.return", 2);
    Line(1, "}");
  }

  std::string ArgumentAttributes(int64_t parameter) const {
    std::vector<std::string> parts;
    for (int64_t donor : module_.buffer_donors) {
      if (donor == parameter) parts.emplace_back("jax.buffer_donor = true");
    }
    for (const InputOutputAlias& alias : module_.input_output_aliases) {
      if (alias.parameter != parameter) continue;
      parts.push_back("tf.aliasing_output = " + std::to_string(alias.output) + " : i32");
    }
    return parts.empty() ? "" : " {" + Join(parts) + "}";
  }

  // "%arg0: tensor<f32>", and the parameter is known by that name.
  std::string Argument(const Instruction& parameter) {
    std::string name = "%arg" + std::to_string(next_argument_++);
    values_[&parameter] = {name};
    return name + ": " + TypeText(parameter.shape());
  }

  void WriteBody(const Computation& computation, int indent) {
    for (const auto& instruction : computation.instructions()) {
      if (instruction->opcode() == Opcode::kParameter) continue;
      if (instruction->opcode() == Opcode::kGetTupleElement && IsList(*instruction->operand(0))) {
        auto index = static_cast<size_t>(instruction->tuple_index());
        values_[instruction.get()] = {values_.at(instruction->operand(0)).at(index)};
        continue;
      }
      WriteInstruction(*instruction, indent);
    }
  }

  void WriteReturn(const Computation& computation, const std::string& name, int indent) {
    std::vector<std::string> values, types;
    for (const Instruction* result : computation.results()) {
      values.push_back(Value(result, indent));
      types.push_back(TypeText(result->shape()));
    }
    std::string operands = values.empty() ? "" : " " + Join(values) + " : " + Join(types);
    Line(indent, name + operands);
  }

  // The name of a value; several results that are used as one tuple are packed first.
  std::string Value(const Instruction* instruction, int indent) {
    if (!IsList(*instruction)) return values_.at(instruction)[0];
    auto packed = packed_.find(instruction);
    if (packed != packed_.end()) return packed->second;
    std::string name = "%" + std::to_string(next_value_++);
    packed_.emplace(instruction, name);
    Line(indent, name + " = stablehlo.tuple " + Join(values_.at(instruction)) + " : " +
                     TypeText(instruction->shape()));
    return name;
  }

  std::string DefineResults(const Instruction& instruction) {
    std::string name = "%" + std::to_string(next_value_++);
    std::vector<std::string>& names = values_[&instruction];
    packed_.erase(&instruction);  // a computation may be the region of several operations
    if (!IsList(instruction)) {
      names = {name};
      return name + " = ";
    }
    size_t count = instruction.shape().tuple_shapes().size();
    names.clear();
    if (count == 0) return "";
    if (count == 1) {
      names = {name};
      return name + " = ";
    }
    for (size_t i = 0; i < count; ++i) names.push_back(name + "#" + std::to_string(i));
    return name + ":" + std::to_string(count) + " = ";
  }

  static std::vector<Shape> ResultShapes(const Instruction& instruction) {
    if (IsList(instruction)) return instruction.shape().tuple_shapes();
    return {instruction.shape()};
  }

  // "(tensor<f32>, tensor<f32>) -> tensor<f32>".
  static std::string FunctionType(const Instruction& instruction, size_t operand_count) {
    std::vector<std::string> operands, results;
    for (size_t i = 0; i < operand_count; ++i) {
      operands.push_back(TypeText(instruction.operand(i)->shape()));
    }
    for (const Shape& shape : ResultShapes(instruction)) results.push_back(TypeText(shape));
    std::string result = results.size() == 1 ? results[0] : "(" + Join(results) + ")";
    return "(" + Join(operands) + ") -> " + result;
  }

  void WriteInstruction(const Instruction& instruction, int indent) {
    size_t operand_count = IsBranch(instruction.opcode()) ? 1 : instruction.operand_count();
    std::vector<std::string> operands;
    for (const Instruction* operand : instruction.operands()) {
      operands.push_back(Value(operand, indent));
    }
    std::vector<std::string> passed(operands.begin() + static_cast<int64_t>(operand_count),
                                    operands.end());
    operands.resize(operand_count);
    std::string results = DefineResults(instruction);
    if (instruction.opcode() == Opcode::kWhile)
      return WriteWhile(instruction, results, operands, indent);
    std::string type = " : " + FunctionType(instruction, operand_count);
    std::string pretty = Pretty(instruction, operands);
    if (!pretty.empty()) return Line(indent, results + pretty + Location(instruction));
    WriteGeneric(instruction, results, operands, passed, type, indent);
  }

  static std::string Mnemonic(const Instruction& instruction) {
    return "stablehlo." + std::string(Name(instruction.opcode()));
  }

  std::string Location(const Instruction& instruction) {
    if (!options_.locations) return "";
    const std::string text = LocationText(instruction.metadata());
    return " loc(" + (options_.location_aliases ? AliasOf(text) : text) + ")";
  }

  // "#loc", "#loc1", … as MLIR counts them.
  std::string AliasOf(const std::string& location) {
    const size_t number = aliases_.size();
    const auto [found, is_new] =
        aliases_.try_emplace(location, number == 0 ? "#loc" : "#loc" + std::to_string(number));
    if (is_new) alias_definitions_ += found->second + " = loc(" + location + ")\n";
    return found->second;
  }

  // "stablehlo.name …" for operations whose short syntax is simple; empty for the others.
  std::string Pretty(const Instruction& instruction, const std::vector<std::string>& operands) {
    Opcode opcode = instruction.opcode();
    std::string head = Mnemonic(instruction) + " " + Join(operands);
    std::string type = " : " + FunctionType(instruction, instruction.operand_count());
    std::string result_type = " : " + TypeText(instruction.shape());
    auto dimensions = [&] { return ListText(instruction.as<DimensionsAttributes>().dimensions); };
    if (IsElementwiseUnary(opcode) || IsElementwiseBinary(opcode)) {
      bool uniform = instruction.operand(0)->shape() == instruction.shape();
      return head + (uniform ? result_type : type);
    }
    switch (opcode) {
      case Opcode::kConvert:
      case Opcode::kReshape:
      case Opcode::kBitcastConvert:
      case Opcode::kDynamicPad:
      case Opcode::kDynamicReshape:
      case Opcode::kDynamicUpdateSlice:
      case Opcode::kRealDynamicSlice:
        return head + type;
      case Opcode::kConstant:
        return "stablehlo.constant " +
               DenseText(instruction.literal(), options_.max_constant_elements);
      case Opcode::kIota:
        return "stablehlo.iota dim = " +
               std::to_string(instruction.as<DimensionAttributes>().dimension) + result_type;
      case Opcode::kSelect:
        return head + " : " + TypeText(instruction.operand(0)->shape()) + ", " +
               TypeText(instruction.shape());
      case Opcode::kClamp:
        return head + type;
      case Opcode::kCompare:
        return Compare(instruction, operands) + type;
      case Opcode::kBroadcastInDim:
      case Opcode::kTranspose:
        return head + ", dims = " + dimensions() + type;
      case Opcode::kReverse:
        return head + ", dims = " + dimensions() + result_type;
      case Opcode::kDynamicBroadcastInDim: {
        const auto& a = instruction.as<DynamicBroadcastAttributes>();
        const DynamicBroadcastAttributes alone{.broadcast_dimensions = a.broadcast_dimensions};
        return a == alone ? head + ", dims = " + ListText(a.broadcast_dimensions) + type : "";
      }
      case Opcode::kDynamicSlice:
        return head + ", sizes = " + dimensions() + type;
      case Opcode::kConcatenate:
      case Opcode::kDynamicIota:
      case Opcode::kGetDimensionSize:
        return head + ", dim = " + std::to_string(instruction.as<DimensionAttributes>().dimension) +
               type;
      case Opcode::kSlice:
        return Slice(instruction, operands) + type;
      case Opcode::kPad: {
        const auto& a = instruction.as<PadAttributes>();
        return head + ", low = " + ListText(a.edge_padding_low) +
               ", high = " + ListText(a.edge_padding_high) +
               ", interior = " + ListText(a.interior_padding) + type;
      }
      case Opcode::kDotGeneral:
        return head + Dot(instruction.as<DotAttributes>()) + type;
      case Opcode::kConvolution:
        return Convolution(instruction, operands) + type;
      case Opcode::kReduce:
        return Reduce(instruction, operands, type);
      case Opcode::kReducePrecision: {
        const auto& a = instruction.as<ReducePrecisionAttributes>();
        return head + ", format = e" + std::to_string(a.exponent_bits) + "m" +
               std::to_string(a.mantissa_bits) + result_type;
      }
      case Opcode::kCholesky:
        return head +
               ", lower = " + (instruction.as<CholeskyAttributes>().lower ? "true" : "false") +
               result_type;
      case Opcode::kRng: {
        auto distribution = instruction.as<RngAttributes>().distribution;
        return head +
               ", distribution = " + std::string(EnumeratorText("rng_distribution", distribution)) +
               type;
      }
      case Opcode::kRngBitGenerator: {
        auto algorithm = instruction.as<RngBitGeneratorAttributes>().algorithm;
        return head + ", algorithm = " + std::string(EnumeratorText("rng_algorithm", algorithm)) +
               type;
      }
      case Opcode::kCall:
        return "func.call " + Callee(instruction) + "(" + Join(operands) + ")" + type;
      case Opcode::kCustomCall:
        return CustomCall(instruction, operands) + type;
      case Opcode::kComposite: {
        const auto& a = instruction.as<CompositeAttributes>();
        return "stablehlo.composite " + StringText(a.name) + " " + Join(operands) + " {" +
               (a.attributes.empty()
                    ? ""
                    : "composite_attributes = " + DictionaryText(a.attributes) + ", ") +
               "decomposition = " + Callee(instruction) +
               (a.version == 0 ? "" : ", version = " + std::to_string(a.version) + " : i32") + "}" +
               type;
      }
      case Opcode::kTuple:
        return head + result_type;
      case Opcode::kGetTupleElement:
        return head + "[" + std::to_string(instruction.tuple_index()) + "]" + type;
      case Opcode::kAfterAll:
        return operands.empty() ? "stablehlo.create_token" + result_type : head + result_type;
      default:
        return "";
    }
  }

  std::string Callee(const Instruction& instruction) const {
    return SymbolText(functions_.names.at(instruction.called_computations().at(0)));
  }

  static std::string Compare(const Instruction& instruction,
                             const std::vector<std::string>& operands) {
    const auto& a = instruction.as<CompareAttributes>();
    std::string text = "stablehlo.compare " +
                       std::string(EnumeratorText("comparison_direction", a.direction)) + ", " +
                       Join(operands);
    if (a.type != ComparisonType::kNotype) {
      text += ", " + std::string(EnumeratorText("comparison_type", a.type));
    }
    return text;
  }

  static std::string Slice(const Instruction& instruction,
                           const std::vector<std::string>& operands) {
    const auto& a = instruction.as<SliceAttributes>();
    std::vector<std::string> ranges;
    for (size_t i = 0; i < a.strides.size(); ++i) {
      std::string stride = a.strides[i] == 1 ? "" : ":" + std::to_string(a.strides[i]);
      ranges.push_back(std::to_string(a.start_indices[i]) + ":" +
                       std::to_string(a.limit_indices[i]) + stride);
    }
    return "stablehlo.slice " + operands[0] + " [" + Join(ranges) + "]";
  }

  static std::string Dot(const DotAttributes& a) {
    std::string text;
    if (!a.lhs_batching_dimensions.empty()) {
      text += ", batching_dims = " + ListText(a.lhs_batching_dimensions) + " x " +
              ListText(a.rhs_batching_dimensions);
    }
    text += ", contracting_dims = " + ListText(a.lhs_contracting_dimensions) + " x " +
            ListText(a.rhs_contracting_dimensions);
    if (HasPrecision(a.precision)) {
      std::vector<std::string> names;
      for (Precision precision : a.precision)
        names.emplace_back(EnumeratorText("precision", precision));
      text += ", precision = [" + Join(names) + "]";
    }
    return text;
  }

  static std::string Convolution(const Instruction& instruction,
                                 const std::vector<std::string>& operands) {
    const auto& a = instruction.as<ConvolutionAttributes>();
    std::vector<std::string> padding, reversal, precision;
    for (size_t i = 0; i < a.window.padding_low.size(); ++i) {
      const int64_t pair[] = {a.window.padding_low[i], a.window.padding_high[i]};
      padding.push_back(ListText(pair));
      reversal.emplace_back(a.window.reversal[i] ? "1" : "0");
    }
    for (Precision p : HasPrecision(a.precision) ? a.precision : std::vector<Precision>()) {
      precision.push_back("#stablehlo<precision " + std::string(EnumeratorText("precision", p)) +
                          ">");
    }
    return "stablehlo.convolution(" + Join(operands) +
           ") dim_numbers = " + ConvolutionDimensionsText(a.dimensions) +
           ", window = {stride = " + ListText(a.window.strides) + ", pad = [" + Join(padding) +
           "], lhs_dilate = " + ListText(a.window.base_dilations) +
           ", rhs_dilate = " + ListText(a.window.window_dilations) + ", reverse = [" +
           Join(reversal) + "]} {batch_group_count = " + std::to_string(a.batch_group_count) +
           " : i64, feature_group_count = " + std::to_string(a.feature_group_count) + " : i64" +
           (precision.empty() ? "" : ", precision_config = [" + Join(precision) + "]") + "}";
  }

  // Only a body that is one operation on its two parameters in order has a short form.
  static std::string Reduce(const Instruction& instruction,
                            const std::vector<std::string>& operands, const std::string& type) {
    const Computation& body = *instruction.called_computations()[0];
    if (operands.size() != 2 || IsList(instruction) || body.instructions().size() != 3) return "";
    const Instruction& result = *body.result();
    bool simple = IsElementwiseBinary(result.opcode()) &&
                  result.operands() == std::vector<Instruction*>(body.parameters()) &&
                  result.shape() == body.parameter(0)->shape() &&
                  body.parameter(0)->shape() == body.parameter(1)->shape() &&
                  result.element_type() == instruction.operand(0)->element_type();
    if (!simple) return "";
    return "stablehlo.reduce(" + operands[0] + " init: " + operands[1] + ") applies " +
           Mnemonic(result) +
           " across dimensions = " + ListText(instruction.as<DimensionsAttributes>().dimensions) +
           type;
  }

  std::string CustomCall(const Instruction& instruction,
                         const std::vector<std::string>& operands) const {
    std::string attributes = GenericAttributes(instruction);
    std::vector<std::string> called;
    for (const Computation* computation : instruction.called_computations()) {
      called.push_back(SymbolText(functions_.names.at(computation)));
    }
    if (!called.empty()) attributes += ", called_computations = [" + Join(called) + "]";
    return "stablehlo.custom_call " + SymbolText(instruction.as<CustomCallAttributes>().target) +
           "(" + Join(operands) + ") {" + attributes + "}";
  }

  void WriteGeneric(const Instruction& instruction, const std::string& results,
                    const std::vector<std::string>& operands,
                    const std::vector<std::string>& passed, const std::string& type, int indent) {
    std::string attributes = GenericAttributes(instruction);
    std::string head = results + "\"" + Mnemonic(instruction) + "\"(" + Join(operands) + ")" +
                       (attributes.empty() ? "" : " <{" + attributes + "}>");
    const auto& regions = instruction.called_computations();
    if (regions.empty()) return Line(indent, head + type + Location(instruction));
    Line(indent, head + " ({");
    for (size_t i = 0; i < regions.size(); ++i) {
      if (i) Line(indent, "}, {");
      WriteRegion(*regions[i], passed, indent);
    }
    Line(indent, "})" + type + Location(instruction));
  }

  // The last parameters are the passed values of the region around.
  void WriteRegion(const Computation& computation, const std::vector<std::string>& passed,
                   int indent) {
    size_t own = computation.parameters().size() - passed.size();
    std::vector<std::string> arguments;
    for (size_t i = 0; i < own; ++i) arguments.push_back(Argument(*computation.parameter(i)));
    for (size_t i = 0; i < passed.size(); ++i)
      values_[computation.parameter(own + i)] = {passed[i]};
    if (!arguments.empty()) Line(indent, "^bb0(" + Join(arguments) + "):");
    WriteBody(computation, indent + 1);
    WriteReturn(computation, "stablehlo.return", indent + 1);
  }

  void WriteWhile(const Instruction& loop, const std::string& results,
                  const std::vector<std::string>& operands, int indent) {
    std::vector<std::string> names, bindings, types;
    for (size_t i = 0; i < operands.size(); ++i) {
      names.push_back("%arg" + std::to_string(next_argument_++));
      bindings.push_back(names[i] + " = " + operands[i]);
      types.push_back(TypeText(loop.operand(i)->shape()));
    }
    std::string head = results + "stablehlo.while";
    Line(indent, head + "(" + Join(bindings) + ")" + (types.empty() ? "" : " : " + Join(types)));
    const char* keywords[] = {"cond {", "} do {"};
    for (size_t region = 0; region < 2; ++region) {
      Line(indent, keywords[region]);
      const Computation& computation = *loop.called_computations()[region];
      for (size_t i = 0; i < names.size(); ++i) values_[computation.parameter(i)] = {names[i]};
      WriteBody(computation, indent + 1);
      WriteReturn(computation, "stablehlo.return", indent + 1);
    }
    Line(indent, "}" + Location(loop));
  }

  void Line(int indent, const std::string& text) {
    out_.append(static_cast<size_t>(indent) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  const Module& module_;
  const TextOptions& options_;
  std::string out_;
  FunctionNames functions_;
  std::unordered_map<const Instruction*, std::vector<std::string>> values_;
  std::unordered_map<const Instruction*, std::string> packed_;  // lists as tuples
  int64_t next_argument_ = 0, next_value_ = 0;
  std::unordered_map<std::string, std::string> aliases_;  // of locations
  std::string alias_definitions_;
};

}  // namespace
}  // namespace text

std::string WriteStablehloText(const Module& module, const TextOptions& options) {
  return text::ModuleText(module, options).Write();
}

}  // namespace hlo
