// CASE: loop_carried_values_that_nobody_reads
// RUN-PASS: dead_code
// COUNT: stablehlo.abs 0
// CHECK: stablehlo.while(%arg4 = %arg0, %arg5 = %arg1, %arg6 = %arg2) :
// ONCE
func.func public @main(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<2xf32>) -> (tensor<3xf32>) {
  %0:4 = stablehlo.while(%arg4 = %arg0, %arg5 = %arg1, %arg6 = %arg2, %arg7 = %arg3) : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>
  cond {
    %1 = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %arg4, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %3 = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %arg4, %3 : tensor<i32>
    %5 = stablehlo.add %arg5, %arg6 : tensor<3xf32>
    %6 = stablehlo.negate %arg6 : tensor<3xf32>
    %7 = stablehlo.abs %arg7 : tensor<2xf32>
    stablehlo.return %4, %5, %6, %7 : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>
  }
  func.return %0#1 : tensor<3xf32>
}
// -----
// CASE: operands_that_no_branch_uses
// RUN-PASS: dead_code
// COUNT: stablehlo.exponential 0
func.func public @main(%arg0: tensor<i1>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.exponential %arg1 : tensor<3xf32>
  %1 = "stablehlo.if"(%arg0) ({
    %2 = stablehlo.abs %arg2 : tensor<3xf32>
    stablehlo.return %2 : tensor<3xf32>
  }, {
    %3 = stablehlo.negate %arg2 : tensor<3xf32>
    stablehlo.return %3 : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
