#include "passes/cudnn_attention.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "hlo/verifier.h"

namespace passes {
namespace {

struct AttentionSizes {
  std::string type = "bf16";
  int64_t queries = 64, keys = 64, width = 64;
  bool is_causal = true;
  std::string mask = {};  // its text; no mask if it is empty
};

std::string TensorText(const AttentionSizes& s, int64_t heads, int64_t rows) {
  return "tensor<2x" + std::to_string(heads) + "x" + std::to_string(rows) + "x" +
         std::to_string(s.width) + "x" + s.type + ">";
}

std::string CausalText(const AttentionSizes& s) { return s.is_causal ? "true" : "false"; }

void AddMask(const AttentionSizes& s, std::string& parameters, std::string& operands,
             std::string& types) {
  if (s.mask.empty()) return;
  parameters += ", %m: " + s.mask;
  operands += ", %m";
  types += ", " + s.mask;
}

// The decompositions are of the right shapes and nothing else: nobody runs them.
std::string ForwardText(const AttentionSizes& s) {
  const std::string q = TensorText(s, 4, s.queries), k = TensorText(s, 2, s.keys);
  const std::string sums = "tensor<2x4x" + std::to_string(s.queries) + "xf32>";
  const std::string results = "(" + q + ", " + sums + ")";
  std::string parameters = "%a: " + q + ", %b: " + k + ", %c: " + k;
  std::string operands = "%a, %b, %c", types = q + ", " + k + ", " + k;
  AddMask(s, parameters, operands, types);
  return "func.func private @impl(" + parameters + ") -> " + results +
         " {\n  %0 = stablehlo.constant dense<0.0> : " + sums + "\n  func.return %a, %0 : " + q +
         ", " + sums + "\n}\nfunc.func public @main(" + parameters + ") -> " + results +
         " {\n  %0:2 = stablehlo.composite \"torch_xla.attention\" " + operands +
         " {composite_attributes = {is_causal = " + CausalText(s) +
         ", scale = 0.25 : f64}, decomposition = @impl} : (" + types + ") -> " + results +
         "\n  func.return %0#0, %0#1 : " + q + ", " + sums + "\n}\n";
}

std::string BackwardText(const AttentionSizes& s) {
  const std::string q = TensorText(s, 4, s.queries), k = TensorText(s, 2, s.keys);
  const std::string sums = "tensor<2x4x" + std::to_string(s.queries) + "xf32>";
  const std::string results = "(" + q + ", " + k + ", " + k + ")";
  std::string parameters =
      "%a: " + q + ", %b: " + q + ", %c: " + k + ", %d: " + k + ", %e: " + q + ", %f: " + sums;
  std::string operands = "%a, %b, %c, %d, %e, %f";
  std::string types = q + ", " + q + ", " + k + ", " + k + ", " + q + ", " + sums;
  AddMask(s, parameters, operands, types);
  return "func.func private @impl(" + parameters + ") -> " + results +
         " {\n  func.return %a, %c, %d : " + q + ", " + k + ", " + k +
         "\n}\nfunc.func public @main(" + parameters + ") -> " + results +
         " {\n  %0:3 = stablehlo.composite \"torch_xla.attention_backward\" " + operands +
         " {composite_attributes = {is_causal = " + CausalText(s) +
         ", scale = 0.25 : f64}, decomposition = @impl} : (" + types + ") -> " + results +
         "\n  func.return %0#0, %0#1, %0#2 : " + q + ", " + k + ", " + k + "\n}\n";
}

std::string Rewritten(const std::string& program, bool is_changed = true) {
  auto module = hlo::ReadStablehloText(program);
  EXPECT_EQ(UseCudnnAttention(*module), is_changed);
  hlo::VerifyModule(*module);
  return hlo::WriteStablehloText(*module);
}

bool HasPart(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CudnnAttention, ForwardIsACallWithHeadsInside) {
  const std::string text = Rewritten(ForwardText({}));
  EXPECT_TRUE(HasPart(text, "\"__cudnn$fmhaSoftmax\"") || HasPart(text, "@__cudnn$fmhaSoftmax("))
      << text;
  EXPECT_FALSE(HasPart(text, "composite")) << text;
  EXPECT_TRUE(HasPart(text,
                      "(tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>) "
                      "-> tuple<tensor<2x4x64x64xbf16>, tensor<2x4x64xf32>, tensor<0xui8>>"))
      << text;
  EXPECT_TRUE(HasPart(text, "dense<[3, 1, 2, 0]>")) << text;
  EXPECT_TRUE(HasPart(text, "CAUSAL")) << text;
  EXPECT_TRUE(HasPart(text, "BF16")) << text;
}

TEST(CudnnAttention, BackwardReadsWhatForwardWrote) {
  AttentionSizes sizes{.type = "f16", .queries = 80, .keys = 96, .is_causal = false};
  const std::string text = Rewritten(BackwardText(sizes));
  EXPECT_TRUE(HasPart(text, "__cudnn$fmhaSoftmaxBackward")) << text;
  EXPECT_TRUE(HasPart(text,
                      "(tensor<2x80x4x64xf16>, tensor<2x96x2x64xf16>, tensor<2x96x2x64xf16>, "
                      "tensor<2x4x80xf32>, tensor<2x80x4x64xf16>, tensor<2x80x4x64xf16>) -> "
                      "tuple<tensor<2x4x80x64xf16>, tensor<2x2x96x64xf16>, tensor<2x2x96x64xf16>, "
                      "tensor<0xui8>>"))
      << text;
  EXPECT_TRUE(HasPart(text, "NO_MASK")) << text;
  // Query, key, value, logarithms, the result's gradient, the result.
  const char* of[] = {"%0 = stablehlo.transpose %arg1,", "%1 = stablehlo.transpose %arg2,",
                      "%2 = stablehlo.transpose %arg3,", "%3 = stablehlo.transpose %arg0,",
                      "%4 = stablehlo.transpose %arg4,", "(%0, %1, %2, %arg5, %3, %4)"};
  for (const char* part : of) EXPECT_TRUE(HasPart(text, part)) << part << "\n" << text;
}

TEST(CudnnAttention, AMaskIsABiasOfFourDimensions) {
  const std::string text = Rewritten(ForwardText({.mask = "tensor<2x1x1x64xbf16>"}));
  EXPECT_TRUE(HasPart(text, "@__cudnn$fmhaScaleBiasSoftmax(")) << text;
  EXPECT_TRUE(HasPart(text,
                      "(tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16>, "
                      "tensor<2x1x64x64xbf16>) -> tuple<tensor<2x4x64x64xbf16>, "
                      "tensor<2x4x64xf32>, tensor<0xui8>>"))
      << text;
  EXPECT_TRUE(HasPart(text, "CAUSAL")) << text;
}

TEST(CudnnAttention, BackwardReadsTheBiasBeforeTheResult) {
  AttentionSizes sizes{
      .type = "f16", .queries = 80, .keys = 96, .is_causal = false, .mask = "tensor<80x96xf16>"};
  const std::string text = Rewritten(BackwardText(sizes));
  EXPECT_TRUE(HasPart(text, "@__cudnn$fmhaScaleBiasSoftmaxBackward(")) << text;
  EXPECT_TRUE(HasPart(text,
                      "(tensor<2x80x4x64xf16>, tensor<2x96x2x64xf16>, tensor<2x96x2x64xf16>, "
                      "tensor<2x4x80xf32>, tensor<2x80x4x64xf16>, tensor<1x1x80x96xf16>, "
                      "tensor<2x80x4x64xf16>) -> "
                      "tuple<tensor<2x4x80x64xf16>, tensor<2x2x96x64xf16>, tensor<2x2x96x64xf16>, "
                      "tensor<0xui8>>"))
      << text;
}

TEST(CudnnAttention, OddNumbersOfRowsAreContinuedForAMask) {
  AttentionSizes sizes{.queries = 65, .keys = 68, .is_causal = false};
  EXPECT_FALSE(HasPart(Rewritten(ForwardText(sizes)), "stablehlo.pad"));
  sizes.mask = "tensor<65x68xbf16>";
  for (const std::string& text : {Rewritten(ForwardText(sizes)), Rewritten(BackwardText(sizes))}) {
    EXPECT_TRUE(HasPart(text, "(tensor<2x72x4x64xbf16>, tensor<2x68x2x64xbf16>, ")) << text;
    EXPECT_TRUE(HasPart(text, "tensor<1x1x72x68xbf16>")) << text;
    EXPECT_TRUE(HasPart(text, R"(\"dimensions\":[\"2\",\"4\",\"72\",\"68\"])")) << text;
  }
}

TEST(CudnnAttention, SaysOfWhichKindAnAttentionIs) {
  const auto kinds_of = [](const std::string& program) {
    std::vector<std::string> kinds;
    auto module = hlo::ReadStablehloText(program);
    EXPECT_FALSE(UseCudnnAttention(*module, [&](const std::string& kind) {
      kinds.push_back(kind);
      return false;
    }));
    return kinds;
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds_of(ForwardText({})),
            Kinds({"forward bf16 of width 64, 64 and 64 rows, grouped, causal"}));
  EXPECT_EQ(kinds_of(BackwardText({.type = "f16",
                                   .queries = 1000,
                                   .keys = 99,
                                   .width = 80,
                                   .is_causal = false,
                                   .mask = "tensor<1x1xf16>"})),
            Kinds({"backward f16 of width 80, 8 and 1 rows, grouped, masked"}));
  EXPECT_EQ(kinds_of(ForwardText({.type = "f32"})), Kinds());
}

TEST(CudnnAttention, WhatItDoesNotServeStays) {
  for (const AttentionSizes& sizes :
       {AttentionSizes{.type = "f32"}, AttentionSizes{.queries = 63, .keys = 63},
        AttentionSizes{.keys = 96}, AttentionSizes{.width = 60}, AttentionSizes{.width = 136},
        AttentionSizes{.queries = 1, .is_causal = false}}) {
    EXPECT_TRUE(HasPart(Rewritten(ForwardText(sizes), false), "composite"));
    EXPECT_TRUE(HasPart(Rewritten(BackwardText(sizes), false), "composite"));
  }
  const AttentionSizes of_another_type{.mask = "tensor<64x64xf32>"};
  EXPECT_TRUE(HasPart(Rewritten(ForwardText(of_another_type), false), "composite"));
  EXPECT_TRUE(HasPart(Rewritten(BackwardText(of_another_type), false), "composite"));
}

}  // namespace
}  // namespace passes
