#include "lazy/program_cache.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "lazy/background_compile.h"
#include "lazy/size_buckets.h"
#include "lazy/sync_mutex.h"

namespace lazy {
namespace {

// A positive number from the environment.
int64_t Limit(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  const int64_t value = text != nullptr ? std::atoll(text) : 0;
  return value > 0 ? value : otherwise;
}

}  // namespace

ProgramCache& ProgramCache::Get() {
  static auto* cache = new ProgramCache;
  return *cache;
}

ProgramCache::ProgramCache()
    : max_size_(Limit("XLA_COMPILATION_CACHE_SIZE", 2048)),
      max_bytes_(Limit("TORCH_XLA_COMPILATION_CACHE_BYTES", int64_t{1} << 30)) {}

std::shared_ptr<const CachedProgram> ProgramCache::Find(uint64_t hash,
                                                        const std::vector<uint64_t>& signature,
                                                        const Assignment& assignment) {
  auto [begin, end] = index_.equal_range(hash);
  auto best = end;
  int64_t fewest = 0;
  for (auto it = begin; it != end; ++it) {
    const CachedProgram& program = *it->second->second;
    if (program.signature != signature || !program.specialization.Serves(assignment)) continue;
    const int64_t count = program.specialization.varying_count();
    if (best != end && count >= fewest) continue;
    best = it;
    fewest = count;
  }
  if (best == end) return nullptr;
  programs_.splice(programs_.begin(), programs_, best->second);
  return best->second->second;
}

bool ProgramCache::HasSpecialization(uint64_t hash, const std::vector<uint64_t>& signature) const {
  auto [begin, end] = index_.equal_range(hash);
  return std::any_of(
      begin, end, [&](const auto& entry) { return entry.second->second->signature == signature; });
}

Specialization ProgramCache::Missing(uint64_t hash, const std::vector<uint64_t>& signature,
                                     Assignment assignment) const {
  std::vector<const Specialization*> known;
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const CachedProgram& program = *it->second->second;
    if (program.signature == signature) known.push_back(&program.specialization);
  }
  return Specialize(known, std::move(assignment));
}

void ProgramCache::Insert(uint64_t hash, std::shared_ptr<const CachedProgram> program) {
  bytes_ += program->bytes;
  programs_.emplace_front(hash, std::move(program));
  index_.emplace(hash, programs_.begin());
  while (programs_.size() > 1 && (size() > max_size_ || bytes_ > max_bytes_)) {
    Evict(std::prev(programs_.end()));
  }
}

void ProgramCache::Clear() {
  index_.clear();
  programs_.clear();
  bytes_ = 0;
}

void ProgramCache::Evict(List::iterator victim) {
  bytes_ -= victim->second->bytes;
  auto [begin, end] = index_.equal_range(victim->first);
  for (auto it = begin; it != end; ++it) {
    if (it->second != victim) continue;
    index_.erase(it);
    break;
  }
  programs_.erase(victim);
}

CacheStatistics ComputationCacheStatistics() {
  std::lock_guard lock(SyncMutex());
  return {ProgramCache::Get().size(), ProgramCache::Get().bytes()};
}

void ClearComputationCache() {
  std::lock_guard lock(SyncMutex());
  BackgroundCompiler::Get().Stop();
  ProgramCache::Get().Clear();
  ForgetSizeBuckets();
}

}  // namespace lazy
