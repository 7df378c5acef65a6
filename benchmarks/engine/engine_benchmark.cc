// Times single programs on the engine: milliseconds, and bytes read and written per second.
//   engine_benchmark [name…]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cpu/executable.h"
#include "cpu/memory.h"
#include "hlo/builder.h"

namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;
using Values = std::vector<Value>;
using Clock = std::chrono::steady_clock;

Shape F32(Dimensions dimensions) { return Shape(ElementType::kF32, std::move(dimensions)); }

// Of all threads of the process: steady on a busy machine.
double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double Milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

void Time(const std::string& name, const std::vector<Shape>& shapes,
          const std::function<Values(Builder&, const Values&)>& body) {
  hlo::Module module(name);
  auto* entry = module.AddComputation("main");
  module.set_entry(entry);
  Builder builder(entry);
  Values parameters;
  for (const Shape& shape : shapes) parameters.push_back(builder.Parameter(shape));
  entry->set_results(body(builder, parameters));
  auto start = Clock::now();
  const double cpu_start = CpuMilliseconds();
  auto executable = cpu::Compile(module);
  const double compile = CpuMilliseconds() - cpu_start;
  std::vector<cpu::Block> blocks;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  double bytes = 0;
  for (const Shape& shape : shapes) {
    blocks.emplace_back(shape.byte_size());
    auto* data = static_cast<float*>(blocks.back().data());
    if (shape.element_type() == ElementType::kF32) {
      for (int64_t i = 0; i < shape.num_elements(); ++i)
        data[i] = static_cast<float>(i % 1000) * 1e-3f;
    } else {
      std::memset(data, 0, shape.byte_size());
    }
    inputs.push_back(blocks.back().data());
    bytes += static_cast<double>(shape.byte_size());
  }
  for (const Shape& shape : executable->result_shapes()) {
    blocks.emplace_back(shape.byte_size());
    std::memset(blocks.back().data(), 0, shape.byte_size());
    outputs.push_back(blocks.back().data());
    bytes += static_cast<double>(shape.byte_size());
  }
  std::vector<double> times;
  executable->Run(inputs, outputs, {});
  const double cpu_begin = CpuMilliseconds();
  const auto begin = Clock::now();
  while (times.size() < 5 || (Milliseconds(begin) < 400 && times.size() < 2000)) {
    start = Clock::now();
    executable->Run(inputs, outputs, {});
    times.push_back(Milliseconds(start));
  }
  const double cpu = (CpuMilliseconds() - cpu_begin) / static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf(
      "%-22s %9.4f ms (best %9.4f, CPU %9.4f)  %6.1f GB/s  compile %6.1f CPU ms  arena %lld KiB\n",
      name.c_str(), median, times[0], cpu, bytes / cpu * 1e-6, compile,
      static_cast<long long>(executable->arena_bytes() / 1024));
  std::fflush(stdout);
}

Value RowSoftmax(Builder& b, Value x) {
  Dimensions dims = x->dimensions();
  Value maximum = b.Reduce(Opcode::kMaximum, x, {1});
  Value e = b.Exp(b.Subtract(x, b.BroadcastInDim(maximum, dims, {0})));
  return b.Divide(e, b.BroadcastInDim(b.Reduce(Opcode::kAdd, e, {1}), dims, {0}));
}

Value LayerNorm(Builder& b, Value x, Value scale, Value shift) {
  Dimensions dims = x->dimensions();
  Shape rows = F32({dims[0]});
  Value n = b.Full(rows, static_cast<double>(dims[1]));
  Value mean = b.Divide(b.Reduce(Opcode::kAdd, x, {1}), n);
  Value centered = b.Subtract(x, b.BroadcastInDim(mean, dims, {0}));
  Value variance = b.Divide(b.Reduce(Opcode::kAdd, b.Multiply(centered, centered), {1}), n);
  Value rstd = b.Rsqrt(b.Add(variance, b.Full(rows, 1e-5)));
  Value y = b.Multiply(centered, b.BroadcastInDim(rstd, dims, {0}));
  return b.Add(b.Multiply(y, b.BroadcastInDim(scale, dims, {1})),
               b.BroadcastInDim(shift, dims, {1}));
}

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Values(Builder&, const Values&)> body;
};

