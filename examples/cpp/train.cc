// Trains a small LibTorch module on the xla device for a few steps, and on the CPU for comparison.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "torch_xla/torch_xla.h"

namespace {

struct Net : torch::nn::Module {
  Net() {
    hidden = register_module("hidden", torch::nn::Linear(4, 32));
    out = register_module("out", torch::nn::Linear(32, 1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return out->forward(torch::tanh(hidden->forward(x)));
  }
  torch::nn::Linear hidden{nullptr}, out{nullptr};
};

// The losses of so many steps; the seed makes them alike on every device.
std::vector<float> Train(const torch::Device& device, int steps) {
  torch::manual_seed(0);
  Net net;
  const torch::Tensor x = torch::randn({64, 4}).to(device);
  const torch::Tensor y = (x * x).sum(1, /*keepdim=*/true);
  net.to(device);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  std::vector<torch::Tensor> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::mse_loss(net.forward(x), y);
    loss.backward();
    optimizer.step();
    torch_xla::Sync();
    losses.push_back(loss.detach());
  }
  std::vector<float> values;
  for (const torch::Tensor& loss : losses) values.push_back(loss.cpu().item<float>());
  return values;
}

}  // namespace

int main() {
  const std::vector<float> ours = Train(torch::Device("xla"), 10);
  const std::vector<float> eager = Train(torch::kCPU, 10);
  bool agree = true;
  for (size_t i = 0; i < ours.size(); ++i) {
    std::printf("step %zu: loss %.6f on xla, %.6f on cpu\n", i, ours[i], eager[i]);
    agree = agree && std::abs(ours[i] - eager[i]) <= 1e-4f * std::abs(eager[i]);
  }
  const bool learned = ours.back() < ours.front();
  std::printf("%s, %s\n", agree ? "agree" : "DISAGREE", learned ? "learned" : "DID NOT LEARN");
  return agree && learned ? 0 : 1;
}
