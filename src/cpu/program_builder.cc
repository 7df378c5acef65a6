#include "cpu/program_builder.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>

#include "cpu/arena_planner.h"
#include "cpu/collective/bind_collective.h"
#include "cpu/collective/collective_step.h"
#include "cpu/data_movement.h"
#include "cpu/sort.h"
#include "cpu/step_description.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// One array that an instruction produces.
struct Output {
  const Instruction* instruction;
  int64_t index;
  auto operator<=>(const Output&) const = default;
};

const hlo::Shape& ShapeOf(const Output& output) {
  const hlo::Shape& shape = output.instruction->shape();
  return shape.is_tuple() ? shape.tuple_shapes()[output.index] : shape;
}

// Whose memory a value is: views lead to what they view.
Output Resolve(const Instruction* instruction, int64_t index = 0) {
  switch (instruction->opcode()) {
    case Opcode::kReshape:
    case Opcode::kBitcastConvert:
      return Resolve(instruction->operand(0));
    case Opcode::kOptimizationBarrier:
    case Opcode::kTuple:
      return Resolve(instruction->operand(index));
    case Opcode::kGetTupleElement:
      return Resolve(instruction->operand(0), instruction->tuple_index());
    default:
      return {instruction, index};
  }
}

bool IsView(const Instruction* instruction) {
  switch (instruction->opcode()) {
    case Opcode::kReshape:
    case Opcode::kBitcastConvert:
    case Opcode::kOptimizationBarrier:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
      return true;
    default:
      return false;
  }
}

int64_t OutputCount(const Instruction* instruction) {
  return instruction->shape().is_tuple()
             ? static_cast<int64_t>(instruction->shape().tuple_shapes().size())
             : 1;
}

// Operands of a fused loop that it reads, each element only before it writes the same element of
// its results.
std::set<int64_t> ElementwiseOperands(const Instruction& composite) {
  std::set<int64_t> result;
  if (composite.as<hlo::CompositeAttributes>().name != "cpu.loop") return result;
  const Computation& body = *composite.called_computations()[0];
  const hlo::Dimensions& space = body.result()->dimensions();
  for (const auto& instruction : body.instructions()) {
    if (instruction->opcode() == Opcode::kReduce) return result;
  }
  std::set<const Instruction*> identity(body.results().begin(), body.results().end());
  std::set<const Instruction*> other;
  for (auto it = body.instructions().rbegin(); it != body.instructions().rend(); ++it) {
    const Instruction* instruction = it->get();
    const bool pass =
        identity.contains(instruction) && !other.contains(instruction) &&
        (hlo::IsElementwise(instruction->opcode()) || instruction->opcode() == Opcode::kMap ||
         instruction->opcode() == Opcode::kComposite ||
         instruction->opcode() == Opcode::kBitcastConvert);
    for (const Instruction* operand : instruction->operands()) {
      (pass && operand->dimensions() == space ? identity : other).insert(operand);
    }
  }
  for (const Instruction* parameter : body.parameters()) {
    if (identity.contains(parameter) && !other.contains(parameter)) {
      result.insert(parameter->parameter_number());
    }
  }
  return result;
}

class Builder {
 public:
  Builder(const Computation& computation, const std::vector<int64_t>& aliases,
          const KernelTable& kernels)
      : computation_(computation), aliases_(aliases), kernels_(kernels) {
    program_ = std::make_unique<Program>();
    program_->name = computation.name();
  }

  std::unique_ptr<Program> Build() {
    FindOrder();
    FindLifetimes();
    FindFlights();
    PlaceParametersAndConstants();
    PlaceResults();
    for (size_t i = 0; i < order_.size(); ++i) Emit(static_cast<int64_t>(i));
    Await(kEnd);
    for (auto& copy : final_copies_) program_->steps.push_back(std::move(copy));
    StepDescription copy;
    copy.name = copy.category = "copy";
    copy.text = "copy of a result";
    DescribeSteps(copy);
    program_->arena_bytes = arena_.total_bytes();
    return std::move(program_);
  }

 private:
  static constexpr int64_t kEnd = INT64_MAX;

