// Makes a Module of a Program, which bytecode or text stated. The main difference between the two
// is that StableHLO's regions see the values around them, while our computations receive everything
// as parameters.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/bytecode.h"
#include "hlo/bytecode_container.h"
#include "hlo/bytecode_decoder.h"
#include "hlo/bytecode_fields.h"
#include "hlo/bytecode_module.h"
#include "hlo/bytecode_operations.h"
#include "hlo/bytecode_stream.h"
#include "hlo/error.h"
#include "hlo/verifier.h"

namespace hlo {
namespace bytecode {
namespace {

// The values that a region may use, by their numbers in the file.
using Values = std::unordered_map<ValueId, Instruction*>;

class ModuleReader {
 public:
  ModuleReader(const Program& program, size_t input_size)
      : program_(program), decoder_(program, input_size) {}

  std::unique_ptr<Module> Read() {
    const Operation& module = OnlyModule();
    module_ = std::make_unique<Module>(ModuleName(module));
    ReadModuleAttributes(module);
    for (const Region& region : module.regions) {
      for (const Operation& operation : region.operations) DeclareFunction(operation);
    }
    if (functions_.empty()) FailAt(module.offset, "the module has no function");
    for (const Function& function : functions_) BuildFunction(function);
    CheckCalls();
    SetEntry();
    module_->RemoveUnreachableComputations();
    module_->SortComputations();
    Verify();
    return std::move(module_);
  }

 private:
  struct Function {
    const Operation* operation;
    Computation* computation;
    std::string_view name;
    bool is_private;
  };

  std::string_view NameOf(const Operation& operation) const {
    return program_.operation_names[operation.name];
  }

  [[noreturn]] void Fail(const Operation& operation, const std::string& what) const {
    FailAt(operation.offset, std::string(NameOf(operation)) + ": " + what);
  }
  [[noreturn]] void FailUnimplemented(const Operation& operation, const std::string& what) const {
    FailAt(operation.offset, std::string(NameOf(operation)) + ": " + what,
           ErrorCode::kUnimplemented);
  }

  const Operation& OnlyModule() const {
    const auto& operations = program_.top.operations;
    if (operations.size() != 1 || NameOf(operations[0]) != "builtin.module") {
      FailAt(0, "the file does not hold exactly one builtin.module");
    }
    return operations[0];
  }

  std::string ModuleName(const Operation& module) {
    const Attribute* name = decoder_.Find(module, "sym_name");
    return name ? decoder_.CopyText(*name, module.offset) : "main";
  }

  void ReadModuleAttributes(const Operation& module) {
    auto read = [&](const char* name, int64_t& field) {
      const Attribute* attribute = decoder_.Find(module, name);
      if (attribute) field = decoder_.Integer(*attribute, module.offset);
    };
    read("mhlo.num_replicas", module_->num_replicas);
    read("mhlo.num_partitions", module_->num_partitions);
  }

  std::string_view FunctionText(const Operation& operation, const char* name) {
    const Attribute* attribute = decoder_.Find(operation, name);
    if (!attribute) Fail(operation, "it has no " + std::string(name));
    return decoder_.Text(*attribute, operation.offset);
  }

  void DeclareFunction(const Operation& operation) {
    std::string_view name = NameOf(operation);
    if (name.starts_with("sdy.")) return;  // meshes: for several devices
    if (name != "vhlo.func_v1") Fail(operation, "it is not expected in a module");
    if (operation.regions.size() != 1) Fail(operation, "it does not have one body");
    std::string_view symbol = FunctionText(operation, "sym_name");
    bool is_private = FunctionText(operation, "sym_visibility") == "private";
    decoder_.Spend(symbol.size(), operation.offset);
    Computation* computation = module_->AddComputation(std::string(symbol));
    if (!by_name_.emplace(symbol, computation).second) {
      Fail(operation, "there are two functions named " + std::string(symbol));
    }
    functions_.push_back({&operation, computation, symbol, is_private});
  }

  Computation* FindFunction(const Operation& operation, const Attribute* symbol) {
    if (!symbol) Fail(operation, "it names no function");
    std::string_view name = decoder_.Text(*symbol, operation.offset);
    auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      Fail(operation, "there is no function named " + std::string(name));
    }
    return found->second;
  }

