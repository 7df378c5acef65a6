// Compiling for accelerators that are not here: with libtpu for a TPU v5e, with XLA's CUDA plugin
// for an H100. Runs where the packages libtpu and jax-cuda13-pjrt are installed in the virtual
// environment, or TORCH_XLA_TEST_LIBTPU and TORCH_XLA_TEST_CUDA_PLUGIN name their libraries.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engines.h"

namespace pjrt {
namespace {

// NVIDIA's data sheet of the H100 SXM, as far as compiling needs it.
constexpr char kH100[] = R"(
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  memory_bandwidth: 3352000000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84900000000
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "H100"
)";

struct Target {
  std::string name, environment, library, topology;
  NamedValues options;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

std::vector<Target> Targets() {
  return {{"tpu", "TORCH_XLA_TEST_LIBTPU", "libtpu/libtpu.so", "v5e:2x2", {}},
          {"cuda",
           "TORCH_XLA_TEST_CUDA_PLUGIN",
           "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
           "",
           {{"target_config", kH100}, {"topology", "1x1x1"}}}};
}

class Deviceless : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    setenv("TPU_SKIP_MDS_QUERY", "1", 1);  // do not look for TPU hosts on the network
    const std::string path = Find();
    if (path.empty()) GTEST_SKIP() << GetParam().library << " is not installed";
    topology_ = Topology::Create(Plugin::Load(path), GetParam().topology, GetParam().options);
  }
  static std::string Find() {
    if (const char* path = std::getenv(GetParam().environment.c_str())) return path;
    std::error_code error;
    namespace fs = std::filesystem;
    for (const auto& python : fs::directory_iterator(SOURCE_DIRECTORY "/.venv/lib", error)) {
      const fs::path file = python.path() / "site-packages" / GetParam().library;
      if (fs::exists(file)) return file;
    }
    return "";
  }
  std::unique_ptr<Topology> topology_;
};

INSTANTIATE_TEST_SUITE_P(Targets, Deviceless, testing::ValuesIn(Targets()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Deviceless, Describes) {
  EXPECT_EQ(topology_->platform_name(), GetParam().name);
  EXPECT_GE(topology_->device_kinds().size(), 1u);
}

TEST_P(Deviceless, CompilesElementwise) {
  auto program = topology_->Compile(*SumAndProduct(/*donate=*/true));
  EXPECT_EQ(program->output_shapes(), (std::vector<hlo::Shape>{kVector, kVector}));
  EXPECT_FALSE(program->Serialize().empty());
}

TEST_P(Deviceless, CompilesALayer) {
  auto module = MakeModule("layer", [](hlo::Builder& b) {
    const hlo::Shape data(hlo::ElementType::kBF16, {32, 64});
    hlo::Value x = b.Parameter(data);
    hlo::Value w = b.Parameter(hlo::Shape(hlo::ElementType::kBF16, {64, 128}));
    hlo::Value y = b.MatMul(x, w);
    hlo::Value z = b.Tanh(b.Maximum(y, b.Zeros(y->shape())));
    return std::vector<hlo::Value>{b.Convert(z, hlo::ElementType::kF32), b.Transpose(z, {1, 0})};
  });
  auto program = topology_->Compile(*module);
  EXPECT_EQ(program->output_shapes()[0], hlo::Shape(hlo::ElementType::kF32, {32, 128}));
  EXPECT_EQ(program->output_shapes()[1], hlo::Shape(hlo::ElementType::kBF16, {128, 32}));
}

}  // namespace
}  // namespace pjrt
