// CASE: sum_over_one_device
// RUN-PASS: single_device,dead_code
// COUNT: stablehlo.all_reduce 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6xf32>) -> tensor<6xf32>
  func.return %0 : tensor<6xf32>
}
// -----
// CASE: sums_of_several_tensors
// RUN-PASS: single_device,dead_code
// COUNT: stablehlo.all_reduce 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<3xf32>) -> (tensor<6xf32>, tensor<3xf32>, tensor<6xf32>) {
  %0:2 = "stablehlo.all_reduce"(%arg0, %arg1) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6xf32>, tensor<3xf32>) -> (tensor<6xf32>, tensor<3xf32>)
  %2 = "stablehlo.collective_permute"(%0#0) <{source_target_pairs = dense<> : tensor<0x2xi64>}> : (tensor<6xf32>) -> tensor<6xf32>
  func.return %0#0, %0#1, %2 : tensor<6xf32>, tensor<3xf32>, tensor<6xf32>
}
// -----
// CASE: permutation_of_one_device
// RUN-PASS: single_device,dead_code
// COUNT: stablehlo.collective_permute 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}> : (tensor<6xf32>) -> tensor<6xf32>
  %1 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<> : tensor<0x2xi64>}> : (tensor<6xf32>) -> tensor<6xf32>
  func.return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
// -----
// CASE: number_of_the_device
// RUN-PASS: single_device,dead_code
// COUNT: stablehlo.replica_id 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main() -> (tensor<ui32>) {
  %0 = "stablehlo.replica_id"() : () -> tensor<ui32>
  func.return %0 : tensor<ui32>
}
// -----
// CASE: broadcast_to_one_device
// RUN-PASS: single_device,dead_code
// COUNT: stablehlo.collective_broadcast 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<6xf32>) -> tensor<6xf32>
  %1 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[1]]> : tensor<1x1xi64>}> : (tensor<6xf32>) -> tensor<6xf32>
  func.return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
