// StableHLO text: what is read, and what errors say.
#include "hlo/text_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "hlo/bytecode.h"
#include "hlo/error.h"
#include "hlo/minifloat.h"
#include "hlo/text_writer.h"

namespace hlo {
namespace {

std::string ErrorOf(const std::string& text, ErrorCode code = ErrorCode::kInvalidArgument) {
  try {
    ReadStablehloText(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "read: " << text;
  return "";
}

// A function of one tensor around some lines.
std::string Function(const std::string& lines) {
  return "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + lines + "\n}\n";
}

Literal ConstantOf(const std::string& dense) {
  const std::string type = dense.substr(dense.rfind(" : ") + 3);
  auto module = ReadStablehloText("func.func @main() -> " + type + " {\n%0 = stablehlo.constant " +
                                  dense + "\nreturn %0 : " + type + "\n}");
  return module->entry()->result()->literal();
}

TEST(TextReader, FunctionWithoutModule) {
  auto module = ReadStablehloText(Function("return %a : tensor<4xf32>"));
  EXPECT_EQ(module->entry()->parameters().size(), 1u);
  EXPECT_EQ(module->entry()->result(), module->entry()->parameter(0));
}

TEST(TextReader, DonorsAndAliasesOfArguments) {
  auto module = ReadStablehloText(R"(
    module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(
          %a: tensor<2xf32> {tf.aliasing_output = 1 : i32, mhlo.sharding = "{replicated}"},
          %b: tensor<2xf32> {jax.buffer_donor = true} loc("b"),
          %c: tensor<2xf32> {jax.buffer_donor}, %d: tensor<2xf32> {jax.buffer_donor = false})
          -> (tensor<2xf32> {jax.result_info = "x"}, tensor<2xf32>) {
        %0 = sdy.sharding_constraint %b <@mesh, [{"x"}]> : tensor<2xf32>
        return %0, %a : tensor<2xf32>, tensor<2xf32>
      }
    })");
  EXPECT_EQ(module->name(), "m");
  EXPECT_EQ(module->num_replicas, 2);
  ASSERT_EQ(module->input_output_aliases.size(), 1u);
  EXPECT_EQ(module->input_output_aliases[0].output, 1);
  EXPECT_EQ(module->buffer_donors, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(module->entry()->parameter(1)->metadata().op_name, "b");
}

TEST(TextReader, Locations) {
  auto module = ReadStablehloText(R"(#loc = loc(unknown)
    #loc1 = loc("file.py":7:3 to :9)
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.abs %a : tensor<4xf32> loc("one"(#loc1))
      %1 = stablehlo.negate %0 : tensor<4xf32> loc(#loc2)
      %2 = stablehlo.sqrt %1 : tensor<4xf32> loc(callsite("f"("g.py":1:2) at fused[#loc1, #loc]))
      return %2 : tensor<4xf32> loc(#loc)
    } loc(#loc)
    #loc2 = loc("two"("file.py":8:0))
  )");
  const Instruction* sqrt = module->entry()->result();
  EXPECT_EQ(sqrt->metadata().op_name, "f");
  EXPECT_EQ(sqrt->metadata().source_file, "g.py");
  EXPECT_EQ(sqrt->operand(0)->metadata().op_name, "two");
  EXPECT_EQ(sqrt->operand(0)->metadata().source_line, 8);
  EXPECT_EQ(sqrt->operand(0)->operand(0)->metadata().source_line, 7);
}

TEST(TextReader, LocationsThatAreAliasesOfAliases) {
  auto module = ReadStablehloText(R"(
    #loc = loc(#loc1)
    #loc1 = loc("one"(#loc2))
    #loc2 = loc("file.py":7:3)
    #loc3 = loc(#loc3)
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.abs %a : tensor<4xf32> loc(#loc)
      return %0 : tensor<4xf32> loc(#loc3)
    })");
  EXPECT_EQ(module->entry()->result()->metadata().op_name, "one");
  EXPECT_EQ(module->entry()->result()->metadata().source_line, 7);
}

TEST(TextWriter, LocationsThatAreAliases) {
  const std::string text =
      R"(module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.abs %arg0 : tensor<4xf32> loc(#loc)
    %1 = stablehlo.negate %0 : tensor<4xf32> loc(#loc1)
    %2 = stablehlo.sqrt %1 : tensor<4xf32> loc(#loc)
    func.return %2 : tensor<4xf32>
  }
}
#loc = loc("two"("file.py":8:0))
#loc1 = loc(unknown)
)";
  const auto module = ReadStablehloText(text);
  EXPECT_EQ(WriteStablehloText(*module, {.locations = true, .location_aliases = true}), text);
  EXPECT_EQ(module->entry()->result()->metadata().source_line, 8);
}

TEST(TextWriter, OperationsOfUnknownSizesAreShort) {
  const std::string lines[] = {
      "stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<3x?xf32>) -> tensor<i32>",
      "stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 1] : (tensor<3x?xf32>, "
      "tensor<2xi32>) -> tensor<3x?xf32>",
      "stablehlo.dynamic_reshape %arg0, %arg1 : (tensor<3x?xf32>, tensor<2xi32>) -> "
      "tensor<?x?xf32>",
      "stablehlo.dynamic_iota %arg1, dim = 1 : (tensor<2xi32>) -> tensor<3x?xf32>",
      "stablehlo.real_dynamic_slice %arg0, %arg1, %arg1, %arg1 : (tensor<3x?xf32>, tensor<2xi32>, "
      "tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>"};
  std::string text = "func.func @main(%arg0: tensor<3x?xf32>, %arg1: tensor<2xi32>) -> () {\n";
  int number = 0;
  for (const std::string& line : lines) {
    text += "  %" + std::to_string(number++) + " = " + line + "\n";
  }
  const auto module = ReadStablehloText(text + "  func.return\n}\n");
  const std::string written = WriteStablehloText(*module);
  for (const std::string& line : lines) {
    EXPECT_NE(written.find(line + "\n"), std::string::npos) << "no " << line << " in\n" << written;
  }
}

TEST(TextReader, AliasesOfAttributesAndTypes) {
  auto module = ReadStablehloText(R"(
    !t = tensor<4xf32>
    #perm = array<i64: 0>
    func.func @main(%a: !t) -> !t {
      %0 = "stablehlo.transpose"(%a) <{permutation = #perm}> : (!t) -> !t
      return %0 : !t
    })");
  EXPECT_EQ(module->entry()->result()->as<DimensionsAttributes>().dimensions, Dimensions{0});
}

TEST(TextReader, Resources) {
  const char* text = R"(
    func.func @main() -> tensor<2xi32> {
      %0 = stablehlo.constant dense_resource<data> : tensor<2xi32>
      return %0 : tensor<2xi32>
    }
    {-# dialect_resources: { builtin: { data: "0x0400000001000000FFFFFFFF" } } #-})";
  EXPECT_EQ(ReadStablehloText(text)->entry()->result()->literal(),
            Literal::FromVector<int32_t>({1, -1}));
  const std::string twice = std::string(text, std::strlen(text) - 8) + R"(,
    data: "0x0400000001000000FFFFFFFE" } } #-})";
  EXPECT_NE(ErrorOf(twice).find("the resource data is given twice"), std::string::npos);
}

// Unlike dense<>, a resource holds all its elements: none for all, and no bits.
TEST(TextReader, ResourcesHaveTheSizeOfTheirTensors) {
  const auto with = [](const std::string& type, const std::string& data) {
    return Function("%0 = stablehlo.constant dense_resource<d> : tensor<" + type +
                    ">\nreturn %a : tensor<4xf32>") +
           "{-# dialect_resources: { builtin: { d: \"0x04000000" + data + "\" } } #-}";
  };
  EXPECT_NO_THROW(ReadStablehloText(with("1xi32", "01000000")));
  EXPECT_NO_THROW(ReadStablehloText(with("i32", "01000000")));
  EXPECT_NO_THROW(ReadStablehloText(with("8xi1", "0101010101010101")));
  EXPECT_NO_THROW(ReadStablehloText(with("0xi32", "")));
  for (const auto& [type, data] : {std::pair("2xi32", "01000000"),
                                   {"1000000xi32", "01000000"},
                                   {"8xi1", "FF"},
                                   {"9xi1", "01"},
                                   {"1000000xi1", "01"},
                                   {"3xi8", "0102"},
                                   {"3xi8", "01020304"},
                                   {"0xi32", "01000000"}}) {
    const std::string message = ErrorOf(with(type, data));
    EXPECT_NE(message.find("bytes of data"), std::string::npos) << type << ": " << message;
  }
}

TEST(TextReader, Constants) {
  EXPECT_EQ(ConstantOf("dense<[1, -2]> : tensor<2xi8>"), Literal::FromVector<int8_t>({1, -2}));
  EXPECT_EQ(ConstantOf("dense<[0x7FC00000, 1.5]> : tensor<2xf32>"),
            Literal::FromVector<float>({std::numeric_limits<float>::quiet_NaN(), 1.5f}));
  EXPECT_EQ(ConstantOf("dense<\"0x0100000002000000\"> : tensor<2xi32>"),
            Literal::FromVector<int32_t>({1, 2}));
  EXPECT_EQ(ConstantOf("dense<(1.0, -2.0)> : tensor<complex<f32>>"),
            Literal::Scalar(std::complex<float>(1, -2)));
  EXPECT_EQ(ConstantOf("dense<true> : tensor<9xi1>"),
            Literal::Splat(Shape(ElementType::kPred, {9}), Literal::Scalar(true)));
  EXPECT_EQ(ConstantOf("dense<18446744073709551615> : tensor<ui64>"),
            Literal::Scalar(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(ConstantOf("dense<> : tensor<0x4xf32>").shape().num_elements(), 0);
  const Literal narrow = ConstantOf("dense<[7, -8]> : tensor<2xi4>");
  EXPECT_EQ(static_cast<int8_t>(narrow.bytes()[1]), -8);
  const Literal f8 = ConstantOf("dense<[1.5, -4.480000e+02]> : tensor<2xf8E4M3FN>");
  EXPECT_EQ(f8.bytes()[0], std::byte{0x3c});
  EXPECT_EQ(f8.bytes()[1], std::byte{0xfe});
}

// A little more than the middle between two numbers, by less than a float can tell.
TEST(TextReader, NarrowFloatsAreRoundedOnce) {
  const auto bits = [](const std::string& dense) {
    const Literal literal = ConstantOf(dense);
    return static_cast<int>(literal.bytes()[0]) | static_cast<int>(literal.bytes()[1]) << 8;
  };
  EXPECT_EQ(bits("dense<1.0004882813> : tensor<f16>"), 0x3c01);
  EXPECT_EQ(bits("dense<-1.0004882813> : tensor<f16>"), 0xbc01);
  EXPECT_EQ(bits("dense<1.00048828125> : tensor<f16>"), 0x3c00);  // the middle
  EXPECT_EQ(bits("dense<1.0014648437> : tensor<f16>"), 0x3c01);   // a little less
  EXPECT_EQ(bits("dense<2.9802322388e-08> : tensor<f16>"), 1);    // of the least
  EXPECT_EQ(bits("dense<1.0e-300> : tensor<f16>"), 0);
  EXPECT_EQ(bits("dense<65519.9999999> : tensor<f16>"), 0x7bff);
  EXPECT_EQ(bits("dense<1.0039062501> : tensor<bf16>"), 0x3f81);
  EXPECT_EQ(bits("dense<1.00390625> : tensor<bf16>"), 0x3f80);
  ErrorOf(Function("%0 = stablehlo.constant dense<65520.0> : tensor<f16>"));
  ErrorOf(Function("%0 = stablehlo.constant dense<1.0e300> : tensor<bf16>"));
}

TEST(TextReader, SmallFloatsAreRoundedToEven) {
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E5M2, 1.125), 0x3c);  // between 1 and 1.25
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E5M2, 1.375), 0x3e);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF4E2M1FN, 6), 7);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF4E2M1FN, 7.5), std::nullopt);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E4M3FNUZ, -0.0), 0);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E4M3, -0.0), 0x80);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E8M0FNU, 2.0), 128);
  EXPECT_EQ(MinifloatFromDouble(ElementType::kF8E8M0FNU, -2.0), std::nullopt);
}

