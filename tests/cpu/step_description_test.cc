#include "cpu/step_description.h"

#include <gtest/gtest.h>

#include "cpu/peaks.h"
#include "hlo/builder.h"
#include "hlo/module.h"

namespace cpu {
namespace {

using hlo::ElementType;
using hlo::Shape;

class StepDescriptionTest : public testing::Test {
 protected:
  StepDescriptionTest() : module_("test"), builder_(module_.AddComputation("main")) {}
  hlo::Value Parameter(const hlo::Dimensions& dimensions) {
    return builder_.Parameter(Shape(ElementType::kF32, dimensions));
  }

  hlo::Module module_;
  hlo::Builder builder_;
};

TEST_F(StepDescriptionTest, Dot) {
  builder_.set_metadata(hlo::Metadata{"aten::bmm", "train.py", 12});
  hlo::Value x = Parameter({8, 3, 5}), y = Parameter({8, 5, 7});
  hlo::DotAttributes attributes;
  attributes.lhs_batching_dimensions = attributes.rhs_batching_dimensions = {0};
  attributes.lhs_contracting_dimensions = {2};
  attributes.rhs_contracting_dimensions = {1};
  const StepDescription step = Describe(*builder_.DotGeneral(x, y, attributes));
  EXPECT_EQ(step.category, "dot");
  EXPECT_TRUE(step.name.starts_with("dot-general."));
  EXPECT_EQ(step.flops, 2 * 8 * 3 * 5 * 7);
  EXPECT_EQ(step.bytes_read, 4 * (8 * 3 * 5 + 8 * 5 * 7));
  EXPECT_EQ(step.bytes_written, 4 * 8 * 3 * 7);
  EXPECT_EQ(step.operation, "aten::bmm");
  EXPECT_EQ(step.source_file, "train.py");
  EXPECT_EQ(step.source_line, 12);
}

TEST_F(StepDescriptionTest, Elementwise) {
  hlo::Value x = Parameter({4, 4});
  const StepDescription step = Describe(*builder_.Add(x, x));
  EXPECT_EQ(step.category, "add");
  EXPECT_EQ(step.flops, 16);
  EXPECT_EQ(step.bytes_read, 2 * 64);
  EXPECT_EQ(step.bytes_written, 64);
}

TEST_F(StepDescriptionTest, WhatComputesNothing) {
  const StepDescription step = Describe(*builder_.Transpose(Parameter({2, 3}), {1, 0}));
  EXPECT_EQ(step.category, "transpose");
  EXPECT_EQ(step.flops, 0);
  EXPECT_EQ(step.bytes_read, 24);
  EXPECT_EQ(step.bytes_written, 24);
}

TEST(PeaksTest, AreMeasuredOnce) {
  const Peaks& peaks = MeasuredPeaks();
  EXPECT_GT(peaks.flops, 1e8);
  EXPECT_GT(peaks.bytes, 1e8);
  EXPECT_EQ(&MeasuredPeaks(), &peaks);
}

}  // namespace
}  // namespace cpu
