// Where gRPC is inside libpjrt_remote.so, its support of service meshes (xDS), which nobody uses
// there, stays out: a third of gRPC. This takes the place of the function by which gRPC registers
// it (grpc_plugin_registry_extra.cc), as grpc_plugin_registry_noextra.cc does in gRPC's own build
// without TLS.
namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder*) {}

}  // namespace grpc_core