  void BuildFunction(const Function& function) {
    const Region& region = function.operation->regions[0];
    Values values;
    AddParameters(region, *function.computation, values, function.operation->offset);
    BuildOperations(region, *function.computation, values);
    bool tuple = std::ranges::any_of(function.computation->results(),
                                     [](const auto* result) { return result->shape().is_tuple(); });
    if (tuple) FailUnimplemented(*function.operation, "a function that returns a tuple");
  }

  // A function that called itself would never end; StableHLO forbids it.
  void CheckCalls() {
    enum class State { kOpen, kDone };
    std::unordered_map<const Computation*, State> states;
    struct Frame {
      const Computation* computation;
      std::vector<const Computation*> called;
    };
    for (const Function& function : functions_) {
      std::vector<Frame> stack;
      auto enter = [&](const Computation* computation) {
        auto [found, inserted] = states.emplace(computation, State::kOpen);
        if (!inserted) {
          if (found->second == State::kDone) return;
          FailAt(function.operation->offset, "function " + computation->name() + " calls itself");
        }
        Frame& frame = stack.emplace_back(Frame{computation, {}});
        for (const auto& instruction : computation->instructions()) {
          const auto& list = instruction->called_computations();
          frame.called.insert(frame.called.end(), list.begin(), list.end());
        }
      };
      enter(function.computation);
      while (!stack.empty()) {
        if (stack.back().called.empty()) {
          states[stack.back().computation] = State::kDone;
          stack.pop_back();
          continue;
        }
        const Computation* next = stack.back().called.back();
        stack.back().called.pop_back();
        enter(next);
      }
    }
  }

  void Verify() const {
    try {
      VerifyModule(*module_);
    } catch (const VerificationError& error) {
      auto found = offsets_.find(error.instruction());
      if (found == offsets_.end()) throw;
      FailAt(found->second, error.what(), error.code());
    }
  }

  // `main`, or else the first public function.
  void SetEntry() {
    const Function* entry = nullptr;
    for (const Function& function : functions_) {
      if (function.name == "main") entry = &function;
    }
    for (const Function& function : functions_) {
      if (!entry && !function.is_private) entry = &function;
    }
    if (!entry) entry = &functions_[0];
    module_->set_entry(entry->computation);
    ReadArgumentAttributes(*entry->operation);
  }

  void ReadArgumentAttributes(const Operation& function) {
    const Attribute* list = decoder_.Find(function, "arg_attrs");
    if (!list || list->kind != AttributeKind::kArray) return;
    for (size_t i = 0; i < list->parts.size(); ++i) {
      const Attribute& dictionary = decoder_.attribute(list->parts[i]);
      if (dictionary.kind != AttributeKind::kDictionary) Fail(function, "wrong arg_attrs");
      for (size_t k = 0; k + 1 < dictionary.parts.size(); k += 2) {
        ReadArgumentAttribute(function, static_cast<int64_t>(i),
                              decoder_.attribute(dictionary.parts[k]).text,
                              decoder_.attribute(dictionary.parts[k + 1]));
      }
    }
  }

  void ReadArgumentAttribute(const Operation& function, int64_t parameter, std::string_view name,
                             const Attribute& value) {
    if (name == "tf.aliasing_output") {
      int64_t output = decoder_.Integer(value, function.offset);
      module_->input_output_aliases.push_back({output, parameter, false});
    } else if (name == "jax.buffer_donor") {
      if (decoder_.Bool(value, function.offset)) module_->buffer_donors.push_back(parameter);
    }
  }

  void AddParameters(const Region& region, Computation& computation, Values& values,
                     size_t offset) {
    for (size_t i = 0; i < region.argument_types.size(); ++i) {
      Instruction* parameter =
          AddParameter(computation, decoder_.TensorShape(region.argument_types[i], offset));
      if (region.argument_locations[i] != kNone) {
        parameter->set_metadata(decoder_.Location(region.argument_locations[i]));
      }
      values.emplace(region.first_argument + static_cast<ValueId>(i), parameter);
    }
  }

  static Instruction* AddParameter(Computation& computation, const Shape& shape) {
    auto number = static_cast<int64_t>(computation.parameters().size());
    return computation.Add(Opcode::kParameter, shape, {}, ParameterAttributes{number});
  }

