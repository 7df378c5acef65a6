// Makes a bytecode Program of a Module: the reverse of bytecode_reader.cc.
#include <unordered_map>

#include "hlo/bytecode.h"
#include "hlo/bytecode_container.h"
#include "hlo/bytecode_encoder.h"
#include "hlo/bytecode_fields.h"
#include "hlo/bytecode_operations.h"
#include "hlo/error.h"
#include "hlo/function_names.h"

namespace hlo {
namespace bytecode {
namespace {

class ModuleWriter {
 public:
  explicit ModuleWriter(const Module& module) : module_(module), encoder_(program_) {}

  std::string Write() {
    if (!module_.entry()) throw Error("module " + module_.name() + " has no entry to write");
    program_.producer = "StableHLO_v" + std::to_string(kStablehloVersion[0]) + "." +
                        std::to_string(kStablehloVersion[1]) + "." +
                        std::to_string(kStablehloVersion[2]);
    functions_ = NameFunctions(module_);
    Operation& module = program_.top.operations.emplace_back();
    module.name = encoder_.OperationNumber("builtin.module");
    module.location = encoder_.Location({});
    module.dictionary = ModuleAttributes();
    module.properties = {{"sym_name", encoder_.BuiltinString(module_.name())}};
    module.isolated = true;
    Region& body = module.regions.emplace_back();
    for (const Computation* function : functions_.functions) {
      body.operations.push_back(WriteFunction(*function));
    }
    return WriteContainer(program_);
  }

 private:
  AttributeId ModuleAttributes() {
    return encoder_.BuiltinDictionary(
        {encoder_.BuiltinString("mhlo.num_partitions"),
         encoder_.BuiltinInteger(module_.num_partitions, ElementType::kS32),
         encoder_.BuiltinString("mhlo.num_replicas"),
         encoder_.BuiltinInteger(module_.num_replicas, ElementType::kS32)});
  }

  Operation WriteFunction(const Computation& computation) {
    std::vector<Shape> inputs, results;
    for (const Instruction* parameter : computation.parameters()) {
      inputs.push_back(parameter->shape());
    }
    for (const Instruction* result : computation.results()) results.push_back(result->shape());
    bool is_entry = &computation == module_.entry();
    Operation function;
    function.name = encoder_.OperationNumber("vhlo.func_v1");
    function.location = encoder_.Location({});
    function.isolated = true;
    function.properties = {
        {"arg_attrs", is_entry ? ArgumentAttributes() : encoder_.Array({})},
        {"function_type", encoder_.TypeAttribute(encoder_.FunctionType(inputs, results))},
        {"res_attrs", encoder_.Array({})},
        {"sym_name", encoder_.String(functions_.names.at(&computation))},
        {"sym_visibility", encoder_.String(is_entry ? "public" : "private")}};
    function.regions.push_back(RegionWriter(*this, 0).Write(computation, nullptr));
    return function;
  }

  AttributeId ArgumentAttributes() {
    std::vector<std::vector<AttributeId>> attributes(module_.entry()->parameters().size());
    for (const InputOutputAlias& alias : module_.input_output_aliases) {
      auto& list = attributes.at(static_cast<size_t>(alias.parameter));
      list.push_back(encoder_.String("tf.aliasing_output"));
      list.push_back(encoder_.Integer(alias.output, ElementType::kS32));
    }
    for (int64_t donor : module_.buffer_donors) {
      auto& list = attributes.at(static_cast<size_t>(donor));
      // Names in a dictionary are sorted.
      list.insert(list.begin(), {encoder_.String("jax.buffer_donor"), encoder_.Bool(true)});
    }
    std::vector<AttributeId> parts;
    for (auto& list : attributes) parts.push_back(encoder_.Dictionary(std::move(list)));
    return encoder_.Array(std::move(parts));
  }

  using Values = std::unordered_map<const Instruction*, std::vector<ValueId>>;

  // One region: a function's body, or one that continues the numbering of the region around it.
  class RegionWriter {
   public:
    RegionWriter(ModuleWriter& writer, ValueId first) : writer_(writer), next_(first) {}

    // With `captured`, the first of the computation's parameters are the region's arguments and the
    // last ones are values of the region around it.
    Region Write(const Computation& computation, const std::vector<ValueId>* captured) {
      size_t arguments = computation.parameters().size() - (captured ? captured->size() : 0);
      for (size_t i = 0; i < computation.parameters().size(); ++i) {
        const Instruction* parameter = computation.parameter(i);
        if (i >= arguments) {
          values_[parameter] = {(*captured)[i - arguments]};
          continue;
        }
        region_.argument_types.push_back(encoder().TypeOf(parameter->shape()));
        region_.argument_locations.push_back(kNone);
        values_[parameter] = {next_++};
      }
      region_.operations.reserve(computation.instructions().size() + 1);
      for (const auto& instruction : computation.instructions()) WriteInstruction(*instruction);
      Operation finish = Begin("vhlo.return_v1", {});
      for (const Instruction* result : computation.results()) {
        finish.operands.push_back(Value(result));
      }
      region_.operations.push_back(std::move(finish));
      WriteInnerRegions();
      return std::move(region_);
    }

   private:
    Encoder& encoder() { return writer_.encoder_; }

    Operation Begin(const std::string& name, const Metadata& metadata) {
      Operation operation;
      operation.name = encoder().OperationNumber(name);
      operation.location = encoder().Location(metadata);
      return operation;
    }

