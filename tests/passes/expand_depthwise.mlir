// CASE: causal
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<2x6x20xf32>, %arg1: tensor<6x1x4xf32>) -> (tensor<2x6x23xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[3, 3]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 6 : i64} : (tensor<2x6x20xf32>, tensor<6x1x4xf32>) -> tensor<2x6x23xf32>
  func.return %0 : tensor<2x6x23xf32>
}
// -----
// CASE: dilated_and_turned_with_a_negative_padding
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<3x4x30xf32>, %arg1: tensor<4x1x5xf32>) -> (tensor<3x4x23xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[-1, 2]], lhs_dilate = [1], rhs_dilate = [2], reverse = [1]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<3x4x30xf32>, tensor<4x1x5xf32>) -> tensor<3x4x23xf32>
  func.return %0 : tensor<3x4x23xf32>
}
// -----
// CASE: channels_last
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<2x17x8xf32>, %arg1: tensor<3x1x8xf32>) -> (tensor<2x17x8xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<2x17x8xf32>, tensor<3x1x8xf32>) -> tensor<2x17x8xf32>
  func.return %0 : tensor<2x17x8xf32>
}
// -----
// CASE: of_16_bit_floats
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<2x4x11xbf16>, %arg1: tensor<4x1x3xbf16>) -> (tensor<2x4x11xbf16>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x11xbf16>, tensor<4x1x3xbf16>) -> tensor<2x4x11xbf16>
  func.return %0 : tensor<2x4x11xbf16>
}
// -----
// CASE: the_gradient_of_the_weights
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<6x2x20xf32>, %arg1: tensor<2x6x23xf32>) -> (tensor<1x6x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[i, o, 0]->[b, f, 0], window = {stride = [1], pad = [[3, 3]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 6 : i64, feature_group_count = 1 : i64} : (tensor<6x2x20xf32>, tensor<2x6x23xf32>) -> tensor<1x6x4xf32>
  func.return %0 : tensor<1x6x4xf32>
}
// -----
// CASE: the_gradient_of_a_dilated_one_s_weights
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<4x3x30xf32>, %arg1: tensor<3x4x22xf32>) -> (tensor<5x4x1xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[i, o, 0]->[0, f, b], window = {stride = [2], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 4 : i64, feature_group_count = 1 : i64} : (tensor<4x3x30xf32>, tensor<3x4x22xf32>) -> tensor<5x4x1xf32>
  func.return %0 : tensor<5x4x1xf32>
}
// -----
// CASE: many_positions_of_a_small_operand_stay
// RUN-PASS: expand_depthwise
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<2x4x20xf32>, %arg1: tensor<4x1x9xf32>) -> (tensor<2x4x20xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[4, 4]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x20xf32>, tensor<4x1x9xf32>) -> tensor<2x4x20xf32>
  func.return %0 : tensor<2x4x20xf32>
}
// -----
// CASE: two_outputs_of_a_channel_stay
// RUN-PASS: expand_depthwise
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<2x4x20xf32>, %arg1: tensor<8x1x3xf32>) -> (tensor<2x8x20xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x20xf32>, tensor<8x1x3xf32>) -> tensor<2x8x20xf32>
  func.return %0 : tensor<2x8x20xf32>
}
// -----
// CASE: strides_stay
// RUN-PASS: expand_depthwise
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<2x4x20xf32>, %arg1: tensor<4x1x3xf32>) -> (tensor<2x4x10xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x20xf32>, tensor<4x1x3xf32>) -> tensor<2x4x10xf32>
  func.return %0 : tensor<2x4x10xf32>
}
// -----
// CASE: many_positions_of_a_large_operand
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<2x8x8192xf32>, %arg1: tensor<8x1x31xf32>) -> (tensor<2x8x8192xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [1], pad = [[15, 15]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<2x8x8192xf32>, tensor<8x1x31xf32>) -> tensor<2x8x8192xf32>
  func.return %0 : tensor<2x8x8192xf32>
}
// -----
// CASE: of_volumes
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<2x3x4x5x6xf32>, %arg1: tensor<3x1x2x1x2xf32>) -> (tensor<2x3x5x5x5xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1, 2]x[o, i, 0, 1, 2]->[b, f, 0, 1, 2], window = {stride = [1, 1, 1], pad = [[1, 1], [0, 0], [0, 1]], lhs_dilate = [1, 1, 1], rhs_dilate = [1, 1, 2], reverse = [0, 0, 1]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<2x3x4x5x6xf32>, tensor<3x1x2x1x2xf32>) -> tensor<2x3x5x5x5xf32>
  func.return %0 : tensor<2x3x5x5x5xf32>
}
// -----
// CASE: the_gradient_of_the_weights_of_volumes
// RUN-PASS: expand_depthwise
// COUNT: stablehlo.convolution 0
// INPUTS: integers
// TOLERANCE: 1e-6
// ON-ENGINE
func.func public @main(%arg0: tensor<3x2x4x5x6xf32>, %arg1: tensor<2x3x5x5x5xf32>) -> (tensor<1x3x2x1x2xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1, 2]x[i, o, 0, 1, 2]->[b, f, 0, 1, 2], window = {stride = [1, 1, 1], pad = [[1, 1], [0, 0], [0, 0]], lhs_dilate = [1, 1, 1], rhs_dilate = [1, 1, 1], reverse = [0, 0, 0]} {batch_group_count = 3 : i64, feature_group_count = 1 : i64} : (tensor<3x2x4x5x6xf32>, tensor<2x3x5x5x5xf32>) -> tensor<1x3x2x1x2xf32>
  func.return %0 : tensor<1x3x2x1x2xf32>
}
// -----
// CASE: images_are_left_to_the_library
// RUN-PASS: expand_depthwise
// UNCHANGED
func.func public @main(%arg0: tensor<2x4x6x6xf32>, %arg1: tensor<4x1x3x3xf32>) -> (tensor<2x4x4x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x4x6x6xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x4x4xf32>
  func.return %0 : tensor<2x4x4x4xf32>
}
