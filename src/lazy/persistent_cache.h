// Compiled programs kept in a folder from process to process.
#pragma once

#include <memory>
#include <string>

#include "hlo/module.h"
#include "lazy/cache_folder.h"
#include "pjrt/client/client.h"

namespace lazy {

// Keeps compiled programs in a folder, for later processes. Programs of another engine, or damaged
// files, are compiled anew.
void InitializePersistentCache(const std::string& path, bool readonly);
// Whether this process has compiled with such a folder, and it is too late for another.
bool HasPersistentCache();
// Whether what is compiled from here on is kept.
bool KeepsPrograms();

// Where a program may be kept. Partly of the environment, which the user's program may change while
// another thread reads it: so this is for the thread that asks for the program.
struct PlaceInCache {
  std::shared_ptr<CacheFolder> folder;  // null: it is not kept
  std::string key;                      // CacheKeyOf
};
PlaceInCache CurrentPlaceInCache(const pjrt::Client& client, const pjrt::CompileOptions& options);

// Compiles, or loads what an earlier process compiled under the same key; on any thread. Only what
// is really compiled counts in ProgramCompile and ProgramCompileTime, and the loops that our engine
// compiled for it in LoopCompile; PersistentCacheHit, -Miss and -DeserializeFailure, and the metric
// PersistentCacheLoad say what the folder did.
std::unique_ptr<pjrt::LoadedExecutable> CompileOrLoad(pjrt::Client& client,
                                                      std::unique_ptr<hlo::Module> module,
                                                      const pjrt::CompileOptions& options,
                                                      const PlaceInCache& place);

// All that decides about the code besides the program: the versions of this library, the plugin and
// its platform, the devices, the compile options, the options that the client was made with (but
// the process's rank), the variables that plugins take options from, and for CPU platforms what the
// processor can do.
std::string CacheKeyOf(const pjrt::Client& client, const pjrt::CompileOptions& options);

}  // namespace lazy
