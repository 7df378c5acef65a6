// CASE: gradients_of_a_shared_weight
// RUN-PASS: join_sums_of_dots
// COUNT: stablehlo.dot_general 1
// INPUTS: integers
func.func public @main(%arg0: tensor<3x40xf32>, %arg1: tensor<3x50xf32>, %arg2: tensor<3x40xf32>, %arg3: tensor<3x50xf32>, %arg4: tensor<5x40xf32>, %arg5: tensor<5x50xf32>, %arg6: tensor<40x50xf32>) -> (tensor<40x50xf32>) {
  %0 = stablehlo.dot_general %arg4, %arg5, contracting_dims = [0] x [0] : (tensor<5x40xf32>, tensor<5x50xf32>) -> tensor<40x50xf32>
  %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [0] x [0] : (tensor<3x40xf32>, tensor<3x50xf32>) -> tensor<40x50xf32>
  %2 = stablehlo.add %1, %0 : tensor<40x50xf32>
  %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<3x40xf32>, tensor<3x50xf32>) -> tensor<40x50xf32>
  %4 = stablehlo.add %3, %arg6 : tensor<40x50xf32>
  %5 = stablehlo.add %4, %2 : tensor<40x50xf32>
  %6 = stablehlo.negate %5 : tensor<40x50xf32>
  func.return %6 : tensor<40x50xf32>
}
// -----
// CASE: long_contractions_stay
// RUN-PASS: join_sums_of_dots
// UNCHANGED
// INPUTS: integers
func.func public @main(%arg0: tensor<64x4xf32>, %arg1: tensor<64x5xf32>, %arg2: tensor<64x4xf32>, %arg3: tensor<64x5xf32>) -> (tensor<4x5xf32>) {
  %0 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [0] x [0] : (tensor<64x4xf32>, tensor<64x5xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<64x4xf32>, tensor<64x5xf32>) -> tensor<4x5xf32>
  %2 = stablehlo.add %1, %0 : tensor<4x5xf32>
  func.return %2 : tensor<4x5xf32>
}
// -----
// CASE: products_with_other_uses_stay
// RUN-PASS: join_sums_of_dots
// COUNT: stablehlo.dot_general 2
// INPUTS: integers
func.func public @main(%arg0: tensor<3x40xf32>, %arg1: tensor<3x50xf32>, %arg2: tensor<3x40xf32>, %arg3: tensor<3x50xf32>) -> (tensor<40x50xf32>, tensor<40x50xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<3x40xf32>, tensor<3x50xf32>) -> tensor<40x50xf32>
  %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [0] x [0] : (tensor<3x40xf32>, tensor<3x50xf32>) -> tensor<40x50xf32>
  %2 = stablehlo.add %0, %1 : tensor<40x50xf32>
  func.return %2, %0 : tensor<40x50xf32>, tensor<40x50xf32>
}
