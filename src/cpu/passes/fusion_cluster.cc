#include "cpu/passes/fusion_cluster.h"

#include <algorithm>
#include <span>
#include <utility>

#include "cpu/element_cost.h"
#include "cpu/fusible.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;
using Member = Cluster::Member;

// What a cluster may hold: as many members that cost something, and as many in all.
constexpr size_t kMaxCosts = 240;
constexpr size_t kMaxMembers = 640;
constexpr size_t kMaxReduces = 6;
constexpr size_t kMaxOutputs = 12;
constexpr size_t kMaxReduceOutputs = 4;
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

// --- At which index a member is evaluated.

// An identity broadcast along the trailing dimensions.
bool IsRowBroadcast(const Cluster& cluster, const Member& member) {
  if (!member.identity) return false;
  const Instruction* broadcast = member.instruction;
  const auto& map = broadcast->as<hlo::DimensionsAttributes>().dimensions;
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i] != static_cast<int64_t>(i)) return false;
  }
  const std::span<const int64_t> operand = Stripped(broadcast->operand(0)->dimensions());
  return std::equal(operand.begin(), operand.end(), cluster.space.begin());
}

bool AtIdentity(const Cluster& cluster, const Member& user, const Instruction* p) {
  if (p->dimensions() != cluster.space) return false;
  const Opcode opcode = user.instruction->opcode();
  if (opcode == Opcode::kReduce || opcode == Opcode::kScatter || IsScan(*user.instruction)) {
    return true;
  }
  return user.identity &&
         (hlo::IsElementwise(opcode) || opcode == Opcode::kMap || opcode == Opcode::kComposite);
}

bool AtRowIdentity(const Cluster& cluster, const Member& user, const Instruction* p) {
  const Opcode opcode = user.instruction->opcode();
  if (opcode == Opcode::kBroadcastInDim) return IsRowBroadcast(cluster, user);
  if (!user.row_identity) return false;
  if (opcode == Opcode::kReshape) {
    return std::ranges::equal(Stripped(user.instruction->dimensions()), Stripped(p->dimensions()));
  }
  return hlo::IsElementwise(opcode);
}

// Users that only change the index each ask for another element.
int64_t CopiesOf(const Instruction* p, const Cluster& cluster) {
  int64_t same = 0, sum = 0;
  cluster.ForUsers(p, [&](const Member& user) {
    const Opcode opcode = user.instruction->opcode();
    if (hlo::IsElementwise(opcode) || opcode == Opcode::kReduce) {
      same = std::max(same, user.copies);
    } else {
      sum += user.copies;
    }
  });
  return std::max<int64_t>(same + sum, 1);
}

// --- What is evaluated within a kernel.

// What is free is taken still: in memory, the constants of a long polynomial would be an array
// each.
bool IsFull(const Cluster& cluster, const Instruction& p) {
  return cluster.members.size() >= kMaxMembers || (cluster.costs >= kMaxCosts && !IsFree(&p));
}

// A loop is emitted where its lanes are used, not once a row: what has more elements would take
// its turns again for each vector.
bool IsALoopOfFewer(const Instruction& p, const Cluster& cluster) {
  if (!HasLoop(p)) return false;
  return p.shape().num_elements() < hlo::Shape(p.element_type(), cluster.space).num_elements();
}

// A scan takes one number at a time along rows, and a scatter of narrow rows has few parts for
// threads, where a loop of vectors is quicker for what is more than a few instructions.
bool IsQuickToFeed(const Instruction& p) {
  return !IsExpensive(p) && p.opcode() != Opcode::kReduceWindow;
}

// What a scatter updates is in memory, and its places are read one by one.
bool IsUpdatedOrPlace(const Instruction& user, const Instruction* p) {
  return user.opcode() == Opcode::kScatter && (user.operand(0) == p || user.operand(1) == p);
}

// Whether an expensive operation is among those that give it, element by element.
bool IsMadeExpensively(const Instruction& p) {
  constexpr size_t kMostSteps = 32;
  std::vector<const Instruction*> made = {&p};
  for (size_t i = 0; i < made.size() && i < kMostSteps; ++i) {
    if (IsExpensive(*made[i])) return true;
    if (!hlo::IsElementwise(made[i]->opcode())) continue;
    made.insert(made.end(), made[i]->operands().begin(), made[i]->operands().end());
  }
  return false;
}

