// CASE: add_zero_integer
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %2 = stablehlo.add %arg0, %1 : tensor<3xi32>
  func.return %2 : tensor<3xi32>
}
// -----
// CASE: add_positive_zero_float
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.add %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: add_negative_zero_float
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<-0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.add %1, %arg0 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: add_zero_to_absolute
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.abs %arg0 : tensor<9xf32>
  %3 = stablehlo.add %2, %1 : tensor<9xf32>
  func.return %3 : tensor<9xf32>
}
// -----
// CASE: subtract_zero_float
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.subtract %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: subtract_negative_zero_float
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<-0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.subtract %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: subtract_self_integer
// RUN-PASS: simplify
// INSTRUCTIONS: 2
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.subtract %arg0, %arg0 : tensor<3xi32>
  func.return %0 : tensor<3xi32>
}
// -----
// CASE: subtract_self_float
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.subtract %arg0, %arg0 : tensor<9xf32>
  func.return %0 : tensor<9xf32>
}
// -----
// CASE: multiply_one
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.multiply %1, %arg0 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: multiply_zero_float
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.multiply %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: multiply_zero_integer
// RUN-PASS: simplify
// INSTRUCTIONS: 2
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %2 = stablehlo.multiply %arg0, %1 : tensor<3xi32>
  func.return %2 : tensor<3xi32>
}
// -----
// CASE: divide_power_of_two
// RUN-PASS: simplify
// INSTRUCTIONS: 3
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<8.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.divide %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: divide_three
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<3.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.divide %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: divide_integer_two
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xi32>) -> (tensor<9xi32>) {
  %0 = stablehlo.constant dense<2> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<9xi32>
  %2 = stablehlo.divide %arg0, %1 : tensor<9xi32>
  func.return %2 : tensor<9xi32>
}
// -----
// CASE: and_ones
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.constant dense<-1> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %2 = stablehlo.and %arg0, %1 : tensor<3xi32>
  func.return %2 : tensor<3xi32>
}
// -----
// CASE: or_zero
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %2 = stablehlo.or %arg0, %1 : tensor<3xi32>
  func.return %2 : tensor<3xi32>
}
// -----
// CASE: xor_self
// RUN-PASS: simplify
// INSTRUCTIONS: 2
func.func public @main(%arg0: tensor<3xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.xor %arg0, %arg0 : tensor<3xi32>
  func.return %0 : tensor<3xi32>
}
// -----
// CASE: maximum_self
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.maximum %arg0, %arg0 : tensor<9xf32>
  func.return %0 : tensor<9xf32>
}
// -----
// CASE: power_one
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.power %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: power_two
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.constant dense<2.000000000e+00> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.power %arg0, %1 : tensor<9xf32>
  func.return %2 : tensor<9xf32>
}
// -----
// CASE: negate_twice
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<9xf32>
  %1 = stablehlo.negate %0 : tensor<9xf32>
  func.return %1 : tensor<9xf32>
}
// -----
// CASE: real_of_complex
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.complex %arg0, %arg1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %2 = stablehlo.imag %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  func.return %1, %2 : tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: select_known
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i1>) -> tensor<3xi1>
  %2 = stablehlo.select %1, %arg0, %arg1 : tensor<3xi1>, tensor<3xf32>
  func.return %2 : tensor<3xf32>
}
// -----
// CASE: select_equal_arms
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<3xi1>, %arg1: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.select %arg0, %arg1, %arg1 : tensor<3xi1>, tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// -----
// CASE: select_of_not
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<3xi1>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.not %arg0 : tensor<3xi1>
  %1 = stablehlo.select %0, %arg1, %arg2 : tensor<3xi1>, tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: convert_there_and_back
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xi32>) -> (tensor<9xi32>) {
  %0 = stablehlo.convert %arg0 : (tensor<9xi32>) -> tensor<9xi64>
  %1 = stablehlo.convert %0 : (tensor<9xi64>) -> tensor<9xi32>
  func.return %1 : tensor<9xi32>
}
// -----
// CASE: convert_bf16_through_f32
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<9xbf16>) -> (tensor<9xbf16>) {
  %0 = stablehlo.convert %arg0 : (tensor<9xbf16>) -> tensor<9xf32>
  %1 = stablehlo.convert %0 : (tensor<9xf32>) -> tensor<9xbf16>
  func.return %1 : tensor<9xbf16>
}
// -----
// CASE: convert_that_loses
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<9xf32>) {
  %0 = stablehlo.convert %arg0 : (tensor<9xf32>) -> tensor<9xbf16>
  %1 = stablehlo.convert %0 : (tensor<9xbf16>) -> tensor<9xf32>
  func.return %1 : tensor<9xf32>
}
// -----
// CASE: convert_that_saturates
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<9xi16>) -> (tensor<9xui8>) {
  %0 = stablehlo.convert %arg0 : (tensor<9xi16>) -> tensor<9xf32>
  %1 = stablehlo.convert %0 : (tensor<9xf32>) -> tensor<9xui8>
  func.return %1 : tensor<9xui8>
}
// -----
// CASE: reshape_chain
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.reshape %0 : (tensor<6xf32>) -> tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
}
// -----
// CASE: reshape_back
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = stablehlo.reshape %0 : (tensor<6xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// -----
// CASE: transpose_chain
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  func.return %1 : tensor<4x3x2xf32>
}
// -----
// CASE: transpose_back
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %1 : tensor<2x3x4xf32>
}
// -----
// CASE: transpose_that_moves_nothing
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<2x1x4xf32>) -> (tensor<1x2x4xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %0 : tensor<1x2x4xf32>
}
// -----
// CASE: transpose_between_ones
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<2x3x4xf32>) -> (tensor<2x4x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3] : (tensor<2x3x4x1xf32>) -> tensor<2x4x3x1xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x4x3x1xf32>) -> tensor<2x4x3xf32>
  func.return %2 : tensor<2x4x3xf32>
}
// -----
// CASE: transpose_between_ones_that_stay
// RUN-PASS: simplify
// INSTRUCTIONS: 2
func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<4x1x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<3x4xf32>) -> tensor<1x3x1x4xf32>
  %1 = stablehlo.transpose %0, dims = [3, 0, 2, 1] : (tensor<1x3x1x4xf32>) -> tensor<4x1x1x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x1x1x3xf32>) -> tensor<4x1x3xf32>
  func.return %2 : tensor<4x1x3xf32>
}
// -----
// CASE: transpose_that_a_reshape_joins
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<6x4xf32>) -> (tensor<8x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  func.return %2 : tensor<8x3xf32>
}
// -----
// CASE: broadcast_chain
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<2x4x3xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
  func.return %1 : tensor<2x4x3xf32>
}
// -----
// CASE: broadcast_of_reshape
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<2x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<3xf32>) -> tensor<1x3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
// -----
// CASE: broadcast_of_ones_reshaped
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<1x3xf32>) -> (tensor<2x5x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<1x3xf32>) -> tensor<1x1x3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<1x1x3xf32>) -> tensor<2x5x3xf32>
  func.return %1 : tensor<2x5x3xf32>
}
// -----
// CASE: slice_chain
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<20xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.slice %arg0 [2:19:3] : (tensor<20xf32>) -> tensor<6xf32>
  %1 = stablehlo.slice %0 [1:6:2] : (tensor<6xf32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: slice_of_everything
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<20xf32>) -> (tensor<20xf32>) {
  %0 = stablehlo.slice %arg0 [0:20] : (tensor<20xf32>) -> tensor<20xf32>
  func.return %0 : tensor<20xf32>
}
// -----
// CASE: slice_of_piece
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x3xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.slice %0 [1:4, 3:5] : (tensor<4x5xf32>) -> tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
}
// -----
// CASE: slice_over_pieces
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = stablehlo.slice %0 [1:4] : (tensor<5xf32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
// -----
// CASE: reverse_back
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4x5xf32>) -> (tensor<4x5xf32>) {
  %0 = stablehlo.reverse %arg0, dims = [1] : tensor<4x5xf32>
  %1 = stablehlo.reverse %0, dims = [1] : tensor<4x5xf32>
  func.return %1 : tensor<4x5xf32>
}
// -----
// CASE: pad_nothing
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> (tensor<4xf32>) {
  %0 = stablehlo.pad %arg0, %arg1, low = [0], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// CASE: pad_that_crops
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<9xf32>, %arg1: tensor<f32>) -> (tensor<4xf32>) {
  %0 = stablehlo.pad %arg0, %arg1, low = [-2], high = [-3], interior = [0] : (tensor<9xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// CASE: concatenate_one
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.concatenate %arg0, dim = 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// CASE: concatenate_nothing
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<0xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.concatenate %arg1, %arg0, dim = 0 : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// CASE: dynamic_slice_at_constant
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<9xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.constant dense<7> : tensor<i32>
  %1 = stablehlo.dynamic_slice %arg0, %0, sizes = [4] : (tensor<9xf32>, tensor<i32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// -----
// CASE: dynamic_update_of_everything
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>) -> (tensor<4xf32>) {
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2 : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// -----
// CASE: element_of_tuple
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) -> (tensor<2xi32>) {
  %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<2xi32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<2xi32>
  func.return %1 : tensor<2xi32>
}
// -----
// CASE: dot_of_transposed_rhs
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<2x4xf32>) {
  %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
// -----
// CASE: dot_of_transposed_batch
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<3x2x5xf32>, %arg1: tensor<2x5x4xf32>) -> (tensor<2x3x4xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<3x2x5xf32>) -> tensor<2x3x5xf32>
  %1 = stablehlo.dot_general %0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x5xf32>, tensor<2x5x4xf32>) -> tensor<2x3x4xf32>
  func.return %1 : tensor<2x3x4xf32>
}
// -----
// CASE: dot_whose_free_dimensions_swap
// RUN-PASS: simplify
// UNCHANGED
func.func public @main(%arg0: tensor<2x3x5xf32>, %arg1: tensor<5x4xf32>) -> (tensor<3x2x4xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [2] x [0] : (tensor<3x2x5xf32>, tensor<5x4xf32>) -> tensor<3x2x4xf32>
  func.return %1 : tensor<3x2x4xf32>
}
// -----
// CASE: reduce_maximum_of_one
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<1x4xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// -----
// CASE: reduce_integer_sum_of_one
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<3x1xi32>) -> (tensor<3xi32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<3x1xi32>, tensor<i32>) -> tensor<3xi32>
  func.return %1 : tensor<3xi32>
}
// -----
// CASE: if_known
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.constant dense<false> : tensor<i1>
  %1 = "stablehlo.if"(%0) ({
    %2 = stablehlo.abs %arg0 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %3 = stablehlo.negate %arg0 : tensor<4xf32>
    stablehlo.return %3 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// -----
// CASE: case_out_of_range
// RUN-PASS: simplify
// INSTRUCTIONS: 1
func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<-3> : tensor<i32>
  %1:2 = "stablehlo.case"(%0) ({
    %2 = stablehlo.abs %arg0 : tensor<4xf32>
    stablehlo.return %2, %arg0 : tensor<4xf32>, tensor<4xf32>
  }, {
    %3 = stablehlo.negate %arg0 : tensor<4xf32>
    stablehlo.return %3, %arg0 : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>
}
// -----
// CASE: while_never
// RUN-PASS: simplify
// INSTRUCTIONS: 0
func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32>) {
  %0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.negate %arg2 : tensor<4xf32>
    stablehlo.return %2, %arg3 : tensor<4xf32>, tensor<i32>
  }
  func.return %0#0 : tensor<4xf32>
}
// -----
// A slice of nothing may begin where a slice with strides has long ended.
// CASE: empty_slice_of_a_strided_slice
// RUN-PASS: simplify
// COUNT: stablehlo.slice 1
func.func public @main(%arg0: tensor<17x5xi32>) -> (tensor<0x3xi32>) {
  %0 = stablehlo.slice %arg0 [3:17:5, 0:5] : (tensor<17x5xi32>) -> tensor<3x5xi32>
  %1 = stablehlo.slice %0 [3:3, 1:4] : (tensor<3x5xi32>) -> tensor<0x3xi32>
  func.return %1 : tensor<0x3xi32>
}