  // The operations of a region into a computation whose parameters are in `values`.
  void BuildOperations(const Region& region, Computation& computation, Values& values) {
    std::unordered_map<ValueId, bool> used = UsedValues(region);
    bool returned = false;
    for (const Operation& operation : region.operations) {
      if (returned) Fail(operation, "it follows the return");
      if (NameOf(operation) == "vhlo.return_v1") {
        std::vector<Instruction*> results = Operands(operation, values);
        computation.set_results(std::move(results));
        returned = true;
      } else {
        BuildOperation(operation, computation, values, used);
      }
    }
    if (!returned) FailAt(0, "the body of " + computation.name() + " does not return");
  }

  static std::unordered_map<ValueId, bool> UsedValues(const Region& region) {
    std::unordered_map<ValueId, bool> used;
    for (const Operation& operation : region.operations) {
      for (ValueId value : operation.operands) used[value] = true;
      for (const Region& inner : operation.regions) {
        for (ValueId value : inner.captures) used[value] = true;
      }
    }
    return used;
  }

  Instruction* Lookup(const Operation& operation, ValueId value, const Values& values) const {
    auto found = values.find(value);
    if (found == values.end()) {
      Fail(operation, "value " + std::to_string(value) + " is used before it is defined");
    }
    return found->second;
  }

  std::vector<Instruction*> Operands(const Operation& operation, const Values& values) const {
    std::vector<Instruction*> operands;
    operands.reserve(operation.operands.size());
    for (ValueId value : operation.operands) operands.push_back(Lookup(operation, value, values));
    return operands;
  }

  void BuildOperation(const Operation& operation, Computation& computation, Values& values,
                      const std::unordered_map<ValueId, bool>& used) {
    std::vector<Instruction*> operands = Operands(operation, values);
    const OperationSpec* spec = FindOperation(NameOf(operation));
    if (!spec) return BuildForeign(operation, operands, values);
    std::vector<Shape> shapes;
    for (TypeId type : operation.result_types) {
      shapes.push_back(decoder_.TensorShape(type, operation.offset));
    }
    Instruction* made = Make(operation, spec->mnemonic, computation, std::move(operands),
                             std::move(shapes), values);
    offsets_.emplace(made, operation.offset);
    if (operation.location != kNone) made->set_metadata(decoder_.Location(operation.location));
    DefineResults(operation, *made, computation, values, used);
  }

  // Operations of other dialects mean nothing for one device: they hand their operands on.
  void BuildForeign(const Operation& operation, const std::vector<Instruction*>& operands,
                    Values& values) {
    std::string_view name = NameOf(operation);
    bool identity = name == "builtin.unrealized_conversion_cast" ||
                    name == "sdy.sharding_constraint" || name == "sdy.reshard";
    if (!identity) FailUnimplemented(operation, "this operation is not known");
    if (operands.size() != operation.result_types.size()) {
      Fail(operation, "it has " + std::to_string(operands.size()) + " operands and " +
                          std::to_string(operation.result_types.size()) + " results");
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      values[operation.first_result + static_cast<ValueId>(i)] = operands[i];
    }
  }

  void DefineResults(const Operation& operation, Instruction& made, Computation& computation,
                     Values& values, const std::unordered_map<ValueId, bool>& used) {
    size_t count = operation.result_types.size();
    // A tuple stands for several results unless the operation's only result is a tuple itself.
    bool is_list = made.shape().is_tuple() &&
                   (count != 1 ||
                    !decoder_.TensorShape(operation.result_types[0], operation.offset).is_tuple());
    for (size_t i = 0; i < count; ++i) {
      ValueId value = operation.first_result + static_cast<ValueId>(i);
      if (!is_list) {
        values[value] = &made;
      } else if (used.contains(value)) {
        Instruction* element =
            computation.Add(Opcode::kGetTupleElement, made.shape().tuple_shapes()[i], {&made},
                            TupleIndexAttributes{static_cast<int64_t>(i)});
        element->set_metadata(made.shared_metadata());
        offsets_.emplace(element, operation.offset);
        values[value] = element;
      }
    }
  }

