// Copies between strided tensors with a change of element type: packing an operand for a library
// that wants dense memory of one type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/thread_pool.h"
#include "hlo/shape.h"

namespace cpu {

// Writes a dense row-major tensor of `dimensions` and type `to` at `destination`; element (i0, i1,
// …) is read at sum(i * strides) from `source` of type `from`. Numbers convert as C++ does; complex
// from real has imaginary part 0. Throws hlo::Error for types without a C++ counterpart.
void PackStrided(ThreadPool& threads, const hlo::Dimensions& dimensions,
                 const hlo::Dimensions& strides, const void* source, hlo::ElementType from,
                 void* destination, hlo::ElementType to);

// Copies floats of `width` bytes, 2, 4 or 8, on the calling thread: element (i0, i1, …) lies at
// sum(i * from) of the source and at sum(i * to) of the destination.
void CopyStrided(const hlo::Dimensions& dimensions, const hlo::Dimensions& from,
                 const hlo::Dimensions& to, const void* source, void* destination, size_t width);

// Dense runs, on the calling thread.
void ConvertRow(const void* source, hlo::ElementType from, void* destination, hlo::ElementType to,
                int64_t count);

}  // namespace cpu