// A row of a few elements leaves most lanes of its vector empty: what costs something is better
// computed before, if there is so much of it that one more kernel costs less.
bool IsReducedInShortRows(const Instruction& user, const Instruction& p) {
  constexpr int64_t kShort = 16, kLeastElements = 8192;
  if (user.opcode() != Opcode::kReduce || !IsTrailing(&user)) return false;
  const int64_t rows = user.shape().is_array() ? user.shape().num_elements()
                                               : user.shape().tuple_shapes()[0].num_elements();
  const int64_t elements = p.shape().num_elements();
  return elements >= kLeastElements && elements < kShort * rows && IsMadeExpensively(p);
}

// Row values are computed once a row; anything else would be computed for every element.
bool IsRepeatedByBroadcast(const Instruction* broadcast, const Instruction* p) {
  const int64_t from = p->shape().num_elements(), to = broadcast->shape().num_elements();
  if (from == 1 || from * 2 > to) return false;
  const auto& map = broadcast->as<hlo::DimensionsAttributes>().dimensions;
  bool leading = true;
  for (size_t i = 0; i < map.size(); ++i) leading &= map[i] == static_cast<int64_t>(i);
  const std::span<const int64_t> operand = Stripped(p->dimensions());
  leading &= std::equal(operand.begin(), operand.end(), broadcast->dimensions().begin());
  return !leading || to / from < kLeastRow;
}

bool IsGatherOf(const Instruction* user, const Instruction* p) {
  return user->opcode() == Opcode::kGather && user->operand(0) == p;
}

// What a gather reads where it lies would have been computed by itself else.
bool IsGathered(const Instruction* p) {
  return std::ranges::any_of(p->users(), [&](const Instruction* u) { return IsGatherOf(u, p); });
}

// A slice of what lies in memory, or of most of what is computed, is but another place. Of little
// of it, it is a loop of its own, which computes no more than that.
bool IsAnotherPlace(const Instruction* p) {
  if (p->opcode() != Opcode::kSlice) return false;
  const Instruction* from = p->operand(0);
  return from->opcode() == Opcode::kParameter ||
         2 * p->shape().num_elements() >= from->shape().num_elements();
}

// True if the user would have elements of p computed several times that cost something.
bool IsRepeatedBy(const Member& user, const Instruction* p) {
  if (IsFree(p)) return false;
  const bool is_quick = p->opcode() == Opcode::kConvert || IsAnotherPlace(p);
  switch (user.instruction->opcode()) {
    case Opcode::kBroadcastInDim:
      return IsRepeatedByBroadcast(user.instruction, p);
    case Opcode::kGather:
      return IsGatherOf(user.instruction, p) && !is_quick;
    case Opcode::kSlice:
      return !is_quick && user.gathered && IsGathered(user.instruction);
    case Opcode::kReduceWindow:  // windows overlap
      return !IsScan(*user.instruction) && p->opcode() != Opcode::kConvert;
    default:
      return false;
  }
}

// --- Reductions.

int64_t KeptRank(const Instruction* reduce) {
  return reduce->operand(0)->shape().rank() -
         static_cast<int64_t>(reduce->as<hlo::DimensionsAttributes>().dimensions.size());
}

// The whole cluster becomes row values: everything in it must be at the row's index.
bool MayBecomeRows(const Instruction* p, const Cluster& cluster) {
  for (const Member& member : cluster.members) {
    const Instruction* instruction = member.instruction;
    if (instruction->shape().rank() == 0 || IsSplatConstant(instruction)) continue;
    if (!member.identity || member.elsewhere) return false;
  }
  bool used = false;
  const bool elsewhere = cluster.AnyUser(p, [&](const Member& user) {
    used = true;
    return !AtIdentity(cluster, user, p) || user.elsewhere;
  });
  return used && !elsewhere;
}

}  // namespace

bool IsSplatConstant(const Instruction* instruction) {
  return instruction->IsConstant() && instruction->literal().IsSplat();
}

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