  // The module's order, except that collectives start as soon as their operands are there, in their
  // own order, which is the same on all ranks. All-gathers do not run far ahead of what uses them:
  // what they gather needs more memory than their operands.
  void FindOrder() {
    struct Place {
      int64_t position;  // in the module's order
      int64_t number;    // of the collective that starts after it, from 1 on
      const Instruction* instruction;
    };
    std::vector<Place> places;
    std::unordered_map<const Instruction*, int64_t> position_of;
    GatherPace pace = FindGatherPace();
    int64_t position = 0, collectives = 0, earliest = -1;
    for (const auto& instruction : computation_.instructions()) {
      const Instruction* i = instruction.get();
      if (!TakesTime(i)) continue;
      if (!hlo::IsCollective(i->opcode())) {
        position_of[i] = position;
        places.push_back({position++, 0, i});
        continue;
      }
      for (const Instruction* operand : i->operands()) {
        auto found = position_of.find(Resolve(operand).instruction);
        if (found != position_of.end()) earliest = std::max(earliest, found->second);
      }
      if (i->opcode() == Opcode::kAllGather) earliest = pace.Start(i, earliest);
      position_of[i] = earliest;
      places.push_back({earliest, ++collectives, i});
    }
    std::ranges::stable_sort(places, [](const Place& a, const Place& b) {
      return std::pair(a.position, a.number) < std::pair(b.position, b.number);
    });
    for (const Place& place : places) order_.push_back(place.instruction);
  }

  static bool TakesTime(const Instruction* i) {
    return !IsView(i) && i->opcode() != Opcode::kParameter && i->opcode() != Opcode::kConstant;
  }

  // Lets as many all-gathers wait for their use at a time as need twice the largest one's memory:
  // one is used while the next is under way.
  struct GatherPace {
    std::unordered_map<const Instruction*, int64_t> first_use;
    // Where each must have started, so that it and those after it are there when they are used.
    std::unordered_map<const Instruction*, int64_t> latest;
    int64_t most_bytes = 0;
    std::vector<std::pair<int64_t, int64_t>> waiting;  // first use, bytes

    // Where it starts: after `earliest`, when its operands are there.
    int64_t Start(const Instruction* gather, int64_t earliest) {
      const auto bytes = static_cast<int64_t>(gather->shape().byte_size());
      int64_t start = earliest;
      while (start < latest.at(gather)) {
        int64_t total = bytes, next = latest.at(gather);
        for (const auto& [use, held] : waiting) {
          if (use <= start) continue;
          total += held;
          next = std::min(next, use);
        }
        if (total <= most_bytes) break;
        start = next;
      }
      std::erase_if(waiting, [&](const auto& other) { return other.first <= start; });
      auto use = first_use.find(gather);
      if (use != first_use.end()) waiting.emplace_back(use->second, bytes);
      return start;
    }
  };

  GatherPace FindGatherPace() const {
    GatherPace pace;
    std::vector<const Instruction*> collectives;
    int64_t position = 0;
    for (const auto& instruction : computation_.instructions()) {
      const Instruction* i = instruction.get();
      if (!TakesTime(i)) continue;
      if (hlo::IsCollective(i->opcode())) {
        collectives.push_back(i);
        if (i->opcode() != Opcode::kAllGather) continue;
        const auto bytes = static_cast<int64_t>(i->shape().byte_size());
        pace.most_bytes = std::max(pace.most_bytes, 2 * bytes);
        continue;
      }
      ForEachOperand(i, [&](const Output& operand) {
        if (hlo::IsCollective(operand.instruction->opcode())) {
          pace.first_use.emplace(operand.instruction, position);
        }
      });
      ++position;
    }
    int64_t latest = position - 1;
    for (const Instruction* i : std::views::reverse(collectives)) {
      auto use = pace.first_use.find(i);
      if (use != pace.first_use.end()) latest = std::min(latest, use->second - 1);
      pace.latest[i] = latest;
    }
    return pace;
  }

  template <typename F>
  static void ForEachOperand(const Instruction* instruction, F&& f) {
    for (const Instruction* operand : instruction->operands()) {
      const int64_t count = operand->shape().is_tuple() ? OutputCount(operand) : 1;
      for (int64_t k = 0; k < count; ++k) f(Resolve(operand, k));
    }
  }

