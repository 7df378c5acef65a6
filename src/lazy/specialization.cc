#include "lazy/specialization.h"

#include <algorithm>
#include <utility>

namespace lazy {

int64_t Specialization::varying_count() const {
  return std::count(varies.begin(), varies.end(), true);
}

bool Specialization::Serves(const Assignment& other) const {
  if (varies.empty()) return assignment == other;
  for (size_t i = 0; i < other.size(); ++i) {
    if (!varies[i] && assignment[i] != other[i]) return false;
  }
  return true;
}

Specialization Specialize(std::span<const Specialization* const> known, Assignment assignment) {
  Specialization result{std::move(assignment), {}};
  if (known.empty()) return result;
  result.varies.assign(result.assignment.size(), known.size() >= kMostPartial);
  for (const Specialization* other : known) {
    for (size_t i = 0; i < result.assignment.size(); ++i) {
      if (other->Varies(i) || other->assignment[i] != result.assignment[i]) {
        result.varies[i] = true;
      }
    }
  }
  return result;
}

}  // namespace lazy
