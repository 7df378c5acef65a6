#include "lazy/cudnn_attention.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/attention_composite.h"
#include "lazy/metrics.h"
#include "lazy/warning.h"

namespace lazy {
namespace {

using hlo::Builder;
using hlo::ErrorCode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

// Attentions of these widths, one after the other.
std::unique_ptr<hlo::Module> Program(const std::vector<int64_t>& widths, int64_t rows = 64) {
  auto module = std::make_unique<hlo::Module>();
  hlo::Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Builder b(entry);
  Values results;
  for (const int64_t width : widths) {
    const Value x = b.Parameter(Shape(hlo::ElementType::kBF16, {1, 2, rows, width}));
    const auto body = [&](Builder& inner, const Values& operands) -> Values {
      return {operands[0], inner.Zeros(Shape(hlo::ElementType::kF32, {1, 2, rows}))};
    };
    results.push_back(hlo::Attention(b, hlo::kAttention, {x, x, x}, {}, body)[0]);
  }
  entry->set_results(results);
  module->SortComputations();
  return module;
}

bool IsCustomCall(hlo::Opcode opcode) { return opcode == hlo::Opcode::kCustomCall; }

int64_t Refusals() { return Counter("CudnnAttentionRefused")->load(); }

const hlo::Error kRefusal(ErrorCode::kInternal,
                          "No valid engine configs for SOFTMAX_in external/xla/xla/"
                          "stream_executor/cuda/cuda_dnn.cc(8212): 'graph_.check_support()'");

// A compiler that refuses kernels, or none, and what it was given: "kernels" or "none", in order.
struct Compiler {
  bool refuses = true;
  hlo::Error error = kRefusal;
  std::vector<std::string> given;

  void operator()(std::unique_ptr<hlo::Module> module) {
    const bool has_kernels = module->Contains(&IsCustomCall);
    given.emplace_back(has_kernels ? "kernels" : "none");
    if (has_kernels && refuses) throw error;
  }
};

class CudnnAttentionTest : public testing::Test {
 protected:
  void Compile(std::unique_ptr<hlo::Module> module) {
    attention_.Compile(std::move(module),
                       [this](std::unique_ptr<hlo::Module> m) { compiler_(std::move(m)); });
  }
  std::vector<std::string> Given() { return std::exchange(compiler_.given, {}); }

  using Words = std::vector<std::string>;
  CudnnAttention attention_;
  Compiler compiler_;
  std::vector<std::string> warnings_;
  KeptWarnings kept_{warnings_};
};

TEST_F(CudnnAttentionTest, WhatIsServedIsCompiledOnce) {
  compiler_.refuses = false;
  const int64_t before = Refusals();
  Compile(Program({64}));
  EXPECT_EQ(Given(), Words({"kernels"}));
  Compile(Program({}));
  EXPECT_EQ(Given(), Words({"none"}));
  EXPECT_EQ(Refusals(), before);
}

TEST_F(CudnnAttentionTest, ARefusalIsRemembered) {
  const int64_t before = Refusals();
  Compile(Program({64}));
  EXPECT_EQ(Given(), Words({"kernels", "none"}));
  Compile(Program({64}));
  Compile(Program({64}, 128));  // more of the same kind
  EXPECT_EQ(Given(), Words({"none", "none"}));
  EXPECT_EQ(Refusals(), before + 1);
  Compile(Program({64, 32}));  // another kind beside it
  Compile(Program({64}, 65));
  EXPECT_EQ(Given(), Words({"kernels", "none", "kernels", "none"}));
  Compile(Program({32}));
  EXPECT_EQ(Given(), Words({"none"}));
  EXPECT_EQ(Refusals(), before + 3);
}

TEST_F(CudnnAttentionTest, OfSeveralKindsThoseThatWereServedStay) {
  compiler_.refuses = false;
  Compile(Program({64}));
  compiler_.refuses = true;
  Compile(Program({64, 32}));
  EXPECT_EQ(Given(), Words({"kernels", "kernels", "none"}));
  compiler_.refuses = false;
  Compile(Program({64}));
  Compile(Program({32}));
  Compile(Program({64, 32}));
  EXPECT_EQ(Given(), Words({"kernels", "none", "kernels"}));
}

TEST_F(CudnnAttentionTest, AKindThatWasServedOnceCanBeRefused) {
  compiler_.refuses = false;
  Compile(Program({64}));
  compiler_.refuses = true;
  Compile(Program({64}));
  Compile(Program({64}));
  EXPECT_EQ(Given(), Words({"kernels", "kernels", "none", "none"}));
}

TEST_F(CudnnAttentionTest, OtherErrorsAreRaised) {
  for (const hlo::Error& error :
       {hlo::Error(ErrorCode::kResourceExhausted, "cuDNN: out of memory"),
        hlo::Error(ErrorCode::kCancelled, "cudnn"), hlo::Error(ErrorCode::kAborted, "cudnn"),
        hlo::Error(ErrorCode::kDeadlineExceeded, "cudnn"),
        hlo::Error(ErrorCode::kUnavailable, "cudnn"),
        hlo::Error(ErrorCode::kInternal, "cudnnCreate: CUDNN_STATUS_ALLOC_FAILED"),
        hlo::Error(ErrorCode::kInternal, "cuda_dnn.cc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        hlo::Error(ErrorCode::kInternal, "ptxas exited with 139"),
        hlo::Error(ErrorCode::kInvalidArgument, "the program cannot be read")}) {
    compiler_.error = error;
    EXPECT_THROW(Compile(Program({64})), hlo::Error) << error.what();
    EXPECT_EQ(Given(), Words({"kernels"})) << error.what();
  }
}

TEST_F(CudnnAttentionTest, WhatFailsWithoutAsWellIsNoRefusal) {
  const int64_t before = Refusals();
  const auto fail = [](std::unique_ptr<hlo::Module> module) {
    throw module->Contains(&IsCustomCall) ? kRefusal : hlo::Error("cudnn has no convolution");
  };
  try {
    attention_.Compile(Program({64}), fail);
    FAIL() << "nothing was thrown";
  } catch (const hlo::Error& error) {
    EXPECT_STREQ(error.what(), "cudnn has no convolution");
  }
  EXPECT_EQ(Refusals(), before);
  compiler_.refuses = false;
  Compile(Program({64}));
  EXPECT_EQ(Given(), Words({"kernels"}));
}

TEST(CudnnRefusal, NamesTheLibrary) {
  EXPECT_TRUE(IsCudnnRefusal(kRefusal));
  for (const char* text :
       {"DNN library is not found.", "CUDNN_STATUS_NOT_SUPPORTED", "Unknown fmha mask kind.",
        "Cudnn flash attention only supported with Cudnn >= 9.0.0",
        "Deviceless cuDNN compilation requires cuDNN >= 9.11"}) {
    EXPECT_TRUE(IsCudnnRefusal(hlo::Error(ErrorCode::kInternal, text))) << text;
    EXPECT_TRUE(IsCudnnRefusal(hlo::Error(ErrorCode::kUnimplemented, text))) << text;
    EXPECT_FALSE(IsCudnnRefusal(hlo::Error(ErrorCode::kResourceExhausted, text))) << text;
  }
}

}  // namespace
}  // namespace lazy
