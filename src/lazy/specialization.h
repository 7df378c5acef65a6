// Specializations: a graph is a structure and an assignment of its variables, which are integers of
// the user's program: today indices (Node::MakeIndex). A program computes the graphs of one
// structure, and has some of the variables as constants. The first program of a structure has all;
// each that follows takes those at run time that have been seen to vary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lazy {

// The values of a graph's variables, in the order of its nodes.
using Assignment = std::vector<int64_t>;

struct Specialization {
  Assignment assignment;     // that the program was compiled for
  std::vector<bool> varies;  // the variables that it takes at run time; empty: none

  bool Varies(size_t variable) const { return !varies.empty() && varies[variable]; }
  // How many it takes at run time.
  int64_t varying_count() const;
  // Whether the program computes graphs of this assignment: its constants are the right ones. Both
  // are of one structure.
  bool Serves(const Assignment& other) const;
};

// What to compile for an assignment that none of a structure's programs serves. The variables in
// which it differs from them vary, besides those that do already; when kMostPartial programs were
// not enough, all of them do, so that a structure has at most one program more than that.
inline constexpr size_t kMostPartial = 3;
Specialization Specialize(std::span<const Specialization* const> known, Assignment assignment);

}  // namespace lazy
