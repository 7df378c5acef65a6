#include "cpu/foreign_handlers.h"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "hlo/error.h"

namespace cpu {
namespace {

template <typename Value>
class NameTable {
 public:
  // What stands under the name then.
  Value Add(std::string_view name, Value value) {
    std::lock_guard lock(mutex_);
    return values_.try_emplace(std::string(name), value).first->second;
  }
  Value Find(std::string_view name) const {
    std::lock_guard lock(mutex_);
    auto found = values_.find(name);
    return found == values_.end() ? Value{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Value, std::less<>> values_;
};

// Never destroyed: programs may run while the process ends.
NameTable<ffi::Handler*>& Handlers() {
  static auto* handlers = new NameTable<ffi::Handler*>;
  return *handlers;
}

int64_t NewTypeId() {
  // Far from the numbers that others give out, each in a registry of its own.
  constexpr int64_t kFirst = int64_t{1} << 40;
  static std::atomic<int64_t> next{kFirst};
  return next++;
}

}  // namespace

void RegisterForeignHandler(std::string_view target, ffi::Handler* handler) {
  if (handler == nullptr) throw hlo::Error("the handler is null");
  if (Handlers().Add(target, handler) != handler) {
    throw hlo::Error(hlo::ErrorCode::kAlreadyExists,
                     "the foreign function '" + std::string(target) + "' has another handler");
  }
}

ffi::Handler* FindForeignHandler(std::string_view target) { return Handlers().Find(target); }

int64_t RegisterForeignType(std::string_view name, int64_t given) {
  static auto* types = new NameTable<int64_t>;
  const int64_t id = types->Add(name, given == 0 ? NewTypeId() : given);
  if (given != 0 && id != given) {
    throw hlo::Error(hlo::ErrorCode::kAlreadyExists,
                     "the foreign type '" + std::string(name) + "' has another number");
  }
  return id;
}

}  // namespace cpu
