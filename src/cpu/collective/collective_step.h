// The steps of a program that run collectives: at once, or begun in one step and awaited in
// another, with computation in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpu/collective/collectives.h"
#include "cpu/program.h"

namespace cpu {

// Runs a collective and waits for it. `flight` is the number of the collective in the program, or
// -1 for one that is awaited at once.
class CollectiveStep : public Step {
 public:
  CollectiveStep(Collective collective, std::vector<int32_t> operands, std::vector<int32_t> results,
                 int64_t flight)
      : collective_(std::move(collective)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        flight_(flight) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  Collective collective_;
  std::vector<int32_t> operands_, results_;
  int64_t flight_;
};

// Waits for a collective that has been started.
class AwaitStep : public Step {
 public:
  explicit AwaitStep(int64_t flight) : flight_(flight) {}
  void Run(const RunState& state) const override { state.flights->Wait(flight_); }
  std::string ToString() const override { return "await " + std::to_string(flight_); }

 private:
  int64_t flight_;
};

}  // namespace cpu