TEST(TextReader, ErrorsShowTheirPlace) {
  EXPECT_EQ(ErrorOf(Function("  %0 = stablehlo.add %a, %b : tensor<4xf32>")),
            "line 2, column 26: %b is not defined before its use\n"
            "    %0 = stablehlo.add %a, %b : tensor<4xf32>\n"
            "                           ^");
  // What the verifier finds has a place, too.
  const std::string message =
      ErrorOf(Function("  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<3xf32>\n"
                       "  %1 = stablehlo.reshape %0 : (tensor<3xf32>) -> tensor<4xf32>\n"
                       "  return %1 : tensor<4xf32>"));
  EXPECT_TRUE(message.starts_with("line 2, column 8: in @main")) << message;
}

TEST(TextReader, ErrorsOfSyntax) {
  struct Case {
    const char* lines;
    const char* message;
  };
  const Case cases[] = {
      {"%0 = stablehlo.add %a : tensor<4xf32>\nreturn %0 : tensor<4xf32>", "takes"},
      {"%0 = stablehlo.abs %a : tensor<5xf32>", "operand 0 does not have the type"},
      {"%0:2 = stablehlo.abs %a : tensor<4xf32>", "has 1 results, not 2"},
      {"%a = stablehlo.abs %a : tensor<4xf32>", "%a is defined twice"},
      {"%0 = stablehlo.compare XX, %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
       "'XX' is not an enumerator"},
      {"%0 = \"stablehlo.abs\"(%a) <{speed = 1 : i64}> : (tensor<4xf32>) -> tensor<4xf32>",
       "no attribute speed"},
      {"%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>", "a list of 3"},
      {"%0 = stablehlo.constant dense<300> : tensor<i8>", "does not fit in 8 bits"},
      {"%0 = stablehlo.constant dense<1e3> : tensor<f32>", "expected '>'"},
      {"%0 = stablehlo.constant dense_resource<__elided__> : tensor<9xf32>", "left out"},
      {"%0 = stablehlo.constant dense_resource<x> : tensor<9xf32>\nreturn %a : tensor<4xf32>",
       "does not carry the data"},
      {"return %a : tensor<4xf32> loc(#loc7)", "#loc7 is not defined"},
      {"return", "does not return what its type says"},
      {"%0 = stablehlo.abs %a : tensor<4xf32>", "expected a return"},
      {"%0 = stablehlo.custom_call @f(%a) {x = \"\\q\"} : (tensor<4xf32>) -> tensor<4xf32>",
       "escape"},
      {"%0 = stablehlo.custom_call @f(%a) {x = \"a\n\"} : (tensor<4xf32>) -> tensor<4xf32>",
       "string does not end"},
      {"%0 = stablehlo.custom_call @f(%a) {x = 1, x = 2} : (tensor<4xf32>) -> tensor<4xf32>",
       "'x' is given twice"},
      {"%0 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>",
       "no function named g"},
      {"%0 = call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>",
       "calls itself"},
  };
  for (const Case& example : cases) {
    const std::string message = ErrorOf(Function(example.lines));
    EXPECT_NE(message.find(example.message), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("line ")) << message;
  }
}

