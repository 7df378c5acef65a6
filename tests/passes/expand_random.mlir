// CASE: three_fry
// RUN-PASS: expand_random,dead_code
// COUNT: stablehlo.rng_bit_generator 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<7x3xui32>, tensor<2xui64>, tensor<5xui64>, tensor<2xui64>, tensor<ui32>, tensor<2xui64>, tensor<13xui8>, tensor<2xui64>, tensor<2x1x9xui16>) {
  %0:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7x3xui32>)
  %1:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)
  %2:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
  %3:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<13xui8>)
  %4:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x1x9xui16>)
  func.return %0#0, %0#1, %1#0, %1#1, %2#0, %2#1, %3#0, %3#1, %4#0, %4#1 : tensor<2xui64>, tensor<7x3xui32>, tensor<2xui64>, tensor<5xui64>, tensor<2xui64>, tensor<ui32>, tensor<2xui64>, tensor<13xui8>, tensor<2xui64>, tensor<2x1x9xui16>
}
// -----
// CASE: philox
// RUN-PASS: expand_random,dead_code
// COUNT: stablehlo.rng_bit_generator 0
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<7x3xui32>, tensor<2xui64>, tensor<5xui64>, tensor<2xui64>, tensor<ui32>, tensor<2xui64>, tensor<13xui8>, tensor<2xui64>, tensor<2x1x9xui16>) {
  %0:2 = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7x3xui32>)
  %1:2 = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)
  %2:2 = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<ui32>)
  %3:2 = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<13xui8>)
  %4:2 = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x1x9xui16>)
  func.return %0#0, %0#1, %1#0, %1#1, %2#0, %2#1, %3#0, %3#1, %4#0, %4#1 : tensor<2xui64>, tensor<7x3xui32>, tensor<2xui64>, tensor<5xui64>, tensor<2xui64>, tensor<ui32>, tensor<2xui64>, tensor<13xui8>, tensor<2xui64>, tensor<2x1x9xui16>
}
