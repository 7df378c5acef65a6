#include "cpu/fusion.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "cpu/composite_body.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

constexpr size_t kMaxMembers = 160;
constexpr size_t kMaxReduces = 6;

bool IsNative(ElementType type) {
  switch (type) {
    case ElementType::kPred:
    case ElementType::kS8:
    case ElementType::kS16:
    case ElementType::kS32:
    case ElementType::kS64:
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kU64:
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kC64:
    case ElementType::kC128:
      return true;
    default:
      return false;
  }
}

Dimensions Stripped(Dimensions dimensions) {
  while (!dimensions.empty() && dimensions.back() == 1) dimensions.pop_back();
  return dimensions;
}

bool IsSplatConstant(const Instruction* instruction) {
  return instruction->IsConstant() && instruction->literal().IsSplat();
}

// Costs (nearly) nothing to compute again.
bool IsFree(const Instruction* instruction) {
  switch (instruction->opcode()) {
    case Opcode::kConstant:
      return IsSplatConstant(instruction);
    case Opcode::kIota:
    case Opcode::kBroadcastInDim:
    case Opcode::kReshape:
      return true;
    default:
      return false;
  }
}

struct Cluster {
  enum Kind { kLoop, kReduce, kSingle } kind = kLoop;
  const char* name = "cpu.loop";
  Dimensions space;
  int64_t row_rank = -1;
  std::vector<Instruction*> members;  // consumers first
  std::set<Instruction*> set;
  std::vector<Instruction*> outputs;
  std::set<const Instruction*> identity;                   // evaluated at the loop's own index
  std::set<const Instruction*> row_identity;               // at the row's
  std::set<const Instruction*> elsewhere;                  // at some other index (too)
  std::unordered_map<const Instruction*, int64_t> copies;  // at how many indices it is evaluated
  size_t reduces = 0;
};

class Fuser {
 public:
  explicit Fuser(Computation& computation) : computation_(computation) {}