  void FindLifetimes() {
    for (size_t p = 0; p < order_.size(); ++p) {
      const Instruction* i = order_[p];
      const auto position = static_cast<int64_t>(p);
      for (int64_t k = 0; k < OutputCount(i); ++k) {
        defined_[{i, k}] = position;
        last_use_[{i, k}] = position;
      }
      ForEachOperand(i, [&](const Output& operand) { Use(operand, position); });
    }
    for (const Instruction* result : computation_.results()) results_.push_back(Resolve(result));
  }

  // Collectives that are awaited only where their results are used first. Their memory is in use
  // until then.
  void FindFlights() {
    std::unordered_map<const Instruction*, int64_t> first_use;
    for (size_t p = 0; p < order_.size(); ++p) {
      ForEachOperand(order_[p], [&](const Output& operand) {
        first_use.emplace(operand.instruction, static_cast<int64_t>(p));
      });
    }
    for (size_t p = 0; p < order_.size(); ++p) {
      const Instruction* i = order_[p];
      if (!hlo::IsCollective(i->opcode())) continue;
      auto found = first_use.find(i);
      const int64_t wanted = found == first_use.end() ? kEnd : found->second;
      const int64_t use = std::min(wanted, EndOfPatience(p));
      const auto next = static_cast<int64_t>(p) + 1;
      if (use == next || (use == kEnd && p + 1 == order_.size())) continue;
      flight_of_[i] = program_->num_flights++;
      awaited_at_[use].push_back(i);
      const int64_t own = static_cast<int64_t>(p);
      ForEachOperand(i, [&](const Output& operand) {
        if (last_use_[operand] == own && IsTakenOver(operand, i)) return;
        Use(operand, use);
      });
      for (int64_t k = 0; k < OutputCount(i); ++k) Use({i, k}, use);
    }
  }

  // Where a reduce-scatter is awaited at the latest, for its operand needs more memory than its
  // result: before a later one starts with which those under way would need more than twice the
  // largest one's.
  int64_t EndOfPatience(size_t p) const {
    if (order_[p]->opcode() != Opcode::kReduceScatter) return kEnd;
    const auto bytes = [](const Instruction* i) {
      return static_cast<int64_t>(i->operand(0)->shape().byte_size());
    };
    int64_t total = bytes(order_[p]), largest = total;
    for (size_t q = p + 1; q < order_.size(); ++q) {
      if (order_[q]->opcode() != Opcode::kReduceScatter) continue;
      total += bytes(order_[q]);
      largest = std::max(largest, bytes(order_[q]));
      if (total > 2 * largest) return static_cast<int64_t>(q);
    }
    return kEnd;
  }

  // True if nobody but the collective, whose results may be its operands, can come to write to the
  // operand's memory while it is under way.
  bool IsTakenOver(const Output& operand, const Instruction* collective) const {
    if (operand.instruction->opcode() == Opcode::kConstant) return false;
    if (operand.instruction->opcode() != Opcode::kParameter) {
      return MayOverwrite({collective, OperandNumber(collective, operand)}, operand);
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      if (results_[r].instruction != collective) continue;
      if (Alias(r) == operand.instruction->parameter_number()) {
        return MayOverwrite(results_[r], operand);
      }
    }
    return false;
  }
  static int64_t OperandNumber(const Instruction* instruction, const Output& operand) {
    for (size_t i = 0; i < instruction->operand_count(); ++i) {
      if (Resolve(instruction->operand(i)) == operand) return static_cast<int64_t>(i);
    }
    return -1;
  }

  void Use(const Output& output, int64_t position) {
    int64_t& last = last_use_[output];
    last = std::max(last, position);
  }

  int32_t AddBuffer(BufferLocation location) {
    program_->buffers.push_back(location);
    return static_cast<int32_t>(program_->buffers.size()) - 1;
  }

