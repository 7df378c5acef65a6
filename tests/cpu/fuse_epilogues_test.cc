#include "cpu/passes/fuse_epilogues.h"

#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

Shape F32(hlo::Dimensions dimensions) { return Shape(ElementType::kF32, std::move(dimensions)); }

struct Program {
  hlo::Module module;
  hlo::Computation* entry = module.AddComputation("main");
  Builder b{entry};

  Program() { module.set_entry(entry); }
  Value Product() {
    Value lhs = b.Parameter(F32({20, 40}));
    return b.MatMul(lhs, b.Parameter(F32({40, 30})));
  }
  Value Biased(const Shape& shape, Value bias, Value x) {
    return b.Add(x, b.BroadcastInDim(bias, shape.dimensions(), {1}));
  }
  // The names of the composites after the pass.
  std::vector<std::string> Fused() {
    auto work = module.Clone();
    FuseEpilogues(*work);
    std::vector<std::string> names;
    for (const auto& instruction : work->entry()->instructions()) {
      if (instruction->opcode() == Opcode::kComposite) {
        names.push_back(instruction->as<hlo::CompositeAttributes>().name);
      }
    }
    return names;
  }
};

using Names = std::vector<std::string>;

TEST(FuseEpilogues, BiasAndActivationBecomePartOfTheProduct) {
  Program p;
  Shape result = F32({20, 30});
  Value dot = p.Product();
  Value biased = p.Biased(result, p.b.Parameter(F32({30})), dot);
  Value relu = p.b.Maximum(biased, p.b.Zeros(result));
  p.entry->set_results({p.b.MatMul(relu, p.b.Parameter(F32({30, 8})))});
  EXPECT_EQ(p.Fused(), Names{"cpu.dot"});
  CheckModule(p.module,
              {RandomLiteral(F32({20, 40}), 1), RandomLiteral(F32({40, 30}), 2),
               RandomLiteral(F32({30}), 3), RandomLiteral(F32({30, 8}), 4)},
              100);
}

TEST(FuseEpilogues, ConstantsOfSeveralStepsAreCopiedOnce) {
  Program p;
  Shape result = F32({20, 30});
  Value dot = p.Product();
  Value two = p.b.Full(result, 2.0);
  p.entry->set_results({p.b.Multiply(p.b.Add(dot, two), two)});
  EXPECT_EQ(p.Fused(), Names{"cpu.dot"});
  CheckModule(p.module, {RandomLiteral(F32({20, 40}), 1), RandomLiteral(F32({40, 30}), 2)}, 100);
}

TEST(FuseEpilogues, AFactorMayBeAddedToTheProduct) {
  Program p;
  Shape square = F32({20, 20});
  Value two = p.b.Full(square, 2.0);
  p.entry->set_results({p.b.Add(p.b.MatMul(p.b.Parameter(square), two), two)});
  EXPECT_EQ(p.Fused(), Names{"cpu.dot"});
  CheckModule(p.module, {RandomLiteral(square, 1)}, 100);
}

TEST(FuseEpilogues, WhatALoopComputesOnItsWayStaysInTheLoop) {
  Program p;
  Shape result = F32({20, 30});
  Value dot = p.Product();
  Value biased = p.Biased(result, p.b.Parameter(F32({30})), dot);
  p.entry->set_results({p.b.Exp(biased)});
  EXPECT_EQ(p.Fused(), Names{});
}

TEST(FuseEpilogues, AProductThatIsReadTwiceKeepsItsValue) {
  Program p;
  Value dot = p.Product();
  p.entry->set_results({p.b.Negate(dot), dot});
  EXPECT_EQ(p.Fused(), Names{});
}

TEST(FuseEpilogues, ResidualOfAConvolution) {
  Program p;
  Value image = p.b.Parameter(F32({2, 12, 12, 16}));
  Value weights = p.b.Parameter(F32({3, 3, 16, 16}));
  hlo::ConvolutionAttributes attributes;
  attributes.window = hlo::Window::Trivial(2);
  attributes.window.dimensions = {};
  attributes.window.padding_low = attributes.window.padding_high = {1, 1};
  attributes.dimensions = {0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2}};
  Value y = p.b.Convolution(image, weights, attributes);
  Value scaled =
      p.b.Multiply(y, p.b.BroadcastInDim(p.b.Parameter(F32({16})), y->dimensions(), {3}));
  p.entry->set_results({p.b.Add(image, scaled)});
  EXPECT_EQ(p.Fused(), Names{"cpu.convolution"});
  CheckModule(p.module,
              {RandomLiteral(F32({2, 12, 12, 16}), 1), RandomLiteral(F32({3, 3, 16, 16}), 2),
               RandomLiteral(F32({16}), 3)},
              300);
}

}  // namespace
}  // namespace cpu
