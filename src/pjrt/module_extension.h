// Module extension, this project's: a program that is handed over as it lies in the caller's
// memory, an hlo::Module, instead of being written by one and read by the other.
//
// It is for a caller and a plugin of one build in one process: others have another idea of what a
// module looks like, and send bytes as everybody does. It is apart from c_api.h because what
// crosses here is C++.
#pragma once

#include "pjrt/c_api.h"

constexpr auto PJRT_Extension_Type_Module = static_cast<PJRT_Extension_Type>(0x746f7266);

struct PJRT_Module_Compile_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const char* identity;  // the caller's hlo::ModuleIdentity()
  size_t identity_size;
  // An hlo::Module of the heap, well formed. It becomes the plugin's, also where the call fails,
  // but for another identity.
  void* module;
  const char* compile_options;
  size_t compile_options_size;
  // out; there is no text of it: it can neither be serialized nor tell its program
  PJRT_LoadedExecutable* executable;
};

struct PJRT_Module_Extension {
  PJRT_Extension_Base base;
  // The plugin's hlo::ModuleIdentity(): it refuses modules of whoever has another.
  const char* identity;
  PJRT_Error* (*compile)(PJRT_Module_Compile_Args* args);
  // The loops that LLVM has compiled in this process, for all clients: programs that are prepared
  // from loops that are there add none.
  int64_t (*compiled_loops)();
};
