#include "lazy/collective.h"

namespace lazy {
namespace {

thread_local const SourceLine* current = nullptr;

}  // namespace

SourceScope::SourceScope(SourceLine line) : line_(std::move(line)), before_(current) {
  current = &line_;
}

SourceScope::~SourceScope() { current = before_; }

SourceLine SourceScope::Current() { return current == nullptr ? SourceLine() : *current; }

}  // namespace lazy