  void Run() {
    int64_t position = 0;
    for (const auto& instruction : computation_.instructions()) {
      order_.push_back(instruction.get());
      position_[instruction.get()] = position++;
    }
    for (Instruction* result : computation_.results()) needed_.insert(result);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) Place(*it);
    Build();
  }

 private:
  using Homes = std::vector<Cluster*>;

  // Who evaluates `instruction`; and whether someone needs it in memory.
  void Place(Instruction* p) {
    if (p->opcode() == Opcode::kParameter) return;
    bool materialize = needed_.contains(p) || p->HasSideEffect();
    Homes homes;
    for (Instruction* user : p->users()) {
      auto found = homes_.find(user);
      const bool standalone = found == homes_.end() || found->second.empty();
      if (standalone && !IsAlias(*user)) {
        if (IsLive(user)) materialize = true;
        continue;
      }
      if (IsAlias(*user) && needed_.contains(user)) materialize = true;
      if (found == homes_.end()) continue;
      for (Cluster* cluster : found->second) {
        if (std::find(homes.begin(), homes.end(), cluster) == homes.end()) homes.push_back(cluster);
      }
    }
    if (!materialize && homes.empty()) return;  // dead
    live_.insert(p);
    if (materialize) needed_.insert(p);
    if (p->opcode() == Opcode::kGetTupleElement) {
      needed_.insert(p);
      return;
    }
    if (IsReduce(p)) return PlaceReduce(p, homes, materialize);
    if (p->opcode() == Opcode::kReduceWindow && p->shape().is_tuple() && IsFusible(*p)) {
      needed_.insert(p);
      Cluster* cluster = NewLoop(p);
      cluster->space = p->shape().tuple_shapes()[0].dimensions();
      homes_[p] = {cluster};
      return;
    }
    if (IsAlias(*p)) {
      // Inside a kernel it is evaluated; in memory it is its operand.
      Homes inside;
      if (IsFusible(*p)) {
        for (Cluster* cluster : homes) {
          if (MayInline(p, *cluster)) {
            Join(*cluster, p);
            inside.push_back(cluster);
          } else {
            needed_.insert(p);
          }
        }
      } else if (!homes.empty()) {
        needed_.insert(p);
      }
      homes_[p] = inside;
      return;
    }
    if (!IsFusible(*p) || (p->IsConstant() && !IsSplatConstant(p))) {
      needed_.insert(p);
      return;
    }
    if (IsFree(p)) {
      Homes inside;
      for (Cluster* cluster : homes) {
        if (MayInline(p, *cluster)) {
          Join(*cluster, p);
          inside.push_back(cluster);
        } else {
          materialize = true;
        }
      }
      if (p->IsConstant()) {
        if (materialize) needed_.insert(p);
      } else if (materialize) {
        needed_.insert(p);
        inside.push_back(NewLoop(p));
      }
      homes_[p] = inside;
      return;
    }
    if (homes.size() == 1 && !materialize && MayInline(p, *homes[0])) {
      Join(*homes[0], p);
      homes_[p] = homes;
      return;
    }
    // In memory; computed where it is used first, or by itself.
    needed_.insert(p);
    for (Cluster* cluster : homes) {
      if (MayOutput(p, *cluster)) {
        Join(*cluster, p);
        cluster->outputs.push_back(p);
        homes_[p] = {cluster};
        return;
      }
    }
    homes_[p] = {NewLoop(p)};
  }

  bool IsLive(const Instruction* instruction) const {
    return live_.contains(instruction) || instruction->HasSideEffect() ||
           !instruction->shape().is_array();
  }

  static bool IsReduce(const Instruction* p) {
    if (p->opcode() != Opcode::kReduce) return false;
    for (const Instruction* operand : p->operands()) {
      if (!IsNative(operand->element_type())) return false;
    }
    return p->operand(0)->shape().num_elements() > 0;
  }

  Cluster* NewLoop(Instruction* root) {
    clusters_.push_back(std::make_unique<Cluster>());
    Cluster* cluster = clusters_.back().get();
    cluster->space = root->dimensions();
    cluster->outputs = {root};
    Join(*cluster, root);
    cluster->identity.insert(root);
    return cluster;
  }

  // Adds p to the cluster and finds at which index it is evaluated there.
  void Join(Cluster& cluster, Instruction* p) {
    cluster.members.push_back(p);
    cluster.set.insert(p);
    if (p->opcode() == Opcode::kReduce) ++cluster.reduces;
    cluster.copies[p] = Copies(p, cluster);
    for (const Instruction* user : p->users()) {
      if (!cluster.set.contains(const_cast<Instruction*>(user))) continue;
      const bool identity = AtIdentity(cluster, user, p);
      const bool row_identity = AtRowIdentity(cluster, user, p);
      if (identity) cluster.identity.insert(p);
      if (row_identity) cluster.row_identity.insert(p);
      if (cluster.elsewhere.contains(user) || (!identity && !row_identity))
        cluster.elsewhere.insert(p);
    }
  }

  static bool AtIdentity(const Cluster& cluster, const Instruction* user, const Instruction* p) {
    if (p->dimensions() != cluster.space) return false;
    if (user->opcode() == Opcode::kReduce) return true;
    return cluster.identity.contains(user) &&
           (hlo::IsElementwise(user->opcode()) || user->opcode() == Opcode::kMap ||
            user->opcode() == Opcode::kComposite);
  }

  static bool AtRowIdentity(const Cluster& cluster, const Instruction* user, const Instruction* p) {
    if (user->opcode() == Opcode::kBroadcastInDim) return IsRowBroadcast(cluster, user);
    if (!cluster.row_identity.contains(user)) return false;
    if (user->opcode() == Opcode::kReshape) {
      return Stripped(user->dimensions()) == Stripped(p->dimensions());
    }
    return hlo::IsElementwise(user->opcode());
  }

  // An identity broadcast along the trailing dimensions.
  static bool IsRowBroadcast(const Cluster& cluster, const Instruction* broadcast) {
    if (!cluster.identity.contains(broadcast)) return false;
    const auto& map = broadcast->as<hlo::DimensionsAttributes>().dimensions;
    for (size_t i = 0; i < map.size(); ++i) {
      if (map[i] != static_cast<int64_t>(i)) return false;
    }
    Dimensions operand = Stripped(broadcast->operand(0)->dimensions());
    return std::equal(operand.begin(), operand.end(), cluster.space.begin());
  }

  // Users that only change the index each ask for another element.
  static int64_t Copies(const Instruction* p, const Cluster& cluster) {
    int64_t same = 0, sum = 0;
    for (const Instruction* user : p->users()) {
      auto found = cluster.copies.find(user);
      if (found == cluster.copies.end()) continue;
      if (hlo::IsElementwise(user->opcode()) || user->opcode() == Opcode::kReduce) {
        same = std::max(same, found->second);
      } else {
        sum += found->second;
      }
    }
    return std::max<int64_t>(same + sum, 1);
  }

  bool MayInline(const Instruction* p, const Cluster& cluster) const {
    if (cluster.members.size() >= kMaxMembers) return false;
    const int64_t copies = Copies(p, cluster);
    if (copies > 4 && !IsFree(p) && p->opcode() != Opcode::kSlice && p->opcode() != Opcode::kPad) {
      return false;
    }
    if (copies > 32 && !p->IsConstant()) return false;
    for (const Instruction* user : p->users()) {
      if (!cluster.set.contains(const_cast<Instruction*>(user))) continue;
      switch (user->opcode()) {
        case Opcode::kBroadcastInDim: {
          if (IsFree(p) || p->shape().num_elements() * 2 > user->shape().num_elements()) break;
          if (p->shape().num_elements() == 1) break;
          // Row values are computed once a row; anything else would be computed for every element.
          const auto& map = user->as<hlo::DimensionsAttributes>().dimensions;
          bool leading = true;
          for (size_t i = 0; i < map.size(); ++i) leading &= map[i] == static_cast<int64_t>(i);
          const Dimensions operand = Stripped(p->dimensions());
          leading &= std::equal(operand.begin(), operand.end(), user->dimensions().begin());
          if (!leading || user->shape().num_elements() / p->shape().num_elements() < 8)
            return false;
          break;
        }
        case Opcode::kGather:
          if (user->operand(0) == p && !IsFree(p) && p->opcode() != Opcode::kConvert) return false;
          break;
        case Opcode::kReduceWindow:
          // Windows overlap: only what costs nothing is computed again.
          if (!IsFree(p) && p->opcode() != Opcode::kConvert) return false;
          break;
        default:
          break;
      }
    }
    return true;
  }

  // As a further result of the loop.
  bool MayOutput(const Instruction* p, const Cluster& cluster) const {
    if (cluster.kind != Cluster::kLoop || cluster.members.size() >= kMaxMembers ||
        cluster.outputs.size() >= 12 || cluster.outputs[0]->shape().is_tuple()) {
      return false;
    }
    bool identity = false;
    for (const Instruction* user : p->users()) {
      if (!cluster.set.contains(const_cast<Instruction*>(user))) continue;
      identity |= AtIdentity(cluster, user, p);
    }
    if (!identity || p->dimensions() != cluster.space) return false;
    if (!MayInline(p, cluster)) return false;
    return !OthersReach(p, cluster);
  }

  // True if the cluster depends on a user of p outside of it: making p its result would close a
  // cycle.
  bool OthersReach(const Instruction* p, const Cluster& cluster) const {
    std::set<const Instruction*> seen;
    std::vector<const Instruction*> stack;
    auto push_users = [&](const Instruction* instruction) {
      for (const Instruction* user : instruction->users()) stack.push_back(user);
    };
    std::vector<const Instruction*> same = {p};  // p and what it is in memory too
    while (!same.empty()) {
      const Instruction* value = same.back();
      same.pop_back();
      for (const Instruction* user : value->users()) {
        const bool inside = cluster.set.contains(const_cast<Instruction*>(user));
        if (!inside) stack.push_back(user);
        // A duplicated user outside counts too, and who reads an alias in memory.
        auto found = homes_.find(user);
        if (found != homes_.end() && found->second.size() > 1) push_users(user);
        if (inside && IsAlias(*user)) same.push_back(user);
      }
    }
    while (!stack.empty()) {
      const Instruction* instruction = stack.back();
      stack.pop_back();
      if (!seen.insert(instruction).second) continue;
      if (cluster.set.contains(const_cast<Instruction*>(instruction))) return true;
      push_users(instruction);
      auto found = homes_.find(instruction);
      if (found == homes_.end()) continue;
      for (const Cluster* other : found->second) {
        for (const Instruction* output : other->outputs) {
          if (seen.insert(output).second) push_users(output);
        }
      }
    }
    return false;
  }

  // --- Reductions.

  static bool IsTrailing(const Instruction* reduce) {
    const Dimensions& from = reduce->operand(0)->dimensions();
    Dimensions reduced = reduce->as<hlo::DimensionsAttributes>().dimensions;
    std::sort(reduced.begin(), reduced.end());
    const int64_t rank = static_cast<int64_t>(from.size());
    for (size_t i = 0; i < reduced.size(); ++i) {
      if (reduced[i] != rank - static_cast<int64_t>(reduced.size() - i)) return false;
    }
    return !reduced.empty();
  }

  static int64_t KeptRank(const Instruction* reduce) {
    return reduce->operand(0)->shape().rank() -
           static_cast<int64_t>(reduce->as<hlo::DimensionsAttributes>().dimensions.size());
  }

  void PlaceReduce(Instruction* p, const Homes& homes, bool materialize) {
    const bool trailing = IsTrailing(p) && p->shape().is_array();
    if (trailing) {
      for (Cluster* cluster : homes) {
        const bool output = materialize || homes.size() > 1;
        if (!MayRowReduce(p, *cluster) || (output && OthersReach(p, *cluster))) continue;
        BecomeRows(p, *cluster);
        Join(*cluster, p);
        if (output) {
          needed_.insert(p);
          cluster->outputs.push_back(p);
        }
        homes_[p] = {cluster};
        return;
      }
    }
    needed_.insert(p);
    for (const auto& cluster : clusters_) {
      if (cluster->kind != Cluster::kReduce || !MayReduceTogether(p, *cluster)) continue;
      Join(*cluster, p);
      cluster->outputs.push_back(p);
      homes_[p] = {cluster.get()};
      return;
    }
    clusters_.push_back(std::make_unique<Cluster>());
    Cluster* cluster = clusters_.back().get();
    cluster->kind = Cluster::kReduce;
    cluster->space = p->operand(0)->dimensions();
    cluster->outputs = {p};
    Join(*cluster, p);
    homes_[p] = {cluster};
  }

  // The cluster's rows are what p reduces.
  bool MayRowReduce(const Instruction* p, const Cluster& cluster) const {
    if (cluster.kind != Cluster::kLoop || cluster.reduces >= kMaxReduces) return false;
    const Dimensions& space = p->operand(0)->dimensions();
    const int64_t rows = p->shape().num_elements();
    const int64_t total = p->operand(0)->shape().num_elements();
    // Few long rows are better split: see SplitReductions.
    if (rows < 8 && total > 65536) return false;
    const bool as_rows =
        cluster.reduces == 0 && cluster.row_rank < 0 && cluster.space == p->dimensions();
    if (as_rows) {
      // The whole cluster becomes row values: everything in it must be at the row's index.
      for (const Instruction* member : cluster.members) {
        if (member->shape().rank() == 0 || IsSplatConstant(member)) continue;
        if (!cluster.identity.contains(member) || cluster.elsewhere.contains(member)) return false;
      }
      bool identity = false;
      for (const Instruction* user : p->users()) {
        if (!cluster.set.contains(const_cast<Instruction*>(user))) continue;
        if (!AtIdentity(cluster, user, p) || cluster.elsewhere.contains(user)) return false;
        identity = true;
      }
      return identity;
    }
    if (cluster.space != space || (cluster.row_rank >= 0 && cluster.row_rank != KeptRank(p)))
      return false;
    for (const Instruction* user : p->users()) {
      if (!cluster.set.contains(const_cast<Instruction*>(user))) continue;
      if (!AtRowIdentity(cluster, user, p) || cluster.elsewhere.contains(user)) return false;
      if (user->opcode() == Opcode::kBroadcastInDim &&
          Stripped(p->dimensions()).size() != p->dimensions().size() &&
          p->dimensions() != Dimensions(space.begin(), space.begin() + KeptRank(p))) {
        return false;
      }
    }
    return true;
  }

  void BecomeRows(const Instruction* p, Cluster& cluster) {
    if (cluster.row_rank < 0 && cluster.space != p->operand(0)->dimensions()) {
      cluster.row_identity = std::move(cluster.identity);
      cluster.identity.clear();
      cluster.space = p->operand(0)->dimensions();
    } else if (cluster.row_rank < 0 && cluster.reduces == 0 && p->dimensions() == cluster.space) {
      cluster.row_identity = cluster.identity;
    }
    cluster.row_rank = KeptRank(p);
  }

  bool MayReduceTogether(const Instruction* p, const Cluster& cluster) const {
    const Instruction* first = cluster.outputs[0];
    if (cluster.outputs.size() >= 4 || cluster.space != p->operand(0)->dimensions() ||
        first->attributes() != p->attributes() || !p->shape().is_array() ||
        !first->shape().is_array()) {
      return false;
    }
    // Worth it if they read the same.
    auto sources = [](const Instruction* reduce) {
      std::set<const Instruction*> result = {reduce->operand(0)};
      for (const Instruction* operand : reduce->operand(0)->operands()) {
        result.insert(operand);
        for (const Instruction* inner : operand->operands()) result.insert(inner);
      }
      return result;
    };
    std::set<const Instruction*> mine = sources(p);
    bool shared = false;
    for (const Instruction* output : cluster.outputs) {
      for (const Instruction* source : sources(output)) {
        shared |= mine.contains(source) && source->shape().is_array() &&
                  source->shape().num_elements() > 1;
      }
    }
    if (!shared) return false;
    // Neither may depend on the other: p precedes them, so only they on it.
    for (const Instruction* user : p->users()) {
      if (cluster.set.contains(const_cast<Instruction*>(user))) return false;
    }
    return !OthersReach(p, cluster);
  }

  // --- Rewriting.

  void Build() {
    for (Instruction* instruction : order_) {
      if (const char* kind = SingleKernel(*instruction); kind && live_.contains(instruction)) {
        clusters_.push_back(std::make_unique<Cluster>());
        Cluster& cluster = *clusters_.back();
        cluster.kind = Cluster::kSingle;
        cluster.name = kind;
        cluster.members = cluster.outputs = {instruction};
        cluster.set = {instruction};
      }
    }
    std::reverse(clusters_.begin(), clusters_.end());
    for (const auto& cluster : clusters_) BuildComposite(*cluster);
    for (auto [value, replacement] : replacements_) value->ReplaceAllUsesWith(replacement);
    computation_.SortTopologically();
    computation_.RemoveDeadInstructions();
  }

  void BuildComposite(Cluster& cluster) {
    std::sort(cluster.members.begin(), cluster.members.end(),
              [&](Instruction* a, Instruction* b) { return position_[a] < position_[b]; });
    CompositeBody body =
        CopyIntoBody(cluster.members, cluster.kind == Cluster::kReduce ? "reduce" : "loop");
    std::vector<Instruction*> results;
    std::vector<hlo::Shape> shapes;
    for (Instruction* output : cluster.outputs) {
      if (output->shape().is_tuple()) {
        for (size_t i = 0; i < output->shape().tuple_shapes().size(); ++i) {
          const hlo::Shape& shape = output->shape().tuple_shapes()[i];
          results.push_back(
              body.computation->Add(Opcode::kGetTupleElement, shape, {body.copies.at(output)},
                                    hlo::TupleIndexAttributes{static_cast<int64_t>(i)}));
          shapes.push_back(shape);
        }
      } else {
        results.push_back(body.copies.at(output));
        shapes.push_back(output->shape());
      }
    }
    body.computation->set_results(results);
    hlo::CompositeAttributes attributes;
    attributes.name = cluster.kind == Cluster::kReduce ? "cpu.reduce" : cluster.name;
    Instruction* composite = computation_.Add(
        Opcode::kComposite, shapes.size() == 1 ? shapes[0] : hlo::Shape::Tuple(shapes),
        body.operands, attributes, {body.computation});
    composite->set_metadata(cluster.outputs[0]->metadata());
    size_t next = 0;
    for (Instruction* output : cluster.outputs) {
      if (output->shape().is_tuple()) {
        std::vector<Instruction*> users = output->users();
        for (Instruction* user : users) {
          replacements_.emplace_back(
              user, Pick(composite, next + user->tuple_index(), shapes.size(), user->shape()));
        }
        next += output->shape().tuple_shapes().size();
        continue;
      }
      replacements_.emplace_back(output, Pick(composite, next++, shapes.size(), output->shape()));
    }
  }

  Instruction* Pick(Instruction* composite, size_t index, size_t count, const hlo::Shape& shape) {
    if (count == 1) return composite;
    return computation_.Add(Opcode::kGetTupleElement, shape, {composite},
                            hlo::TupleIndexAttributes{static_cast<int64_t>(index)});
  }

  Computation& computation_;
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, int64_t> position_;
  std::set<const Instruction*> needed_;
  std::set<const Instruction*> live_;
  std::unordered_map<const Instruction*, Homes> homes_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<std::pair<Instruction*, Instruction*>> replacements_;
};

}  // namespace

