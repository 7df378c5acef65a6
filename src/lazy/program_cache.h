// The compiled programs of this process, by the signature of their graphs. Programs of one
// signature are specializations of it. Everything under SyncMutex.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lazy/operation.h"
#include "lazy/specialization.h"
#include "lazy/value_check.h"
#include "pjrt/client/executable.h"

namespace lazy {

struct Padding;  // size_buckets.h

struct CachedProgram {
  std::vector<uint64_t> signature;
  Specialization specialization;
  std::shared_ptr<pjrt::LoadedExecutable> executable;
  // Where the graph's arguments and results lie in those of a program of padded sizes, which others
  // may share; null: they are the same.
  std::shared_ptr<const Padding> padding;
  // What it checks of its values, by the numbers that are its last result; null: nothing.
  std::shared_ptr<const ValueChecks> checks;
  // Kept, because the signature has their numbers, which they would not get again.
  std::vector<OperationReference> operations;
  int64_t bytes = 0;  // of the host's memory, as far as that is known
};

// Least recently used programs go first: those beyond XLA_COMPILATION_CACHE_SIZE in number or
// TORCH_XLA_COMPILATION_CACHE_BYTES in memory. The one used last stays.
class ProgramCache {
 public:
  static ProgramCache& Get();

  // The program with the fewest variables that serves the assignment. Shared: an observer of a
  // program's run may clear the cache. Null if there is none.
  std::shared_ptr<const CachedProgram> Find(uint64_t hash, const std::vector<uint64_t>& signature,
                                            const Assignment& assignment);
  // Whether there is a program for some assignment.
  bool HasSpecialization(uint64_t hash, const std::vector<uint64_t>& signature) const;
  // What to compile if there is none. It depends on the programs that are here, and so on the
  // assignments of this signature that came before.
  Specialization Missing(uint64_t hash, const std::vector<uint64_t>& signature,
                         Assignment assignment) const;
  void Insert(uint64_t hash, std::shared_ptr<const CachedProgram> program);
  void Clear();
  int64_t size() const { return static_cast<int64_t>(programs_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  using List = std::list<std::pair<uint64_t, std::shared_ptr<const CachedProgram>>>;
  ProgramCache();
  void Evict(List::iterator victim);

  const int64_t max_size_, max_bytes_;
  int64_t bytes_ = 0;
  List programs_;
  std::unordered_multimap<uint64_t, List::iterator> index_;
};

struct CacheStatistics {
  int64_t entries = 0;
  int64_t bytes = 0;  // of the host's memory, as far as that is known
};
// Both take the lock.
CacheStatistics ComputationCacheStatistics();
void ClearComputationCache();

}  // namespace lazy
