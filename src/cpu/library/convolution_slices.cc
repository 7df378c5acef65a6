// How the work of a convolution is cut into calls of the library.
#include <algorithm>

#include "cpu/library/convolution_plan.h"
#include "cpu/thread_pool.h"

namespace cpu {
namespace {

using hlo::CeilDivide;
using Slice = ConvolutionPlan::Slice;
using Staging = ConvolutionPlan::Staging;
using Kind = ConvolutionProblem::Kind;

Slice WholeSlice(const ConvolutionPlan& plan) {
  return {0, plan.problem.batch, 0, plan.problem.y[0], 0, plan.result_channels()};
}

void CutBatch(ConvolutionPlan& plan, int64_t pieces) {
  const int64_t batch = plan.problem.batch;
  const int64_t size = CeilDivide(batch, pieces);
  for (int64_t begin = 0; begin < batch; begin += size) {
    Slice slice = WholeSlice(plan);
    slice.batch_begin = begin;
    slice.batch_end = std::min(batch, begin + size);
    plan.slices.push_back(slice);
  }
}

void CutRows(ConvolutionPlan& plan, int64_t pieces_per_image) {
  const int64_t rows = plan.problem.y[0];
  const int64_t size = CeilDivide(rows, pieces_per_image);
  for (int64_t n = 0; n < plan.problem.batch; ++n) {
    for (int64_t row = 0; row < rows; row += size) {
      Slice slice = WholeSlice(plan);
      slice.batch_begin = n;
      slice.batch_end = n + 1;
      slice.row_begin = row;
      slice.row_end = std::min(rows, row + size);
      plan.slices.push_back(slice);
    }
  }
}

void CutChannels(ConvolutionPlan& plan, int64_t pieces) {
  constexpr int64_t kLibrarysBlock = 16;
  const int64_t channels = plan.result_channels();
  const int64_t size = hlo::RoundUp(CeilDivide(channels, pieces), kLibrarysBlock);
  for (int64_t begin = 0; begin < channels; begin += size) {
    Slice slice = WholeSlice(plan);
    slice.channel_begin = begin;
    slice.channel_end = std::min(channels, begin + size);
    plan.slices.push_back(slice);
  }
}

// Elements of an image that are copied.
int64_t StagedElements(const ConvolutionPlan& plan) {
  int64_t elements = 0;
  for (const auto* tensor : {&plan.x, &plan.y}) {
    if (tensor->staging != Staging::kSlices) continue;
    elements += hlo::Product(tensor->view.dimensions) / plan.problem.batch;
  }
  return elements;
}

// What is copied is used and gone before others take its place in the cache. False where it is
// little.
bool CutForCache(ConvolutionPlan& plan, int64_t wanted) {
  constexpr int64_t kCachedBytes = 384 << 10;
  const ConvolutionProblem& p = plan.problem;
  const int64_t image = StagedElements(plan) * static_cast<int64_t>(hlo::ByteWidth(plan.type));
  if (image * p.batch <= kCachedBytes) return false;
  // Slices share the rows that both their windows reach.
  const int64_t kernel = (p.w[0] - 1) * p.dilation[0] + 1;
  const int64_t least_rows = 4 + 2 * kernel / p.stride[0];
  const int64_t most_pieces = p.kind == Kind::kForward ? p.y[0] / least_rows : 1;
  const int64_t pieces =
      std::min(most_pieces, std::max(CeilDivide(image, kCachedBytes), CeilDivide(wanted, p.batch)));
  // A thread keeps the memory of its copies; a program's is given back.
  constexpr int64_t kMostKeptBytes = 4 << 20;
  if (image > kMostKeptBytes * std::max<int64_t>(pieces, 1)) {
    for (auto* tensor : {&plan.x, &plan.y}) {
      if (tensor->staging == Staging::kSlices) tensor->staging = Staging::kWhole;
    }
    return false;
  }
  if (pieces > 1) {
    CutRows(plan, pieces);
    return true;
  }
  const int64_t batches = CeilDivide(image * p.batch, kCachedBytes);
  if (p.batch < std::max(batches, wanted) && p.batch < 2 * wanted) return false;
  CutBatch(plan, std::min(p.batch, std::max(batches, wanted)));
  return true;
}

// Partial sums cost one pass over a copy of the gradient each, channel blocks a copy of y: the
// cheaper one.
void CutWeightGradient(ConvolutionPlan& plan, int64_t wanted) {
  const ConvolutionProblem& p = plan.problem;
  const int64_t w_elements = p.outputs * p.inputs / p.groups * hlo::Product(p.w);
  const int64_t y_elements = p.batch * p.outputs * hlo::Product(p.y);
  const bool by_channels = p.groups == 1 && p.outputs >= 16 * wanted && wanted > 1 &&
                           (w_elements * wanted > y_elements || p.batch < wanted);
  if (by_channels) return CutChannels(plan, wanted);
  CutBatch(plan, std::min(wanted, p.batch));
}

// Whether the weights are more to read than the activations, so that each thread is better given
// its own.
bool IsMadeOfWeights(const ConvolutionProblem& p) {
  const int64_t w = p.outputs * p.inputs / p.groups * hlo::Product(p.w);
  const int64_t activations =
      p.batch * (p.inputs * hlo::Product(p.x) + p.outputs * hlo::Product(p.y));
  return w > activations;
}

}  // namespace

void PlanConvolutionSlices(ConvolutionPlan& plan) {
  const ConvolutionProblem& p = plan.problem;
  const int64_t threads = ThreadPool::Default().num_threads();
  const double work = p.FloatingPointOperations();
  const auto worth = static_cast<int64_t>(work / 1e6);
  int64_t wanted = threads == 1 ? 1 : std::clamp<int64_t>(worth, 1, threads);
  if (p.kind == Kind::kWeightGradient) return CutWeightGradient(plan, wanted);
  if (threads > 1 && work > 40e6 * static_cast<double>(threads)) wanted = 4 * threads;
  if (CutForCache(plan, wanted)) return;
  if (p.batch >= wanted || p.batch >= 2 * threads) {
    return CutBatch(plan, std::min(wanted, p.batch));
  }
  const bool forward = p.kind == Kind::kForward;
  const bool few_images = p.batch % threads != 0;
  if (few_images && p.groups == 1 && plan.result_channels() >= 64 &&
      (!forward || IsMadeOfWeights(p))) {
    return CutChannels(plan, std::min(wanted, threads));
  }
  if (few_images && forward && p.y[0] >= 4) return CutRows(plan, CeilDivide(wanted, p.batch));
  CutBatch(plan, std::min(wanted, p.batch));
}

}  // namespace cpu
