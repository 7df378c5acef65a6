// Rewrites that make a program smaller or simpler for any engine, as the engine's table names them
// (cpu/pipeline.cc). Each is a file of its own, and runs on any well-formed module. They return
// true if the module changed. What changes a program's sizes has headers of its own.
#pragma once

#include <cstdint>
#include <functional>

#include "hlo/module.h"

namespace passes {

// --- One body of plain operations.

// expand_composites: a composite names an operation and carries its decomposition: an engine that
// knows the name may use a kernel of its own, every other one takes the decomposition. Replaces
// every `composite` for which `keep` returns false by a copy of its decomposition (whose own
// composites and calls are treated the same way). An empty `keep` keeps none.
bool ExpandComposites(hlo::Module& module,
                      const std::function<bool(const hlo::Instruction& composite)>& keep = {});

// inline_calls: calls and private functions exist for the program's author; the engine sees one
// body. Replaces every `call`, in the entry and in the regions of while, if, case, reduce, …, by a
// copy of its callee's instructions, and drops the functions that nothing reaches any more.
// Metadata stays that of the callee's instructions.
bool InlineCalls(hlo::Module& module);

// expand_batch_norm: batch normalisation as elementwise arithmetic and two reductions, which fuse
// with their neighbours. Replaces batch_norm_training, batch_norm_inference and batch_norm_grad
// (StableHLO's formulas; the variance is the biased one) by reduce, broadcast_in_dim and
// elementwise instructions. f16 and bf16 inputs are computed in f32. The training variance is the
// mean of (x - mean)^2, not E[x^2] - mean^2, which cancels.
bool ExpandBatchNorm(hlo::Module& module);

// widen_types: types that kernels do not compute in. Integers of 2 and 4 bits are computed in those
// of 8, and floating point numbers of 8 bits in f32; after each operation they are rounded to their
// type again. So are factors of triangular systems of 16 bits. Parameters and results of the entry
// keep their types. Throws Error(kUnimplemented) for what has no such form: bits of another width,
// and calls of somebody else's code.
bool WidenTypes(hlo::Module& module);

// --- What makes a program smaller.

// simplify: algebra that never changes a bit of the results. Applies, in a few walks over each
// computation from operands to users:
//   x + 0, x - 0, x * 1, x / 1, x & ones, x | 0, x ^ x, …; division by a power of two as
//   multiplication; x ** 2 as x * x; double negation and complement; select with a constant
//   predicate or equal arms; convert chains that lose nothing; chains of reshape, transpose,
//   broadcast_in_dim, slice, reverse, and those that do nothing; pads of nothing or that only crop;
//   concatenation of one; slices of one piece of a concatenation; dynamic slices at constant
//   starts; get_tuple_element of tuple; transposes of a dot's operands, which become its dimension
//   numbers; reductions over size-1 dimensions; if and case with a constant predicate; a while
//   whose condition is constantly false.
// Safe for NaN, infinities and signed zero: x + 0 goes only where -0 + 0 = +0 cannot show, x * 0
// never for floats. Instructions that die are removed.
bool Simplify(hlo::Module& module);

// fold_constants: arithmetic on constants, done once at compile time. Replaces instructions whose
// operands are all constants by their value, computed by the reference evaluator, when the result
// has at most `max_elements` elements. iota and broadcast_in_dim of a scalar stay as they are: they
// are cheaper to compute than to load, and other passes read them. Control flow, composites, custom
// calls and whatever has side effects or random numbers stay.
bool FoldConstants(hlo::Module& module, int64_t max_elements = 1024);

// common_subexpressions: equal work is done once. Within each computation, replaces an instruction
// by an earlier one with the same opcode, shape, operands (in either order for commutative
// operations), attributes and equal called computations. Parameters, side effects, rng and
// optimization_barrier stay. Called computations that are equal to an earlier one are shared.
bool EliminateCommonSubexpressions(hlo::Module& module);

// dead_code: work that nothing sees is not done. Drops instructions that reach neither a result nor
// a side effect (also inside called computations), loop-carried values of `while` that neither its
// condition, the other values nor the caller use, operands of `if` and `case` that no branch uses,
// and computations that the entry does not reach. The entry's parameters stay.
bool EliminateDeadCode(hlo::Module& module);

// --- Products and convolutions.

// fold_reverse_into_convolution: a convolution flips its kernel itself. Replaces the kernel
// reverse(w, dimensions) of a convolution by w where the dimensions are spatial ones of the kernel,
// and flips window.reversal there. Gradients of a convolution's input are written with such a
// reverse; the engine recognises them by the reversal.
bool FoldReverseIntoConvolution(hlo::Module& module);

// join_sums_of_dots: the gradient of a weight that is used many times is a sum of products; one
// product is faster. Replaces dot(a, b) + dot(c, d) + … by dot(concatenate(a, c, …), concatenate(b,
// d, …)), joined along the contracted dimension, where the partial products are larger than what
// the joined operands copy: unrolled recurrent networks, weights shared between layers. Terms have
// one contracted dimension, no batching dimensions, and no other use; other terms of the sum are
// added to the product. The order of summation changes.
bool JoinSumsOfDots(hlo::Module& module);

// convolution_layout: convolutions and pooling run channels-last, whatever order the program
// writes. Rewrites convolutions whose activations stand as [batch, features, spatial...], and
// windows over such with a stride, to work on their transposes [batch, spatial..., features], and
// carries the transposed form through what follows: elementwise operations, broadcasts, reduce,
// reduce_window, select_and_scatter, pad, slice, reverse, concatenate, further convolutions.
// transpose instructions remain only where such a value enters from or leaves to operations that
// know no order. Kernels stay as they are: routines reorder them anyway. So does an operand that
// one convolution alone reads and that comes in the plain order, and a result that is wanted in it
// alone: the routine turns what it works on while the cache holds it.
//
// Why: the library's kernels for channels-first activations reach 60-75 % of what those for
// channels-last do (f32, 3x3 convolutions of ResNet on AVX-512: 70-90 against 118 GFLOP/s a core;
// weight gradients 50-80 against 110), and copies around every call would cost what they save.
bool UseChannelsLast(hlo::Module& module);

}  // namespace passes
