// The kernels that this process has compiled, for all of its programs: a program that repeats
// another's loops compiles nothing for them.
//
// A kernel is found in three ways: by its composite (KernelSignature), which is quick; by what
// chose the code of a composite of other sizes (KernelRecipe), which is quick, too; and by the code
// before LLVM optimizes it, which composites may share that differ. Nothing is ever found by a hash
// alone. A program holds its kernels itself; the cache forgets those that were not used for
// longest.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/emit/kernel_emitter.h"
#include "cpu/jit.h"
#include "cpu/kernel_recipe.h"
#include "cpu/kernel_signature.h"
#include "cpu/recently_used.h"
#include "cpu/step_sequence.h"
#include "cpu/varying_sizes.h"

namespace cpu {

// One kernel's machine code, in memory. Immutable.
class KernelCode {
 public:
  // The function's name in every object.
  static constexpr const char* kSymbol = "kernel";

  // Throws hlo::Error(kInvalidArgument) if the object is malformed or lacks the function.
  explicit KernelCode(std::string object);

  KernelFunction function() const { return function_; }
  // As an ELF file.
  const std::string& object() const { return object_; }
  int64_t bytes() const { return loaded_.bytes(); }

 private:
  const std::string object_;
  const LoadedCode loaded_;
  KernelFunction function_;
};

// What runs a composite.
struct CachedKernel {
  std::shared_ptr<const KernelCode> code;
  KernelInfo info;
};

// Thread-safe.
class KernelCache {
 public:
  // Whether what follows from recipes is emitted all the same, and compared.
  enum class Recipes { kTrusted, kChecked };

  // In bytes, roughly; 0 keeps nothing.
  explicit KernelCache(int64_t capacity, Recipes recipes = Recipes::kTrusted);

  // As large as TORCH_XLA_KERNEL_CACHE_BYTES says.
  static KernelCache& OfProcess();

  // By a signature's text. Nothing if it is not there.
  std::optional<CachedKernel> Find(std::string_view signature);
  void Add(const std::string& signature, const CachedKernel& kernel);

  // By a recipe. Nothing if none leads to its code.
  std::optional<CachedKernel> Find(const RecipeKey& key);
  void Add(const RecipeKey& key, std::shared_ptr<const KernelRecipe> recipe);
  bool checks_recipes() const { return recipes_are_ == Recipes::kChecked; }

  // What varies of each of a program's kernels (VaryingSizes::Observe).
  std::vector<VaryingNumbers> Varying(const std::vector<std::optional<KernelSignature>>& kernels,
                                      const std::set<int64_t>& known);

  // The code of `source`, which `compile` makes an object of if it is not there; one thread does
  // while others wait for it. Throws what `compile` throws.
  std::shared_ptr<const KernelCode> Code(const std::string& source,
                                         const std::function<std::string()>& compile);
  // The code of an object that was compiled elsewhere.
  std::shared_ptr<const KernelCode> Load(const std::string& object);

  struct Statistics {
    int64_t found = 0;     // by signature
    int64_t followed = 0;  // recipes
    int64_t compiled = 0;  // calls of `compile`
    int64_t bytes = 0;     // kept now
  };
  Statistics statistics() const;

 private:
  std::shared_ptr<const KernelCode> FindOrMake(const std::string& source,
                                               const std::function<std::string()>& make);

  const Recipes recipes_are_;
  // Taken only where no fork can happen.
  mutable std::mutex mutex_;
  std::condition_variable in_work_ended_;
  RecentlyUsed<CachedKernel> kernels_;
  RecentlyUsed<std::shared_ptr<const KernelCode>> codes_;
  using RecipeList = std::vector<std::shared_ptr<const KernelRecipe>>;  // the last one used first
  RecentlyUsed<RecipeList> recipes_;
  VaryingSizes varying_;
  std::set<std::string_view> in_work_;  // sources
  Statistics statistics_;
};

}  // namespace cpu