const char* SingleKernel(const Instruction& instruction) {
  for (const Instruction* operand : instruction.operands()) {
    if (!operand->shape().is_array() || !IsNative(operand->element_type())) return nullptr;
  }
  switch (instruction.opcode()) {
    case Opcode::kReduceWindow:
      return IsScan(instruction) ? "cpu.scan" : nullptr;
    case Opcode::kScatter:
      return "cpu.scatter";
    case Opcode::kSort:
      return "cpu.sort";
    default:
      return nullptr;
  }
}

bool IsScan(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kReduceWindow || instruction.operand_count() != 2)
    return false;
  const auto& window = instruction.as<hlo::Window>();
  const Dimensions& dimensions = instruction.operand(0)->dimensions();
  if (dimensions != instruction.dimensions()) return false;
  int64_t scanned = 0;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    auto one = [&](const Dimensions& list) { return list.empty() || list[d] == 1; };
    if (!one(window.strides) || !one(window.base_dilations) || !one(window.window_dilations))
      return false;
    const int64_t size = window.dimensions[d];
    const int64_t low = window.padding_low.empty() ? 0 : window.padding_low[d];
    const int64_t high = window.padding_high.empty() ? 0 : window.padding_high[d];
    if (size == 1 && low == 0 && high == 0) continue;
    const bool whole =
        size == dimensions[d] && ((low == size - 1 && high == 0) || (low == 0 && high == size - 1));
    if (!whole || size < 8) return false;
    ++scanned;
  }
  return scanned == 1;
}

