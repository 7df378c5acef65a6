// Executables: where their results lie, and as bytes, which may be anybody's.
#include "cpu/executable.h"

#include "cpu/sealed_parts.h"
#include "engine_testing.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

TEST(Engine, Donation) {
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Value p = b.Parameter(F32({500}));
  Value q = b.Parameter(F32({500}));
  entry->set_results({b.Add(p, q), b.Subtract(q, b.Reverse(p, {0})), p});
  module.input_output_aliases = {{0, 0, false}, {1, 1, false}};
  std::vector<hlo::Literal> arguments = {RandomLiteral(F32({500}), 1),
                                         RandomLiteral(F32({500}), 2)};
  auto expected = hlo::Evaluate(module, arguments);
  auto executable = Compile(module);
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
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Value x = b.Parameter(F32({9, 21}));
  entry->set_results({Softmax(b, x)});
  auto executable = Compile(module);
  auto loaded = LoadExecutable(executable->Serialize());
  auto argument = RandomLiteral(F32({9, 21}), 1);
  ExpectClose(RunOnEngine(*executable, {argument})[0], RunOnEngine(*loaded, {argument})[0]);
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
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  Value x = b.Parameter(F32({100}));
  entry->set_results({b.Add(x, x)});
  return Compile(module)->Serialize();
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
  hlo::Module module;
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder b(entry);
  const Shape shape = F32({40});
  Value predicate = b.Parameter(Shape::Scalar(ElementType::kPred));
  Value x = b.Parameter(shape);
  auto branch = [&](const char* name) {
    return b.Region(name, {shape},
                    [](Builder& r, const Values& p) { return Values{r.Exp(r.Tanh(p[0]))}; });
  };
  Value y = b.If(predicate, {x}, branch("yes"), branch("no"));
  entry->set_results({b.If(predicate, {y}, branch("again"), branch("other"))});
  const std::vector<hlo::Literal> arguments = {hlo::Literal::Scalar(true), RandomLiteral(shape, 1)};
  auto loaded = LoadExecutable(Compile(module)->Serialize());
  ExpectClose(hlo::Evaluate(module, arguments)[0], RunOnEngine(*loaded, arguments)[0], 4);
}

}  // namespace
}  // namespace cpu
