#include "lazy/warning.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include "process/fork.h"

namespace lazy {
namespace {

struct Handler {
  process::Mutex mutex;
  std::function<void(const std::string&)> function = [](const std::string& text) {
    std::fprintf(stderr, "torch_xla: warning: %s\n", text.c_str());
  };
  static Handler& Get() {
    static Handler* handler = new Handler;
    return *handler;
  }
};

thread_local std::vector<std::string>* kept = nullptr;

}  // namespace

KeptWarnings::KeptWarnings(std::vector<std::string>& texts) { kept = &texts; }
KeptWarnings::~KeptWarnings() { kept = nullptr; }

void Warn(const std::string& text) {
  if (kept != nullptr) return kept->push_back(text);
  std::function<void(const std::string&)> function;
  {
    Handler& handler = Handler::Get();
    std::lock_guard lock(handler.mutex);
    function = handler.function;
  }
  function(text);
}

void SetWarningHandler(std::function<void(const std::string&)> handler) {
  Handler& current = Handler::Get();
  std::lock_guard lock(current.mutex);
  std::swap(current.function, handler);  // the old one is destroyed after unlocking
}

}  // namespace lazy
