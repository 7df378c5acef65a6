#include "cpu/kernel_emitter.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>

#include "cpu/body_emitter.h"
#include "cpu/host.h"
#include "cpu/iteration_space.h"
#include "hlo/builder.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

int64_t Product(const Dimensions& dimensions, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i) product *= dimensions[i];
  return product;
}

// The reduce behind a result: itself, or what a get_tuple_element picks from.
const Instruction* ReduceOf(const Instruction* instruction) {
  if (instruction->opcode() == Opcode::kGetTupleElement) instruction = instruction->operand(0);
  return instruction->opcode() == Opcode::kReduce ? instruction : nullptr;
}

bool IsExpensive(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kTanh:
    case Opcode::kPower:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
    case Opcode::kAtan2:
    case Opcode::kCbrt:
    case Opcode::kComposite:
      return true;
    default:
      return false;
  }
}

// Nanoseconds for an element, roughly, vectorized and in cache.
double ElementCost(const Computation& body) {
  double cost = 0;
  for (const auto& instruction : body.instructions()) {
    if (!instruction->shape().is_array()) continue;
    const double width = static_cast<double>(hlo::ByteWidth(instruction->element_type()));
    if (instruction->opcode() == Opcode::kParameter) {
      cost += 0.02 * width;
    } else if (IsExpensive(*instruction)) {
      cost += 0.15 * width;
    } else {
      cost += 0.01 * width;
    }
  }
  return cost + 0.1;
}

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const std::string& name, const Instruction& composite)
      : composite_(composite),
        body_(*composite.called_computations()[0]),
        lanes_(ChooseLanes()),
        emitter_(MakeFunction(module, name), body_, lanes_, ChooseWideIndex()),
        b_(emitter_.builder()) {}

  KernelInfo Emit() {
    const std::string& kind = composite_.as<hlo::CompositeAttributes>().name;
    if (kind == "cpu.reduce") {
      EmitReduce();
    } else if (kind == "cpu.scan") {
      EmitScan();
    } else if (kind == "cpu.scatter") {
      EmitScatter();
    } else if (kind == "cpu.sort") {
      EmitComparator();
    } else {
      EmitLoop();
    }
    emitter_.AtInnermost();
    b_.CreateRetVoid();
    return info_;
  }

 private:
  llvm::Function* MakeFunction(llvm::Module& module, const std::string& name) {
    llvm::LLVMContext& context = module.getContext();
    auto* pointer = llvm::PointerType::getUnqual(context);
    auto* integer = llvm::Type::getInt64Ty(context);
    auto* type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, integer, integer}, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function->addFnAttr("prefer-vector-width", std::to_string(Host().vector_bytes * 8));
    function->addFnAttr("frame-pointer", "none");
    function->setDoesNotThrow();
    llvm::BasicBlock::Create(context, "entry", function);
    function_ = function;
    return function;
  }

  // As many as fill a register with the widest type that is computed with.
  int ChooseLanes() const {
    size_t width = 1;
    int expensive = 0;
    for (const auto& instruction : body_.instructions()) {
      if (!instruction->shape().is_array()) continue;
      ElementType type = instruction->element_type();
      size_t bytes = hlo::ByteWidth(hlo::RealType(type));
      if (type == ElementType::kF16 || type == ElementType::kBF16) bytes = 4;
      if (instruction->shape().rank() == 0) continue;
      width = std::max(width, bytes);
      expensive += IsExpensive(*instruction);
    }
    const int lanes =
        std::min<int>(Host().vector_bytes / static_cast<int>(std::max<size_t>(width, 2)), 32);
    // Long chains of dependent operations are bound by their latency: two registers at a time.
    return expensive > 0 && lanes <= 16 ? lanes * 2 : lanes;
  }

  bool ChooseWideIndex() const {
    for (const auto& instruction : body_.instructions()) {
      if (instruction->shape().is_array() && instruction->shape().num_elements() * 2 > INT32_MAX) {
        return true;
      }
    }
    return false;
  }

  llvm::Value* Begin() { return function_->getArg(1); }
  llvm::Value* End() { return function_->getArg(2); }
  llvm::Value* I64(int64_t value) { return b_.getInt64(value); }
  llvm::Value* ResultPointer(size_t i) {
    return emitter_.BufferPointer(static_cast<int64_t>(body_.parameters().size() + i));
  }

  // --- Loop nests.

  struct Run {
    int64_t begin, end, size;
  };
  std::vector<Run> Runs(const Dimensions& space, const std::set<int64_t>& boundaries) {
    std::vector<Run> runs;
    for (auto it = boundaries.begin(); std::next(it) != boundaries.end(); ++it) {
      runs.push_back({*it, *std::next(it), Product(space, *it, *std::next(it))});
    }
    return runs;
  }

  // Positions of a flattened number in runs.
  Index Unflatten(llvm::Value* flat, int level, const std::vector<Run>& runs) {
    Index index(runs.size());
    Position rest = emitter_.ScalarPosition(flat, level);
    for (size_t i = runs.size(); i-- > 0;) {
      Position position = i == 0 ? rest : emitter_.Remainder(rest, runs[i].size);
      if (runs[i].size == 1) position = emitter_.ConstantPosition(0);
      index[i] = {runs[i].begin, runs[i].end, position};
      if (i > 0) rest = emitter_.Divide(rest, runs[i].size);
    }
    return index;
  }

  using Accumulators = BodyEmitter::Accumulators;
  using NestBody = std::function<Accumulators(const Index&, const Accumulators&)>;

  // Scalar loops over the runs.
  Accumulators ScalarNest(const std::vector<Run>& runs, size_t i, Index index,
                          Accumulators accumulators, const NestBody& body) {
    if (i == runs.size()) return body(index, accumulators);
    if (runs[i].size == 1) {
      index.push_back({runs[i].begin, runs[i].end, emitter_.ConstantPosition(0)});
      return ScalarNest(runs, i + 1, index, accumulators, body);
    }
    return emitter_.Loop(I64(0), I64(runs[i].size), 1, accumulators,
                         [&](llvm::Value* variable, const Accumulators& current) {
                           Index inner = index;
                           inner.push_back({runs[i].begin, runs[i].end,
                                            emitter_.ScalarPosition(variable, emitter_.level())});
                           return ScalarNest(runs, i + 1, inner, current, body);
                         });
  }

  // Lanes over one run: full vectors, `unroll` of them an iteration where that many are left, and a
  // masked rest. With several accumulator sets (unroll), set u belongs to vector u.
  Accumulators LaneLoop(const Run& run, const Index& outer, Accumulators accumulators, int unroll,
                        const NestBody& body) {
    const int64_t size = run.size;
    const int64_t set = unroll > 1 ? static_cast<int64_t>(accumulators.size()) / unroll : 0;
    auto at = [&](const Index& index, const Position& position) {
      Index inner = index;
      inner.push_back({run.begin, run.end, position});
      return inner;
    };
    int64_t done = 0;
    auto loop = [&](int64_t end, int count) {
      if (done >= end) return;
      accumulators = emitter_.Loop(
          I64(done), I64(end), lanes_ * count, accumulators,
          [&](llvm::Value* variable, const Accumulators& current) {
            Position base = emitter_.LanePosition(variable, emitter_.level(), lanes_);
            if (count == 1) return body(at(outer, base), current);
            Accumulators next;
            for (int u = 0; u < count; ++u) {
              Accumulators mine(current.begin() + u * set, current.begin() + (u + 1) * set);
              Accumulators updated = body(at(outer, emitter_.Add(base, u * lanes_)), mine);
              next.insert(next.end(), updated.begin(), updated.end());
            }
            return next;
          });
      done = end;
    };
    if (unroll > 1) {
      loop(size / (lanes_ * unroll) * (lanes_ * unroll), unroll);
      // The rest goes to the first set.
      Accumulators others(accumulators.begin() + set, accumulators.end());
      accumulators.resize(set);
      RestOfLanes(run, outer, done, accumulators, body, at);
      accumulators.insert(accumulators.end(), others.begin(), others.end());
      return accumulators;
    }
    RestOfLanes(run, outer, done, accumulators, body, at);
    return accumulators;
  }

  template <typename At>
  void RestOfLanes(const Run& run, const Index& outer, int64_t done, Accumulators& accumulators,
                   const NestBody& body, const At& at) {
    const int64_t full = run.size / lanes_ * lanes_;
    if (full - done == lanes_) {
      Position position = emitter_.LanePosition(I64(done), 0, done);
      accumulators = body(at(outer, position), accumulators);
    } else if (done < full) {
      accumulators = emitter_.Loop(I64(done), I64(full), lanes_, accumulators,
                                   [&](llvm::Value* variable, const Accumulators& current) {
                                     Position position =
                                         emitter_.LanePosition(variable, emitter_.level(), lanes_);
                                     return body(at(outer, position), current);
                                   });
    }
    if (full < run.size) {
      WithMask(emitter_.FirstLanes(run.size - full), 0, [&] {
        Position position = emitter_.LanePosition(I64(full), 0, full);
        accumulators = body(at(outer, position), accumulators);
      });
    }
  }

  void WithMask(llvm::Value* value, int level, const std::function<void()>& body) {
    BodyEmitter::Mask saved = emitter_.mask();
    emitter_.set_mask({value, level});
    body();
    emitter_.set_mask(saved);
  }

  // --- Element-wise loops and row kernels.

  void EmitLoop() {
    std::vector<const Instruction*> reduces;
    for (const auto& instruction : body_.instructions()) {
      if (instruction->opcode() == Opcode::kReduce) reduces.push_back(instruction.get());
    }
    Dimensions space = body_.result()->dimensions();
    int64_t row_rank = -1;
    if (!reduces.empty()) {
      space = reduces[0]->operand(0)->dimensions();
      row_rank = ResultRank(reduces[0]);
    }
    std::vector<const Instruction*> roots(body_.results().begin(), body_.results().end());
    for (const Instruction* reduce : reduces) roots.push_back(reduce);
    std::set<int64_t> boundaries = RunBoundaries(space, WithoutTuples(roots));
    if (row_rank >= 0) boundaries.insert(row_rank);
    std::vector<Run> runs = Runs(space, boundaries);
    if (runs.empty()) runs.push_back({0, 0, 1});
    const double cost = ElementCost(body_);
    if (row_rank < 0) {
      // Short innermost runs are vectorized across.
      const int64_t total = Product(space, 0, space.size());
      if (runs.size() > 1 && runs.back().size < std::min<int64_t>(lanes_ / 2, 8)) {
        runs = {{0, static_cast<int64_t>(space.size()), total}};
      }
      if (runs.size() == 1) return EmitFlat(runs[0], cost);
    }
    std::vector<Run> rows, columns;
    for (const Run& run : runs) {
      const bool row =
          row_rank >= 0 ? run.end <= row_rank && run.begin < row_rank : &run != &runs.back();
      (row ? rows : columns).push_back(run);
    }
    if (columns.empty()) columns.push_back({row_rank, static_cast<int64_t>(space.size()), 1});
    int64_t row_count = 1, column_count = 1;
    for (const Run& run : rows) row_count *= run.size;
    for (const Run& run : columns) column_count *= run.size;
    info_.units = row_count;
    info_.unit_cost = cost * static_cast<double>(column_count) + 2;
    PlanRowCache(reduces, column_count);
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* row, const Accumulators&) {
      Index row_index = Unflatten(row, emitter_.level(), rows);
      EmitRow(reduces, row_index, columns, row);
      return Accumulators{};
    });
  }

  static int64_t ResultRank(const Instruction* reduce) {
    return reduce->shape().is_tuple() ? reduce->shape().tuple_shapes()[0].rank()
                                      : reduce->shape().rank();
  }

  // A tuple-shaped reduce stands for its inputs.
  static std::vector<const Instruction*> WithoutTuples(
      const std::vector<const Instruction*>& roots) {
    std::vector<const Instruction*> result;
    for (const Instruction* root : roots) {
      const Instruction* reduce = ReduceOf(root);
      if (!reduce) {
        result.push_back(root);
        continue;
      }
      for (size_t i = 0; i < reduce->operand_count() / 2; ++i) result.push_back(reduce->operand(i));
    }
    return result;
  }

  void EmitFlat(const Run& run, double cost) {
    const int64_t full = run.size / lanes_;
    info_.units = (run.size + lanes_ - 1) / lanes_;
    info_.unit_cost = cost * lanes_;
    auto store = [&](const Position& position) { StoreFull({{run.begin, run.end, position}}); };
    emitter_.AtInnermost();
    if (full > 0) {
      llvm::Value* end = b_.CreateSelect(b_.CreateICmpSLT(End(), I64(full)), End(), I64(full));
      emitter_.Loop(b_.CreateMul(Begin(), I64(lanes_)), b_.CreateMul(end, I64(lanes_)), lanes_, {},
                    [&](llvm::Value* variable, const Accumulators&) {
                      store(emitter_.LanePosition(variable, emitter_.level(), lanes_));
                      return Accumulators{};
                    });
    }
    if (full * lanes_ == run.size) return;
    emitter_.AtInnermost();
    emitter_.If(b_.CreateICmpSGT(End(), I64(full)), [&] {
      const int64_t rest = run.size - full * lanes_;
      if (rest == 1) {
        return store(emitter_.ConstantPosition(full * lanes_));
      }
      WithMask(emitter_.FirstLanes(rest), 0,
               [&] { store(emitter_.LanePosition(I64(full * lanes_), 0, full * lanes_)); });
    });
  }

  // All results at an index of the whole space.
  void StoreFull(const Index& index) {
    std::vector<Element> values;
    for (const Instruction* result : body_.results()) {
      if (IsRowResult(result)) {
        values.push_back({});
      } else {
        values.push_back(emitter_.Evaluate(result, index).element);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Instruction* result = body_.results()[i];
      if (!values[i].real) continue;
      emitter_.Store(ResultPointer(i), emitter_.Linearize(index, result->dimensions()), values[i],
                     result->element_type());
    }
  }

  bool IsRowResult(const Instruction* result) const { return row_results_.contains(result); }

  void EmitRow(const std::vector<const Instruction*>& reduces, const Index& row_index,
               const std::vector<Run>& columns, llvm::Value* row) {
    // A reduce may be computed once those that it depends on are.
    std::vector<std::vector<const Instruction*>> passes;
    std::map<const Instruction*, int> depth;
    for (const auto& instruction : body_.instructions()) {
      int& d = depth[instruction.get()];
      for (const Instruction* operand : instruction->operands()) {
        d = std::max(d, depth[operand] + (operand->opcode() == Opcode::kReduce ? 1 : 0));
      }
      if (instruction->opcode() != Opcode::kReduce) continue;
      if (static_cast<int>(passes.size()) <= d) passes.resize(d + 1);
      passes[d].push_back(instruction.get());
    }
    row_results_.clear();
    for (const Instruction* result : body_.results()) {
      if (!reduces.empty() && result->shape().rank() == ResultRank(reduces[0])) {
        row_results_.insert(result);
      }
    }
    for (const auto& pass : passes) ReduceRow(pass, row_index, columns);
    if (row_results_.size() < body_.results().size()) {
      Columns(columns, row_index, {}, 1, [&](const Index& index, const Accumulators&) {
        StoreFull(index);
        return Accumulators{};
      });
    }
    for (size_t i = 0; i < body_.results().size(); ++i) {
      const Instruction* result = body_.results()[i];
      if (!IsRowResult(result)) continue;
      Element value = emitter_.Evaluate(result, row_index).element;
      emitter_.AtInnermost();
      emitter_.Store(ResultPointer(i), emitter_.ScalarPosition(row, emitter_.level()), value,
                     result->element_type());
    }
  }

  Accumulators Columns(const std::vector<Run>& columns, const Index& row_index,
                       Accumulators initial, int unroll, const NestBody& body) {
    std::vector<Run> outer(columns.begin(), columns.end() - 1);
    return ScalarNest(outer, 0, row_index, initial,
                      [&](const Index& index, const Accumulators& current) {
                        return LaneLoop(columns.back(), index, current, unroll,
                                        [&](const Index& unsorted, const Accumulators& lanes) {
                                          Index inner = unsorted;
                                          if (reorder_) Sort(inner);
                                          if (cached_.empty()) return body(inner, lanes);
                                          return WithRowCache(inner, columns, lanes, body);
                                        });
                      });
  }

  // --- The row cache: expensive values that several passes need stay in a buffer on the stack.

  void PlanRowCache(const std::vector<const Instruction*>& reduces, int64_t column_count) {
    if (reduces.empty() || column_count > 16384) return;
    // In how many passes (each reduce, and the last) an instruction is evaluated.
    std::map<const Instruction*, int> passes;
    auto mark = [&](const std::vector<const Instruction*>& roots) {
      std::set<const Instruction*> seen;
      std::vector<const Instruction*> stack = roots;
      while (!stack.empty()) {
        const Instruction* instruction = stack.back();
        stack.pop_back();
        if (!seen.insert(instruction).second) continue;
        ++passes[instruction];
        if (instruction->opcode() == Opcode::kReduce || IsExpensive(*instruction)) continue;
        for (const Instruction* operand : instruction->operands()) stack.push_back(operand);
      }
    };
    for (const Instruction* reduce : reduces) {
      std::vector<const Instruction*> roots;
      for (const Instruction* operand : reduce->operands()) roots.push_back(operand);
      mark(roots);
    }
    std::vector<const Instruction*> roots;
    for (const Instruction* result : body_.results()) {
      if (!ReduceOf(result)) roots.push_back(result);
    }
    mark(roots);
    const Dimensions& space = reduces[0]->operand(0)->dimensions();
    for (const auto& [instruction, count] : passes) {
      if (count < 2 || !IsExpensive(*instruction) || cached_.size() >= 4) continue;
      if (instruction->dimensions() != space || hlo::IsComplex(instruction->element_type()))
        continue;
      emitter_.At(0);
      llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
      // Whole vectors are stored, wherever a run of columns begins: the last may reach beyond.
      auto* memory = b_.CreateAlloca(type, I64(column_count + lanes_ - 1));
      memory->setAlignment(llvm::Align(64));
      cached_[instruction] = {memory, false};
    }
  }

  Accumulators WithRowCache(const Index& index, const std::vector<Run>& columns,
                            const Accumulators& accumulators, const NestBody& body) {
    // Where in the row these lanes are.
    Position linear = emitter_.ConstantPosition(0);
    for (size_t i = 0; i < columns.size(); ++i) {
      linear = emitter_.Add(emitter_.Multiply(linear, columns[i].size),
                            index[index.size() - columns.size() + i].position);
    }
    auto same = [&](const Index& other) {
      if (other.size() != index.size()) return false;
      for (size_t i = 0; i < index.size(); ++i) {
        if (other[i].position.base != index[i].position.base ||
            other[i].position.vector != index[i].position.vector) {
          return false;
        }
      }
      return true;
    };
    emitter_.before = [&, this](const Instruction* instruction, const Index& at,
                                BodyEmitter::Value* value) {
      auto cached = cached_.find(instruction);
      if (cached == cached_.end() || !cached->second.filled || !same(at)) return false;
      value->level = emitter_.level();
      emitter_.AtInnermost();
      llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
      llvm::Type* vector = linear.uniform() ? type : llvm::FixedVectorType::get(type, lanes_);
      value->element = {
          b_.CreateAlignedLoad(vector, b_.CreateGEP(type, cached->second.memory, linear.base),
                               llvm::Align(1)),
          nullptr};
      return true;
    };
    emitter_.after = [&, this](const Instruction* instruction, const Index& at,
                               BodyEmitter::Value* value) {
      auto cached = cached_.find(instruction);
      if (cached == cached_.end() || cached->second.filled || !same(at)) return false;
      emitter_.AtInnermost();
      llvm::Type* type = RegisterType(b_.getContext(), instruction->element_type());
      Element element = linear.uniform() ? value->element : emitter_.Splat(value->element);
      b_.CreateAlignedStore(element.real, b_.CreateGEP(type, cached->second.memory, linear.base),
                            llvm::Align(1));
      stored_.insert(instruction);
      return false;
    };
    Accumulators result = body(index, accumulators);
    emitter_.before = nullptr;
    emitter_.after = nullptr;
    return result;
  }

  // --- Reductions.

  struct Reduction {
    const Instruction* reduce;
    const Computation* combiner;
    std::vector<ElementType> types;
    std::vector<Element> initial;  // what accumulators start from
    std::vector<Element> init;     // folded in at the end; empty if `initial` is it
    bool rounds;
  };

  Reduction PlanReduction(const Instruction* reduce) {
    Reduction plan;
    plan.reduce = reduce;
    plan.combiner = reduce->called_computations()[0];
    const size_t count = reduce->operand_count() / 2;
    plan.rounds = false;
    for (size_t i = 0; i < count; ++i) plan.types.push_back(reduce->operand(i)->element_type());
    // A plain operation starts from its identity; others from their initial values, which have to
    // be one.
    const Instruction* root = plan.combiner->result();
    const bool plain = count == 1 && plan.combiner->instructions().size() == 3 &&
                       hlo::IsElementwiseBinary(root->opcode());
    std::vector<Element> init;
    for (size_t i = 0; i < count; ++i) {
      init.push_back(emitter_.Evaluate(reduce->operand(count + i), {}).element);
    }
    plan.initial = init;
    if (plain) {
      switch (root->opcode()) {
        case Opcode::kAdd:
        case Opcode::kMultiply:
        case Opcode::kMaximum:
        case Opcode::kMinimum:
        case Opcode::kAnd:
        case Opcode::kOr:
        case Opcode::kXor: {
          if (hlo::IsComplex(plan.types[0]) && root->opcode() != Opcode::kAdd &&
              root->opcode() != Opcode::kMultiply) {
            break;
          }
          Opcode identity_of = root->opcode() == Opcode::kXor ? Opcode::kOr : root->opcode();
          hlo::Literal identity = hlo::IdentityLiteral(identity_of, plan.types[0]);
          plan.initial = {emitter_.elementwise().Constant(identity, 0)};
          const bool same = plan.initial[0].real == init[0].real &&
                            plan.initial[0].imaginary == init[0].imaginary;
          if (!same) plan.init = init;
          break;
        }
        default:
          break;
      }
    }
    return plan;
  }

  static void Flatten(const std::vector<Element>& elements, Accumulators& out) {
    for (const Element& element : elements) {
      out.push_back(element.real);
      if (element.imaginary) out.push_back(element.imaginary);
    }
  }
  static std::vector<Element> Take(const std::vector<ElementType>& types,
                                   const Accumulators& values, size_t& position) {
    std::vector<Element> elements;
    for (ElementType type : types) {
      Element element;
      element.real = values[position++];
      if (hlo::IsComplex(type)) element.imaginary = values[position++];
      elements.push_back(element);
    }
    return elements;
  }

  std::vector<Element> Combine(const Reduction& plan, std::vector<Element> left,
                               const std::vector<Element>& right) {
    left.insert(left.end(), right.begin(), right.end());
    emitter_.AtInnermost();
    emitter_.Widen(left);
    emitter_.set_round(false);
    std::vector<Element> result = emitter_.Apply(*plan.combiner, left);
    emitter_.set_round(true);
    return result;
  }

  // One step: the reduction's inputs at `index`, combined into the accumulators (vectors).
  void Accumulate(const Reduction& plan, const Index& index, std::vector<Element>& accumulators) {
    std::vector<Element> inputs;
    for (size_t i = 0; i < plan.types.size(); ++i) {
      inputs.push_back(emitter_.Evaluate(plan.reduce->operand(i), index).element);
    }
    std::vector<Element> combined = Combine(plan, accumulators, inputs);
    if (llvm::Value* mask = emitter_.mask().value) {
      emitter_.AtInnermost();
      for (size_t i = 0; i < combined.size(); ++i) {
        combined[i].real = b_.CreateSelect(mask, combined[i].real, accumulators[i].real);
        if (combined[i].imaginary) {
          combined[i].imaginary =
              b_.CreateSelect(mask, combined[i].imaginary, accumulators[i].imaginary);
        }
      }
    }
    accumulators = combined;
  }

  std::vector<Element> AcrossLanes(const Reduction& plan, std::vector<Element> elements) {
    if (lanes_ == 1) return elements;
    emitter_.AtInnermost();
    for (int step = lanes_ / 2; step >= 1; step /= 2) {
      std::vector<int> shift;
      for (int i = 0; i < lanes_; ++i) shift.push_back(i < step ? i + step : llvm::PoisonMaskElem);
      std::vector<Element> moved = elements;
      for (Element& element : moved) {
        element.real = b_.CreateShuffleVector(element.real, shift);
        if (element.imaginary) element.imaginary = b_.CreateShuffleVector(element.imaginary, shift);
      }
      elements = Combine(plan, elements, moved);
    }
    for (Element& element : elements) {
      element.real = b_.CreateExtractElement(element.real, uint64_t{0});
      if (element.imaginary)
        element.imaginary = b_.CreateExtractElement(element.imaginary, uint64_t{0});
    }
    return elements;
  }

  std::vector<Element> Finish(const Reduction& plan, std::vector<Element> elements) {
    if (!plan.init.empty()) elements = Combine(plan, plan.init, elements);
    emitter_.AtInnermost();
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!hlo::IsComplex(plan.types[i])) {
        elements[i].real = emitter_.elementwise().Round(elements[i].real, plan.types[i]);
      }
    }
    return elements;
  }

  // Independent sums hide the latency of additions where little else is done.
  int Unroll(int64_t columns) const {
    int64_t work = 0;
    for (const auto& instruction : body_.instructions()) {
      work += IsExpensive(*instruction) ? 100 : instruction->opcode() != Opcode::kConstant;
    }
    return columns >= 8 * lanes_ && work <= 16 && cached_.empty() ? 4 : 1;
  }

  void ReduceRow(const std::vector<const Instruction*>& reduces, const Index& row_index,
                 const std::vector<Run>& columns) {
    std::vector<Reduction> plans;
    for (const Instruction* reduce : reduces) plans.push_back(PlanReduction(reduce));
    const int unroll = Unroll(columns.back().size);
    emitter_.AtInnermost();
    Accumulators initial;
    for (int u = 0; u < unroll; ++u) {
      for (const Reduction& plan : plans) {
        std::vector<Element> wide = plan.initial;
        emitter_.Widen(wide, true);
        Flatten(wide, initial);
      }
    }
    stored_.clear();
    Accumulators sums = Columns(columns, row_index, initial, unroll,
                                [&](const Index& index, const Accumulators& current) {
                                  Accumulators next;
                                  size_t position = 0;
                                  for (const Reduction& plan : plans) {
                                    auto mine = Take(plan.types, current, position);
                                    Accumulate(plan, index, mine);
                                    Flatten(mine, next);
                                  }
                                  return next;
                                });
    for (const Instruction* instruction : stored_) cached_[instruction].filled = true;
    size_t position = 0;
    std::vector<std::vector<Element>> totals;
    for (int u = 0; u < unroll; ++u) {
      for (size_t i = 0; i < plans.size(); ++i) {
        auto part = Take(plans[i].types, sums, position);
        if (u == 0) {
          totals.push_back(part);
        } else {
          totals[i] = Combine(plans[i], totals[i], part);
        }
      }
    }
    for (size_t i = 0; i < plans.size(); ++i) {
      BindReduce(plans[i], Finish(plans[i], AcrossLanes(plans[i], totals[i])));
    }
  }

  void BindReduce(const Reduction& plan, const std::vector<Element>& values) {
    emitter_.Bind(plan.reduce, values);
    for (const Instruction* user : plan.reduce->users()) {
      if (user->opcode() == Opcode::kGetTupleElement)
        emitter_.Bind(user, {values[user->tuple_index()]});
    }
  }

  // Reductions over any dimensions: kept ones outside, reduced ones inside, lanes along whichever
  // is innermost in memory.
  void EmitReduce() {
    std::vector<const Instruction*> reduces;
    for (const Instruction* result : body_.results()) {
      const Instruction* reduce = ReduceOf(result);
      if (std::find(reduces.begin(), reduces.end(), reduce) == reduces.end())
        reduces.push_back(reduce);
    }
    const Dimensions space = reduces[0]->operand(0)->dimensions();
    const auto& reduced = reduces[0]->as<hlo::DimensionsAttributes>().dimensions;
    std::vector<bool> is_reduced(space.size());
    for (int64_t d : reduced) is_reduced[d] = true;
    std::set<int64_t> boundaries = RunBoundaries(space, WithoutTuples(reduces));
    int previous = -1;
    for (size_t d = 0; d < space.size(); ++d) {
      if (space[d] == 1) continue;
      if (previous >= 0 && is_reduced[d] != is_reduced[previous]) boundaries.insert(d);
      previous = static_cast<int>(d);
    }
    std::vector<Run> runs = Runs(space, boundaries);
    std::vector<Run> kept, inner;
    std::vector<bool> run_reduced;
    for (const Run& run : runs) {
      bool any = false;
      for (int64_t d = run.begin; d < run.end; ++d) any |= is_reduced[d] && space[d] != 1;
      run_reduced.push_back(any);
      (any ? inner : kept).push_back(run);
    }
    const double cost = ElementCost(body_);
    int64_t reduced_count = 1;
    for (const Run& run : inner) reduced_count *= run.size;
    const bool lanes_reduced =
        kept.empty() || (!inner.empty() && inner.back().begin > kept.back().begin);
    if (lanes_reduced) {
      if (inner.empty()) inner.push_back({0, 0, 1});  // of a scalar
      int64_t rows = 1;
      for (const Run& run : kept) rows *= run.size;
      info_.units = rows;
      info_.unit_cost = cost * static_cast<double>(reduced_count) + 2;
      emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* row, const Accumulators&) {
        Index row_index = Unflatten(row, emitter_.level(), kept);
        reorder_ = true;
        ReduceRow(reduces, row_index, inner);
        reorder_ = false;
        StoreReduced(emitter_.ScalarPosition(row, emitter_.level()));
        return Accumulators{};
      });
      return;
    }
    EmitColumns(reduces, kept, inner, reduced_count, cost);
  }

  // Results of reduces, bound, at a position of the kept elements.
  void StoreReduced(const Position& position) {
    for (size_t i = 0; i < body_.results().size(); ++i) {
      const Instruction* result = body_.results()[i];
      Element value = emitter_.Evaluate(result, {}).element;
      emitter_.AtInnermost();
      emitter_.Store(ResultPointer(i), position, value, result->element_type());
    }
  }

  // Lanes along kept columns: `group` vectors of them go down the reduced dimensions together.
  void EmitColumns(const std::vector<const Instruction*>& reduces, const std::vector<Run>& kept,
                   const std::vector<Run>& inner, int64_t reduced_count, double cost) {
    const Run columns = kept.back();
    const std::vector<Run> rows(kept.begin(), kept.end() - 1);
    int64_t row_count = 1;
    for (const Run& run : rows) row_count *= run.size;
    const int64_t vectors = (columns.size + lanes_ - 1) / lanes_;
    const int group = static_cast<int>(std::min<int64_t>(vectors, 4));
    const int64_t blocks = (columns.size + group * lanes_ - 1) / (group * lanes_);
    info_.units = row_count * blocks;
    info_.unit_cost = cost * static_cast<double>(reduced_count * group * lanes_) + 2;
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      Position flat = emitter_.ScalarPosition(unit, emitter_.level());
      Position block =
          blocks == 1 ? emitter_.ConstantPosition(0) : emitter_.Remainder(flat, blocks);
      Position row = emitter_.Divide(flat, blocks);
      Index row_index = Unflatten(row.base, row.level, rows);
      Position first = emitter_.Multiply(block, group * lanes_);
      // Vectors that may reach beyond the last column are masked: all of the last block's.
      const bool ragged = columns.size % (group * lanes_) != 0;
      ColumnBlock(reduces, row_index, columns, inner, row, first, group, ragged);
      return Accumulators{};
    });
  }

  void ColumnBlock(const std::vector<const Instruction*>& reduces, const Index& row_index,
                   const Run& columns, const std::vector<Run>& inner, const Position& row,
                   const Position& first, int group, bool ragged) {
    std::vector<Reduction> plans;
    for (const Instruction* reduce : reduces) plans.push_back(PlanReduction(reduce));
    emitter_.AtInnermost();
    std::vector<Position> positions;
    std::vector<llvm::Value*> masks;
    const int mask_level = emitter_.level();
    for (int g = 0; g < group; ++g) {
      Position base = emitter_.Add(first, g * lanes_);
      Position lane = base;
      lane.stride = lanes_ == 1 ? 0 : 1;
      positions.push_back(lane);
      int level;
      llvm::Value* mask = nullptr;
      if (ragged) {
        llvm::Value* value = emitter_.ToValue(lane, &level);
        emitter_.AtInnermost();
        mask = b_.CreateICmpULT(value, llvm::ConstantInt::get(value->getType(), columns.size));
      }
      masks.push_back(mask);
    }
    emitter_.AtInnermost();
    Accumulators initial;
    for (int g = 0; g < group; ++g) {
      for (const Reduction& plan : plans) {
        std::vector<Element> wide = plan.initial;
        emitter_.Widen(wide, true);
        Flatten(wide, initial);
      }
    }
    Accumulators sums = ScalarNest(inner, 0, row_index, initial,
                                   [&](const Index& index, const Accumulators& current) {
                                     Accumulators next;
                                     size_t position = 0;
                                     for (int g = 0; g < group; ++g) {
                                       Index full = index;
                                       full.push_back({columns.begin, columns.end, positions[g]});
                                       Sort(full);
                                       emitter_.set_mask({masks[g], mask_level});
                                       for (const Reduction& plan : plans) {
                                         auto mine = Take(plan.types, current, position);
                                         Accumulate(plan, full, mine);
                                         Flatten(mine, next);
                                       }
                                       emitter_.set_mask({});
                                     }
                                     return next;
                                   });
    size_t position = 0;
    for (int g = 0; g < group; ++g) {
      for (const Reduction& plan : plans) {
        BindReduce(plan, Finish(plan, Take(plan.types, sums, position)));
      }
      emitter_.set_mask({masks[g], mask_level});
      StoreReduced(emitter_.Add(emitter_.Multiply(row, columns.size), positions[g]));
      emitter_.set_mask({});
    }
  }

  static void Sort(Index& index) {
    std::sort(index.begin(), index.end(), [](const IndexGroup& a, const IndexGroup& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
  }

  // --- Scans: a running reduction along one dimension.

  void EmitScan() {
    const Instruction* scan = body_.result();
    const auto& window = scan->as<hlo::Window>();
    const Dimensions& space = scan->dimensions();
    int64_t d = 0;
    while (window.dimensions[d] == 1) ++d;
    const bool forward = window.padding_low[d] != 0;
    const int64_t length = space[d];
    const int64_t rank = static_cast<int64_t>(space.size());
    const int64_t outer = Product(space, 0, d), inner = Product(space, d + 1, rank);
    const int lanes = inner == 1 ? 1 : lanes_;
    const int64_t vectors = (inner + lanes - 1) / lanes;
    info_.units = outer * vectors;
    info_.unit_cost = 2.0 * static_cast<double>(length);
    const bool ragged = lanes > 1 && inner % lanes != 0;
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      Position flat = emitter_.ScalarPosition(unit, emitter_.level());
      Position row = emitter_.Divide(flat, vectors);
      Position column = vectors == 1 ? emitter_.ConstantPosition(0)
                                     : emitter_.Multiply(emitter_.Remainder(flat, vectors), lanes);
      if (lanes > 1) column.stride = 1;
      if (ragged) {
        int level;
        llvm::Value* value = emitter_.ToValue(column, &level);
        emitter_.AtInnermost();
        emitter_.set_mask({b_.CreateICmpULT(value, llvm::ConstantInt::get(value->getType(), inner)),
                           emitter_.level()});
      }
      Reduction plan = PlanReduction(scan);
      std::vector<Element> start = {emitter_.Evaluate(scan->operand(1), {}).element};
      emitter_.AtInnermost();
      if (lanes > 1) emitter_.Widen(start, true);
      Accumulators initial;
      Flatten(start, initial);
      emitter_.Loop(I64(0), I64(length), 1, initial,
                    [&](llvm::Value* step, const Accumulators& current) {
                      Position along = emitter_.ScalarPosition(step, emitter_.level());
                      if (!forward) along = emitter_.Add(emitter_.Multiply(along, -1), length - 1);
                      Index index = {{0, d, row}, {d, d + 1, along}, {d + 1, rank, column}};
                      if (d == 0) index.erase(index.begin());
                      if (d + 1 == rank) index.pop_back();
                      size_t position = 0;
                      std::vector<Element> sum = Take(plan.types, current, position);
                      Element value = emitter_.Evaluate(scan->operand(0), index).element;
                      sum = Combine(plan, sum, {value});
                      Element rounded = sum[0];
                      emitter_.AtInnermost();
                      if (!hlo::IsComplex(plan.types[0])) {
                        rounded.real = emitter_.elementwise().Round(rounded.real, plan.types[0]);
                      }
                      emitter_.Store(ResultPointer(0), emitter_.Linearize(index, space), rounded,
                                     plan.types[0]);
                      Accumulators next;
                      Flatten(sum, next);
                      return next;
                    });
      emitter_.set_mask({});
      return Accumulators{};
    });
  }

  // --- Scatter: the results hold the operands already; updates are applied in their order. Units
  // are vectors along the innermost dimension of the update windows, so that threads share no
  // element.

  struct ScatterPlan {
    const hlo::ScatterAttributes* attributes;
    size_t count;  // of operands
    Dimensions operand, updates, starts;
    std::vector<int64_t> scatter_dims;  // of the updates
    std::vector<int64_t> window_of;     // operand dimension to updates dimension, or -1
    std::vector<int64_t> batch_of;      // operand dimension to updates dimension, or -1
    std::vector<int64_t> source;        // indices' dimension to updates dimension, or -1
    bool lanes;
  };

  static bool Contains(const Dimensions& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  }

  ScatterPlan PlanScatter(const Instruction* scatter) {
    ScatterPlan plan;
    const auto& a = scatter->as<hlo::ScatterAttributes>();
    plan.attributes = &a;
    plan.count = (scatter->operand_count() - 1) / 2;
    plan.operand = scatter->operand(0)->dimensions();
    plan.starts = scatter->operand(plan.count)->dimensions();
    plan.updates = scatter->operand(plan.count + 1)->dimensions();
    for (size_t d = 0; d < plan.updates.size(); ++d) {
      if (!Contains(a.update_window_dims, d)) plan.scatter_dims.push_back(d);
    }
    size_t next = 0;
    for (size_t d = 0; d < plan.starts.size(); ++d) {
      const bool vector = static_cast<int64_t>(d) == a.index_vector_dim;
      plan.source.push_back(vector ? -1 : plan.scatter_dims[next++]);
    }
    size_t window = 0;
    for (size_t d = 0; d < plan.operand.size(); ++d) {
      plan.window_of.push_back(-1);
      plan.batch_of.push_back(-1);
      auto batch = std::find(a.input_batching_dims.begin(), a.input_batching_dims.end(),
                             static_cast<int64_t>(d));
      if (batch != a.input_batching_dims.end()) {
        plan.batch_of.back() =
            plan.source[a.scatter_indices_batching_dims[batch - a.input_batching_dims.begin()]];
      } else if (!Contains(a.inserted_window_dims, d)) {
        plan.window_of.back() = a.update_window_dims[window++];
      }
    }
    plan.lanes = !plan.operand.empty() && plan.window_of.back() >= 0 &&
                 plan.window_of.back() == static_cast<int64_t>(plan.updates.size()) - 1 &&
                 plan.updates.back() > 1;
    return plan;
  }

  void EmitScatter() {
    const Instruction* scatter = body_.result();
    if (scatter->opcode() == Opcode::kGetTupleElement) scatter = scatter->operand(0);
    ScatterPlan plan = PlanScatter(scatter);
    std::vector<Run> scattered, window;
    int64_t updates = 1;
    for (int64_t d : plan.scatter_dims) {
      scattered.push_back({d, d + 1, plan.updates[d]});
      updates *= plan.updates[d];
    }
    for (int64_t d : plan.attributes->update_window_dims) {
      if (plan.lanes && d == static_cast<int64_t>(plan.updates.size()) - 1) continue;
      window.push_back({d, d + 1, plan.updates[d]});
    }
    const int64_t row = plan.lanes ? plan.updates.back() : 1;
    int64_t others = 1;
    for (const Run& run : window) others *= run.size;
    info_.units = plan.lanes ? (row + lanes_ - 1) / lanes_ : 1;
    info_.unit_cost = static_cast<double>(updates * others) * 3;
    emitter_.Loop(I64(0), I64(updates), 1, {}, [&](llvm::Value* update, const Accumulators&) {
      Index at = Unflatten(update, emitter_.level(), scattered);
      ScatterUpdate(scatter, plan, at, window);
      return Accumulators{};
    });
  }

  // One index's window.
  void ScatterUpdate(const Instruction* scatter, const ScatterPlan& plan, const Index& at,
                     const std::vector<Run>& window) {
    auto coordinate = [&](const Index& index, int64_t d) {
      for (const IndexGroup& group : index) {
        if (group.begin == d) return group.position;
      }
      return emitter_.ConstantPosition(0);
    };
    const Instruction* indices = scatter->operand(plan.count);
    std::vector<Position> start(plan.operand.size(), emitter_.ConstantPosition(0));
    llvm::Value* inside = b_.getTrue();
    for (size_t k = 0; k < plan.attributes->scatter_dims_to_operand_dims.size(); ++k) {
      const int64_t d = plan.attributes->scatter_dims_to_operand_dims[k];
      Index index;
      for (size_t i = 0; i < plan.starts.size(); ++i) {
        const int64_t dim = static_cast<int64_t>(i);
        index.push_back(
            {dim, dim + 1,
             plan.source[i] < 0 ? emitter_.ConstantPosition(k) : coordinate(at, plan.source[i])});
      }
      llvm::Value* value = emitter_.Evaluate(indices, index).element.real;
      emitter_.AtInnermost();
      value = hlo::IsSignedInteger(indices->element_type())
                  ? b_.CreateSExtOrTrunc(value, b_.getInt64Ty())
                  : b_.CreateZExtOrTrunc(value, b_.getInt64Ty());
      const int64_t size = plan.window_of[d] < 0 ? 1 : plan.updates[plan.window_of[d]];
      // Negative starts are large as unsigned numbers.
      inside = b_.CreateAnd(
          inside, b_.CreateICmpULT(value, I64(std::max<int64_t>(plan.operand[d] - size + 1, 0))));
      start[d] = emitter_.ScalarPosition(value, emitter_.level());
    }
    for (size_t d = 0; d < plan.operand.size(); ++d) {
      if (plan.batch_of[d] >= 0) start[d] = coordinate(at, plan.batch_of[d]);
    }
    emitter_.If(inside, [&] {
      ScalarNest(window, 0, at, {}, [&](const Index& outer, const Accumulators&) {
        auto apply = [&](const Index& full) {
          Index target;
          for (size_t d = 0; d < plan.operand.size(); ++d) {
            Position position = start[d];
            if (plan.window_of[d] >= 0) {
              position = emitter_.Add(position, coordinate(full, plan.window_of[d]));
            }
            target.push_back({static_cast<int64_t>(d), static_cast<int64_t>(d) + 1, position});
          }
          Index from = full;
          Sort(from);
          CombineInto(scatter, plan, from, emitter_.Linearize(target, plan.operand));
        };
        if (!plan.lanes) {
          apply(outer);
          return Accumulators{};
        }
        const int64_t last = static_cast<int64_t>(plan.updates.size()) - 1;
        const int64_t row = plan.updates.back();
        emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
          Position lane =
              emitter_.Multiply(emitter_.ScalarPosition(unit, emitter_.level()), lanes_);
          lane.stride = 1;
          if (row % lanes_ != 0) {
            int level;
            llvm::Value* value = emitter_.ToValue(lane, &level);
            emitter_.AtInnermost();
            emitter_.set_mask(
                {b_.CreateICmpULT(value, llvm::ConstantInt::get(value->getType(), row)),
                 emitter_.level()});
          }
          Index full = outer;
          full.push_back({last, last + 1, lane});
          apply(full);
          emitter_.set_mask({});
          return Accumulators{};
        });
        return Accumulators{};
      });
    });
  }

  void CombineInto(const Instruction* scatter, const ScatterPlan& plan, const Index& update,
                   const Position& target) {
    std::vector<Element> arguments;
    for (size_t i = 0; i < plan.count; ++i) {
      Position here = target;
      here.level = emitter_.level();  // what earlier updates wrote
      arguments.push_back(
          emitter_.Load(ResultPointer(i), here, scatter->operand(i)->element_type()).element);
    }
    for (size_t i = 0; i < plan.count; ++i) {
      arguments.push_back(emitter_.Evaluate(scatter->operand(plan.count + 1 + i), update).element);
    }
    emitter_.AtInnermost();
    emitter_.Widen(arguments);
    std::vector<Element> results = emitter_.Apply(*scatter->called_computations()[0], arguments);
    for (size_t i = 0; i < plan.count; ++i) {
      emitter_.Store(ResultPointer(i), target, results[i], scatter->operand(i)->element_type());
    }
  }

  // --- Sort: the comparator. Its buffers are two elements of each operand, then a byte for the
  // answer.

  void EmitComparator() {
    const Instruction* sort = body_.result();
    if (sort->opcode() == Opcode::kGetTupleElement) sort = sort->operand(0);
    std::vector<Element> arguments;
    const Computation& comparator = *sort->called_computations()[0];
    for (const Instruction* parameter : comparator.parameters()) {
      llvm::Value* pointer = emitter_.BufferPointer(parameter->parameter_number());
      arguments.push_back(
          emitter_.Load(pointer, emitter_.ConstantPosition(0), parameter->element_type()).element);
    }
    emitter_.AtInnermost();
    Element less = emitter_.Apply(comparator, arguments)[0];
    emitter_.Store(emitter_.BufferPointer(static_cast<int64_t>(arguments.size())),
                   emitter_.ConstantPosition(0), less, ElementType::kPred);
  }

  const Instruction& composite_;
  const Computation& body_;
  llvm::Function* function_ = nullptr;
  int lanes_;
  BodyEmitter emitter_;
  llvm::IRBuilder<>& b_;
  KernelInfo info_;
  struct Cached {
    llvm::Value* memory = nullptr;
    bool filled = false;
  };
  std::map<const Instruction*, Cached> cached_;
  std::set<const Instruction*> stored_;
  std::set<const Instruction*> row_results_;
  bool reorder_ = false;  // the reduced runs lie between kept ones: indices need sorting
};

}  // namespace

KernelInfo EmitKernel(llvm::Module& module, const std::string& name, const Instruction& composite) {
  return KernelEmitter(module, name, composite).Emit();
}

}  // namespace cpu
