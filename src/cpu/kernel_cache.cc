#include "cpu/kernel_cache.h"

#include <algorithm>
#include <cstdlib>

#include "hlo/error.h"
#include "process/fork.h"

namespace cpu {
namespace {

constexpr int64_t kCapacity = 128 << 20;
// What the loader remembers of an object.
constexpr int64_t kBytesOfLoading = 12 << 10;
// Of one key: sizes of one structure lead to a few codes, short rows to one and long ones to
// another.
constexpr size_t kMostRecipes = 8;

// A build for debugging is slow all the same.
#if defined(__OPTIMIZE__) && !defined(TORCH_XLA_CHECK_RECIPES)
constexpr auto kRecipes = KernelCache::Recipes::kTrusted;
#else
constexpr auto kRecipes = KernelCache::Recipes::kChecked;
#endif

int64_t CapacityOfEnvironment() {
  const char* text = std::getenv("TORCH_XLA_KERNEL_CACHE_BYTES");
  if (text == nullptr || *text == '\0') return kCapacity;
  char* end = nullptr;
  const int64_t bytes = std::strtoll(text, &end, 10);
  if (*end != '\0' || bytes < 0) {
    throw hlo::Error("TORCH_XLA_KERNEL_CACHE_BYTES is a number of bytes, not '" +
                     std::string(text) + "'");
  }
  return bytes;
}

// What a kernel takes while it is kept.
int64_t BytesOf(const KernelCode& code) {
  return code.bytes() + static_cast<int64_t>(code.object().size()) + kBytesOfLoading;
}

}  // namespace

KernelCode::KernelCode(std::string object)
    : object_(std::move(object)),
      loaded_({object_}),
      function_(reinterpret_cast<KernelFunction>(loaded_.Find(kSymbol))) {
  if (!function_) throw hlo::Error("the executable lacks the code of a kernel");
}

// Either table may hold code that the other has forgotten.
KernelCache::KernelCache(int64_t capacity, Recipes recipes)
    : recipes_are_(recipes),
      kernels_(capacity / 2),
      codes_(capacity / 2),
      recipes_(capacity / 16),
      varying_(capacity / 16) {}

KernelCache& KernelCache::OfProcess() {
  // For ever: programs may outlive what is destroyed at the end of the process.
  static auto* const cache = new KernelCache(CapacityOfEnvironment(), kRecipes);
  return *cache;
}

std::optional<CachedKernel> KernelCache::Find(std::string_view signature) {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  const CachedKernel* kernel = kernels_.Find(signature);
  if (kernel == nullptr) return std::nullopt;
  ++statistics_.found;
  return *kernel;
}

void KernelCache::Add(const std::string& signature, const CachedKernel& kernel) {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  kernels_.Insert(signature, kernel, BytesOf(*kernel.code));
}

std::optional<CachedKernel> KernelCache::Find(const RecipeKey& key) {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  RecipeList* recipes = recipes_.Find(key.text);
  if (recipes == nullptr) return std::nullopt;
  for (auto recipe = recipes->begin(); recipe != recipes->end(); ++recipe) {
    std::shared_ptr<const KernelCode> code = (*recipe)->code();
    std::optional<KernelInfo> info = code ? (*recipe)->For(key.sizes) : std::nullopt;
    if (!info) continue;
    std::rotate(recipes->begin(), recipe, recipe + 1);
    ++statistics_.followed;
    return CachedKernel{std::move(code), *std::move(info)};
  }
  return std::nullopt;
}

void KernelCache::Add(const RecipeKey& key, std::shared_ptr<const KernelRecipe> recipe) {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  const RecipeList* known = recipes_.Find(key.text);
  RecipeList recipes = {std::move(recipe)};
  if (known != nullptr) recipes.insert(recipes.end(), known->begin(), known->end());
  recipes.resize(std::min(recipes.size(), kMostRecipes));
  int64_t bytes = 0;
  for (const auto& kept : recipes) bytes += kept->bytes();
  recipes_.Insert(key.text, std::move(recipes), bytes);
}

std::shared_ptr<const KernelCode> KernelCache::Code(const std::string& source,
                                                    const std::function<std::string()>& compile) {
  return FindOrMake(source, [&] {
    std::string object = compile();
    std::lock_guard<std::mutex> lock(mutex_);
    ++statistics_.compiled;
    return object;
  });
}

std::shared_ptr<const KernelCode> KernelCache::Load(const std::string& object) {
  return FindOrMake(object, [&] { return object; });
}

std::shared_ptr<const KernelCode> KernelCache::FindOrMake(
    const std::string& source, const std::function<std::string()>& make) {
  const process::NoFork no_fork;  // nor in the thread that is waited for
  {
    std::unique_lock<std::mutex> lock(mutex_);
    in_work_ended_.wait(lock, [&] { return !in_work_.contains(source); });
    if (const auto* code = codes_.Find(source)) return *code;
    in_work_.insert(source);
  }
  const auto end_work = [&](void*) {
    std::lock_guard<std::mutex> lock(mutex_);
    in_work_.erase(source);
    in_work_ended_.notify_all();
  };
  const std::unique_ptr<void, decltype(end_work)> in_work(this, end_work);
  auto code = std::make_shared<const KernelCode>(make());
  std::lock_guard<std::mutex> lock(mutex_);
  codes_.Insert(source, code, BytesOf(*code));
  return code;
}

std::vector<VaryingNumbers> KernelCache::Varying(
    const std::vector<std::optional<KernelSignature>>& kernels, const std::set<int64_t>& known) {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  return varying_.Observe(kernels, known);
}

KernelCache::Statistics KernelCache::statistics() const {
  const process::NoFork no_fork;
  std::lock_guard<std::mutex> lock(mutex_);
  Statistics result = statistics_;
  result.bytes = kernels_.bytes() + codes_.bytes();
  return result;
}

}  // namespace cpu
