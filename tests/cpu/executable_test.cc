// Executables: where their results lie, and as bytes, which may be anybody's.
#include "cpu/executable.h"

#include "cpu/sealed_parts.h"
#include "engine_testing.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"

namespace cpu {
namespace {

TEST(Engine, Donation) {
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%x: tensor<500xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<500xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<500xf32>, tensor<500xf32>, tensor<500xf32>) {
  %0 = stablehlo.add %x, %y : tensor<500xf32>
  %1 = stablehlo.reverse %x, dims = [0] : tensor<500xf32>
  %2 = stablehlo.subtract %y, %1 : tensor<500xf32>
  func.return %0, %2, %x : tensor<500xf32>, tensor<500xf32>, tensor<500xf32>
})");
  const std::vector<hlo::Literal> arguments = RandomArguments(*module);
  auto expected = hlo::Evaluate(*module, arguments);
  auto executable = Compile(*module);
  EXPECT_EQ(executable->aliased_parameters(), (std::vector<int64_t>{0, 1, -1}));
  std::vector<Block> blocks;
  for (const auto& argument : arguments) {
    blocks.emplace_back(argument.byte_size());
    std::memcpy(blocks.back().data(), argument.bytes(), argument.byte_size());
  }
  blocks.emplace_back(2000);
  const void* in[] = {blocks[0].data(), blocks[1].data()};
  void* out[] = {blocks[0].data(), blocks[1].data(), blocks[2].data()};
  executable->Run(in, out, {});
  for (int i = 0; i < 3; ++i) ExpectClose(expected[i], hlo::Literal(F32({500}), out[i]));
}

TEST(Engine, SerializedExecutableRuns) {
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%x: tensor<9x21xf32>) -> tensor<9x21xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<9x21xf32>, tensor<f32>) -> tensor<9xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<9xf32>) -> tensor<9x21xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<9x21xf32>
  %3 = stablehlo.exponential %2 : tensor<9x21xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<9x21xf32>, tensor<f32>) -> tensor<9xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<9xf32>) -> tensor<9x21xf32>
  %6 = stablehlo.divide %3, %5 : tensor<9x21xf32>
  func.return %6 : tensor<9x21xf32>
})");
  const auto arguments = RandomArguments(*module);
  auto executable = Compile(*module);
  auto loaded = LoadExecutable(executable->Serialize());
  ExpectClose(RunOnEngine(*executable, arguments)[0], RunOnEngine(*loaded, arguments)[0]);
}

// What they would write is not what the results have room for.
TEST(Engine, CollectivesForSeveralDevicesAreRefusedOnOne) {
  constexpr const char* kPrograms[] = {
      R"(
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
})",
      R"(
func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
})"};
  for (const char* program : kPrograms) {
    const auto module = hlo::ReadStablehloText(program);
    const auto executable = Compile(*module);
    try {
      RunOnEngine(*executable, RandomArguments(*module));
      ADD_FAILURE() << "no error for " << program;
    } catch (const hlo::Error& error) {
      EXPECT_NE(std::string(error.what()).find("needs other processes"), std::string::npos)
          << error.what();
    }
  }
}

hlo::ErrorCode CodeOfLoading(std::string_view bytes, const CompileOptions& options = {}) {
  try {
    LoadExecutable(bytes, options);
  } catch (const hlo::Error& error) {
    return error.code();
  }
  return hlo::ErrorCode{};
}

std::string SerializedSum() {
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.add %x, %x : tensor<100xf32>
  func.return %0 : tensor<100xf32>
})");
  return Compile(*module)->Serialize();
}

