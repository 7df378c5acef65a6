// CASE: those_that_kernels_compute_stay
// RUN-PASS: expand_composites
// STEPS: chlo.erf negate
// COUNT: stablehlo.composite 1
// COMPUTATIONS: 2
// ONCE
func.func public @main(%arg0: tensor<5xf32>) -> (tensor<5xf32>) {
  %0 = stablehlo.composite "user.negated_erf" %arg0 {decomposition = @negated_erf} : (tensor<5xf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
func.func private @negated_erf(%arg0: tensor<5xf32>) -> (tensor<5xf32>) {
  %0 = stablehlo.composite "chlo.erf" %arg0 {decomposition = @erf} : (tensor<5xf32>) -> tensor<5xf32>
  %1 = stablehlo.negate %0 : tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
func.func private @erf(%arg0: tensor<5xf32>) -> (tensor<5xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<5xf32>
  func.return %0 : tensor<5xf32>
}
// -----
// CASE: of_integers_no_kernel_computes_it
// RUN-PASS: expand_composites
// STEPS: abs
// COMPUTATIONS: 1
// ONCE
func.func public @main(%arg0: tensor<5xi32>) -> (tensor<5xi32>) {
  %0 = stablehlo.composite "chlo.erf" %arg0 {decomposition = @erf} : (tensor<5xi32>) -> tensor<5xi32>
  func.return %0 : tensor<5xi32>
}
func.func private @erf(%arg0: tensor<5xi32>) -> (tensor<5xi32>) {
  %0 = stablehlo.abs %arg0 : tensor<5xi32>
  func.return %0 : tensor<5xi32>
}
// -----
// CASE: within_a_loop
// RUN-PASS: expand_composites
// COUNT: stablehlo.composite 0
// COUNT: stablehlo.multiply 1
// COMPUTATIONS: 3
// INPUTS: integers
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<i32>) -> (tensor<3xf32>) {
  %0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<3xf32>, tensor<i32>
  cond {
    %1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %3 = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.composite "user.square" %arg2 {decomposition = @square} : (tensor<3xf32>) -> tensor<3xf32>
    %5 = stablehlo.add %arg3, %3 : tensor<i32>
    stablehlo.return %4, %5 : tensor<3xf32>, tensor<i32>
  }
  func.return %0#0 : tensor<3xf32>
}
func.func private @square(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
// -----
// CASE: nothing_to_expand
// RUN-PASS: expand_composites
// UNCHANGED
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
