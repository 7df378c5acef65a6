#include "cpu/passes/fusion.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <unordered_map>
#include <utility>

#include "cpu/control_flow.h"
#include "cpu/element_cost.h"
#include "cpu/fusible.h"
#include "cpu/passes/composite.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

// What a cluster may hold: as many members that cost something, and as many in all.
constexpr size_t kMaxCosts = 240;
constexpr size_t kMaxMembers = 640;
constexpr size_t kMaxReduces = 6;
constexpr size_t kMaxOutputs = 12;
// As many kernels of reductions are looked at to take another one that reads the same.
constexpr size_t kNearReduces = 8;
// More often than this an element is not computed anew, but read.
constexpr int64_t kMaxCopies = 4;
constexpr int64_t kMaxCheapCopies = 32;
// So many elements at least share what is computed once a row.
constexpr int64_t kLeastRow = 8;

std::span<const int64_t> Stripped(std::span<const int64_t> dimensions) {
  while (!dimensions.empty() && dimensions.back() == 1) {
    dimensions = dimensions.first(dimensions.size() - 1);
  }
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

// What a kernel knows of an instruction that it evaluates.
struct Member {
  Instruction* instruction;
  int64_t copies = 0;         // at how many indices
  bool identity = false;      // at the loop's own index
  bool row_identity = false;  // at the row's
  bool elsewhere = false;     // at some other index (too)
  bool gathered = false;      // at places that an index names (too)
};

// Which instructions can reach which, by their places in the program: operands come before their
// users, but a kernel gives all its results at once, so a path that enters one at its last
// instruction goes on behind its first result.
class KernelSpans {
 public:
  explicit KernelSpans(size_t count) : last_(count + 1, -1) {}

  // A kernel has a result at `first`, and its last instruction at `last`.
  void Add(int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first) + 1; i < last_.size(); i += i & -i) {
      last_[i] = std::max(last_[i], last);
    }
  }

  // The last place from which a path may lead to `place` or before it.
  int64_t LastToReach(int64_t place) const {
    for (int64_t last = place;; place = last) {
      last = std::max(place, LastOfFirsts(place));
      if (last == place) return place;
    }
  }

 private:
  // Of the kernels that have a result at `place` or before it.
  int64_t LastOfFirsts(int64_t place) const {
    int64_t last = -1;
    for (auto i = static_cast<size_t>(place) + 1; i > 0; i -= i & -i)
      last = std::max(last, last_[i]);
    return last;
  }

  std::vector<int64_t> last_;  // maxima of ranges of first places: a Fenwick tree
};

struct Cluster {
  uint32_t number = 0;  // among all
  enum Kind { kLoop, kReduce, kScan } kind = kLoop;
  Dimensions space;
  int64_t row_rank = -1;
  std::vector<Member> members;  // consumers first
  std::vector<Instruction*> outputs;
  size_t reduces = 0;
  size_t costs = 0;  // members that are not free
  // The last one that it was asked for, and which members use that: DemandFor.
  const Instruction* wanted = nullptr;
  hlo::ShortList<uint32_t> wanted_by;
};

// A cluster that evaluates an instruction, and which of its members that is.
struct Home {
  uint32_t cluster, member;
};

// What is known of an instruction.
struct Choice {
  int64_t place = 0;    // in the program
  bool needed = false;  // in memory
  bool live = false;
  uint32_t seen_by = 0;        // the last search that came by
  hlo::ShortList<Home> homes;  // where it is evaluated
};

class Fuser {
 public:
  // `choices` is of the whole module, by the instructions' ids.
  Fuser(Computation& computation, std::vector<Choice>& choices)
      : computation_(computation), choices_(choices), spans_(computation.instructions().size()) {}

