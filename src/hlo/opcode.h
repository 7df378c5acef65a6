// The operations: StableHLO's op set under StableHLO's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hlo {

// X(enumerator, StableHLO mnemonic, types: p(red), s(igned), u(nsigned), f(loat), c(omplex))
#define HLO_ELEMENTWISE_UNARY_OPCODES(X)                 \
  X(kAbs, "abs", "sfc")                                  \
  X(kCbrt, "cbrt", "fc")                                 \
  X(kCeil, "ceil", "f")                                  \
  X(kCosine, "cosine", "fc")                             \
  X(kCountLeadingZeros, "count_leading_zeros", "su")     \
  X(kExponential, "exponential", "fc")                   \
  X(kExponentialMinusOne, "exponential_minus_one", "fc") \
  X(kFloor, "floor", "f")                                \
  X(kImag, "imag", "fc")                                 \
  X(kIsFinite, "is_finite", "f")                         \
  X(kLog, "log", "fc")                                   \
  X(kLogPlusOne, "log_plus_one", "fc")                   \
  X(kLogistic, "logistic", "fc")                         \
  X(kNegate, "negate", "sufc")                           \
  X(kNot, "not", "psu")                                  \
  X(kPopcnt, "popcnt", "su")                             \
  X(kReal, "real", "fc")                                 \
  X(kRoundNearestAfz, "round_nearest_afz", "f")          \
  X(kRoundNearestEven, "round_nearest_even", "f")        \
  X(kRsqrt, "rsqrt", "fc")                               \
  X(kSign, "sign", "sfc")                                \
  X(kSine, "sine", "fc")                                 \
  X(kSqrt, "sqrt", "fc")                                 \
  X(kTan, "tan", "fc")                                   \
  X(kTanh, "tanh", "fc")

#define HLO_ELEMENTWISE_BINARY_OPCODES(X)                  \
  X(kAdd, "add", "psufc")                                  \
  X(kAnd, "and", "psu")                                    \
  X(kAtan2, "atan2", "fc")                                 \
  X(kComplex, "complex", "f")                              \
  X(kDivide, "divide", "sufc")                             \
  X(kMaximum, "maximum", "psufc")                          \
  X(kMinimum, "minimum", "psufc")                          \
  X(kMultiply, "multiply", "psufc")                        \
  X(kOr, "or", "psu")                                      \
  X(kPower, "power", "sufc")                               \
  X(kRemainder, "remainder", "sufc")                       \
  X(kShiftLeft, "shift_left", "su")                        \
  X(kShiftRightArithmetic, "shift_right_arithmetic", "su") \
  X(kShiftRightLogical, "shift_right_logical", "su")       \
  X(kSubtract, "subtract", "sufc")                         \
  X(kXor, "xor", "psu")

#define HLO_OTHER_OPCODES(X)                            \
  X(kAfterAll, "after_all")                             \
  X(kAllGather, "all_gather")                           \
  X(kAllReduce, "all_reduce")                           \
  X(kAllToAll, "all_to_all")                            \
  X(kBatchNormGrad, "batch_norm_grad")                  \
  X(kBatchNormInference, "batch_norm_inference")        \
  X(kBatchNormTraining, "batch_norm_training")          \
  X(kBitcastConvert, "bitcast_convert")                 \
  X(kBroadcastInDim, "broadcast_in_dim")                \
  X(kCall, "call")                                      \
  X(kCase, "case")                                      \
  X(kCholesky, "cholesky")                              \
  X(kClamp, "clamp")                                    \
  X(kCollectiveBroadcast, "collective_broadcast")       \
  X(kCollectivePermute, "collective_permute")           \
  X(kCompare, "compare")                                \
  X(kComposite, "composite")                            \
  X(kConcatenate, "concatenate")                        \
  X(kConstant, "constant")                              \
  X(kConvert, "convert")                                \
  X(kConvolution, "convolution")                        \
  X(kCustomCall, "custom_call")                         \
  X(kDotGeneral, "dot_general")                         \
  X(kDynamicBroadcastInDim, "dynamic_broadcast_in_dim") \
  X(kDynamicConv, "dynamic_conv")                       \
  X(kDynamicGather, "dynamic_gather")                   \
  X(kDynamicIota, "dynamic_iota")                       \
  X(kDynamicPad, "dynamic_pad")                         \
  X(kDynamicReshape, "dynamic_reshape")                 \
  X(kDynamicSlice, "dynamic_slice")                     \
  X(kDynamicUpdateSlice, "dynamic_update_slice")        \
  X(kFft, "fft")                                        \
  X(kGather, "gather")                                  \
  X(kGetDimensionSize, "get_dimension_size")            \
  X(kGetTupleElement, "get_tuple_element")              \
  X(kIf, "if")                                          \
  X(kInfeed, "infeed")                                  \
  X(kIota, "iota")                                      \
  X(kMap, "map")                                        \
  X(kOptimizationBarrier, "optimization_barrier")       \
  X(kOutfeed, "outfeed")                                \
  X(kPad, "pad")                                        \
  X(kParameter, "parameter")                            \
  X(kPartitionId, "partition_id")                       \
  X(kRealDynamicSlice, "real_dynamic_slice")            \
  X(kRecv, "recv")                                      \
  X(kReduce, "reduce")                                  \
  X(kReducePrecision, "reduce_precision")               \
  X(kReduceScatter, "reduce_scatter")                   \
  X(kReduceWindow, "reduce_window")                     \
  X(kReplicaId, "replica_id")                           \
  X(kReshape, "reshape")                                \
  X(kReverse, "reverse")                                \
  X(kRng, "rng")                                        \
  X(kRngBitGenerator, "rng_bit_generator")              \
  X(kScatter, "scatter")                                \
  X(kSelect, "select")                                  \
  X(kSelectAndScatter, "select_and_scatter")            \
  X(kSend, "send")                                      \
  X(kSetDimensionSize, "set_dimension_size")            \
  X(kSlice, "slice")                                    \
  X(kSort, "sort")                                      \
  X(kTranspose, "transpose")                            \
  X(kTriangularSolve, "triangular_solve")               \
  X(kTuple, "tuple")                                    \
  X(kUniformDequantize, "uniform_dequantize")           \
  X(kUniformQuantize, "uniform_quantize")               \
  X(kWhile, "while")

#define HLO_OPCODES(X)              \
  HLO_ELEMENTWISE_UNARY_OPCODES(X)  \
  HLO_ELEMENTWISE_BINARY_OPCODES(X) \
  HLO_OTHER_OPCODES(X)

enum class Opcode : uint8_t {
#define HLO_ENUMERATOR(name, ...) name,
  HLO_OPCODES(HLO_ENUMERATOR)
#undef HLO_ENUMERATOR
};

std::string_view Name(Opcode opcode);
std::optional<Opcode> OpcodeFromName(std::string_view name);

bool IsElementwiseUnary(Opcode opcode);
bool IsElementwiseBinary(Opcode opcode);
// One output element depends on the same element of each operand alone: unary, binary, compare,
// select, clamp, convert, reduce_precision (bitcast_convert only when widths agree, so not here).
// select's and clamp's scalar operands broadcast.
bool IsElementwise(Opcode opcode);
bool IsCollective(Opcode opcode);
// Whether its results depend on the program's other devices, or on which of them this is.
bool IsOfWorld(Opcode opcode);

}  // namespace hlo
