// Two threads that change one number without a lock: what ThreadSanitizer has to report
// (scripts/sanitize), whatever is passed over.
#include <thread>

namespace {

int number = 0;

void Count() {
  for (int i = 0; i < 100'000; ++i) ++number;
}

}  // namespace

extern "C" int Race() {
  std::thread other(Count);
  Count();
  other.join();
  return number;
}
