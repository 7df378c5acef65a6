#include "hlo/bytecode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <limits>

#include "hlo/builder.h"
#include "hlo/bytecode_container.h"
#include "hlo/bytecode_operations.h"
#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "hlo/verifier.h"

namespace hlo {
namespace {

using Values = std::vector<Value>;

std::unique_ptr<Module> Read(const std::string& bytes) {
  return ReadBytecode(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

Shape F32(Dimensions dimensions) { return Shape(ElementType::kF32, std::move(dimensions)); }

std::unique_ptr<Module> MakeModule(const std::vector<Shape>& parameters,
                                   const std::function<Values(Builder&, const Values&)>& body) {
  auto module = std::make_unique<Module>("test");
  Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder builder(entry);
  Values values;
  for (const Shape& shape : parameters) values.push_back(builder.Parameter(shape));
  entry->set_results(body(builder, values));
  module->SortComputations();
  VerifyModule(*module);
  return module;
}

void ExpectRoundTrip(const Module& module) {
  auto again = Read(WriteBytecode(module));
  EXPECT_EQ(module.Hash(), again->Hash()) << module.ToString() << "\nbecame\n" << again->ToString();
}

TEST(BytecodeTest, RoundTripsAnIf) {
  ExpectRoundTrip(*ReadStablehloText(R"(
func.func @main(%which: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %both:2 = "stablehlo.if"(%which) ({
    %0 = stablehlo.add %x, %y : tensor<2xf32>
    stablehlo.return %0, %x : tensor<2xf32>, tensor<2xf32>
  }, {
    %0 = stablehlo.multiply %x, %y : tensor<2xf32>
    stablehlo.return %0, %x : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return %both#1, %both#0 : tensor<2xf32>, tensor<2xf32>
})"));
}

TEST(BytecodeTest, RoundTripsALoopThatCallsAFunction) {
  ExpectRoundTrip(*ReadStablehloText(R"(
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.while(%y = %x) : tensor<2xf32>
  cond {
    %slice = stablehlo.slice %y [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %first = stablehlo.reshape %slice : (tensor<1xf32>) -> tensor<f32>
    %ten = stablehlo.constant dense<10.0> : tensor<f32>
    %1 = stablehlo.compare LT, %first, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = func.call @twice(%y) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }
  func.return %0 : tensor<2xf32>
})"));
}

TEST(BytecodeTest, RoundTripsAliasesDonorsAndCounts) {
  auto module = MakeModule({F32({2}), F32({3})}, [](Builder& b, const Values& x) {
    return Values{b.Negate(x[0]), b.Negate(x[1])};
  });
  module->input_output_aliases = {{1, 1, false}};
  module->buffer_donors = {0};
  module->num_replicas = 4;
  module->num_partitions = 2;
  ExpectRoundTrip(*module);
  EXPECT_EQ(Read(WriteBytecode(*module))->input_output_aliases, module->input_output_aliases);
}

TEST(BytecodeTest, KeepsMetadata) {
  auto module = MakeModule({F32({2})}, [](Builder& b, const Values& x) {
    b.set_metadata(Metadata{"aten::neg", "model.py", 12});
    return Values{b.Negate(x[0])};
  });
  auto again = Read(WriteBytecode(*module));
  const Metadata& metadata = again->entry()->result()->metadata();
  EXPECT_EQ(metadata.op_name, "aten::neg");
  EXPECT_EQ(metadata.source_file, "model.py");
  EXPECT_EQ(metadata.source_line, 12);
}

class ConstantTest : public testing::TestWithParam<ElementType> {};

// Bytes of every type, as a list and as a splat, come back as they were.
TEST_P(ConstantTest, RoundTrips) {
  ElementType type = GetParam();
  auto module = MakeModule({}, [&](Builder& b, const Values&) {
    Values constants;
    for (int64_t count : {0, 1, 2, 7, 9, 100}) {
      for (bool splat : {false, true}) {
        Literal literal(Shape(type, {count}));
        for (size_t i = 0; i < literal.byte_size(); ++i) {
          size_t k = splat ? i % ByteWidth(type) : i * 37;
          int bits = BitWidth(type);
          unsigned value = (static_cast<unsigned>(k) + 1) & ((1u << std::min(bits, 8)) - 1);
          if (IsSignedInteger(type) && bits < 8 && (value >> (bits - 1)) != 0) {
            value |= ~((1u << bits) - 1);
          }
          literal.mutable_bytes()[i] = static_cast<std::byte>(value);
        }
        constants.push_back(b.Constant(literal));
      }
    }
    return constants;
  });
  ExpectRoundTrip(*module);
}

const ElementType kTypes[] = {
    ElementType::kPred,     ElementType::kS2,         ElementType::kS4,
    ElementType::kS8,       ElementType::kS16,        ElementType::kS32,
    ElementType::kS64,      ElementType::kU2,         ElementType::kU4,
    ElementType::kU8,       ElementType::kU16,        ElementType::kU32,
    ElementType::kU64,      ElementType::kF4E2M1FN,   ElementType::kF6E2M3FN,
    ElementType::kF6E3M2FN, ElementType::kF8E3M4,     ElementType::kF8E4M3,
    ElementType::kF8E4M3FN, ElementType::kF8E4M3FNUZ, ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E5M2,   ElementType::kF8E5M2FNUZ, ElementType::kF8E8M0FNU,
    ElementType::kF16,      ElementType::kBF16,       ElementType::kF32,
    ElementType::kF64,      ElementType::kC64,        ElementType::kC128,
};
INSTANTIATE_TEST_SUITE_P(Types, ConstantTest, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(ShortName(info.param)); });

TEST(BytecodeTest, RoundTripsDictionaries) {
  auto module = MakeModule({F32({2})}, [](Builder& b, const Values& x) {
    CustomCallAttributes a;
    a.target = "target";
    a.api_version = 4;
    a.dictionary["flag"] = {true, ElementType::kPred};
    a.dictionary["byte"] = {int64_t{200}, ElementType::kU8};
    a.dictionary["negative"] = {int64_t{-5}, ElementType::kS32};
    a.dictionary["lowest"] = {std::numeric_limits<int64_t>::min(), ElementType::kS64};
    a.dictionary["real"] = {0.1, ElementType::kF64};
    a.dictionary["infinite"] = {-std::numeric_limits<double>::infinity(), ElementType::kF32};
    a.dictionary["text"] = {std::string("a\0b", 3)};
    a.dictionary["list"] = {std::vector<int64_t>{1, -2}, ElementType::kS16};
    a.dictionary["reals"] = {std::vector<double>{0.5, 2}, ElementType::kF32};
    a.dictionary["nested"] = {AttributeDictionary{{"x", {std::string("y")}}}};
    a.dictionary["mixed"] = {
        std::vector<AttributeValue>{{int64_t{1}, ElementType::kS64}, {std::string("z")}}};
    a.dictionary["matrix"] = {Literal::FromVector<float>({1, 2, 3, 4}, {2, 2})};
    return Values{b.CustomCall({x[0]}, F32({2}), a)};
  });
  ExpectRoundTrip(*module);
}

// 16 MiB written out is enough; what is larger stays one number.
TEST(BytecodeTest, LargeSplatsStaySmall) {
  auto module = MakeModule({}, [](Builder& b, const Values&) {
    Literal one = Literal::Scalar<float>(1);
    return Values{b.Constant(Literal::Splat(F32({8 << 20}), one))};
  });
  std::string bytes = WriteBytecode(*module);
  EXPECT_LT(bytes.size(), 1000);
  auto again = Read(bytes);
  EXPECT_EQ(again->entry()->result()->opcode(), Opcode::kBroadcastInDim);
  EXPECT_EQ(again->entry()->result()->shape(), F32({8 << 20}));
}

TEST(BytecodeTest, ErrorsSayWhere) {
  auto message = [](const std::string& bytes) -> std::string {
    try {
      Read(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  auto module =
      MakeModule({F32({2})}, [](Builder& b, const Values& x) { return Values{b.Negate(x[0])}; });
  std::string bytes = WriteBytecode(*module);
  EXPECT_EQ(message(""), "bytecode, byte 0: 4 bytes are needed, 0 are left");
  EXPECT_EQ(message("MLIR text"), "bytecode, byte 0: this is not MLIR bytecode");
  EXPECT_NE(message(bytes.substr(0, 30)).find("bytecode, byte "), std::string::npos);
  std::string newer = bytes;
  newer[4] = 0x15;
  EXPECT_NE(message(newer).find("bytecode version 10 is newer"), std::string::npos);
  EXPECT_TRUE(IsBytecode(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  EXPECT_FALSE(IsBytecode({}));
}

TEST(BytecodeTest, UnknownOperationsAreNamed) {
  auto module =
      MakeModule({F32({2})}, [](Builder& b, const Values& x) { return Values{b.Negate(x[0])}; });
  std::string bytes = WriteBytecode(*module);
  size_t at = bytes.find("negate_v1");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 9, "negate_v7");
  try {
    Read(bytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_NE(std::string(error.what()).find("vhlo.negate_v7"), std::string::npos);
  }
}

TEST(BytecodeTest, FunctionsNeverCallThemselves) {
  const auto module = ReadStablehloText(R"(
func.func private @ab(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @cd(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @ab(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @cd(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
})");
  std::string bytes = WriteBytecode(*module);
  // The name of the inner function becomes that of the outer one.
  size_t at = bytes.rfind(std::string("ab\0", 3));
  ASSERT_NE(at, std::string::npos);
  EXPECT_NO_THROW(Read(bytes));
  bytes.replace(at, 2, "cd");
  EXPECT_THROW(Read(bytes), Error);
}

TEST(BytecodeTest, TableHasEveryOperation){
#define HLO_CHECK_OPERATION(enumerator, mnemonic, ...)                                          \
  if (Opcode::enumerator != Opcode::kParameter) {                                               \
    EXPECT_NE(bytecode::FindOperation(bytecode::OperationName(mnemonic)), nullptr) << mnemonic; \
  }
    HLO_OPCODES(HLO_CHECK_OPERATION)
#undef HLO_CHECK_OPERATION
}

// And reads again.
TEST(TextWriterTest, WritesWhatPeopleRead) {
  const char* text =
      R"(module @test attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>) {
    %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    func.return %2 : tensor<2xf32>
  }
}
)";
  EXPECT_EQ(WriteStablehloText(*ReadStablehloText(text)), text);
}

TEST(TextWriterTest, ElidesLongConstants) {
  auto module = MakeModule({}, [](Builder& b, const Values&) {
    return Values{b.Constant(Literal::FromVector<int32_t>({1, 2, 3}))};
  });
  std::string text = WriteStablehloText(*module, {.max_constant_elements = 2});
  EXPECT_NE(text.find("dense_resource<__elided__> : tensor<3xi32>"), std::string::npos);
  EXPECT_NE(WriteStablehloText(*module).find("dense<[1, 2, 3]>"), std::string::npos);
}

// Kernels of a fused program share their name: each gets another one, in linear time.
TEST(BytecodeTest, ManyFunctionsOfOneName) {
  constexpr int kFunctions = 20000;
  const std::clock_t start = std::clock();
  auto module = MakeModule({F32({2})}, [](Builder& b, const Values& x) {
    Value value = x[0];
    Computation* main = value->parent();
    for (int i = 0; i < kFunctions; ++i) {
      Computation* body = main->module()->AddComputation("loop");
      Builder inner(body);
      body->set_results({inner.Negate(inner.Parameter(F32({2})))});
      value = main->Add(Opcode::kComposite, value->shape(), {value},
                        CompositeAttributes{"test.loop", {}, 0}, {body});
    }
    return Values{value};
  });
  module->SortComputations();
  EXPECT_EQ(Read(WriteBytecode(*module))->Hash(), module->Hash());
  // Of the processor; quadratic work took 15 s.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 8);
}

}  // namespace
}  // namespace hlo
