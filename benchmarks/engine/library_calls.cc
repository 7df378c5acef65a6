// Times the engine's library calls: one line per shape, "name gflops". Threads:
// TORCH_XLA_NUM_THREADS.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cpu/library_call.h"
#include "cpu/memory.h"
#include "cpu/thread_pool.h"
#include "hlo/builder.h"

namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;

double Seconds(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  auto once = [&] {
    auto start = Clock::now();
    run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  once();
  double first = once(), best = first;
  int times = std::clamp(static_cast<int>(0.2 / (first + 1e-9)), 3, 2000);
  for (int i = 0; i < times; ++i) best = std::min(best, once());
  return best;
}

void Report(const std::string& name, Value instruction, double operations) {
  auto call = cpu::BindLibraryCall(*instruction);
  std::vector<cpu::Block> buffers;
  std::vector<const void*> operands;
  for (const hlo::Instruction* operand : instruction->operands()) {
    buffers.emplace_back(operand->shape().byte_size());
    std::memset(buffers.back().data(), 0, operand->shape().byte_size());
    operands.push_back(buffers.back().data());
  }
  cpu::Block result(instruction->shape().byte_size()), scratch(call->scratch_bytes());
  void* results[] = {result.data()};
  cpu::RunOptions options;
  cpu::CallContext context{cpu::ThreadPool::Default(), options, scratch.data()};
  double seconds = Seconds([&] { call->Run(context, operands.data(), results); });
  std::printf("%s %.1f %s\n", name.c_str(), operations / seconds * 1e-9,
              call->Description().c_str());
  std::fflush(stdout);
}

void Gemm(Builder& b, ElementType type, int64_t m, int64_t n, int64_t k) {
  Value x = b.Parameter(Shape(type, {m, k})), y = b.Parameter(Shape(type, {k, n}));
  std::string name = "gemm_" + std::string(hlo::ShortName(type)) + "_" + std::to_string(m) + "x" +
                     std::to_string(n) + "x" + std::to_string(k);
  Report(name, b.MatMul(x, y), 2.0 * m * n * k);
}

// n, inputs, size, outputs, kernel, stride; channels-last activations or channels-first ones,
// torch's kernel.
void Convolutions(Builder& b, int64_t n, int64_t c, int64_t h, int64_t o, int64_t k, int64_t s,
                  bool last) {
  int64_t p = k / 2, oh = (h + 2 * p - k) / s + 1, left = h + 2 * p - k - (oh - 1) * s;
  double operations = 2.0 * n * o * oh * oh * c * k * k;
  hlo::Dimensions spatial = last ? hlo::Dimensions{1, 2} : hlo::Dimensions{2, 3};
  int64_t feature = last ? 3 : 1;
  auto shape = [&](int64_t channels, int64_t size) {
    return Shape(ElementType::kF32, last ? hlo::Dimensions{n, size, size, channels}
                                         : hlo::Dimensions{n, channels, size, size});
  };
  std::string name = "_" + std::to_string(n) + "x" + std::to_string(c) + "x" + std::to_string(h) +
                     "_" + std::to_string(o) + "_k" + std::to_string(k) + "s" + std::to_string(s);
  Value x = b.Parameter(shape(c, h)), y = b.Parameter(shape(o, oh));
  Value w = b.Parameter(Shape(ElementType::kF32, {o, c, k, k}));
  hlo::ConvolutionAttributes a;
  a.dimensions = {0, feature, spatial, 1, 0, {2, 3}, 0, feature, spatial};
  a.window = {{}, {s, s}, {p, p}, {p, p}, {1, 1}, {1, 1}, {false, false}};
  std::string layout = last ? "nhwc" : "nchw";
  Report("fwd_" + layout + name, b.Convolution(x, w, a), operations);
  hlo::ConvolutionAttributes dx = a;
  dx.dimensions = {0, feature, spatial, 0, 1, {2, 3}, 0, feature, spatial};
  int64_t low = k - 1 - p;
  dx.window = {{}, {1, 1}, {low, low}, {low + left, low + left}, {s, s}, {1, 1}, {true, true}};
  Report("dx_" + layout + name, b.Convolution(y, w, dx), operations);
  hlo::ConvolutionAttributes dw = a;
  dw.dimensions = {feature, 0, spatial, 0, feature, spatial, 1, 0, {2, 3}};
  dw.window = {{}, {1, 1}, {p, p}, {p - left, p - left}, {1, 1}, {s, s}, {false, false}};
  Report("dw_" + layout + name, b.Convolution(x, y, dw), operations);
}

}  // namespace

int main() {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder b(module.entry());
  for (int64_t n : {64, 128, 256, 512, 1024, 2048}) Gemm(b, ElementType::kF32, n, n, n);
  for (int64_t n : {256, 1024}) Gemm(b, ElementType::kBF16, n, n, n);
  for (int64_t n : {256, 1024}) Gemm(b, ElementType::kF64, n, n, n);
  Gemm(b, ElementType::kF32, 1, 1024, 1024);
  Gemm(b, ElementType::kF32, 64, 128, 9216);
  Gemm(b, ElementType::kF32, 1024, 1024, 256);
  for (bool last : {true, false}) {
    Convolutions(b, 4, 3, 224, 64, 7, 2, last);
    Convolutions(b, 4, 64, 56, 64, 3, 1, last);
    Convolutions(b, 4, 64, 56, 128, 3, 2, last);
    Convolutions(b, 4, 64, 56, 128, 1, 2, last);
    Convolutions(b, 4, 128, 28, 128, 3, 1, last);
    Convolutions(b, 4, 256, 14, 256, 3, 1, last);
    Convolutions(b, 4, 512, 7, 512, 3, 1, last);
    Convolutions(b, 1, 64, 56, 64, 3, 1, last);
    Convolutions(b, 1, 512, 7, 512, 3, 1, last);
    Convolutions(b, 64, 1, 28, 32, 3, 1, last);
    Convolutions(b, 64, 32, 14, 64, 3, 1, last);
  }
}