std::vector<Case> Cases() {
  const Dimensions big = {4096, 4096};
  std::vector<Case> cases;
  cases.push_back({"scalar_add", {F32({}), F32({})}, [](Builder& b, const Values& p) {
                     return Values{b.Add(p[0], p[1])};
                   }});
  cases.push_back({"add_small", {F32({64}), F32({64})}, [](Builder& b, const Values& p) {
                     return Values{b.Add(p[0], p[1])};
                   }});
  cases.push_back({"add", {F32(big), F32(big)}, [](Builder& b, const Values& p) {
                     return Values{b.Add(p[0], p[1])};
                   }});
  for (Opcode opcode : {Opcode::kExponential, Opcode::kLog, Opcode::kTanh, Opcode::kLogistic,
                        Opcode::kSqrt, Opcode::kSine}) {
    cases.push_back(
        {std::string(hlo::Name(opcode)), {F32({1 << 18})}, [opcode](Builder& b, const Values& p) {
           return Values{b.Unary(opcode, p[0])};
         }});
  }
  for (const Dimensions& dims : {Dimensions{512, 512}, big}) {
    cases.push_back(
        {dims == big ? "chain" : "chain_small", {F32(dims)}, [dims](Builder& b, const Values& p) {
           Value x = p[0];
           for (int i = 0; i < 4; ++i) {
             x = b.Multiply(b.Tanh(x), b.Full(F32(dims), 1.5));
             x = b.Add(b.Exp(b.Negate(x)), b.Full(F32(dims), 0.1));
             x = b.Sqrt(b.Abs(x));
           }
           return Values{x};
         }});
  }
  cases.push_back({"softmax", {F32({4096, 1024})}, [](Builder& b, const Values& p) {
                     return Values{RowSoftmax(b, p[0])};
                   }});
  cases.push_back(
      {"layer_norm",
       {F32({4096, 1024}), F32({1024}), F32({1024})},
       [](Builder& b, const Values& p) { return Values{LayerNorm(b, p[0], p[1], p[2])}; }});
  cases.push_back({"transpose", {F32(big)}, [](Builder& b, const Values& p) {
                     return Values{b.Transpose(p[0], {1, 0})};
                   }});
  cases.push_back({"transpose_heads", {F32({8, 128, 8, 64})}, [](Builder& b, const Values& p) {
                     return Values{b.Transpose(p[0], {0, 2, 1, 3})};
                   }});
  cases.push_back({"column_sum", {F32(big)}, [](Builder& b, const Values& p) {
                     return Values{b.Reduce(Opcode::kAdd, p[0], {0})};
                   }});
  cases.push_back({"row_sum", {F32(big)}, [](Builder& b, const Values& p) {
                     return Values{b.Reduce(Opcode::kAdd, p[0], {1})};
                   }});
  cases.push_back({"full_sum", {F32(big)}, [](Builder& b, const Values& p) {
                     return Values{b.Reduce(Opcode::kAdd, p[0], {0, 1})};
                   }});
  cases.push_back({"channel_sum_nchw", {F32({4, 64, 112, 112})}, [](Builder& b, const Values& p) {
                     return Values{b.Reduce(Opcode::kAdd, p[0], {0, 2, 3})};
                   }});
  cases.push_back({"channel_sum_nhwc", {F32({4, 112, 112, 64})}, [](Builder& b, const Values& p) {
                     return Values{b.Reduce(Opcode::kAdd, p[0], {0, 1, 2})};
                   }});
  hlo::Window pool = hlo::Window::Trivial(4);
  pool.dimensions = {1, 1, 3, 3};
  pool.strides = {1, 1, 2, 2};
  pool.padding_low = pool.padding_high = {0, 0, 1, 1};
  cases.push_back({"max_pool", {F32({4, 64, 112, 112})}, [pool](Builder& b, const Values& p) {
                     Value low =
                         b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32));
                     return Values{b.ReduceWindow(
                         p[0], low, pool, b.ScalarCombiner(Opcode::kMaximum, ElementType::kF32))};
                   }});
  cases.push_back({"max_pool_gradient",
                   {F32({4, 64, 112, 112}), F32({4, 64, 56, 56})},
                   [pool](Builder& b, const Values& p) {
                     auto* select = b.Region(
                         "select", {F32({}), F32({})},
                         [](Builder& r, const Values& q) { return Values{r.Ge(q[0], q[1])}; });
                     return Values{b.SelectAndScatter(
                         p[0], p[1], b.ConstantScalar(ElementType::kF32, 0.0), pool, select,
                         b.ScalarCombiner(Opcode::kAdd, ElementType::kF32))};
                   }});
  cases.push_back({"philox", {Shape(ElementType::kU64, {2})}, [](Builder& b, const Values& p) {
                     Value pair = b.RngBitGenerator(p[0], hlo::RngAlgorithm::kPhilox,
                                                    Shape(ElementType::kU32, {1 << 22}));
                     return Values{b.GetTupleElement(pair, 1)};
                   }});
  cases.push_back({"embedding_gradient",
                   {F32({10000, 256}), Shape(ElementType::kS32, {4096, 1}), F32({4096, 256})},
                   [](Builder& b, const Values& p) {
                     hlo::ScatterAttributes attributes;
                     attributes.update_window_dims = {1};
                     attributes.inserted_window_dims = {0};
                     attributes.scatter_dims_to_operand_dims = {0};
                     attributes.index_vector_dim = 1;
                     return Values{b.Scatter(p[0], p[1], p[2],
                                             b.ScalarCombiner(Opcode::kAdd, ElementType::kF32),
                                             attributes)};
                   }});
  for (int cells : {32, 200}) {
    // Unrolled, forward: matrix products, gates as slices, element-wise updates.
    cases.push_back({"lstm_" + std::to_string(cells),
                     {F32({cells, 16, 128}), F32({128, 512}), F32({128, 512}), F32({512})},
                     [cells](Builder& b, const Values& p) {
                       Value h = b.Zeros(F32({16, 128})), c = h;
                       for (int t = 0; t < cells; ++t) {
                         Value x = b.Reshape(b.SliceInDim(p[0], 0, t, t + 1), {16, 128});
                         Value g = b.Add(b.MatMul(x, p[1]), b.MatMul(h, p[2]));
                         g = b.Add(g, b.BroadcastInDim(p[3], {16, 512}, {1}));
                         auto gate = [&](int i) {
                           return b.SliceInDim(g, 1, i * 128, (i + 1) * 128);
                         };
                         c = b.Add(b.Multiply(b.Logistic(gate(0)), c),
                                   b.Multiply(b.Logistic(gate(1)), b.Tanh(gate(2))));
                         h = b.Multiply(b.Logistic(gate(3)), b.Tanh(c));
                       }
                       return Values{h, c};
                     }});
  }
  cases.push_back({"matmul",
                   {F32({1024, 1024}), F32({1024, 1024})},
                   [](Builder& b, const Values& p) { return Values{b.MatMul(p[0], p[1])}; }});
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const Case& c : Cases()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), c.name) == wanted.end())
      continue;
    Time(c.name, c.shapes, c.body);
  }
  return 0;
}
