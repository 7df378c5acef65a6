// CASE: bias_and_activation_become_part_of_the_product
// RUN-PASS: fuse_epilogues
// INPUTS: integers
// ON-ENGINE
// STEPS: cpu.dot dot_general
func.func public @main(%arg0: tensor<20x40xf32>, %arg1: tensor<40x30xf32>, %arg2: tensor<30xf32>, %arg3: tensor<30x8xf32>) -> (tensor<20x8xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<20x40xf32>, tensor<40x30xf32>) -> tensor<20x30xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<30xf32>) -> tensor<20x30xf32>
  %2 = stablehlo.add %0, %1 : tensor<20x30xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<20x30xf32>
  %4 = stablehlo.maximum %2, %3 : tensor<20x30xf32>
  %5 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0] : (tensor<20x30xf32>, tensor<30x8xf32>) -> tensor<20x8xf32>
  func.return %5 : tensor<20x8xf32>
}
// -----
// CASE: constants_of_several_steps_are_copied_once
// RUN-PASS: fuse_epilogues
// INPUTS: integers
// ON-ENGINE
// STEPS: cpu.dot
// COUNT: stablehlo.constant 1
func.func public @main(%arg0: tensor<20x40xf32>, %arg1: tensor<40x30xf32>) -> (tensor<20x30xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<20x40xf32>, tensor<40x30xf32>) -> tensor<20x30xf32>
  %1 = stablehlo.constant dense<2.0> : tensor<20x30xf32>
  %2 = stablehlo.add %0, %1 : tensor<20x30xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<20x30xf32>
  func.return %3 : tensor<20x30xf32>
}
// -----
// CASE: a_factor_may_be_added_to_the_product
// RUN-PASS: fuse_epilogues
// INPUTS: integers
// ON-ENGINE
// STEPS: cpu.dot
func.func public @main(%arg0: tensor<20x20xf32>) -> (tensor<20x20xf32>) {
  %0 = stablehlo.constant dense<2.0> : tensor<20x20xf32>
  %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<20x20xf32>, tensor<20x20xf32>) -> tensor<20x20xf32>
  %2 = stablehlo.add %1, %0 : tensor<20x20xf32>
  func.return %2 : tensor<20x20xf32>
}
// -----
// CASE: what_a_loop_computes_on_its_way_stays_in_the_loop
// RUN-PASS: fuse_epilogues
// UNCHANGED
func.func public @main(%arg0: tensor<20x40xf32>, %arg1: tensor<40x30xf32>, %arg2: tensor<30xf32>) -> (tensor<20x30xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<20x40xf32>, tensor<40x30xf32>) -> tensor<20x30xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<30xf32>) -> tensor<20x30xf32>
  %2 = stablehlo.add %0, %1 : tensor<20x30xf32>
  %3 = stablehlo.exponential %2 : tensor<20x30xf32>
  func.return %3 : tensor<20x30xf32>
}
// -----
// CASE: a_product_that_is_read_twice_keeps_its_value
// RUN-PASS: fuse_epilogues
// UNCHANGED
func.func public @main(%arg0: tensor<20x40xf32>, %arg1: tensor<40x30xf32>) -> (tensor<20x30xf32>, tensor<20x30xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<20x40xf32>, tensor<40x30xf32>) -> tensor<20x30xf32>
  %1 = stablehlo.negate %0 : tensor<20x30xf32>
  func.return %1, %0 : tensor<20x30xf32>, tensor<20x30xf32>
}
// -----
// CASE: residual_of_a_convolution
// RUN-PASS: fuse_epilogues
// INPUTS: integers
// ON-ENGINE
// STEPS: cpu.convolution
func.func public @main(%arg0: tensor<2x12x12x16xf32>, %arg1: tensor<3x3x16x16xf32>, %arg2: tensor<16xf32>) -> (tensor<2x12x12x16xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x12x12x16xf32>, tensor<3x3x16x16xf32>) -> tensor<2x12x12x16xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<16xf32>) -> tensor<2x12x12x16xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x12x12x16xf32>
  %3 = stablehlo.add %arg0, %2 : tensor<2x12x12x16xf32>
  func.return %3 : tensor<2x12x12x16xf32>
}
// -----
// CASE: pixels_with_a_tail_that_differs_by_rows
// RUN-PASS: pipeline
// INPUTS: floats
// TOLERANCE: 1e-4
// ON-ENGINE
// STEPS: cpu.convolution
func.func public @main(%arg0: tensor<2x3x8x9xf32>, %arg1: tensor<4x3x1x1xf32>, %arg2: tensor<8xf32>) -> (tensor<2x4x8x9xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x9xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x9xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<8xf32>) -> tensor<2x4x8x9xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x9xf32>
  func.return %2 : tensor<2x4x8x9xf32>
}
// -----
// CASE: pixels_with_a_tail_that_differs_by_columns
// RUN-PASS: pipeline
// INPUTS: floats
// TOLERANCE: 1e-4
// ON-ENGINE
// STEPS: cpu.convolution
func.func public @main(%arg0: tensor<2x3x8x9xf32>, %arg1: tensor<4x3x1x1xf32>, %arg2: tensor<9xf32>) -> (tensor<2x4x8x9xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x9xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x9xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<9xf32>) -> tensor<2x4x8x9xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x9xf32>
  func.return %2 : tensor<2x4x8x9xf32>
}
// -----
// CASE: windows_with_a_tail_that_differs_by_rows
// RUN-PASS: pipeline
// INPUTS: floats
// TOLERANCE: 1e-4
// ON-ENGINE
// STEPS: cpu.convolution
func.func public @main(%arg0: tensor<2x3x8x9xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<8xf32>) -> (tensor<2x4x8x9xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x9xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x9xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [2] : (tensor<8xf32>) -> tensor<2x4x8x9xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x9xf32>
  func.return %2 : tensor<2x4x8x9xf32>
}
// -----
// CASE: windows_with_a_tail_that_differs_by_columns
// RUN-PASS: pipeline
// INPUTS: floats
// TOLERANCE: 1e-4
// ON-ENGINE
// STEPS: cpu.convolution
func.func public @main(%arg0: tensor<2x3x8x9xf32>, %arg1: tensor<4x3x3x3xf32>, %arg2: tensor<9xf32>) -> (tensor<2x4x8x9xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x8x9xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x9xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<9xf32>) -> tensor<2x4x8x9xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x4x8x9xf32>
  func.return %2 : tensor<2x4x8x9xf32>
}