  // One instruction for the operation; its tuple stands for several results.
  Instruction* Make(const Operation& operation, std::string_view mnemonic, Computation& computation,
                    std::vector<Instruction*> operands, std::vector<Shape> shapes, Values& values) {
    if (mnemonic == "constant") return MakeConstant(operation, computation, shapes);
    if (mnemonic == "while") {
      return MakeWhile(operation, computation, std::move(operands), std::move(shapes), values);
    }
    if (mnemonic == "if" || mnemonic == "case") {
      return MakeBranches(operation, mnemonic, computation, std::move(operands), std::move(shapes),
                          values);
    }
    if (Instruction* legacy = MakeLegacy(operation, mnemonic, computation, operands, shapes)) {
      return legacy;
    }
    std::optional<Opcode> opcode = OpcodeFromName(mnemonic);
    if (!opcode || *opcode == Opcode::kParameter) {
      FailUnimplemented(operation, "this operation is not known");
    }
    CheckSupported(operation, *opcode);
    std::vector<Computation*> called = Called(operation, *opcode, values);
    Attributes attributes;
    FieldDecoder fields(decoder_, operation);
    VisitFields(fields, *opcode, attributes);
    if (*opcode == Opcode::kCustomCall) {
      ReadForeignConfig(operation, std::get<CustomCallAttributes>(attributes));
    }
    return computation.Add(*opcode, ResultShape(shapes), std::move(operands), std::move(attributes),
                           std::move(called));
  }

  // Typed calls came before StableHLO had a place for their dictionary: JAX still writes it beside
  // the operation's own attributes.
  void ReadForeignConfig(const Operation& operation, CustomCallAttributes& call) {
    const Attribute* config = decoder_.Find(operation, "mhlo.backend_config");
    if (!config || config->kind != AttributeKind::kDictionary) return;
    constexpr int64_t kTypedFfi = 4;
    call.api_version = kTypedFfi;
    call.dictionary = decoder_.Dictionary(*config, operation.offset);
  }

  static Shape ResultShape(std::vector<Shape>& shapes) {
    return shapes.size() == 1 ? std::move(shapes[0]) : Shape::Tuple(std::move(shapes));
  }

  void CheckSupported(const Operation& operation, Opcode opcode) const {
    if (opcode != Opcode::kCollectiveBroadcast) return;
    const Attribute* dynamic = decoder_.Find(operation, "has_dynamic_root");
    if (dynamic && dynamic->number != 0) FailUnimplemented(operation, "a dynamic root");
  }

  Instruction* MakeConstant(const Operation& operation, Computation& computation,
                            const std::vector<Shape>& shapes) {
    const Attribute* value = decoder_.Find(operation, "value");
    if (!value || shapes.size() != 1) Fail(operation, "it has no value");
    if (decoder_.IsLargeSplat(*value, operation.offset)) {
      Instruction* scalar =
          AddConstant(computation, decoder_.SplatElement(*value, operation.offset));
      return computation.Add(Opcode::kBroadcastInDim, shapes[0], {scalar}, DimensionsAttributes{});
    }
    return AddConstant(computation, ConstantLiteral(operation, value));
  }

  static Instruction* AddConstant(Computation& computation, Literal literal) {
    Shape shape = literal.shape();
    return computation.Add(Opcode::kConstant, std::move(shape), {},
                           ConstantAttributes{std::move(literal)});
  }

  // Constants that share their attribute share their data.
  const Literal& ConstantLiteral(const Operation& operation, const Attribute* value) {
    auto [found, inserted] = literals_.try_emplace(value);
    if (inserted) found->second = decoder_.ConstantTensor(*value, operation.offset);
    return found->second;
  }

