// Which dimensions of a computation's values have the same size because of what its instructions
// do, whatever that size is: those of an element-wise operation's operands and its result, the
// contracted ones of a product, what a reshape keeps.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace passes {

class SizeClasses {
 public:
  explicit SizeClasses(const hlo::Computation& computation);

  // The class of dimension `d` of a value, or of element `element` of a tuple.
  int Of(const hlo::Instruction* value, int64_t d, int64_t element = 0) const;
  // Its size.
  int64_t size(int c) const { return classes_[Root(c)].size; }
  // Says that sizes of this class differ from program to program; so then do those made of it.
  void MarkVarying(int c);
  bool Varies(int c) const;
  // The classes that dimension is made of, the slowest first, where a reshape joined dimensions
  // into it; itself alone otherwise. Of sizes other than 1.
  std::vector<int> Factors(int c) const;
  // False where the instructions want a class to be made of different factors.
  bool IsConsistent(int c) const;

 private:
  struct Class {
    int parent = -1;  // -1: a root
    int64_t size = 0;
    bool varies = false, is_consistent = true;
    std::vector<int> factors;
  };

  int Root(int c) const;
  void Add(const hlo::Instruction* value);
  void Join(int a, int b);
  void SetFactors(int c, std::vector<int> factors);
  // Dimension a of x and b of y, if their sizes are equal.
  void Join(const hlo::Instruction* x, int64_t a, const hlo::Instruction* y, int64_t b);
  void JoinAll(const hlo::Instruction* x, const hlo::Instruction* y);
  void JoinInstruction(const hlo::Instruction* instruction);
  void JoinReshape(const hlo::Instruction* reshape);
  void JoinReduce(const hlo::Instruction* reduce);
  void JoinSort(const hlo::Instruction* sort);
  void JoinDot(const hlo::Instruction* dot);
  void JoinGather(const hlo::Instruction* gather);
  void JoinScatter(const hlo::Instruction* scatter);
  void JoinWindowed(const hlo::Instruction* instruction, const hlo::Window& window);
  void JoinConvolution(const hlo::Instruction* convolution);

  std::unordered_map<const hlo::Instruction*, std::vector<int>> first_;  // by element of a tuple
  std::vector<Class> classes_;
};

// Dimensions of `rank` that are in none of the lists, in order.
hlo::Dimensions OtherDimensions(int64_t rank, const hlo::Dimensions& a,
                                const hlo::Dimensions& b = {});

// Groups of dimensions of a reshape's operand and result that hold the same elements in the same
// order; dimensions of size 1 are in none.
struct ReshapeGroup {
  hlo::Dimensions operand, result;
};
std::vector<ReshapeGroup> ReshapeGroups(const hlo::Dimensions& operand,
                                        const hlo::Dimensions& result);

}  // namespace passes