bool IsTrailing(const Instruction* reduce) {
  const Dimensions& from = reduce->operand(0)->dimensions();
  Dimensions reduced = reduce->as<hlo::DimensionsAttributes>().dimensions;
  std::sort(reduced.begin(), reduced.end());
  const int64_t rank = static_cast<int64_t>(from.size());
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i] != rank - static_cast<int64_t>(reduced.size() - i)) return false;
  }
  return !reduced.empty();
}

bool Cluster::MayInline(const Instruction* p) const {
  if (IsFull(*this, *p)) return false;
  if ((kind == kScan || kind == kScatter) && !IsQuickToFeed(*p)) return false;
  if (IsALoopOfFewer(*p, *this)) return false;
  const int64_t copies = CopiesOf(p, *this);
  const bool is_cheap = IsFree(p) || p->opcode() == Opcode::kSlice || p->opcode() == Opcode::kPad;
  if (copies > kMaxCopies && !is_cheap) return false;
  if (copies > kMaxCheapCopies && !p->IsConstant()) return false;
  return !AnyUser(p, [&](const Member& user) {
    if (IsReducedInShortRows(*user.instruction, *p)) return true;
    if (IsUpdatedOrPlace(*user.instruction, p)) return true;
    // Which part of a concatenation a place lies in would be found for each element.
    const bool has_parts = p->opcode() == Opcode::kConcatenate;
    return IsRepeatedBy(user, p) || (has_parts && user.gathered);
  });
}

bool Cluster::MayOutput(const Instruction* p) const {
  if (kind != kLoop || IsFull(*this, *p) || outputs.size() >= kMaxOutputs ||
      outputs[0]->shape().is_tuple()) {
    return false;
  }
  const bool is_identity =
      AnyUser(p, [&](const Member& user) { return AtIdentity(*this, user, p); });
  return is_identity && p->dimensions() == space && MayInline(p);
}

bool Cluster::MayReduceRows(const Instruction* p) const {
  if (kind != kLoop || reduces >= kMaxReduces) return false;
  const Dimensions& reduced = p->operand(0)->dimensions();
  const int64_t rows = p->shape().num_elements();
  const int64_t total = p->operand(0)->shape().num_elements();
  // Few long rows are better split: see SplitReductions.
  if (rows < 8 && total > 65536) return false;
  if (reduces == 0 && row_rank < 0 && space == p->dimensions()) return MayBecomeRows(p, *this);
  if (space != reduced || (row_rank >= 0 && row_rank != KeptRank(p))) return false;
  return !AnyUser(p, [&](const Member& user) {
    if (!AtRowIdentity(*this, user, p) || user.elsewhere) return true;
    return user.instruction->opcode() == Opcode::kBroadcastInDim &&
           Stripped(p->dimensions()).size() != p->dimensions().size() &&
           p->dimensions() != Dimensions(reduced.begin(), reduced.begin() + KeptRank(p));
  });
}

bool Cluster::MayReduceBeside(const Instruction* p) const {
  const Instruction* first = outputs[0];
  return outputs.size() < kMaxReduceOutputs && space == p->operand(0)->dimensions() &&
         first->attributes() == p->attributes() && p->shape().is_array() &&
         first->shape().is_array() && wanted != p;
}

Member& Cluster::Add(Instruction* p) {
  Member added{p, CopiesOf(p, *this)};
  ForUsers(p, [&](const Member& user) {
    const bool identity = AtIdentity(*this, user, p);
    const bool row_identity = AtRowIdentity(*this, user, p);
    added.identity |= identity;
    added.row_identity |= row_identity;
    added.elsewhere |= user.elsewhere || (!identity && !row_identity);
    added.gathered |= user.gathered || IsGatherOf(user.instruction, p);
  });
  if (p->opcode() == Opcode::kReduce) ++reduces;
  if (!IsFree(p)) ++costs;
  return members.emplace_back(added);
}

void Cluster::BecomeRowsOf(const Instruction* p) {
  if (row_rank < 0 && space != p->operand(0)->dimensions()) {
    for (Member& member : members) member.row_identity = std::exchange(member.identity, false);
    space = p->operand(0)->dimensions();
  } else if (row_rank < 0 && reduces == 0 && p->dimensions() == space) {
    for (Member& member : members) member.row_identity = member.identity;
  }
  row_rank = KeptRank(p);
}

}  // namespace cpu
