#include "cpu/emit/body_emitter.h"

// Reductions over windows.

namespace cpu {

using hlo::Dimensions;
using hlo::Instruction;
using Accumulators = BodyEmitter::Accumulators;

namespace {

// Windows of so few elements are written out, larger ones are loops.
constexpr int64_t kWrittenOut = 36;

int64_t EntryOf(const Dimensions& list, int64_t d, int64_t otherwise) {
  return list.empty() ? otherwise : list[d];
}

// Along such a dimension a window is the element that it gives.
bool IsTrivial(const hlo::Window& window, int64_t d) {
  return window.dimensions[d] == 1 && EntryOf(window.strides, d, 1) == 1 &&
         EntryOf(window.padding_low, d, 0) == 0 && EntryOf(window.padding_high, d, 0) == 0 &&
         EntryOf(window.base_dilations, d, 1) == 1;
}

Accumulators Flat(const std::vector<Element>& elements) {
  Accumulators values;
  for (const Element& element : elements) {
    values.push_back(element.real);
    if (element.imaginary) values.push_back(element.imaginary);
  }
  return values;
}

// The values as elements like these.
std::vector<Element> ElementsLike(std::vector<Element> elements, const Accumulators& values) {
  size_t next = 0;
  for (Element& element : elements) {
    element.real = values[next++];
    if (element.imaginary) element.imaginary = values[next++];
  }
  return elements;
}

}  // namespace

struct BodyEmitter::Windows {
  const Instruction* instruction;
  const hlo::Window& window;
  size_t count;                   // of arrays that are reduced
  Index index;                    // the result's
  std::vector<int64_t> windowed;  // the dimensions along which windows are not trivial
};

BodyEmitter::Value BodyEmitter::EvaluateReduceWindow(const Instruction* instruction, int64_t result,
                                                     const Index& given) {
  Windows windows{
      instruction, instruction->as<hlo::Window>(), instruction->operand_count() / 2, given, {}};
  const Dimensions& from = instruction->shape().is_tuple()
                               ? instruction->shape().tuple_shapes()[0].dimensions()
                               : instruction->dimensions();
  int64_t positions = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
    if (IsTrivial(windows.window, d)) continue;
    windows.windowed.push_back(d);
    windows.index = SplitAt(SplitAt(windows.index, from, d), from, d + 1);
    positions *= windows.window.dimensions[d];
  }
  std::vector<Element> sums;
  for (size_t i = 0; i < windows.count; ++i) {
    sums.push_back(Evaluate(instruction->operand(windows.count + i), {}).element);
  }
  AtInnermost();
  Widen(sums, lanes_ > 1);
  if (positions <= kWrittenOut) {
    for (int64_t p = 0; p < positions; ++p) {
      std::vector<Position> offsets(windows.windowed.size());
      int64_t rest = p;
      for (size_t w = offsets.size(); w-- > 0;) {
        const int64_t size = windows.window.dimensions[windows.windowed[w]];
        offsets[w] = ConstantPosition(rest % size);
        rest /= size;
      }
      sums = CombineAt(windows, offsets, sums);
    }
    return {sums[result], level()};
  }
  const Accumulators all =
      Loop(b_.getInt64(0), b_.getInt64(positions), 1, Flat(sums),
           [&](llvm::Value* variable, const Accumulators& current) {
             std::vector<Position> offsets(windows.windowed.size());
             Position rest = ScalarPosition(variable, level());
             for (size_t w = offsets.size(); w-- > 0;) {
               const int64_t size = windows.window.dimensions[windows.windowed[w]];
               offsets[w] = w == 0 ? rest : Remainder(rest, size);
               if (w > 0) rest = Divide(rest, size);
             }
             return Flat(CombineAt(windows, offsets, ElementsLike(sums, current)));
           });
  return {ElementsLike(sums, all)[result], level()};
}

Index BodyEmitter::IndexAt(const Windows& windows, const std::vector<Position>& offsets,
                           Mask* inside) {
  const hlo::Window& window = windows.window;
  Index index = windows.index;
  for (size_t w = 0; w < windows.windowed.size(); ++w) {
    const int64_t d = windows.windowed[w];
    const Extent size = Size(windows.instruction->operand(0)->dimensions()[d]);
    for (IndexGroup& group : index) {
      if (group.begin != d) continue;
      const int64_t low = EntryOf(window.padding_low, d, 0);
      const int64_t dilation = EntryOf(window.base_dilations, d, 1);
      Position position = Add(Multiply(group.position, EntryOf(window.strides, d, 1)),
                              Multiply(offsets[w], EntryOf(window.window_dilations, d, 1)));
      position = Add(position, -low);
      if (dilation != 1) {
        position = BetweenGaps(position, size, low, dilation, inside);
      } else if (low != 0 || EntryOf(window.padding_high, d, 0) > 0) {
        *inside = AndMask(*inside, InRange(position, size));
      }
      group.position = position;
    }
  }
  return index;
}

std::vector<Element> BodyEmitter::CombineAt(const Windows& windows,
                                            const std::vector<Position>& offsets,
                                            const std::vector<Element>& sums) {
  Mask inside;
  const Index index = IndexAt(windows, offsets, &inside);
  if (IsNever(inside)) return sums;
  const Mask saved = mask_;
  mask_ = AndMask(saved, inside);
  // What a window reads of its border lies beside what it reads of the array.
  mask_.shared = saved.shared;
  std::vector<Element> arguments = sums;
  for (size_t i = 0; i < windows.count; ++i) {
    arguments.push_back(Evaluate(windows.instruction->operand(i), index).element);
  }
  mask_ = saved;
  AtInnermost();
  Widen(arguments);
  std::vector<Element> next = Apply(*windows.instruction->called_computations()[0], arguments);
  for (size_t i = 0; i < windows.count && inside.value; ++i) {
    std::vector<Element> choice = {next[i], sums[i], {inside.value, nullptr}};
    Widen(choice);
    next[i].real = b_.CreateSelect(choice[2].real, choice[0].real, choice[1].real);
    if (choice[0].imaginary) {
      next[i].imaginary = b_.CreateSelect(choice[2].real, choice[0].imaginary, choice[1].imaginary);
    }
  }
  if (lanes_ > 1) {
    for (Element& element : next) element = Splat(element);
  }
  return next;
}

}  // namespace cpu
