// Reductions over windows: pools, running ones, and what scatters through them.
#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;

hlo::Window PoolWindow(hlo::Dimensions size, hlo::Dimensions strides, hlo::Dimensions padding) {
  hlo::Window window = hlo::Window::Trivial(static_cast<int64_t>(size.size()));
  window.dimensions = size;
  window.strides = strides;
  window.padding_low = window.padding_high = padding;
  return window;
}

TEST(Engine, ReduceWindow) {
  const hlo::Window windows[] = {PoolWindow({1, 1, 2, 2}, {1, 1, 2, 2}, {0, 0, 0, 0}),
                                 PoolWindow({1, 1, 3, 3}, {1, 1, 2, 2}, {0, 0, 1, 1}),
                                 PoolWindow({1, 2, 7, 7}, {1, 1, 1, 1}, {0, 0, 3, 3})};
  for (const hlo::Window& window : windows) {
    CheckProgram(
        {F32({2, 3, 8, 10})},
        [&](Builder& b, const Values& p) {
          Value low = b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32));
          Value zero = b.ConstantScalar(ElementType::kF32, 0.0);
          return Values{b.ReduceWindow(p[0], low, window,
                                       b.ScalarCombiner(Opcode::kMaximum, ElementType::kF32)),
                        b.ReduceWindow(b.Tanh(p[0]), zero, window,
                                       b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
        },
        30);
  }
}

// One element is left for the last step of a loop over whole vectors.
TEST(Engine, WindowsOfOneElementMoreThanVectors) {
  hlo::Window window = hlo::Window::Trivial(4);
  window.dimensions = window.strides = {1, 2, 2, 2};
  for (ElementType type : {ElementType::kF32, ElementType::kF64}) {
    CheckProgram({Shape(type, {3, 6, 6, 6})}, [&](Builder& b, const Values& p) {
      return Values{b.ReduceWindow(p[0], b.ConstantScalar(type, 0.0), window,
                                   b.ScalarCombiner(Opcode::kAdd, type))};
    });
  }
}

TEST(Engine, CumulativeSums) {
  for (int64_t d : {0, 1, 2}) {
    for (bool reverse : {false, true}) {
      CheckProgram(
          {F32({9, 20, 12})},
          [&](Builder& b, const Values& p) {
            hlo::Window window = hlo::Window::Trivial(3);
            window.dimensions[d] = p[0]->dimensions()[d];
            (reverse ? window.padding_high : window.padding_low)[d] = p[0]->dimensions()[d] - 1;
            return Values{b.ReduceWindow(p[0], b.ConstantScalar(ElementType::kF32, 0.0), window,
                                         b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
          },
          30);
    }
  }
}

// Rows are scanned by vectors where the type has vectors, and have a rest or none.
TEST(Engine, RunningExtremesOfRowsOfEveryKind) {
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kS8,
                           ElementType::kC64, ElementType::kC128}) {
    for (Opcode extreme : {Opcode::kMaximum, Opcode::kMinimum}) {
      for (int64_t length : {1, 31, 64, 65}) {
        CheckProgram({Shape(type, {3, length})}, [&](Builder& b, const Values& p) {
          hlo::Window window = hlo::Window::Trivial(2);
          window.dimensions[1] = length;
          window.padding_low[1] = length - 1;
          Value least = b.ConstantScalar(type, extreme == Opcode::kMaximum ? -10.0 : 10.0);
          return Values{b.ReduceWindow(p[0], least, window, b.ScalarCombiner(extreme, type))};
        });
      }
    }
  }
}

// The last element that is read may be the last one of its array.
TEST(Engine, EverySecondElement) {
  for (ElementType type :
       {ElementType::kF32, ElementType::kF64, ElementType::kS8, ElementType::kC64}) {
    for (int64_t start : {0, 1, 2}) {
      CheckProgram({Shape(type, {5, 129})}, [&](Builder& b, const Values& p) {
        Value second = b.Slice(p[0], {0, start}, {5, 129}, {1, 2});
        return Values{b.Negate(second), b.Reverse(second, {1}),
                      b.Pad(second, b.Zeros(Shape::Scalar(type)), {0, 3}, {0, 2}, {0, 0})};
      });
    }
  }
}

