// The steps of a program that run collectives: at once, or begun in one step and awaited in
// another, with computation in between.
#pragma once

#include <string>
#include <vector>

#include "cpu/collective/collective.h"
#include "cpu/step_sequence.h"

namespace cpu {

// Runs a collective and waits for it. `number` is that of the asynchronous collective in the
// program, or -1 for one that is done at once.
class CollectiveStep : public Step {
 public:
  CollectiveStep(Collective collective, std::vector<int32_t> operands, std::vector<int32_t> results,
                 int64_t number)
      : collective_(std::move(collective)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        number_(number) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  Collective collective_;
  std::vector<int32_t> operands_, results_;
  int64_t number_;
};

// Waits for a collective that has been started.
class CollectiveDoneStep : public Step {
 public:
  explicit CollectiveDoneStep(int64_t number) : number_(number) {}
  void Run(const RunState& state) const override { state.started->Wait(number_); }
  std::string ToString() const override { return "await " + std::to_string(number_); }

 private:
  int64_t number_;
};

}  // namespace cpu
