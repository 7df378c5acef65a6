// CASE: to_the_host_and_back
// RUN-PASS: placements,dead_code
// COUNT: stablehlo.custom_call 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<6x7xf32>) -> (tensor<6x7xf32>, tensor<6x7xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<6x7xf32>) -> tensor<6x7xf32>
  %1 = stablehlo.add %0, %arg0 : tensor<6x7xf32>
  %2 = stablehlo.custom_call @annotate_device_placement(%0) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<6x7xf32>) -> tensor<6x7xf32>
  func.return %1, %2 : tensor<6x7xf32>, tensor<6x7xf32>
}
