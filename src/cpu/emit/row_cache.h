// Expensive values that several passes over a row need stay in a buffer on the stack.
#pragma once

#include <map>
#include <set>

#include "cpu/emit/kernel.h"

namespace cpu {

class RowCache {
 public:
  RowCache(BodyEmitter& emitter, int lanes)
      : emitter_(emitter), b_(emitter.builder()), lanes_(lanes) {}

  // Decides what to keep of rows of `column_count` elements: what more than one pass (each of the
  // reduces, and the one that stores the results) evaluates.
  void Plan(const hlo::Computation& body, const std::vector<const hlo::Instruction*>& reduces,
            const Extent& column_count);
  bool empty() const { return cached_.empty(); }
  // Runs `body` for the lanes at `index`: values kept by earlier passes are loaded, those of this
  // pass are stored.
  Accumulators Through(const Index& index, const std::vector<Run>& columns,
                       const Accumulators& accumulators, const NestBody& body);
  // What was stored since the last call may be loaded from now on.
  void EndPass();

 private:
  static constexpr int64_t kMostColumns = 16384;

  struct Cached {
    llvm::Value* memory = nullptr;
    bool filled = false;
  };
  BodyEmitter& emitter_;
  llvm::IRBuilder<>& b_;
  int lanes_;
  std::map<const hlo::Instruction*, Cached> cached_;
  std::set<const hlo::Instruction*> stored_;
};

}  // namespace cpu