// The short forms state what an operation needs; the generic form has to, too.
TEST(TextReader, NothingThatAnOperationNeedsIsGuessed) {
  struct Case {
    const char* lines;
    const char* attribute;
  };
  const Case cases[] = {
      {"\"stablehlo.concatenate\"(%a) : (tensor<4xf32>) -> tensor<4xf32>", "dimension"},
      {"\"stablehlo.compare\"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
       "comparison_direction"},
      {"\"stablehlo.iota\"() : () -> tensor<4xf32>", "iota_dimension"},
      {"\"stablehlo.get_dimension_size\"(%a) : (tensor<4xf32>) -> tensor<i32>", "dimension"},
      {"\"stablehlo.fft\"(%a) {fft_length = array<i64: 4>} : (tensor<4xf32>) -> tensor<4xf32>",
       "fft_type"},
      {"\"stablehlo.all_gather\"(%a) {replica_groups = dense<0> : tensor<1x1xi64>} : "
       "(tensor<4xf32>) -> tensor<4xf32>",
       "all_gather_dim"},
      {"\"stablehlo.all_to_all\"(%a) {split_dimension = 0 : i64} : (tensor<4xf32>) -> "
       "tensor<4xf32>",
       "concat_dimension"},
      {"\"stablehlo.dot_general\"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>",
       "dot_dimension_numbers"},
  };
  for (const Case& example : cases) {
    const std::string message = ErrorOf(Function(example.lines));
    EXPECT_NE(message.find("needs the attribute " + std::string(example.attribute) + "\n"),
              std::string::npos)
        << message;
  }
  // Dimension numbers that say nothing are dimension numbers.
  auto module = ReadStablehloText(
      "func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {\n"
      "%0 = \"stablehlo.dot_general\"(%a, %b) {dot_dimension_numbers = #stablehlo.dot<>} : "
      "(tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>\nreturn %0 : tensor<2x3xf32>\n}");
  EXPECT_TRUE(module->entry()->result()->as<DotAttributes>().lhs_contracting_dimensions.empty());
}