TEST(Engine, DamagedExecutablesAreRefused) {
  const std::string bytes = SerializedSum();
  EXPECT_EQ(CodeOfLoading(bytes), hlo::ErrorCode{});
  EXPECT_EQ(CodeOfLoading("nonsense"), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfLoading(""), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfLoading(bytes + "x"), hlo::ErrorCode::kInvalidArgument);
  for (size_t end = 0; end < bytes.size(); end += 1 + end / 50) {
    ASSERT_EQ(CodeOfLoading(bytes.substr(0, end)), hlo::ErrorCode::kInvalidArgument) << end;
  }
  for (size_t at = 0; at < bytes.size(); at += 1 + at / 50) {
    std::string flipped = bytes;
    flipped[at] ^= static_cast<char>(1 << at % 8);
    ASSERT_EQ(CodeOfLoading(flipped), hlo::ErrorCode::kInvalidArgument) << at;
  }
}

TEST(Engine, ExecutablesOfAnotherEngineAreRefused) {
  const std::string bytes = SerializedSum();
  const std::string kind = bytes.substr(0, bytes.find('\n'));
  const std::vector<std::string_view> parts = OpenSealed(kind, bytes, 4);
  EXPECT_EQ(parts[0], EngineFingerprint());
  const auto with = [&](size_t place, const std::string& text) {
    std::vector<std::string_view> changed = parts;
    changed[place] = text;
    return SealParts(kind, changed);
  };
  EXPECT_EQ(CodeOfLoading(with(0, EngineFingerprint())), hlo::ErrorCode{});
  // One digit of the build id, or of the CPU's features.
  for (const char* mark : {"build id ", "+sse2"}) {
    std::string other = EngineFingerprint();
    const size_t at = other.find(mark) + std::strlen(mark) - (*mark == '+' ? 5 : 0);
    ASSERT_LT(at, other.size()) << other;
    other[at] = other[at] == '0' ? '1' : '0';
    EXPECT_EQ(CodeOfLoading(with(0, other)), hlo::ErrorCode::kFailedPrecondition) << other;
  }
  CompileOptions options;
  options.num_replicas = 2;
  EXPECT_EQ(CodeOfLoading(bytes, options), hlo::ErrorCode::kFailedPrecondition);
  // What contradicts itself although nobody has damaged it.
  EXPECT_EQ(CodeOfLoading(with(2, "no program")), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfLoading(with(3, "1 1\nkernel_0 1 1\n7 ")), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfLoading(with(3, "0 0\n")), hlo::ErrorCode::kInvalidArgument);
}

// Two branches that do the same share a region, which the serialized program has twice.
TEST(Engine, SerializedSharedRegionsRun) {
  const auto module = hlo::ReadStablehloText(R"(
func.func @main(%which: tensor<i1>, %x: tensor<40xf32>) -> tensor<40xf32> {
  %once = "stablehlo.if"(%which) ({
    %0 = stablehlo.tanh %x : tensor<40xf32>
    %1 = stablehlo.exponential %0 : tensor<40xf32>
    stablehlo.return %1 : tensor<40xf32>
  }, {
    %0 = stablehlo.tanh %x : tensor<40xf32>
    %1 = stablehlo.exponential %0 : tensor<40xf32>
    stablehlo.return %1 : tensor<40xf32>
  }) : (tensor<i1>) -> tensor<40xf32>
  %twice = "stablehlo.if"(%which) ({
    %0 = stablehlo.tanh %once : tensor<40xf32>
    %1 = stablehlo.exponential %0 : tensor<40xf32>
    stablehlo.return %1 : tensor<40xf32>
  }, {
    %0 = stablehlo.tanh %once : tensor<40xf32>
    %1 = stablehlo.exponential %0 : tensor<40xf32>
    stablehlo.return %1 : tensor<40xf32>
  }) : (tensor<i1>) -> tensor<40xf32>
  func.return %twice : tensor<40xf32>
})");
  const std::vector<hlo::Literal> arguments = {hlo::Literal::Scalar(true),
                                               RandomLiteral(F32({40}), 1)};
  auto loaded = LoadExecutable(Compile(*module)->Serialize());
  ExpectClose(hlo::Evaluate(*module, arguments)[0], RunOnEngine(*loaded, arguments)[0], 4);
}

}  // namespace
}  // namespace cpu
