#include "lazy/job_secret.h"

#include <mutex>
#include <utility>

#include "process/fork.h"

namespace lazy {
namespace {

// Never destroyed: the runtime may start late.
struct Kept {
  process::Mutex mutex;
  std::string secret;
  static Kept& Get() {
    static auto* kept = new Kept;
    return *kept;
  }
};

}  // namespace

void SetJobSecret(std::string secret) {
  Kept& kept = Kept::Get();
  std::lock_guard lock(kept.mutex);
  kept.secret = std::move(secret);
}

std::string JobSecret() {
  Kept& kept = Kept::Get();
  std::lock_guard lock(kept.mutex);
  return kept.secret;
}

}  // namespace lazy