  // Operations that StableHLO keeps for old programs, as those that replaced them. Null for the
  // others.
  Instruction* MakeLegacy(const Operation& operation, std::string_view mnemonic,
                          Computation& computation, const std::vector<Instruction*>& operands,
                          const std::vector<Shape>& shapes) {
    if (mnemonic == "create_token") {
      return computation.Add(Opcode::kAfterAll, Shape::Token(), {});
    }
    if (mnemonic != "dot" && mnemonic != "broadcast" && mnemonic != "cross-replica-sum") {
      return nullptr;
    }
    size_t arity = mnemonic == "dot" ? 2 : 1;
    if (operands.size() != arity || shapes.size() != 1) Fail(operation, "wrong operands");
    const Shape& first = operands[0]->shape();
    if (!first.is_array()) Fail(operation, "its operand is not a tensor");
    if (mnemonic == "broadcast") {
      DimensionsAttributes attributes;
      for (int64_t i = 0; i < first.rank(); ++i) {
        attributes.dimensions.push_back(shapes[0].rank() - first.rank() + i);
      }
      return computation.Add(Opcode::kBroadcastInDim, shapes[0], operands, attributes);
    }
    if (mnemonic == "dot") {
      DotAttributes attributes;
      if (first.rank() == 0) Fail(operation, "its left operand is a scalar");
      attributes.lhs_contracting_dimensions = {first.rank() - 1};
      attributes.rhs_contracting_dimensions = {0};
      FieldDecoder(decoder_, operation).Precisions("precision_config", attributes.precision);
      return computation.Add(Opcode::kDotGeneral, shapes[0], operands, attributes);
    }
    CollectiveAttributes attributes;
    FieldDecoder(decoder_, operation).Rows("replica_groups", attributes.replica_groups, 0);
    Computation* sum = Builder(&computation).ScalarCombiner(Opcode::kAdd, first.element_type());
    return computation.Add(Opcode::kAllReduce, shapes[0], operands, attributes, {sum});
  }

  std::vector<Computation*> Called(const Operation& operation, Opcode opcode, Values& values) {
    switch (opcode) {
      case Opcode::kCall:
        return {FindFunction(operation, decoder_.Find(operation, "callee"))};
      case Opcode::kComposite:
        return {FindFunction(operation, decoder_.Find(operation, "decomposition"))};
      case Opcode::kCustomCall:
        return CustomCallFunctions(operation);
      default:
        break;
    }
    std::vector<Computation*> called;
    for (const Region& region : operation.regions) {
      Values inner;
      Computation* computation = AddRegionComputation(operation);
      AddParameters(region, *computation, inner, operation.offset);
      CloneCaptures(operation, region.captures, values, *computation, inner);
      BuildOperations(region, *computation, inner);
      called.push_back(computation);
    }
    return called;
  }

  std::vector<Computation*> CustomCallFunctions(const Operation& operation) {
    std::vector<Computation*> called;
    const Attribute* list = decoder_.Find(operation, "called_computations");
    if (!list || list->kind != AttributeKind::kArray) return called;
    for (AttributeId part : list->parts) {
      called.push_back(FindFunction(operation, &decoder_.attribute(part)));
    }
    return called;
  }

  Computation* AddRegionComputation(const Operation& operation) {
    const OperationSpec* spec = FindOperation(NameOf(operation));
    return module_->AddComputation(std::string(spec->mnemonic) + "." +
                                   std::to_string(module_->computations().size()));
  }

  // A reduction's body has no way to receive a captured value, but it can repeat a constant.
  void CloneCaptures(const Operation& operation, const std::vector<ValueId>& captures,
                     const Values& values, Computation& computation, Values& inner) {
    for (ValueId value : captures) {
      Instruction* clone = CloneConstant(*Lookup(operation, value, values), computation, 0);
      if (!clone) {
        FailUnimplemented(operation, "its body uses a value from outside that is no constant");
      }
      inner[value] = clone;
    }
  }

  // A copy of something made of constants alone; null for anything else.
  static Instruction* CloneConstant(const Instruction& value, Computation& computation, int depth) {
    switch (value.opcode()) {
      case Opcode::kConstant:
      case Opcode::kIota:
        return computation.Add(value.opcode(), value.shape(), {}, value.attributes());
      case Opcode::kBroadcastInDim:
      case Opcode::kConvert:
      case Opcode::kReshape: {
        if (depth == 4) return nullptr;
        Instruction* operand = CloneConstant(*value.operand(0), computation, depth + 1);
        if (!operand) return nullptr;
        return computation.Add(value.opcode(), value.shape(), {operand}, value.attributes());
      }
      default:
        return nullptr;
    }
  }

