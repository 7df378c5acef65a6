// What torch sees of a storage on the device: a c10::Storage of its size that has no memory. It
// tells by its identity, and by a number that stands for its address, which tensors share memory;
// DistributedDataParallel, safetensors and torch.save ask that. Whoever would read or write memory
// there gets an error, or goes through `Tensor.set_`, which finds the storage again.
#pragma once

#include <c10/core/Storage.h>

#include "lazy/storage.h"

namespace torch_xla {

// The same one for all tensors of a storage; as long as the storage lives, it is its own.
const c10::Storage& FaceOf(lazy::Storage& storage);
// The storage whose face this is; null if it has none, or if no tensor shows it any longer.
lazy::Reference<lazy::Storage> StorageOf(const c10::StorageImpl* face);
// What `data_ptr()` answers for a storage's first byte: never used twice, and a gigabyte apart.
uint64_t AddressOf(const lazy::Storage& storage);

}  // namespace torch_xla
