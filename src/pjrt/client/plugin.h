// A PJRT plugin: a shared library that exports GetPjrtApi.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/error.h"
#include "pjrt/c_api.h"
#include "pjrt/client/named_value.h"

namespace pjrt {

// Lives until the process ends, since plugins cannot be unloaded safely. Thread-safe.
class Plugin {
 public:
  // Loads and initializes the library (once per file and process). Throws hlo::Error: kNotFound if
  // the file is missing, kInvalidArgument if it is no library, no plugin or of another major
  // version, kUnimplemented if it is older than minor 29, and what its own initialization answers.
  static Plugin& Load(const std::string& path);
  Plugin(const Plugin&) = delete;

  const std::string& path() const { return path_; }
  const PJRT_Api& api() const { return *api_; }
  int minor_version() const { return api_->pjrt_api_version.minor_version; }
  const NamedValues& attributes() const { return attributes_; }
  // [major, minor, patch] of the newest StableHLO that it reads; empty if it does not say.
  const std::vector<int64_t>& stablehlo_version() const { return stablehlo_version_; }
  // Only plugins built from XLA say this.
  std::optional<int64_t> xla_version() const;
  // Types of the extensions that it offers, and one of them (null if absent).
  std::vector<PJRT_Extension_Type> extensions() const;
  template <typename Extension>
  const Extension* extension(PJRT_Extension_Type type) const {
    const PJRT_Extension_Base* found = FindExtension(type, sizeof(Extension));
    return reinterpret_cast<const Extension*>(found);
  }

  // True if the plugin has the function, as in has(&PJRT_Api::PJRT_Event_Create).
  template <typename Function>
  bool has(Function PJRT_Api::* slot) const {
    const auto offset =
        reinterpret_cast<const char*>(&(api_->*slot)) - reinterpret_cast<const char*>(api_);
    return offset + sizeof(Function) <= api_->struct_size && api_->*slot != nullptr;
  }

  // Calls a function of the table; its error becomes an hlo::Error with the plugin's code and
  // message, a function that the plugin lacks becomes kUnimplemented. Use through PJRT_INVOKE.
  template <typename Args>
  void Invoke(PJRT_Error* (*PJRT_Api::*slot)(Args*), const char* name, Args* args) const {
    if (!has(slot)) ThrowMissing(name);
    if (PJRT_Error* error = (api_->*slot)(args)) Throw(error);
  }

  // Consumes the error. ToError(nullptr) is nothing.
  std::optional<hlo::Error> ToError(PJRT_Error* error) const;
  [[noreturn]] void Throw(PJRT_Error* error) const;

 private:
  Plugin(std::string path, const PJRT_Api* api) : path_(std::move(path)), api_(api) {}
  void Initialize();
  const PJRT_Extension_Base* FindExtension(PJRT_Extension_Type type, size_t least_size) const;
  [[noreturn]] void ThrowMissing(const char* name) const;

  std::string path_;
  const PJRT_Api* api_;
  NamedValues attributes_;
  std::vector<int64_t> stablehlo_version_;
};

}  // namespace pjrt