  // Splits what regions capture: constants are repeated inside; the rest must be passed.
  std::vector<ValueId> PassedCaptures(const Operation& operation, const Values& values) {
    std::vector<ValueId> passed;
    for (const Region& region : operation.regions) {
      std::vector<ValueId> merged;
      std::ranges::set_union(passed, region.captures, std::back_inserter(merged));
      passed = std::move(merged);
    }
    std::erase_if(passed, [&](ValueId value) {
      Opcode opcode = Lookup(operation, value, values)->opcode();
      return opcode == Opcode::kConstant || opcode == Opcode::kIota;
    });
    return passed;
  }

  // A region with its own arguments as first parameters and the passed values as further ones.
  Computation* BuildRegion(const Operation& operation, const Region& region,
                           const std::vector<ValueId>& passed, const Values& values) {
    Computation* computation = AddRegionComputation(operation);
    Values inner;
    AddParameters(region, *computation, inner, operation.offset);
    for (ValueId value : passed) {
      inner[value] = AddParameter(*computation, values.at(value)->shape());
    }
    for (ValueId value : region.captures) {
      if (inner.contains(value)) continue;
      inner[value] = CloneConstant(*values.at(value), *computation, 0);
    }
    BuildOperations(region, *computation, inner);
    return computation;
  }

  // Captured values become loop-carried ones that the body hands on unchanged.
  Instruction* MakeWhile(const Operation& operation, Computation& computation,
                         std::vector<Instruction*> operands, std::vector<Shape> shapes,
                         Values& values) {
    if (operation.regions.size() != 2) Fail(operation, "it does not have a condition and a body");
    std::vector<ValueId> passed = PassedCaptures(operation, values);
    for (ValueId value : passed) {
      operands.push_back(values.at(value));
      shapes.push_back(values.at(value)->shape());
    }
    Computation* condition = BuildRegion(operation, operation.regions[0], passed, values);
    Computation* body = BuildRegion(operation, operation.regions[1], passed, values);
    std::vector<Instruction*> results = body->results();
    for (size_t i = 0; i < passed.size(); ++i) {
      results.push_back(body->parameter(body->parameters().size() - passed.size() + i));
    }
    body->set_results(std::move(results));
    return computation.Add(Opcode::kWhile, ResultShape(shapes), std::move(operands), NoAttributes{},
                           {condition, body});
  }

  // Captured values become operands after the predicate or index, and parameters of every branch.
  Instruction* MakeBranches(const Operation& operation, std::string_view mnemonic,
                            Computation& computation, std::vector<Instruction*> operands,
                            std::vector<Shape> shapes, Values& values) {
    for (const Region& region : operation.regions) {
      if (!region.argument_types.empty()) Fail(operation, "a branch has arguments");
    }
    if (operands.size() != 1) Fail(operation, "it does not have exactly one operand");
    std::vector<ValueId> passed = PassedCaptures(operation, values);
    for (ValueId value : passed) operands.push_back(values.at(value));
    decoder_.Spend(passed.size() * operation.regions.size() * sizeof(Instruction),
                   operation.offset);
    std::vector<Computation*> branches;
    for (const Region& region : operation.regions) {
      branches.push_back(BuildRegion(operation, region, passed, values));
    }
    return computation.Add(mnemonic == "if" ? Opcode::kIf : Opcode::kCase, ResultShape(shapes),
                           std::move(operands), NoAttributes{}, std::move(branches));
  }

  const Program& program_;
  Decoder decoder_;
  std::unique_ptr<Module> module_;
  std::vector<Function> functions_;
  std::unordered_map<std::string_view, Computation*> by_name_;
  std::unordered_map<const Attribute*, Literal> literals_;
  std::unordered_map<const Instruction*, size_t> offsets_;  // where their operations stand
};

}  // namespace

std::unique_ptr<Module> MakeModule(const Program& program, size_t input_size) {
  return ModuleReader(program, input_size).Read();
}

}  // namespace bytecode

std::unique_ptr<Module> ReadBytecode(std::span<const std::byte> bytes) {
  bytecode::Program program = bytecode::ParseContainer(bytes);
  return bytecode::MakeModule(program, bytes.size());
}

bool IsBytecode(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with(bytecode::kMagic);
}

}  // namespace hlo
