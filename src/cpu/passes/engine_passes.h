// The rewrites that only the engine has a use for, in the order of the table (pipeline.cc). Each is
// a file of its own, and runs on any well-formed module. They return true if the module changed.
#pragma once

#include "hlo/module.h"

namespace cpu {

// --- What is known of the engine's devices.

// single_device: programs for one device. Replaces collectives of a world of one by their operands
// (a collective_permute without a pair to itself, and a broadcast to others, by zeros), and
// replica_id and partition_id by 0. Collectives whose results are those of several devices stay.
bool ResolveSingleDevice(hlo::Module& module);

// placements: where in memory a value is to lie. The engine's devices have one memory, which is the
// host's: replaces the custom calls that only move a value between memories
// (annotate_device_placement, MoveToHost, MoveToDevice) by their operand.
bool ResolvePlacements(hlo::Module& module);

// dimension_sizes: replaces get_dimension_size of a static shape by the size, a constant.
bool ResolveDimensionSizes(hlo::Module& module);

// --- Operations that have no kernel of their own.

// expand_empty: operations over nothing whose result is something. Replaces them, so that the
// stages behind need not think of them: a reduction of no elements is its initial value, padding
// around no elements is all padding, and a generator asked for no numbers keeps its state. What is
// no longer used stays.
bool ExpandEmpty(hlo::Module& module);

// attention: makes a kAttentionCall, one library call, of each composite of
// hlo/attention_composite.h, with the transpositions of its operands and results that the library
// reads and writes through.
bool MakeAttentionCalls(hlo::Module& module);

// expand_depthwise: a convolution of each channel by itself, with windows of few positions, along
// one spatial dimension or three, becomes a sum of shifted operands times weights, which fuses; its
// gradient by the weights a sum of products for each position. Both read their operands where they
// are, where a library wants the channels last. Sums are in f32 or f64.
bool ExpandDepthwise(hlo::Module& module);

// expand_select_and_scatter: select_and_scatter (the gradient of pooling) as operations that fuse
// and run on all threads. Becomes a reduce_window that finds each window's winner (the position in
// the operand) and selects that give the source to the winners: one where windows do not overlap,
// else one for each position in a window. Then nothing is scattered, so that elements are
// independent. Only of large windows that overlap the winners are gone through. In all forms what
// an element gets from several windows accumulates in the order of StableHLO's description. Of
// large windows the winners of each dimension are selected from, in an order that StableHLO leaves
// open: of several NaN it may be another one that wins.
bool ExpandSelectAndScatter(hlo::Module& module);

// separate_windows: reduce_window over large windows of several dimensions, whose combiner is one
// operation that takes elements in any order, becomes one for each dimension.
bool SeparateWindows(hlo::Module& module);

// expand_random: rng_bit_generator (ThreeFry2x32-20 and Philox4x32-10, with XLA's numbering of
// elements, so that the bits are the same ones) becomes integer arithmetic on the element's number,
// which fuses with what uses the bits.
bool ExpandRandom(hlo::Module& module);

// expand_remainder: what is left of an f32 by an f32, or of an f64 by an f64, is computed in f64
// from their quotient, exactly, where that is small; the remainder as it was is left for other
// elements, and a kernel passes over it where it has none.
bool ExpandRemainder(hlo::Module& module);

// --- Kernels and library calls.

// element_loops: loops over whole arrays of which each element goes its own way. A `while` that
// runs until a mask has no element left, whose body is element-wise and leaves an element as it is
// once the mask lacks it, becomes a `map` with a loop of scalars. That fuses, stays in registers,
// and takes as many turns for an element as that one (in a kernel: its vector) needs, not as the
// slowest of all does. The numbers are the same. One result of the loop may be read.
bool MakeElementLoops(hlo::Module& module);

// split_reductions: replaces a reduction of many elements to few results by one that reduces equal
// parts, for several threads, and one that reduces those, if a divisor of the reduced size allows.
// The parts depend on the shapes alone, so that results do not depend on the number of threads.
bool SplitReductions(hlo::Module& module);

// expand_short_reductions: a reduction along the last dimensions, of one element or two, becomes
// operations on the slices that hold the first elements and the second ones. A kernel then has a
// row in each lane, where its vectors would be filled by the elements of one row. Sums of 16-bit
// floats are carried in f32.
bool ExpandShortReductions(hlo::Module& module);

// top_k: makes a kTopKCall of each sort and the slices of its results, where these are all that is
// read of it and hold its first elements only, or a few neighbours.
bool MakeTopKCalls(hlo::Module& module);

// fuse_epilogues: replaces a dot_general or convolution, with the chain of bias, residual,
// activation and scale after it, by a composite "cpu.dot" or "cpu.convolution" (library_call.h),
// which does them while its result is in the cache. Only where that saves a loop: the last value of
// the chain is one that is kept in memory anyway. Run it before FuseLoops, which sees composites as
// calls.
bool FuseEpilogues(hlo::Module& module);

// fusion: gathers instructions into kernels. Replaces groups of them by composites whose called
// computation is the group:
//  - "cpu.loop": one loop over the elements of the results, which all have the same dimensions, or
//    over rows: then the body may reduce trailing dimensions, and results of the kept dimensions
//    occur too;
//  - "cpu.reduce": reductions of equal inputs' dimensions, with what feeds them;
//  - "cpu.scan": a running reduction, with what is quickly computed and feeds it;
//  - "cpu.scatter": a scatter of rows, with what feeds them.
// An instruction is evaluated inside its consumer's loop where that saves memory traffic; what
// several kernels need is computed once, as a further result of one of them where possible. Expects
// no calls.
bool FuseLoops(hlo::Module& module);

// single_kernels: a kernel for each operation that is in none yet. Replaces each instruction that
// only generated code computes by a composite of it alone: "cpu.sort", which is never fused,
// "cpu.scatter" of what is no row, and the other kinds where FuseLoops has not run.
bool WrapSingleKernels(hlo::Module& module);

}  // namespace cpu
