// The table of the composites that the engine makes.
#include "cpu/kernel_kind.h"

#include <gtest/gtest.h>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/kernel_cache.h"
#include "hlo/builder.h"
#include "hlo/error.h"

namespace cpu {
namespace {

class KernelKindTest : public testing::Test {
 protected:
  // A program of one composite, which negates.
  const hlo::Instruction& Composite(const char* name) {
    const hlo::Shape shape(hlo::ElementType::kF32, {8});
    hlo::Computation* body = module_.AddComputation("body");
    hlo::Builder inner(body);
    body->set_results({inner.Negate(inner.Parameter(shape))});
    hlo::Computation* entry = module_.AddComputation("main");
    module_.set_entry(entry);
    hlo::Builder b(entry);
    hlo::Value composite = b.Create(hlo::Opcode::kComposite, {b.Parameter(shape)},
                                    hlo::CompositeAttributes{name, {}, 0}, {body});
    entry->set_results({composite});
    return *composite;
  }

  hlo::Module module_;
};

TEST_F(KernelKindTest, ByName) { EXPECT_EQ(KindOf(Composite("cpu.loop")), &kLoopKernel); }

TEST_F(KernelKindTest, OthersAreNotOurs) {
  const hlo::Instruction& composite = Composite("chlo.erf");
  EXPECT_EQ(KindOf(composite), nullptr);
  EXPECT_FALSE(NeedsKernel(composite));
  EXPECT_EQ(KindOf(*composite.operand(0)), nullptr);
}

TEST_F(KernelKindTest, UnknownIsAnError) {
  const hlo::Instruction& composite = Composite("cpu.lop");
  try {
    KindOf(composite);
    FAIL();
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kInternal);
    const std::string text = error.what();
    EXPECT_NE(text.find("'cpu.lop'"), std::string::npos) << text;
    EXPECT_NE(text.find("cpu.loop, cpu.reduce"), std::string::npos) << text;
  }
  EXPECT_THROW(GenerateCode(module_, Dump(), KernelCache::OfProcess()), hlo::Error);
}

}  // namespace
}  // namespace cpu