  void PlaceParametersAndConstants() {
    for (const auto& instruction : computation_.instructions()) {
      const Instruction* i = instruction.get();
      if (i->opcode() == Opcode::kParameter) {
        if (i->shape().is_tuple()) {
          throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                           "the CPU engine takes no tuples as parameters: " + i->ToString());
        }
        buffer_[{i, 0}] = AddBuffer({BufferLocation::kArgument, i->parameter_number(), 0, nullptr});
      } else if (i->opcode() == Opcode::kConstant) {
        buffer_[{i, 0}] = AddBuffer({BufferLocation::kConstant, 0, 0, i->literal().bytes()});
      }
    }
  }

  // Values that are results are computed where the caller wants them, unless that memory is still
  // read.
  void PlaceResults() {
    std::set<Output> placed;
    std::vector<int64_t> result_of_parameter(computation_.parameters().size(), -1);
    for (size_t r = 0; r < results_.size(); ++r) {
      if (Alias(r) >= 0) result_of_parameter[Alias(r)] = static_cast<int64_t>(r);
    }
    std::map<Output, int32_t> staged;
    for (size_t r = 0; r < results_.size(); ++r) {
      const Output& value = results_[r];
      const int64_t bytes = ShapeOf(value).byte_size();
      const bool computed = defined_.contains(value);
      if (computed && !placed.contains(value) && MayWriteEarly(value, Alias(r))) {
        placed.insert(value);
        buffer_[value] = AddBuffer({BufferLocation::kResult, static_cast<int64_t>(r), 0, nullptr});
        continue;
      }
      if (computed) last_use_[value] = kEnd;
      const int32_t target =
          AddBuffer({BufferLocation::kResult, static_cast<int64_t>(r), 0, nullptr});
      pending_copies_.push_back({value, target, bytes});
      if (value.instruction->opcode() == Opcode::kParameter) {
        // Another result may overwrite the parameter: keep it first.
        const int64_t taker = result_of_parameter[value.instruction->parameter_number()];
        if (taker >= 0 && taker != static_cast<int64_t>(r)) {
          auto [it, added] = staged.emplace(value, -1);
          if (added) {
            it->second = AddBuffer({BufferLocation::kArena, 0, arena_.Allocate(bytes), nullptr});
            program_->steps.push_back(
                std::make_unique<CopyStep>(buffer_[value], it->second, bytes));
          }
          final_copies_.push_back(std::make_unique<CopyStep>(it->second, target, bytes));
          pending_copies_.pop_back();
        }
      }
    }
    for (const Copy& copy : pending_copies_) {
      // Computed ones are copied when their instruction is emitted.
      if (!defined_.contains(copy.value) && buffer_.contains(copy.value)) {
        final_copies_.push_back(
            std::make_unique<CopyStep>(buffer_[copy.value], copy.target, copy.bytes));
      }
    }
  }

  int64_t Alias(size_t result) const { return result < aliases_.size() ? aliases_[result] : -1; }

  // True if the aliased parameter's memory is free when the value is written.
  bool MayWriteEarly(const Output& value, int64_t parameter) {
    if (parameter < 0) return true;
    const Output source{computation_.parameter(parameter), 0};
    for (size_t r = 0; r < results_.size(); ++r) {
      if (results_[r] == source) return false;
    }
    auto last = last_use_.find(source);
    if (last == last_use_.end() || last->second < defined_[value]) return true;
    return last->second == defined_[value] && MayOverwrite(value, source);
  }

  // True if `value`'s instruction may write it to the memory of its operand `source`.
  bool MayOverwrite(const Output& value, const Output& source) const {
    const Instruction* instruction = value.instruction;
    if (ShapeOf(value).byte_size() != ShapeOf(source).byte_size()) return false;
    int64_t occurrences = 0, number = -1;
    for (size_t i = 0; i < instruction->operand_count(); ++i) {
      const Instruction* operand = instruction->operand(i);
      if (operand->shape().is_tuple()) return false;
      if (Resolve(operand) == source) {
        ++occurrences;
        number = static_cast<int64_t>(i);
      }
    }
    if (occurrences != 1) return false;
    switch (instruction->opcode()) {
      case Opcode::kComposite: {
        if (!NeedsKernel(*instruction)) return false;
        const std::string& kind = instruction->as<hlo::CompositeAttributes>().name;
        if (kind == "cpu.scatter") {
          const Instruction* scatter = instruction->called_computations()[0]->result();
          if (scatter->opcode() == Opcode::kGetTupleElement) scatter = scatter->operand(0);
          const auto& inputs = scatter->operands();
          for (size_t i = 0; i < inputs.size(); ++i) {
            const bool is_value = static_cast<int64_t>(i) == value.index;
            if ((inputs[i]->parameter_number() == number) != is_value) return false;
          }
          return true;
        }
        // Element by element: of the same width.
        const Instruction* operand = instruction->operand(number);
        return hlo::ByteWidth(operand->element_type()) ==
                   hlo::ByteWidth(ShapeOf(value).element_type()) &&
               operand->dimensions() == ShapeOf(value).dimensions() &&
               ElementwiseOperands(*instruction).contains(number);
      }
      case Opcode::kDynamicUpdateSlice:
        return number == 0;
      case Opcode::kWhile:
      case Opcode::kAllReduce:
        return number == value.index;
      default:
        return false;
    }
  }

  int32_t Buffer(const Instruction* instruction, int64_t index = 0) {
    const Output output = Resolve(instruction, index);
    auto found = buffer_.find(output);
    if (found == buffer_.end()) {
      throw hlo::Error(hlo::ErrorCode::kInternal,
                       "no buffer for " + output.instruction->ToString());
    }
    return found->second;
  }

  // Memory for the outputs of the instruction at `position` that have none yet.
  void PlaceOutputs(int64_t position) {
    const Instruction* instruction = order_[position];
    std::set<Output> taken;
    for (int64_t k = 0; k < OutputCount(instruction); ++k) {
      const Output output{instruction, k};
      if (buffer_.contains(output)) continue;
      // In place of an operand that nobody reads afterwards.
      bool done = false;
      for (const Instruction* operand : instruction->operands()) {
        if (operand->shape().is_tuple()) continue;
        const Output source = Resolve(operand);
        auto owner = arena_offset_.find(source);
        if (owner == arena_offset_.end() || last_use_[source] != position ||
            taken.contains(source)) {
          continue;
        }
        if (!MayOverwrite(output, source)) continue;
        taken.insert(source);
        arena_offset_[output] = owner->second;
        buffer_[output] = buffer_[source];
        arena_offset_.erase(owner);
        done = true;
        break;
      }
      if (done) continue;
      const int64_t offset = arena_.Allocate(ShapeOf(output).byte_size());
      arena_offset_[output] = offset;
      buffer_[output] = AddBuffer({BufferLocation::kArena, 0, offset, nullptr});
    }
    for (const Copy& copy : pending_copies_) {
      if (copy.value.instruction != instruction) continue;
      final_copies_.push_back(
          std::make_unique<CopyStep>(buffer_[copy.value], copy.target, copy.bytes));
    }
  }

  void FreeDead(int64_t position) {
    // What a collective that is under way reads is free when it has been awaited.
    if (!flight_of_.contains(order_[position])) FreeDead(order_[position], position);
    auto awaited = awaited_at_.find(position);
    if (awaited == awaited_at_.end()) return;
    for (const Instruction* collective : awaited->second) FreeDead(collective, position);
  }

  void FreeDead(const Instruction* instruction, int64_t position) {
    auto free = [&](const Output& output) {
      auto found = arena_offset_.find(output);
      if (found == arena_offset_.end() || last_use_[output] > position) return;
      arena_.Free(found->second);
      arena_offset_.erase(found);
    };
    for (int64_t k = 0; k < OutputCount(instruction); ++k) free({instruction, k});
    for (const Instruction* operand : instruction->operands()) {
      for (int64_t k = 0; k < OutputCount(operand); ++k) free(Resolve(operand, k));
    }
  }

  void Emit(int64_t position) {
    const Instruction* instruction = order_[position];
    Await(position);
    PlaceOutputs(position);
    if (HasWork(instruction)) EmitStep(instruction);
    if (described_ < program_->steps.size()) DescribeSteps(Describe(*instruction));
    for (int64_t offset : scratch_) arena_.Free(offset);
    scratch_.clear();
    FreeDead(position);
  }

  void Await(int64_t position) {
    auto awaited = awaited_at_.find(position);
    if (awaited == awaited_at_.end()) return;
    for (const Instruction* collective : awaited->second) {
      program_->steps.push_back(std::make_unique<AwaitStep>(flight_of_.at(collective)));
      StepDescription description = Describe(*collective);
      description.name += ".done";
      // Those of its start.
      description.bytes_read = description.bytes_written = 0;
      DescribeSteps(description);
    }
  }

  // The steps that were added since the last call.
  void DescribeSteps(const StepDescription& description) {
    for (; described_ < program_->steps.size(); ++described_) {
      program_->steps[described_]->set_description(description);
    }
  }

  // Empty arrays and tokens need no computation.
  static bool HasWork(const Instruction* instruction) {
    if (instruction->HasSideEffect() && instruction->opcode() != Opcode::kAfterAll) return true;
    for (int64_t k = 0; k < OutputCount(instruction); ++k) {
      const hlo::Shape& shape = ShapeOf({instruction, k});
      if (shape.is_array() && shape.num_elements() > 0) return true;
    }
    return false;
  }

  int64_t Scratch(int64_t bytes) {
    if (bytes == 0) return 0;
    scratch_.push_back(arena_.Allocate(bytes));
    return scratch_.back();
  }

  std::vector<int32_t> Operands(const Instruction* instruction) {
    std::vector<int32_t> buffers;
    for (const Instruction* operand : instruction->operands()) {
      if (operand->shape().is_token()) continue;
      buffers.push_back(Buffer(operand));
    }
    return buffers;
  }
  std::vector<int32_t> Results(const Instruction* instruction) {
    std::vector<int32_t> buffers;
    for (int64_t k = 0; k < OutputCount(instruction); ++k) {
      if (!ShapeOf({instruction, k}).is_token()) buffers.push_back(buffer_.at({instruction, k}));
    }
    return buffers;
  }

  void EmitStep(const Instruction* instruction) {
    switch (instruction->opcode()) {
      case Opcode::kWhile:
        return EmitWhile(instruction);
      case Opcode::kIf:
      case Opcode::kCase:
        return EmitBranch(instruction);
      default:
        break;
    }
    if (hlo::IsCollective(instruction->opcode())) {
      auto flight = flight_of_.find(instruction);
      program_->steps.push_back(std::make_unique<CollectiveStep>(
          CollectiveOf(*instruction), Operands(instruction), Results(instruction),
          flight == flight_of_.end() ? -1 : flight->second));
      return;
    }
    if (NeedsKernel(*instruction)) {
      const CompiledKernel& kernel = kernels_(*instruction);
      const std::string& kind = instruction->as<hlo::CompositeAttributes>().name;
      if (kind == "cpu.sort") return EmitSort(instruction, kernel);
      if (kind == "cpu.scatter") CopyScattered(instruction);
      std::vector<int32_t> buffers = Operands(instruction);
      for (int32_t result : Results(instruction)) buffers.push_back(result);
      program_->steps.push_back(std::make_unique<KernelStep>(kernel.name, kernel.function, buffers,
                                                             kernel.units, kernel.unit_cost));
      return;
    }
    if (auto function = BindDataMovement(*instruction)) {
      program_->steps.push_back(std::make_unique<NativeStep>(
          std::string(hlo::Name(instruction->opcode())), std::move(function), Operands(instruction),
          Results(instruction), 0));
      return;
    }
    if (auto call = BindLibraryCall(*instruction)) {
      const int64_t scratch = Scratch(call->scratch_bytes());
      program_->steps.push_back(std::make_unique<LibraryStep>(
          std::move(call), Operands(instruction), Results(instruction), scratch));
      return;
    }
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the CPU engine does not implement " +
                         std::string(hlo::Name(instruction->opcode())) + ": " +
                         instruction->ToString());
  }

  // A scatter updates its operands' values in its results' buffers. The composite's operands are
  // the scatter's, repeated ones once.
  void CopyScattered(const Instruction* composite) {
    const Instruction* scatter = composite->called_computations()[0]->result();
    if (scatter->opcode() == Opcode::kGetTupleElement) scatter = scatter->operand(0);
    for (int64_t k = 0; k < OutputCount(composite); ++k) {
      const int64_t number = scatter->operand(k)->parameter_number();
      program_->steps.push_back(
          std::make_unique<CopyStep>(Buffer(composite->operand(number)), buffer_.at({composite, k}),
                                     scatter->operand(k)->shape().byte_size()));
    }
  }

  void EmitSort(const Instruction* composite, const CompiledKernel& kernel) {
    const Instruction* sort = composite->called_computations()[0]->result();
    if (sort->opcode() == Opcode::kGetTupleElement) sort = sort->operand(0);
    std::vector<int32_t> operands;
    for (const Instruction* operand : sort->operands()) {
      operands.push_back(Buffer(composite->operand(operand->parameter_number())));
    }
    program_->steps.push_back(std::make_unique<NativeStep>("sort", BindSort(*sort, kernel.function),
                                                           operands, Results(composite), 0));
  }

  WhileStep::Part Nested(const Computation& computation, const std::vector<int64_t>& aliases) {
    WhileStep::Part part;
    part.program = BuildProgram(computation, aliases, kernels_);
    part.arena_offset = Scratch(part.program->arena_bytes);
    return part;
  }

  void EmitWhile(const Instruction* instruction) {
    const size_t count = instruction->operand_count();
    std::vector<int64_t> in_place(count);
    for (size_t i = 0; i < count; ++i) in_place[i] = static_cast<int64_t>(i);
    auto condition = Nested(*instruction->called_computations()[0], {});
    auto body = Nested(*instruction->called_computations()[1], in_place);
    std::vector<int64_t> bytes;
    std::vector<int32_t> operands, results;
    for (size_t i = 0; i < count; ++i) {
      bytes.push_back(instruction->operand(i)->shape().byte_size());
      operands.push_back(instruction->operand(i)->shape().is_token()
                             ? TokenBuffer()
                             : Buffer(instruction->operand(i)));
      const Output output{instruction, static_cast<int64_t>(i)};
      results.push_back(buffer_.at(output));
    }
    const int32_t predicate = AddBuffer({BufferLocation::kArena, 0, Scratch(1), nullptr});
    program_->steps.push_back(std::make_unique<WhileStep>(std::move(condition), std::move(body),
                                                          operands, results, bytes, predicate));
  }

  int32_t TokenBuffer() { return AddBuffer({BufferLocation::kArena, 0, 0, nullptr}); }

  void EmitBranch(const Instruction* instruction) {
    std::vector<WhileStep::Part> branches;
    for (const Computation* branch : instruction->called_computations()) {
      branches.push_back(Nested(*branch, {}));
    }
    std::vector<int32_t> operands;
    for (size_t i = 1; i < instruction->operand_count(); ++i) {
      operands.push_back(Buffer(instruction->operand(i)));
    }
    program_->steps.push_back(std::make_unique<BranchStep>(
        std::move(branches), instruction->opcode() == Opcode::kIf, Buffer(instruction->operand(0)),
        operands, Results(instruction)));
  }

  struct Copy {
    Output value;
    int32_t target;
    int64_t bytes;
  };

  const Computation& computation_;
  const std::vector<int64_t>& aliases_;
  const KernelTable& kernels_;
  std::unique_ptr<Program> program_;
  ArenaPlanner arena_;
  std::vector<const Instruction*> order_;
  std::map<Output, int64_t> defined_, last_use_;
  std::vector<Output> results_;
  std::unordered_map<const Instruction*, int64_t> flight_of_;
  std::map<int64_t, std::vector<const Instruction*>> awaited_at_;  // by position in order_
  std::map<Output, int32_t> buffer_;
  std::map<Output, int64_t> arena_offset_;  // values that own a piece of the arena
  std::vector<int64_t> scratch_;
  std::vector<Copy> pending_copies_;
  std::vector<std::unique_ptr<Step>> final_copies_;
  size_t described_ = 0;  // steps
};

}  // namespace

bool NeedsKernel(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kComposite) return false;
  const std::string& name = instruction.as<hlo::CompositeAttributes>().name;
  return name.starts_with("cpu.") && name != "cpu.dot" && name != "cpu.convolution";
}

std::unique_ptr<Program> BuildProgram(const Computation& computation,
                                      const std::vector<int64_t>& aliases,
                                      const KernelTable& kernels) {
  return Builder(computation, aliases, kernels).Build();
}

}  // namespace cpu
