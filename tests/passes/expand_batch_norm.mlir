// CASE: training
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_training 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x3x2x2xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %0#0, %0#1, %0#2 : tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: training_channels_last
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_training 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x2x2x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000047e-03 : f32, feature_index = 3 : i64}> : (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %0#0, %0#1, %0#2 : tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: training_bf16
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_training 0
// INPUTS: positive
// TOLERANCE: 0.04
func.func public @main(%arg0: tensor<2x3x2x2xbf16>, %arg1: tensor<3xbf16>, %arg2: tensor<3xbf16>) -> (tensor<2x3x2x2xbf16>, tensor<3xbf16>, tensor<3xbf16>) {
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xbf16>, tensor<3xbf16>, tensor<3xbf16>) -> (tensor<2x3x2x2xbf16>, tensor<3xbf16>, tensor<3xbf16>)
  func.return %0#0, %0#1, %0#2 : tensor<2x3x2x2xbf16>, tensor<3xbf16>, tensor<3xbf16>
}
// -----
// CASE: training_f64
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_training 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x3x2x2xf64>, %arg1: tensor<3xf64>, %arg2: tensor<3xf64>) -> (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0:3 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>)
  func.return %0#0, %0#1, %0#2 : tensor<2x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>
}
// -----
// CASE: inference
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_inference 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x3x2x2xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>, %arg4: tensor<3xf32>) -> (tensor<2x3x2x2xf32>) {
  %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x2x2xf32>
  func.return %0 : tensor<2x3x2x2xf32>
}
// -----
// CASE: inference_bf16
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_inference 0
// INPUTS: positive
// TOLERANCE: 0.04
func.func public @main(%arg0: tensor<2x3x2x2xbf16>, %arg1: tensor<3xbf16>, %arg2: tensor<3xbf16>, %arg3: tensor<3xbf16>, %arg4: tensor<3xbf16>) -> (tensor<2x3x2x2xbf16>) {
  %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>) -> tensor<2x3x2x2xbf16>
  func.return %0 : tensor<2x3x2x2xbf16>
}
// -----
// CASE: grad
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_grad 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x3x2x2xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>, %arg4: tensor<2x3x2x2xf32>) -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3x2x2xf32>) -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %0#0, %0#1, %0#2 : tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: grad_channels_last
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_grad 0
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x2x2x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>, %arg3: tensor<3xf32>, %arg4: tensor<2x2x2x3xf32>) -> (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000047e-03 : f32, feature_index = 3 : i64}> : (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x2x2x3xf32>) -> (tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  func.return %0#0, %0#1, %0#2 : tensor<2x2x2x3xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
// CASE: training_f8
// RUN-PASS: expand_batch_norm
// COUNT: stablehlo.batch_norm_training 0
// ON-ENGINE
// INPUTS: positive
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %x = stablehlo.convert %arg0 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf8E5M2>
  %w = stablehlo.convert %arg1 : (tensor<3xf32>) -> tensor<3xf8E5M2>
  %0:3 = "stablehlo.batch_norm_training"(%x, %w, %w) <{epsilon = 1.000000047e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3x4xf8E5M2>, tensor<3xf8E5M2>, tensor<3xf8E5M2>) -> (tensor<2x3x4xf8E5M2>, tensor<3xf8E5M2>, tensor<3xf8E5M2>)
  %1 = stablehlo.convert %0#0 : (tensor<2x3x4xf8E5M2>) -> tensor<2x3x4xf32>
  %2 = stablehlo.convert %0#1 : (tensor<3xf8E5M2>) -> tensor<3xf32>
  %3 = stablehlo.convert %0#2 : (tensor<3xf8E5M2>) -> tensor<3xf32>
  func.return %1, %2, %3 : tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>
}