bool IsAlias(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kReshape:
    case Opcode::kOptimizationBarrier:
      return true;
    case Opcode::kBitcastConvert:
      return true;
    default:
      return false;
  }
}

bool IsBlockTranspose(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kTranspose) return false;
  const auto& permutation = instruction.as<hlo::DimensionsAttributes>().dimensions;
  const Dimensions& dimensions = instruction.dimensions();
  // The innermost dimension that is not of size 1, here and in the operand.
  int64_t here = -1, there = -1;
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (dimensions[i] == 1) continue;
    here = permutation[i];
    there = std::max(there, permutation[i]);
  }
  return here != there && instruction.shape().num_elements() > 64;
}

bool IsFusible(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kReduceWindow) {
    if (IsScan(instruction)) return false;
    const hlo::Shape& shape = instruction.shape();
    const int64_t count =
        shape.is_tuple() ? shape.tuple_shapes()[0].num_elements() : shape.num_elements();
    for (const Instruction* operand : instruction.operands()) {
      if (!IsNative(operand->element_type()) || operand->shape().num_elements() == 0) return false;
    }
    return count > 0;
  }
  if (!instruction.shape().is_array() || !IsNative(instruction.element_type())) return false;
  if (instruction.shape().is_dynamic() || instruction.shape().num_elements() == 0) return false;
  for (const Instruction* operand : instruction.operands()) {
    if (!operand->shape().is_array() || !IsNative(operand->element_type()) ||
        operand->shape().num_elements() == 0) {
      return false;
    }
  }
  switch (instruction.opcode()) {
    case Opcode::kBitcastConvert:
      return hlo::ByteWidth(instruction.element_type()) ==
                 hlo::ByteWidth(instruction.operand(0)->element_type()) &&
             !hlo::IsComplex(instruction.element_type()) &&
             !hlo::IsComplex(instruction.operand(0)->element_type());
    case Opcode::kBroadcastInDim:
    case Opcode::kConstant:
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
    case Opcode::kIota:
    case Opcode::kMap:
    case Opcode::kPad:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
      return true;
    case Opcode::kTranspose:
      return !IsBlockTranspose(instruction);
    case Opcode::kComposite:
      return instruction.as<hlo::CompositeAttributes>().name == "chlo.erf" &&
             hlo::IsFloat(instruction.element_type());
    default:
      return hlo::IsElementwise(instruction.opcode());
  }
}

void FuseLoops(Computation& computation) { Fuser(computation).Run(); }

}  // namespace cpu