  // True if it built a kernel.
  bool Run() {
    for (const auto& instruction : computation_.instructions()) order_.push_back(instruction.get());
    if (order_.empty()) return false;
    const int64_t last = std::ranges::max(order_ | std::views::transform(&Instruction::id));
    choices_.resize(std::max(choices_.size(), static_cast<size_t>(last) + 1));
    for (size_t i = 0; i < order_.size(); ++i) {
      Of(order_[i]) = {.place = static_cast<int64_t>(i), .homes = {}};
    }
    for (const Instruction* result : computation_.results()) Of(result).needed = true;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) Place(*it);
    if (clusters_.empty()) return false;
    Build();
    return true;
  }

 private:
  Choice& Of(const Instruction* instruction) const {
    return choices_[static_cast<size_t>(instruction->id())];
  }

  // By kernels. Parts that lie in memory are copied together, and those that would be written for
  // that alone are written to their places.
  static bool IsComputed(const Instruction& p) {
    if (!IsFusibleConcatenate(p)) return IsFusible(p);
    return std::ranges::any_of(p.operands(), [](const Instruction* part) {
      return IsFusible(*part) && !part->IsConstant() && part->users().size() == 1;
    });
  }

  // Who wants a value: clusters that would evaluate it, and whether someone reads it from memory.
  struct Demand {
    hlo::ShortList<Cluster*> clusters;
    bool in_memory = false;
  };

  // Decides who evaluates `p`. Users come first, so that all who want it are known.
  void Place(Instruction* p) {
    if (p->opcode() == Opcode::kParameter) return;
    const Demand demand = DemandFor(p);
    if (!demand.in_memory && demand.clusters.empty()) return;  // dead
    Of(p).live = true;
    if (demand.in_memory) Of(p).needed = true;
    if (IsReduction(*p)) return PlaceReduce(p, demand);
    if (IsScan(*p) && HasNativeOperands(*p)) return PlaceScan(p);
    const bool is_fusible = IsFusible(*p);
    if (is_fusible && p->shape().is_tuple()) return PlaceWindows(p);
    if (IsView(*p)) return PlaceView(p, demand);
    if (!IsComputed(*p) || (p->IsConstant() && !IsSplatConstant(p))) return KeepOutside(p);
    if (IsFree(p)) return PlaceFree(p, demand);
    if (demand.clusters.size() == 1 && !demand.in_memory && MayInline(p, *demand.clusters[0])) {
      Join(*demand.clusters[0], p);
      return;
    }
    PlaceInMemory(p, demand);
  }

  Demand DemandFor(const Instruction* p) const {
    Demand demand;
    demand.in_memory = Of(p).needed || p->HasSideEffect();
    for (const Instruction* user : p->users()) {
      const Choice& choice = Of(user);
      if (choice.homes.empty() && !IsView(*user)) {
        if (IsLive(user)) demand.in_memory = true;
        continue;
      }
      if (IsView(*user) && choice.needed) demand.in_memory = true;
      for (const Home& home : choice.homes) {
        Cluster& cluster = *clusters_[home.cluster];
        if (std::exchange(cluster.wanted, p) != p) {
          demand.clusters.push_back(&cluster);
          cluster.wanted_by.clear();
        }
        cluster.wanted_by.push_back(home.member);
      }
    }
    return demand;
  }

  // Not of any kernel: it is read from memory.
  void KeepOutside(Instruction* p) { Of(p).needed = true; }

  // Evaluates it in each cluster that wants it and may. True if all may.
  bool InlineWhereAllowed(Instruction* p, const Demand& demand) {
    bool all = true;
    for (Cluster* cluster : demand.clusters) {
      if (MayInline(p, *cluster)) {
        Join(*cluster, p);
      } else {
        all = false;
      }
    }
    return all;
  }

  // A reduce_window of several arrays is a loop of its own.
  void PlaceWindows(Instruction* p) {
    Of(p).needed = true;
    NewLoop(p).space = p->shape().tuple_shapes()[0].dimensions();
  }

  // A scan is a kernel of its own, with what it reads.
  void PlaceScan(Instruction* p) {
    Of(p).needed = true;
    Cluster& cluster = NewLoop(p);
    cluster.kind = Cluster::kScan;
    cluster.space = p->operand(0)->dimensions();
  }

  // Inside a kernel it is evaluated; in memory it is its operand.
  void PlaceView(Instruction* p, const Demand& demand) {
    const bool inside = IsFusible(*p) ? InlineWhereAllowed(p, demand) : demand.clusters.empty();
    if (!inside) Of(p).needed = true;
  }

  // It costs nothing to compute it again for everyone, and a loop writes it for who reads it from
  // memory.
  void PlaceFree(Instruction* p, const Demand& demand) {
    const bool inside = InlineWhereAllowed(p, demand);
    if (inside && !demand.in_memory) return;
    Of(p).needed = true;
    if (!p->IsConstant()) NewLoop(p);
  }

  // Several want it: it is computed once, where it is used first if possible, or by itself.
  void PlaceInMemory(Instruction* p, const Demand& demand) {
    Of(p).needed = true;
    for (Cluster* cluster : demand.clusters) {
      if (!MayOutput(p, *cluster)) continue;
      Join(*cluster, p);
      AddOutput(*cluster, p);
      return;
    }
    NewLoop(p);
  }

  bool IsLive(const Instruction* instruction) const {
    return Of(instruction).live || instruction->HasSideEffect() || !instruction->shape().is_array();
  }

  Cluster& NewCluster(Cluster::Kind kind, const Dimensions& space) {
    clusters_.push_back(std::make_unique<Cluster>());
    Cluster& cluster = *clusters_.back();
    cluster.number = static_cast<uint32_t>(clusters_.size() - 1);
    cluster.kind = kind;
    cluster.space = space;
    return cluster;
  }

  Cluster& NewLoop(Instruction* root) {
    Cluster& cluster = NewCluster(Cluster::kLoop, root->dimensions());
    Join(cluster, root).identity = true;
    AddOutput(cluster, root);
    return cluster;
  }

  // A member becomes a result.
  void AddOutput(Cluster& cluster, Instruction* p) {
    cluster.outputs.push_back(p);
    spans_.Add(Of(p).place, LastPlace(cluster));
  }

  // The first member is the last in the program, as users are placed before their operands.
  int64_t LastPlace(const Cluster& cluster) const {
    return Of(cluster.members[0].instruction).place;
  }

  // Whether `meets` holds for one of the members that use p, which is being placed.
  template <typename Predicate>
  static bool AnyUserIn(const Cluster& cluster, const Instruction* p, const Predicate& meets) {
    return cluster.wanted == p && std::ranges::any_of(cluster.wanted_by, [&](uint32_t member) {
             return meets(cluster.members[member]);
           });
  }
  template <typename Visitor>
  static void ForUsersIn(const Cluster& cluster, const Instruction* p, const Visitor& visit) {
    AnyUserIn(cluster, p, [&](const Member& user) {
      visit(user);
      return false;
    });
  }

  // True if the cluster evaluates it.
  bool IsIn(const Instruction* instruction, const Cluster& cluster) const {
    return std::ranges::find(Of(instruction).homes, cluster.number, &Home::cluster) !=
           Of(instruction).homes.end();
  }

  // Adds p to the cluster and finds at which index it is evaluated there. What it gives is valid
  // until the next one joins.
  Member& Join(Cluster& cluster, Instruction* p) {
    Member joined{p, Copies(p, cluster)};
    ForUsersIn(cluster, p, [&](const Member& user) {
      const bool identity = AtIdentity(cluster, user, p);
      const bool row_identity = AtRowIdentity(cluster, user, p);
      joined.identity |= identity;
      joined.row_identity |= row_identity;
      joined.elsewhere |= user.elsewhere || (!identity && !row_identity);
      joined.gathered |= user.gathered || (user.instruction->opcode() == Opcode::kGather &&
                                           user.instruction->operand(0) == p);
    });
    if (p->opcode() == Opcode::kReduce) ++cluster.reduces;
    if (!IsFree(p)) ++cluster.costs;
    Of(p).homes.push_back({cluster.number, static_cast<uint32_t>(cluster.members.size())});
    return cluster.members.emplace_back(joined);
  }

  static bool AtIdentity(const Cluster& cluster, const Member& user, const Instruction* p) {
    if (p->dimensions() != cluster.space) return false;
    const Opcode opcode = user.instruction->opcode();
    if (opcode == Opcode::kReduce || IsScan(*user.instruction)) return true;
    return user.identity &&
           (hlo::IsElementwise(opcode) || opcode == Opcode::kMap || opcode == Opcode::kComposite);
  }

  static bool AtRowIdentity(const Cluster& cluster, const Member& user, const Instruction* p) {
    const Opcode opcode = user.instruction->opcode();
    if (opcode == Opcode::kBroadcastInDim) return IsRowBroadcast(cluster, user);
    if (!user.row_identity) return false;
    if (opcode == Opcode::kReshape) {
      return std::ranges::equal(Stripped(user.instruction->dimensions()),
                                Stripped(p->dimensions()));
    }
    return hlo::IsElementwise(opcode);
  }

  // An identity broadcast along the trailing dimensions.
  static bool IsRowBroadcast(const Cluster& cluster, const Member& member) {
    if (!member.identity) return false;
    const Instruction* broadcast = member.instruction;
    const auto& map = broadcast->as<hlo::DimensionsAttributes>().dimensions;
    for (size_t i = 0; i < map.size(); ++i) {
      if (map[i] != static_cast<int64_t>(i)) return false;
    }
    const std::span<const int64_t> operand = Stripped(broadcast->operand(0)->dimensions());
    return std::equal(operand.begin(), operand.end(), cluster.space.begin());
  }

  // Users that only change the index each ask for another element.
  static int64_t Copies(const Instruction* p, const Cluster& cluster) {
    int64_t same = 0, sum = 0;
    ForUsersIn(cluster, p, [&](const Member& user) {
      const Opcode opcode = user.instruction->opcode();
      if (hlo::IsElementwise(opcode) || opcode == Opcode::kReduce) {
        same = std::max(same, user.copies);
      } else {
        sum += user.copies;
      }
    });
    return std::max<int64_t>(same + sum, 1);
  }

  // What is free is taken still: in memory, the constants of a long polynomial would be an array
  // each.
  static bool IsFull(const Cluster& cluster, const Instruction& p) {
    return cluster.members.size() >= kMaxMembers || (cluster.costs >= kMaxCosts && !IsFree(&p));
  }

  bool MayInline(const Instruction* p, const Cluster& cluster) const {
    if (IsFull(cluster, *p)) return false;
    if (cluster.kind == Cluster::kScan && !MayFeedScan(*p)) return false;
    if (IsALoopOfFewer(*p, cluster)) return false;
    const int64_t copies = Copies(p, cluster);
    const bool is_cheap = IsFree(p) || p->opcode() == Opcode::kSlice || p->opcode() == Opcode::kPad;
    if (copies > kMaxCopies && !is_cheap) return false;
    if (copies > kMaxCheapCopies && !p->IsConstant()) return false;
    return !AnyUserIn(cluster, p, [&](const Member& user) {
      if (IsReducedInShortRows(*user.instruction, *p)) return true;
      // Which part of a concatenation a place lies in would be found for each element.
      const bool has_parts = p->opcode() == Opcode::kConcatenate;
      return IsRepeatedBy(user.instruction, p) || (has_parts && user.gathered);
    });
  }

  // A loop is emitted where its lanes are used, not once a row: what has more elements would take
  // its turns again for each vector.
  static bool IsALoopOfFewer(const Instruction& p, const Cluster& cluster) {
    if (!HasLoop(p)) return false;
    return p.shape().num_elements() < hlo::Shape(p.element_type(), cluster.space).num_elements();
  }

  // A scan takes one number at a time along rows, where a loop of vectors is quicker for what is
  // more than a few instructions.
  static bool MayFeedScan(const Instruction& p) {
    return !IsExpensive(p) && p.opcode() != Opcode::kReduceWindow;
  }

  // A row of a few elements leaves most lanes of its vector empty: what costs something is better
  // computed before, if there is so much of it that one more kernel costs less.
  static bool IsReducedInShortRows(const Instruction& user, const Instruction& p) {
    constexpr int64_t kShort = 16, kLeastElements = 8192;
    if (user.opcode() != Opcode::kReduce || !IsTrailing(&user)) return false;
    const int64_t rows = user.shape().is_array() ? user.shape().num_elements()
                                                 : user.shape().tuple_shapes()[0].num_elements();
    const int64_t elements = p.shape().num_elements();
    return elements >= kLeastElements && elements < kShort * rows && IsMadeExpensively(p);
  }

  // Whether an expensive operation is among those that give it, element by element.
  static bool IsMadeExpensively(const Instruction& p) {
    constexpr size_t kMostSteps = 32;
    std::vector<const Instruction*> made = {&p};
    for (size_t i = 0; i < made.size() && i < kMostSteps; ++i) {
      if (IsExpensive(*made[i])) return true;
      if (!hlo::IsElementwise(made[i]->opcode())) continue;
      made.insert(made.end(), made[i]->operands().begin(), made[i]->operands().end());
    }
    return false;
  }

  // True if the user would have elements of p computed several times that cost something.
  static bool IsRepeatedBy(const Instruction* user, const Instruction* p) {
    if (IsFree(p)) return false;
    switch (user->opcode()) {
      case Opcode::kBroadcastInDim:
        return IsRepeatedByBroadcast(user, p);
      case Opcode::kGather:
        return user->operand(0) == p && p->opcode() != Opcode::kConvert;
      case Opcode::kReduceWindow:  // windows overlap
        return !IsScan(*user) && p->opcode() != Opcode::kConvert;
      default:
        return false;
    }
  }

  // Row values are computed once a row; anything else would be computed for every element.
  static bool IsRepeatedByBroadcast(const Instruction* broadcast, const Instruction* p) {
    const int64_t from = p->shape().num_elements(), to = broadcast->shape().num_elements();
    if (from == 1 || from * 2 > to) return false;
    const auto& map = broadcast->as<hlo::DimensionsAttributes>().dimensions;
    bool leading = true;
    for (size_t i = 0; i < map.size(); ++i) leading &= map[i] == static_cast<int64_t>(i);
    const std::span<const int64_t> operand = Stripped(p->dimensions());
    leading &= std::equal(operand.begin(), operand.end(), broadcast->dimensions().begin());
    return !leading || to / from < kLeastRow;
  }

  // As a further result of the loop.
  bool MayOutput(const Instruction* p, const Cluster& cluster) {
    if (cluster.kind != Cluster::kLoop || IsFull(cluster, *p) ||
        cluster.outputs.size() >= kMaxOutputs || cluster.outputs[0]->shape().is_tuple()) {
      return false;
    }
    const bool identity =
        AnyUserIn(cluster, p, [&](const Member& user) { return AtIdentity(cluster, user, p); });
    if (!identity || p->dimensions() != cluster.space) return false;
    if (!MayInline(p, cluster)) return false;
    return !OthersReach(p, cluster);
  }

  // True if the cluster depends on a user of p outside of it: making p its result would close a
  // cycle.
  bool OthersReach(const Instruction* p, const Cluster& cluster) {
    const uint32_t search = ++searches_;
    std::vector<const Instruction*>& stack = stack_;
    stack.clear();
    auto push_users = [&](const Instruction* instruction) {
      stack.insert(stack.end(), instruction->users().begin(), instruction->users().end());
    };
    auto is_new = [&](const Instruction* instruction) {
      return std::exchange(Of(instruction).seen_by, search) != search;
    };
    hlo::ShortList<const Instruction*> same = {p};  // p and what it is in memory too
    while (!same.empty()) {
      const Instruction* value = same.back();
      same.pop_back();
      for (const Instruction* user : value->users()) {
        const bool inside = IsIn(user, cluster);
        if (!inside) stack.push_back(user);
        // A duplicated user outside counts too, and who reads an alias in memory.
        if (Of(user).homes.size() > 1) push_users(user);
        if (inside && IsView(*user)) same.push_back(user);
      }
    }
    const int64_t last = spans_.LastToReach(LastPlace(cluster));
    while (!stack.empty()) {
      const Instruction* instruction = stack.back();
      stack.pop_back();
      if (Of(instruction).place > last || !is_new(instruction)) continue;
      if (IsIn(instruction, cluster)) return true;
      push_users(instruction);
      for (const Home& home : Of(instruction).homes) {
        for (const Instruction* output : clusters_[home.cluster]->outputs) {
          if (is_new(output)) push_users(output);
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

  void PlaceReduce(Instruction* p, const Demand& demand) {
    const bool trailing = IsTrailing(p) && p->shape().is_array();
    if (trailing) {
      for (Cluster* cluster : demand.clusters) {
        const bool output = demand.in_memory || demand.clusters.size() > 1;
        if (!MayRowReduce(p, *cluster) || (output && OthersReach(p, *cluster))) continue;
        BecomeRows(p, *cluster);
        Join(*cluster, p);
        if (output) {
          Of(p).needed = true;
          AddOutput(*cluster, p);
        }
        return;
      }
    }
    Of(p).needed = true;
    const std::vector<const Instruction*> sources = Sources(p);
    Cluster* cluster = ReduceBeside(p, sources);
    if (cluster == nullptr) cluster = &NewCluster(Cluster::kReduce, p->operand(0)->dimensions());
    Join(*cluster, p);
    AddOutput(*cluster, p);
    for (const Instruction* source : sources) {
      std::vector<Cluster*>& reducers = reducers_of_[source];
      std::erase(reducers, cluster);
      if (reducers.size() == kNearReduces) reducers.erase(reducers.begin());
      reducers.push_back(cluster);
    }
  }

  // A kernel of reductions that may take p, too: of the near ones that read what p reads, its
  // `sources`, the last in the program.
  Cluster* ReduceBeside(const Instruction* p, const std::vector<const Instruction*>& sources) {
    std::vector<Cluster*> found;
    for (const Instruction* source : sources) {
      const auto reducers = reducers_of_.find(source);
      if (reducers == reducers_of_.end()) continue;
      found.insert(found.end(), reducers->second.begin(), reducers->second.end());
    }
    std::ranges::sort(found, std::greater(), [&](const Cluster* c) { return LastPlace(*c); });
    const auto tail = std::ranges::unique(found);
    found.erase(tail.begin(), tail.end());
    const auto first =
        std::ranges::find_if(found, [&](const Cluster* c) { return MayReduceTogether(p, *c); });
    return first == found.end() ? nullptr : *first;
  }

  // The arrays that a reduction reads, directly or in two steps, each once.
  static std::vector<const Instruction*> Sources(const Instruction* reduce) {
    std::vector<const Instruction*> sources = {reduce->operand(0)};
    for (const Instruction* operand : reduce->operand(0)->operands()) {
      sources.push_back(operand);
      sources.insert(sources.end(), operand->operands().begin(), operand->operands().end());
    }
    std::erase_if(sources, [](const Instruction* source) {
      return !source->shape().is_array() || source->shape().num_elements() <= 1;
    });
    std::ranges::sort(sources, std::less());
    const auto repeated = std::ranges::unique(sources);
    sources.erase(repeated.begin(), repeated.end());
    return sources;
  }

  // The cluster's rows are what p reduces.
  bool MayRowReduce(const Instruction* p, const Cluster& cluster) const {
    if (cluster.kind != Cluster::kLoop || cluster.reduces >= kMaxReduces) return false;
    const Dimensions& space = p->operand(0)->dimensions();
    const int64_t rows = p->shape().num_elements();
    const int64_t total = p->operand(0)->shape().num_elements();
    // Few long rows are better split: see SplitReductions.
    if (rows < 8 && total > 65536) return false;
    if (cluster.reduces == 0 && cluster.row_rank < 0 && cluster.space == p->dimensions()) {
      return MayBecomeRows(p, cluster);
    }
    if (cluster.space != space || (cluster.row_rank >= 0 && cluster.row_rank != KeptRank(p)))
      return false;
    return !AnyUserIn(cluster, p, [&](const Member& user) {
      if (!AtRowIdentity(cluster, user, p) || user.elsewhere) return true;
      return user.instruction->opcode() == Opcode::kBroadcastInDim &&
             Stripped(p->dimensions()).size() != p->dimensions().size() &&
             p->dimensions() != Dimensions(space.begin(), space.begin() + KeptRank(p));
    });
  }

  // The whole cluster becomes row values: everything in it must be at the row's index.
  static bool MayBecomeRows(const Instruction* p, const Cluster& cluster) {
    for (const Member& member : cluster.members) {
      const Instruction* instruction = member.instruction;
      if (instruction->shape().rank() == 0 || IsSplatConstant(instruction)) continue;
      if (!member.identity || member.elsewhere) return false;
    }
    bool used = false;
    const bool elsewhere = AnyUserIn(cluster, p, [&](const Member& user) {
      used = true;
      return !AtIdentity(cluster, user, p) || user.elsewhere;
    });
    return used && !elsewhere;
  }

  void BecomeRows(const Instruction* p, Cluster& cluster) {
    if (cluster.row_rank < 0 && cluster.space != p->operand(0)->dimensions()) {
      for (Member& member : cluster.members) {
        member.row_identity = std::exchange(member.identity, false);
      }
      cluster.space = p->operand(0)->dimensions();
    } else if (cluster.row_rank < 0 && cluster.reduces == 0 && p->dimensions() == cluster.space) {
      for (Member& member : cluster.members) member.row_identity = member.identity;
    }
    cluster.row_rank = KeptRank(p);
  }

  // The cluster reads what p reads.
  bool MayReduceTogether(const Instruction* p, const Cluster& cluster) {
    const Instruction* first = cluster.outputs[0];
    if (cluster.outputs.size() >= 4 || cluster.space != p->operand(0)->dimensions() ||
        first->attributes() != p->attributes() || !p->shape().is_array() ||
        !first->shape().is_array()) {
      return false;
    }
    // Neither may depend on the other: p precedes them, so only they on it.
    return cluster.wanted != p && !OthersReach(p, cluster);
  }

  // --- Rewriting.

  void Build() {
    std::reverse(clusters_.begin(), clusters_.end());
    for (const auto& cluster : clusters_) BuildComposite(*cluster);
    for (auto [value, replacement] : replacements_) value->ReplaceAllUsesWith(replacement);
    computation_.SortTopologically();
    computation_.RemoveDeadInstructions();
  }

  static const KernelKind& KernelOf(const Cluster& cluster) {
    switch (cluster.kind) {
      case Cluster::kReduce:
        return kReduceKernel;
      case Cluster::kScan:
        return kScanKernel;
      case Cluster::kLoop:
        break;
    }
    return kLoopKernel;
  }

  void BuildComposite(Cluster& cluster) {
    std::vector<Instruction*> members;
    members.reserve(cluster.members.size());
    for (const Member& member : cluster.members) members.push_back(member.instruction);
    std::ranges::sort(members, {}, [&](const Instruction* member) { return Of(member).place; });
    const std::vector<Replacement> replaced =
        AddComposite(members, cluster.outputs, KernelOf(cluster));
    replacements_.insert(replacements_.end(), replaced.begin(), replaced.end());
  }

  Computation& computation_;
  std::vector<Choice>& choices_;
  std::vector<Instruction*> order_;
  KernelSpans spans_;
  // By what they read; the latest ones.
  std::unordered_map<const Instruction*, std::vector<Cluster*>> reducers_of_;
  std::vector<std::unique_ptr<Cluster>> clusters_;  // by their numbers, until they are built
  uint32_t searches_ = 0;
  std::vector<const Instruction*> stack_;  // of the search under way
  std::vector<Replacement> replacements_;
};

}  // namespace

bool FuseLoops(hlo::Module& module) {
  std::vector<Choice> choices;
  return RewriteSteps(module,
                      [&](Computation& computation) { return Fuser(computation, choices).Run(); });
}

}  // namespace cpu
