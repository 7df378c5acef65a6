// Operations between processes, recorded as any other. They run with the next sync, in the order
// of recording, whether or not a result is wanted, so that processes whose programs differ
// elsewhere still meet.
//
// `groups` are lists of ranks, each of which works among itself; this process's must be there.
// Upstream: torch_xla.core.xla_model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace torch_xla {

using RankGroups = std::vector<std::vector<int64_t>>;

// The reduction of each tensor over the group, times `scale`, in the tensor's type. `reduction` is
// "sum", "mul", "min", "max", "and" or "or"; the last two work on the bits of integers, and tell
// zero from nonzero for other numbers. Throws c10::Error for another reduction.
std::vector<at::Tensor> AllReduce(const std::vector<at::Tensor>& tensors,
                                  const std::string& reduction, double scale,
                                  const RankGroups& groups);
// The same, written into the tensors.
void AllReduceInPlace(const std::vector<at::Tensor>& tensors, const std::string& reduction,
                      double scale, const RankGroups& groups);
// The group's tensors, each of one shape in all processes, along `dimension` in the order of the
// group; of numbers a vector. Those of one type travel together.
std::vector<at::Tensor> AllGather(const std::vector<at::Tensor>& tensors, int64_t dimension,
                                  const RankGroups& groups);
// This process's part, along `dimension`, of the reduction.
at::Tensor ReduceScatter(const at::Tensor& tensor, const std::string& reduction, double scale,
                         int64_t dimension, const RankGroups& groups);
// Part i along `split_dimension` goes to the group's process i; what comes is concatenated along
// `concat_dimension`.
at::Tensor AllToAll(const at::Tensor& tensor, int64_t split_dimension, int64_t concat_dimension,
                    int64_t split_count, const RankGroups& groups);
// Goes along the (source, target) pairs of ranks; who is no target gets zeros.
at::Tensor CollectivePermute(const at::Tensor& tensor, const RankGroups& pairs);
// The tensor of each group's first process.
at::Tensor CollectiveBroadcast(const at::Tensor& tensor, const RankGroups& groups);

}  // namespace torch_xla