// Extremes and the positions of the latest among equals.
TEST(Engine, ScansOfPairs) {
  for (const Dimensions& shape : {Dimensions{9, 20, 12}, Dimensions{13, 9}, Dimensions{2, 8, 70}}) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 8) continue;
      for (bool reverse : {false, true}) {
        CheckProgram({Shape(ElementType::kS16, shape)}, [&](Builder& b, const Values& p) {
          hlo::Window window = hlo::Window::Trivial(static_cast<int64_t>(shape.size()));
          window.dimensions[d] = shape[d];
          (reverse ? window.padding_high : window.padding_low)[d] = shape[d] - 1;
          const Shape value = Shape::Scalar(ElementType::kF32);
          const Shape position = Shape::Scalar(ElementType::kS64);
          auto* later = b.Region(
              "later", {value, position, value, position}, [](Builder& r, const Values& q) {
                Value wins = r.Ge(q[2], q[0]);
                return Values{r.Select(wins, q[2], q[0]), r.Select(wins, q[3], q[1])};
              });
          Value low = b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32));
          Value both = b.Create(Opcode::kReduceWindow,
                                {b.Convert(p[0], ElementType::kF32),
                                 b.Iota(Shape(ElementType::kS64, shape), static_cast<int64_t>(d)),
                                 low, b.Zeros(position)},
                                window, {later});
          return Values{b.GetTupleElement(both, 0), b.GetTupleElement(both, 1)};
        });
      }
    }
  }
}

// Lanes run along the rows where much is computed of each element.
TEST(Engine, ScansByAnExpensiveOperation) {
  for (int64_t rows : {1, 5, 37}) {
    CheckProgram(
        {Shape(ElementType::kF64, {rows, 11})},
        [&](Builder& b, const Values& p) {
          hlo::Window window = hlo::Window::Trivial(2);
          window.dimensions[1] = 11;
          window.padding_low[1] = 10;
          const Shape scalar = Shape::Scalar(ElementType::kF64);
          auto* join = b.Region("join", {scalar, scalar}, [](Builder& r, const Values& q) {
            return Values{r.Log(r.Add(r.Exp(q[0]), r.Exp(q[1])))};
          });
          return Values{b.ReduceWindow(b.Multiply(p[0], p[0]),
                                       b.ConstantScalar(ElementType::kF64, -INFINITY), window,
                                       join)};
        },
        100);
  }
}

TEST(Engine, SelectAndScatter) {
  const hlo::Window windows[] = {PoolWindow({1, 1, 2, 2}, {1, 1, 2, 2}, {0, 0, 0, 0}),
                                 PoolWindow({1, 1, 3, 3}, {1, 1, 2, 2}, {0, 0, 1, 1})};
  for (const hlo::Window& window : windows) {
    int64_t h = (8 + 2 * window.padding_low[2] - window.dimensions[2]) / 2 + 1;
    int64_t w = (10 + 2 * window.padding_low[3] - window.dimensions[3]) / 2 + 1;
    CheckProgram(
        {F32({2, 3, 8, 10}), F32({2, 3, h, w})},
        [&](Builder& b, const Values& p) {
          const Shape scalar = F32({});
          auto* select = b.Region("select", {scalar, scalar}, [](Builder& r, const Values& q) {
            return Values{r.Ge(q[0], q[1])};
          });
          return Values{b.SelectAndScatter(p[0], p[1], b.ConstantScalar(ElementType::kF32, 0.0),
                                           window, select,
                                           b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
        },
        10);
  }
}

}  // namespace
}  // namespace cpu
