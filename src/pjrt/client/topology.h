// A description of hardware that programs can be compiled for without having it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "pjrt/client/compile_options.h"
#include "pjrt/client/executable.h"
#include "pjrt/client/named_value.h"
#include "pjrt/client/owned.h"
#include "pjrt/client/plugin.h"

namespace pjrt {

class Topology {
 public:
  // `name` and `options` are the plugin's: "v5e:2x2" for libtpu; for XLA's CUDA plugin the options
  // "target_config" (text of a GPU description) and "topology" ("1x1x1").
  static std::unique_ptr<Topology> Create(const Plugin& plugin, const std::string& name,
                                          const NamedValues& options = {});
  static std::unique_ptr<Topology> Deserialize(const Plugin& plugin, const std::string& bytes);
  explicit Topology(OwnedTopology topology);
  // The client's.
  Topology(const Plugin& plugin, const PJRT_TopologyDescription* topology);
  Topology(const Topology&) = delete;

  std::string platform_name() const;
  std::string platform_version() const;
  NamedValues attributes() const;
  std::vector<std::string> device_kinds() const;  // one per device
  std::string Serialize() const;

  std::unique_ptr<Executable> Compile(const hlo::Module& module,
                                      const CompileOptions& options = {}) const;
  std::unique_ptr<Executable> Compile(const std::string& code, const std::string& format,
                                      const CompileOptions& options = {}) const;

 private:
  const Plugin& plugin_;
  PJRT_TopologyDescription* topology_;
  OwnedTopology owned_;  // null: the client's
};

}  // namespace pjrt