TEST(TextReader, DefaultsHaveOneElementForEachDimension) {
  auto module = ReadStablehloText(R"(
    func.func @main(%a: tensor<4x4xf32>, %b: tensor<f32>) -> tensor<3x3xf32> {
      %0 = "stablehlo.reduce_window"(%a, %b) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) {window_dimensions = dense<2> : tensor<2xi64>}
          : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x3xf32>
      return %0 : tensor<3x3xf32>
    })");
  const auto& window = module->entry()->result()->as<Window>();
  EXPECT_EQ(window.dimensions, (Dimensions{2, 2}));
  EXPECT_EQ(window.strides, (Dimensions{1, 1}));
  EXPECT_EQ(window.padding_high, (Dimensions{0, 0}));
  ErrorOf(
      Function("%0 = \"stablehlo.reduce_window\"(%a) {window_dimensions = dense<2> : "
               "tensor<1000000000000xi64>} : (tensor<4xf32>) -> tensor<4xf32>"));
}

TEST(TextReader, WhatIsUnknownIsUnimplemented) {
  constexpr ErrorCode kCode = ErrorCode::kUnimplemented;
  EXPECT_NE(ErrorOf(Function("%0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>"), kCode)
                .find("chlo.erf"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Function("%0 = \"chlo.erf\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
                             "return %0 : tensor<4xf32>"),
                    kCode)
                .find("chlo.erf"),
            std::string::npos);
  EXPECT_NE(ErrorOf("func.func @main(%a: tensor<4x!quant.uniform<i8:f32, 0.5>>) {\n"
                    "%0 = stablehlo.uniform_dequantize %a : "
                    "(tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xf32>\nreturn\n}",
                    kCode)
                .find("'quantized'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("func.func @main(%a: tensor<*xf32>) {\nreturn\n}", kCode).find("unranked"),
            std::string::npos);
}

// What a stranger may send to exhaust the stack or the memory.
TEST(TextReader, HostileTextIsRefused) {
  const auto repeated = [](const std::string& part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  constexpr int kMany = 100000;
  ErrorOf(Function("%0 = stablehlo.custom_call @f(%a) {x = " + repeated("[", kMany)));
  ErrorOf(Function("%0 = stablehlo.abs %a : " + repeated("tuple<", kMany)));
  ErrorOf(Function("%0 = stablehlo.abs %a : " + repeated("(", kMany)));
  ErrorOf(Function("return %a : tensor<4xf32> loc(" + repeated("\"a\"(", kMany)));
  ErrorOf(Function("%0 = stablehlo.constant dense<" + repeated("[", kMany) + repeated("]", kMany) +
                   "> : tensor<1xf32>"));
  ErrorOf("func.func @main(%a: tensor<" + repeated("1x", kMany) + "f32>) {\nreturn\n}");
  std::string nested;
  for (int i = 0; i < kMany; ++i) nested += "\"stablehlo.if\"(%p) ({\n";
  ErrorOf("func.func @main(%p: tensor<i1>) {\n" + nested);
  // Aliases of aliases that grow twofold.
  std::string doubling = "!t0 = tuple<tensor<f32>, tensor<f32>>\n";
  for (int i = 1; i < 60; ++i) {
    const std::string last = "!t" + std::to_string(i - 1);
    doubling += "!t" + std::to_string(i) + " = tuple<" + last + ", " + last + ">\n";
  }
  ErrorOf(doubling + "func.func @main(%a: !t59) {\nreturn\n}", ErrorCode::kResourceExhausted);
  ErrorOf("%%%%");
  ErrorOf("");
  ErrorOf(std::string("\0\xff\xfe", 3));
}

TEST(ReadStablehlo, TellsBytecodeFromText) {
  const std::string text = Function("return %a : tensor<4xf32>");
  auto module = ReadStablehlo(std::as_bytes(std::span(text.data(), text.size())));
  const std::string bytecode = WriteBytecode(*module);
  auto again = ReadStablehlo(std::as_bytes(std::span(bytecode.data(), bytecode.size())));
  EXPECT_EQ(module->Hash(), again->Hash());
}

}  // namespace
}  // namespace hlo
