#include "lazy/collective.h"

namespace lazy {
namespace {

thread_local const SourceLine* current_source = nullptr;

}  // namespace

SourceScope::SourceScope(SourceLine line) : line_(std::move(line)), before_(current_source) {
  current_source = &line_;
}

SourceScope::~SourceScope() { current_source = before_; }

SourceLine SourceScope::Current() {
  return current_source == nullptr ? SourceLine() : *current_source;
}

}  // namespace lazy
