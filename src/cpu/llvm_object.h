// Objects of LLVM's. Its code is built without exceptions: one that passes through it, of memory
// that there is not, leaves what LLVM was changing half changed, and to destroy that may crash.
#pragma once

#include <exception>
#include <utility>

namespace cpu {

// Owns one. It is deleted at the end of the scope, and abandoned if an exception ends the scope.
template <typename T>
class LlvmObject {
 public:
  template <typename... Arguments>
  explicit LlvmObject(Arguments&&... arguments)
      : object_(new T(std::forward<Arguments>(arguments)...)) {}
  ~LlvmObject() {
    if (std::uncaught_exceptions() == exceptions_) delete object_;
  }
  LlvmObject(const LlvmObject&) = delete;

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  T* object_;
};

}  // namespace cpu
