// CASE: nested_calls_and_calls_in_regions
// RUN-PASS: inline_calls
// COUNT: stablehlo.call 0
// COMPUTATIONS: 3
// ONCE
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<3xf32>, tensor<i32>
  cond {
    %1 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %3 = stablehlo.constant dense<1> : tensor<i32>
    %4:2 = func.call @quadruple(%arg2) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    %5 = stablehlo.add %arg3, %3 : tensor<i32>
    stablehlo.return %4#0, %5 : tensor<3xf32>, tensor<i32>
  }
  %6:2 = func.call @quadruple(%0#0) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  func.return %6#1, %6#0 : tensor<3xf32>, tensor<3xf32>
}
func.func private @quadruple(%arg0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = func.call @double(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = func.call @double(%0) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %1, %arg0 : tensor<3xf32>, tensor<3xf32>
}
func.func private @double(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
