#include "cpu/emit/kernel.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <unordered_set>

#include "cpu/element_cost.h"
#include "cpu/host.h"
#include "cpu/kernel_kind.h"
#include "passes/combiner.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

// `outer` with a position in `run`.
Index With(Index outer, const Run& run, const Position& position) {
  outer.push_back({run.begin, run.end, position});
  return outer;
}

bool HasLastDimension(const Dimensions& list, const Instruction& instruction) {
  return std::ranges::find(list, instruction.shape().rank() - 1) != list.end();
}

// Whether a user has one element of an operand for all of its innermost dimension, along which a
// vector's lanes lie: what it broadcasts along that, or where the rows begin that it takes or
// writes.
bool IsOneForARow(const Instruction& user, size_t operand) {
  switch (user.opcode()) {
    case Opcode::kBroadcastInDim:
      return !HasLastDimension(user.as<hlo::DimensionsAttributes>().dimensions, user);
    case Opcode::kGather:
      return operand == 1 && HasLastDimension(user.as<hlo::GatherAttributes>().offset_dims, user);
    case Opcode::kScatter:
      return operand == user.operand_count() / 2;
    default:
      return false;
  }
}

// The operations of a kernel that have an element for each lane. Others are computed once a row,
// and their width does not matter.
std::vector<const Instruction*> OperationsOfLanes(const hlo::Computation& body) {
  std::vector<const Instruction*> found(body.results().begin(), body.results().end());
  std::unordered_set<const Instruction*> known(found.begin(), found.end());
  for (size_t i = 0; i < found.size(); ++i) {
    const Instruction& user = *found[i];
    for (size_t k = 0; k < user.operand_count(); ++k) {
      if (!IsOneForARow(user, k) && known.insert(user.operand(k)).second) {
        found.push_back(user.operand(k));
      }
    }
  }
  return found;
}

}  // namespace

const Instruction* ReduceOf(const Instruction* instruction) {
  if (instruction->opcode() == Opcode::kGetTupleElement) instruction = instruction->operand(0);
  return instruction->opcode() == Opcode::kReduce ? instruction : nullptr;
}

std::vector<const Instruction*> WithoutTuples(const std::vector<const Instruction*>& roots) {
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

std::vector<Run> Kernel::MakeRuns(const Dimensions& space, const std::set<int64_t>& boundaries) {
  std::vector<Run> runs;
  for (auto it = boundaries.begin(); std::next(it) != boundaries.end(); ++it) {
    runs.push_back({*it, *std::next(it), emitter_.Product(space, *it, *std::next(it))});
  }
  return runs;
}

Extent Product(const std::vector<Run>& runs) {
  Extent product(1);
  for (const Run& run : runs) product = product * run.size;
  return product;
}

bool ReducesInOrder(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kReduce) return false;
  return instruction.operand_count() != 2 ||
         !passes::CombinerOf(*instruction.called_computations()[0]);
}

bool ReducesRows(const Instruction& reduce) {
  const Dimensions& sizes = reduce.operand(0)->dimensions();
  const auto& reduced = reduce.as<hlo::DimensionsAttributes>().dimensions;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[d] != 1) return std::ranges::find(reduced, d) != reduced.end();
  }
  return true;
}