    void WriteInstruction(const Instruction& instruction) {
      switch (instruction.opcode()) {
        case Opcode::kParameter:
          return;
        case Opcode::kGetTupleElement:
          if (WriteElement(instruction)) return;
          break;
        default:
          break;
      }
      std::string_view mnemonic = Name(instruction.opcode());
      bool is_token = instruction.opcode() == Opcode::kAfterAll && instruction.operands().empty();
      if (is_token) mnemonic = "create_token";
      Operation operation = Begin(OperationName(mnemonic), instruction.metadata());
      WriteOperands(instruction, operation);
      WriteAttributes(instruction, operation);
      WriteResults(instruction, operation);
      if (!CallsByName(instruction.opcode()) && !instruction.called_computations().empty()) {
        inner_.push_back({region_.operations.size(), &instruction});
      }
      region_.operations.push_back(std::move(operation));
    }

    // One of several results of an operation is a value by itself; true if that is what it is.
    bool WriteElement(const Instruction& element) {
      const Instruction* tuple = element.operand(0);
      if (!IsList(*tuple)) return false;
      values_[&element] = {values_.at(tuple).at(static_cast<size_t>(element.tuple_index()))};
      return true;
    }

    // True for an instruction whose tuple shape stands for several results.
    static bool IsList(const Instruction& instruction) {
      if (!instruction.shape().is_tuple()) return false;
      return instruction.opcode() != Opcode::kTuple && instruction.opcode() != Opcode::kParameter &&
             instruction.opcode() != Opcode::kGetTupleElement;
    }

    // The number of a value; several results that are used as one tuple are packed first.
    ValueId Value(const Instruction* instruction) {
      if (!IsList(*instruction)) return values_.at(instruction)[0];
      auto found = packed_.find(instruction);
      if (found != packed_.end()) return found->second;
      Operation tuple = Begin("vhlo.tuple_v1", instruction->metadata());
      tuple.operands = values_.at(instruction);
      tuple.result_types = {encoder().TypeOf(instruction->shape())};
      region_.operations.push_back(std::move(tuple));
      packed_.emplace(instruction, next_);
      return next_++;
    }

    void WriteOperands(const Instruction& instruction, Operation& operation) {
      bool branches = instruction.opcode() == Opcode::kIf || instruction.opcode() == Opcode::kCase;
      for (size_t i = 0; i < instruction.operand_count(); ++i) {
        ValueId value = Value(instruction.operand(i));
        // What branches receive they see anyway.
        if (!branches || i == 0) operation.operands.push_back(value);
      }
    }

    void WriteAttributes(const Instruction& instruction, Operation& operation) {
      FieldEncoder fields(encoder());
      Attributes attributes = instruction.attributes();
      VisitFields(fields, instruction.opcode(), attributes);
      const auto& called = instruction.called_computations();
      auto symbol = [&](size_t i) {
        return encoder().String(writer_.functions_.names.at(called.at(i)));
      };
      if (instruction.opcode() == Opcode::kCall) fields.Add("callee", symbol(0));
      if (instruction.opcode() == Opcode::kComposite) fields.Add("decomposition", symbol(0));
      if (instruction.opcode() == Opcode::kCustomCall) {
        std::vector<AttributeId> symbols;
        for (size_t i = 0; i < called.size(); ++i) symbols.push_back(symbol(i));
        fields.Add("called_computations", encoder().Array(std::move(symbols)));
        WriteFrontendAttributes(instruction.as<CustomCallAttributes>(), operation);
      }
      operation.properties = fields.Take();
    }

    void WriteFrontendAttributes(const CustomCallAttributes& call, Operation& operation) {
      if (call.api_version == 4 || call.dictionary.empty()) return;
      operation.dictionary = encoder().BuiltinDictionary(
          {encoder().BuiltinString(kFrontendAttributes), encoder().Dictionary(call.dictionary)});
    }

    void WriteResults(const Instruction& instruction, Operation& operation) {
      std::vector<ValueId>& numbers = values_[&instruction];
      if (IsList(instruction)) {
        for (const Shape& shape : instruction.shape().tuple_shapes()) {
          operation.result_types.push_back(encoder().TypeOf(shape));
        }
      } else {
        operation.result_types = {encoder().TypeOf(instruction.shape())};
      }
      for (size_t i = 0; i < operation.result_types.size(); ++i) numbers.push_back(next_++);
    }

    // Inner regions are numbered from the last value of this one on, so they come when it is
    // complete.
    void WriteInnerRegions() {
      for (auto [index, instruction] : inner_) {
        std::vector<ValueId> captured;
        bool branches =
            instruction->opcode() == Opcode::kIf || instruction->opcode() == Opcode::kCase;
        for (size_t i = 1; branches && i < instruction->operand_count(); ++i) {
          captured.push_back(Value(instruction->operand(i)));
        }
        for (const Computation* called : instruction->called_computations()) {
          region_.operations[index].regions.push_back(
              RegionWriter(writer_, next_).Write(*called, branches ? &captured : nullptr));
        }
      }
    }

    ModuleWriter& writer_;
    ValueId next_;
    Region region_;
    Values values_;
    std::unordered_map<const Instruction*, ValueId> packed_;
    std::vector<std::pair<size_t, const Instruction*>> inner_;
  };

  const Module& module_;
  Program program_;
  Encoder encoder_;
  FunctionNames functions_;
};

}  // namespace
}  // namespace bytecode

std::string WriteBytecode(const Module& module) { return bytecode::ModuleWriter(module).Write(); }

}  // namespace hlo
