// A kernel in the making: what it evaluates, at which indices, and what may join it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hlo/instruction.h"
#include "hlo/short_list.h"

namespace cpu {

struct Cluster {
  // What a kernel knows of an instruction that it evaluates.
  struct Member {
    hlo::Instruction* instruction;
    int64_t copies = 0;         // at how many indices
    bool identity = false;      // at the loop's own index
    bool row_identity = false;  // at the row's
    bool elsewhere = false;     // at some other index (too)
    bool gathered = false;      // at places that an index names (too)
  };

  uint32_t number = 0;  // among all
  enum Kind { kLoop, kReduce, kScan, kScatter } kind = kLoop;
  hlo::Dimensions space;
  int64_t row_rank = -1;
  std::vector<Member> members;  // consumers first
  std::vector<hlo::Instruction*> outputs;
  size_t reduces = 0;
  size_t costs = 0;  // members that are not free
  // The last one that it was asked for, and which members use that.
  const hlo::Instruction* wanted = nullptr;
  hlo::ShortList<uint32_t> wanted_by;

  // Whether `meets` holds for one of the members that use p, which is being placed.
  template <typename Predicate>
  bool AnyUser(const hlo::Instruction* p, const Predicate& meets) const {
    return wanted == p &&
           std::ranges::any_of(wanted_by, [&](uint32_t member) { return meets(members[member]); });
  }

  template <typename Visitor>
  void ForUsers(const hlo::Instruction* p, const Visitor& visit) const {
    AnyUser(p, [&](const Member& user) {
      visit(user);
      return false;
    });
  }

  // Whether p may be evaluated where its users are.
  bool MayInline(const hlo::Instruction* p) const;
  // Whether p may, and be a further result of the loop, as far as the cluster alone tells.
  bool MayOutput(const hlo::Instruction* p) const;
  // Whether the rows are, or may become, what the trailing reduction p reduces.
  bool MayReduceRows(const hlo::Instruction* p) const;
  // Whether a kernel of reductions reads what p reduces, and may do it too, as far as the cluster
  // alone tells.
  bool MayReduceBeside(const hlo::Instruction* p) const;

  // Adds p: at which index it is evaluated follows from its users. What it gives is valid until the
  // next one is added.
  Member& Add(hlo::Instruction* p);
  // Whose rows the trailing reduction p reduces, for which MayReduceRows has held.
  void BecomeRowsOf(const hlo::Instruction* p);
};

bool IsSplatConstant(const hlo::Instruction* instruction);
// Costs (nearly) nothing to compute again.
bool IsFree(const hlo::Instruction* instruction);
// A reduction of the minor-most dimensions.
bool IsTrailing(const hlo::Instruction* reduce);

}  // namespace cpu