void SortGroups(Index& index) {
  std::sort(index.begin(), index.end(), [](const IndexGroup& a, const IndexGroup& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
}

Kernel::Kernel(llvm::Module& module, const std::string& name, const Instruction& composite,
               KernelSizes& sizes)
    : composite_(composite),
      body_(*composite.called_computations()[0]),
      sizes_(sizes),
      lanes_(ChooseLanes()),
      emitter_(MakeFunction(module, name), body_, lanes_, ChooseWideIndex(), sizes),
      b_(emitter_.builder()),
      element_cost_(KindOf(composite)->element_cost(body_)) {}

KernelInfo Kernel::Emit() {
  EmitBody();
  emitter_.AtInnermost();
  b_.CreateRetVoid();
  for (const Extent& slot : sizes_.slots()) info_.slots.push_back(slot.value);
  return info_;
}

void Kernel::SetWork(KernelWork work) {
  info_.units = work.units.value;
  info_.unit_cost = CostOfUnit(work, work.elements.value);
  sizes_.set_work(std::move(work));
}

llvm::Function* Kernel::MakeFunction(llvm::Module& module, const std::string& name) {
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

// As many as fill a register with the widest type that is computed with. Lanes would take the
// elements of a row out of order.
int Kernel::ChooseLanes() const {
  size_t width = 1;
  int expensive = 0;
  for (const auto& instruction : body_.instructions()) {
    if (ReducesInOrder(*instruction) && ReducesRows(*instruction)) return 1;
    if (instruction->shape().is_array() && instruction->shape().rank() > 0)
      expensive += IsExpensive(*instruction);
  }
  for (const Instruction* instruction : OperationsOfLanes(body_)) {
    if (!instruction->shape().is_array() || instruction->shape().rank() == 0) continue;
    const ElementType type = instruction->element_type();
    size_t bytes = hlo::ByteWidth(hlo::RealType(type));
    if (type == ElementType::kF16 || type == ElementType::kBF16) bytes = 4;
    width = std::max(width, bytes);
  }
  const int lanes =
      std::min<int>(Host().vector_bytes / static_cast<int>(std::max<size_t>(width, 2)), 32);
  // Long chains of dependent operations are bound by their latency: two registers at a time.
  return expensive > 0 && lanes <= 16 ? lanes * 2 : lanes;
}

bool Kernel::ChooseWideIndex() {
  for (const auto& instruction : body_.instructions()) {
    if (!instruction->shape().is_array()) continue;
    if (sizes_.IsLess(INT32_MAX / 2, sizes_.Product(instruction->dimensions()))) return true;
  }
  return false;
}

llvm::Value* Kernel::ResultPointer(size_t i) {
  return emitter_.BufferPointer(static_cast<int64_t>(body_.parameters().size() + i));
}

// Positions of a flattened number in runs.
Index Kernel::Unflatten(llvm::Value* flat, int level, const std::vector<Run>& runs) {
  Index index(runs.size());
  Position rest = emitter_.ScalarPosition(flat, level);
  for (size_t i = runs.size(); i-- > 0;) {
    Position position = i == 0 ? rest : emitter_.Remainder(rest, runs[i].size);
    if (runs[i].size.Is(1)) position = emitter_.ConstantPosition(0);
    index[i] = {runs[i].begin, runs[i].end, position};
    if (i > 0) rest = emitter_.Divide(rest, runs[i].size);
  }
  return index;
}

// Scalar loops over the runs.
Accumulators Kernel::ScalarNest(const std::vector<Run>& runs, size_t i, Index index,
                                Accumulators accumulators, const NestBody& body) {
  if (i == runs.size()) return body(index, accumulators);
  if (runs[i].size.Is(1)) {
    index.push_back({runs[i].begin, runs[i].end, emitter_.ConstantPosition(0)});
    return ScalarNest(runs, i + 1, index, accumulators, body);
  }
  const Extent inside = Product({runs.begin() + static_cast<int64_t>(i) + 1, runs.end()});
  return NestLoop(I64(0), I64(runs[i].size), 1, runs[i].size, accumulators,
                  [&](llvm::Value* variable, const Accumulators& current) {
                    Index inner = index;
                    inner.push_back({runs[i].begin, runs[i].end,
                                     emitter_.ScalarPosition(variable, emitter_.level())});
                    return NestTurn(inside, current, [&](const Accumulators& sums) {
                      return ScalarNest(runs, i + 1, inner, sums, body);
                    });
                  });
}

// Lanes over one run: full vectors, `unroll` of them an iteration where that many are left, and a
// masked rest. With several accumulator sets (unroll), set u belongs to vector u.
Accumulators Kernel::LaneLoop(const Run& run, const Index& outer, Accumulators accumulators,
                              int unroll, const NestBody& body) {
  const int64_t set = unroll > 1 ? static_cast<int64_t>(accumulators.size()) / unroll : 0;
  Extent done(0);
  auto loop = [&](const Extent& end, int count) {
    if (!end.varies && done.value >= end.value) return;
    accumulators = NestLoop(
        I64(done), I64(end), lanes_ * count, end / (lanes_ * count), accumulators,
        [&](llvm::Value* variable, const Accumulators& current) {
          Position base = emitter_.LanePosition(variable, emitter_.level(), lanes_);
          if (count == 1) return body(With(outer, run, base), current);
          Accumulators next;
          for (int u = 0; u < count; ++u) {
            Accumulators mine(current.begin() + u * set, current.begin() + (u + 1) * set);
            Accumulators updated = body(With(outer, run, emitter_.Add(base, u * lanes_)), mine);
            next.insert(next.end(), updated.begin(), updated.end());
          }
          return next;
        });
    done = end;
  };
  if (unroll > 1) {
    loop(run.size / (lanes_ * unroll) * (lanes_ * unroll), unroll);
    // The rest goes to the first set.
    Accumulators others(accumulators.begin() + set, accumulators.end());
    accumulators.resize(set);
    RestOfLanes(run, outer, done, accumulators, body);
    accumulators.insert(accumulators.end(), others.begin(), others.end());
    return accumulators;
  }
  RestOfLanes(run, outer, done, accumulators, body);
  return accumulators;
}

void Kernel::VaryingRestOfLanes(const Run& run, const Index& outer, const Extent& done,
                                Accumulators& accumulators, const NestBody& body) {
  const Extent full = run.size / lanes_ * lanes_;
  accumulators = NestLoop(I64(done), I64(full), lanes_, (full - done) / lanes_, accumulators,
                          [&](llvm::Value* variable, const Accumulators& current) {
                            Position position =
                                emitter_.LanePosition(variable, emitter_.level(), lanes_);
                            return body(With(outer, run, position), current);
                          });
  if (run.size.divisor % lanes_ == 0) return;
  const Extent rest = run.size - full;
  llvm::Value* count = I64(rest);
  emitter_.AtInnermost();
  accumulators = emitter_.IfElse(
      b_.CreateICmpSGT(count, I64(0)),
      [&] {
        Accumulators current = accumulators;
        WithMask(emitter_.FirstLanes(rest), emitter_.level(), [&] {
          Position position = emitter_.LanePosition(I64(full), 0, lanes_);
          current = body(With(outer, run, position), current);
        });
        return current;
      },
      accumulators);
}

void Kernel::RestOfLanes(const Run& run, const Index& outer, const Extent& done_before,
                         Accumulators& accumulators, const NestBody& body) {
  if (run.size.varies) return VaryingRestOfLanes(run, outer, done_before, accumulators, body);
  const int64_t done = done_before.value, size = run.size.value;
  const int64_t full = size / lanes_ * lanes_;
  if (full - done == lanes_) {
    Position position = emitter_.LanePosition(I64(done), 0, done);
    accumulators = body(With(outer, run, position), accumulators);
  } else if (done < full) {
    accumulators = NestLoop(I64(done), I64(full), lanes_, (full - done) / lanes_, accumulators,
                            [&](llvm::Value* variable, const Accumulators& current) {
                              Position position =
                                  emitter_.LanePosition(variable, emitter_.level(), lanes_);
                              return body(With(outer, run, position), current);
                            });
  }
  if (full < size) {
    WithMask(emitter_.FirstLanes(size - full), 0, [&] {
      Position position = emitter_.LanePosition(I64(full), 0, full);
      accumulators = body(With(outer, run, position), accumulators);
    });
  }
}

void Kernel::WithMask(llvm::Value* value, int level, const std::function<void()>& body) {
  BodyEmitter::Mask saved = emitter_.mask();
  emitter_.set_mask({value, level});
  body();
  emitter_.set_mask(saved);
}

}  // namespace cpu
