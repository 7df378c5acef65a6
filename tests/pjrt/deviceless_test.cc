// Compiling for accelerators that are not here: with libtpu for a TPU v5e, with XLA's CUDA plugin
// for an H100. `scripts/install --test` puts both into .venv/plugins; TORCH_XLA_TEST_LIBTPU and
// TORCH_XLA_TEST_CUDA_PLUGIN name others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engines.h"

namespace pjrt {
namespace {

std::string H100() {
  std::ifstream file(SOURCE_DIRECTORY "/tests/pjrt/h100.textproto");
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Target {
  std::string name, environment, plugin, topology;
  NamedValues options;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

std::vector<Target> Targets() {
  return {{"tpu", "TORCH_XLA_TEST_LIBTPU", "libtpu/libtpu.so", "v5e:2x2", {}},
          {"cuda",
           "TORCH_XLA_TEST_CUDA_PLUGIN",
           "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
           "",
           {{"target_config", H100()}, {"topology", "1x1x1"}}}};
}

class Deviceless : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    setenv("TPU_SKIP_MDS_QUERY", "1", 1);  // do not look for TPU hosts on the network
    const std::string path = Find();
    if (path.empty()) GTEST_SKIP() << GetParam().plugin << " is not installed";
    topology_ = Topology::Create(Plugin::Load(path), GetParam().topology, GetParam().options);
  }
  static std::string Find() {
    if (const char* path = std::getenv(GetParam().environment.c_str())) return path;
    const std::filesystem::path file = SOURCE_DIRECTORY "/.venv/plugins/" + GetParam().plugin;
    return std::filesystem::exists(file) ? file.string() : "";
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
