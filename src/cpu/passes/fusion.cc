#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "cpu/control_flow.h"
#include "cpu/fusible.h"
#include "cpu/passes/composite.h"
#include "cpu/passes/fusion_cluster.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

// As many kernels of reductions are looked at to take another one that reads the same.
constexpr size_t kNearReduces = 8;

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
    if (ScattersRows(*p)) return PlaceScatter(p);
    const bool is_fusible = IsFusible(*p);
    if (is_fusible && p->shape().is_tuple()) return PlaceWindows(p);
    if (IsView(*p)) return PlaceView(p, demand);
    if (!IsComputed(*p) || (p->IsConstant() && !IsSplatConstant(p))) return KeepOutside(p);
    if (IsFree(p)) return PlaceFree(p, demand);
    if (demand.clusters.size() == 1 && !demand.in_memory && demand.clusters[0]->MayInline(p)) {
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
      if (cluster->MayInline(p)) {
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

  // So is a scatter of rows: none of them is in memory before it goes to its place.
  void PlaceScatter(Instruction* p) {
    Of(p).needed = true;
    Cluster& cluster = NewLoop(p);
    cluster.kind = Cluster::kScatter;
    cluster.space = p->operand(2)->dimensions();
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
      if (!cluster->MayOutput(p) || OthersReach(p, *cluster)) continue;
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

  // True if the cluster evaluates it.
  bool IsIn(const Instruction* instruction, const Cluster& cluster) const {
    return std::ranges::find(Of(instruction).homes, cluster.number, &Home::cluster) !=
           Of(instruction).homes.end();
  }

  // What it gives is valid until the next one joins.
  Cluster::Member& Join(Cluster& cluster, Instruction* p) {
    Of(p).homes.push_back({cluster.number, static_cast<uint32_t>(cluster.members.size())});
    return cluster.Add(p);
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

  void PlaceReduce(Instruction* p, const Demand& demand) {
    const bool trailing = IsTrailing(p) && p->shape().is_array();
    if (trailing) {
      for (Cluster* cluster : demand.clusters) {
        const bool output = demand.in_memory || demand.clusters.size() > 1;
        if (!cluster->MayReduceRows(p) || (output && OthersReach(p, *cluster))) continue;
        cluster->BecomeRowsOf(p);
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
    const auto first = std::ranges::find_if(found, [&](const Cluster* c) {
      // Neither may depend on the other: p precedes them, so only they on it.
      return c->MayReduceBeside(p) && !OthersReach(p, *c);
    });
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
      case Cluster::kScatter:
        return kScatterKernel;
      case Cluster::kLoop:
        break;
    }
    return kLoopKernel;
  }

  void BuildComposite(Cluster& cluster) {
    std::vector<Instruction*> members;
    members.reserve(cluster.members.size());
    for (const Cluster::Member& member : cluster.members) members.push_back(member.instruction);
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
