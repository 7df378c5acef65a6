#include "cpu/collective/rendezvous.h"

#include <algorithm>

#include "hlo/error.h"

namespace cpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string Key(const std::string& what, int64_t rank) {
  return "collectives/" + what + "/" + std::to_string(rank);
}

milliseconds Left(Clock::time_point deadline) {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
}

}  // namespace

Rendezvous::Rendezvous(const CommunicatorOptions& options, const KeyValueStore& store)
    : options_(options), store_(store), start_(Clock::now()), deadline_(start_ + options.timeout) {}

void Rendezvous::Put(const std::string& what, const std::string& value) const {
  store_.put(Key(what, options_.rank), value);
}

std::string Rendezvous::Get(const std::string& what, int64_t rank) const {
  auto value = store_.get(Key(what, rank), Left(deadline_));
  if (!value) ThrowMissing({rank});
  return *value;
}

std::vector<std::string> Rendezvous::GetFromAll(const std::string& what) const {
  std::vector<std::string> values;
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < options_.size; ++rank) {
    auto value = store_.get(Key(what, rank), missing.empty() ? Left(deadline_) : milliseconds(1));
    if (!value) missing.push_back(rank);
    values.push_back(value.value_or(""));
  }
  if (!missing.empty()) ThrowMissing(missing);
  return values;
}

void Rendezvous::ThrowMissing(const std::vector<int64_t>& ranks, const std::string& more) const {
  std::string names;
  for (int64_t rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  const std::chrono::duration<double> waited = Clock::now() - start_;
  throw hlo::Error(hlo::ErrorCode::kDeadlineExceeded,
                   "rank " + std::to_string(options_.rank) + " waited " +
                       std::to_string(waited.count()) + " s for the world of " +
                       std::to_string(options_.size) +
                       " processes; these ranks did not come: " + names + more +
                       " (TORCH_XLA_COLLECTIVE_TIMEOUT and TORCH_XLA_HEARTBEAT_TIMEOUT set how "
                       "long)");
}

}  // namespace cpu
