#include "hlo/verifier.h"

#include <gtest/gtest.h>

#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlo {
namespace {

const Shape kOperandShape(ElementType::kF32, {4});

class VerifierTest : public testing::Test {
 protected:
  VerifierTest() : main_(module_.AddComputation("main")), builder_(main_) {
    module_.set_entry(main_);
    x_ = builder_.Parameter(kOperandShape);
    main_->set_results({x_});
  }

  // Expects an error whose message has this part.
  void ExpectError(const std::string& part) {
    try {
      VerifyModule(module_);
      ADD_FAILURE() << "no error about: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  Module module_;
  Computation* main_;
  Builder builder_;
  Value x_;
};

TEST_F(VerifierTest, AcceptsAGoodModule) { EXPECT_NO_THROW(VerifyModule(module_)); }

TEST_F(VerifierTest, NoEntry) {
  module_.set_entry(nullptr);
  ExpectError("has no entry");
}

TEST_F(VerifierTest, WrongShape) {
  main_->Add(Opcode::kNegate, Shape(ElementType::kF32, {5}), {x_});
  ExpectError("in @main, %1: negate(f32[4]) -> f32[5]: the stated result shape differs");
}

TEST_F(VerifierTest, OperandOfAnotherComputation) {
  Computation* other = module_.AddComputation("other", main_);
  Value foreign = Builder(other).Parameter(kOperandShape);
  main_->Add(Opcode::kNegate, kOperandShape, {foreign});
  ExpectError("of another computation");
}

TEST_F(VerifierTest, TupleResult) {
  main_->set_results({builder_.Tuple({x_})});
  ExpectError("must not be tuples");
}

TEST_F(VerifierTest, ResultOfAnotherComputation) {
  Computation* other = module_.AddComputation("other", main_);
  main_->set_results({Builder(other).Parameter(kOperandShape)});
  ExpectError("a result of @main is not one of its instructions");
}

TEST_F(VerifierTest, ParameterNumbers) {
  main_->Add(Opcode::kParameter, kOperandShape, {}, ParameterAttributes{2});
  ExpectError("parameters are not numbered 0 to 1");
}

TEST_F(VerifierTest, CalleeAfterCaller) {
  Computation* late = module_.AddComputation("late");
  Value y = Builder(late).Parameter(kOperandShape);
  late->set_results({y});
  builder_.Call(late, {x_});
  ExpectError("calls a computation that does not precede");
}

TEST_F(VerifierTest, AliasIndices) {
  module_.input_output_aliases = {{1, 0, false}};
  ExpectError("names result 1 of 1");
  module_.input_output_aliases = {{0, 3, false}};
  ExpectError("names parameter 3 of 1");
  module_.input_output_aliases = {{0, 0, false}, {0, 0, false}};
  ExpectError("in two input-output aliases");
  module_.input_output_aliases.clear();
  module_.buffer_donors = {-1};
  ExpectError("names parameter -1 of 1");
}

}  // namespace
}  // namespace hlo
