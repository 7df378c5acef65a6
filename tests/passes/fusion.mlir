// CASE: chain
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<100xf32>, %arg1: tensor<100xf32>) -> (tensor<100xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<100xf32>
  %1 = stablehlo.add %arg0, %arg1 : tensor<100xf32>
  %2 = stablehlo.multiply %1, %0 : tensor<100xf32>
  %3 = stablehlo.exponential %2 : tensor<100xf32>
  func.return %3 : tensor<100xf32>
}
// -----
// CASE: two_results_of_one_loop
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<100xf32>
  %1 = stablehlo.add %0, %arg0 : tensor<100xf32>
  func.return %0, %1 : tensor<100xf32>, tensor<100xf32>
}
// -----
// CASE: softmax
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<12x40xf32>) -> (tensor<12x40xf32>) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<12x40xf32>, tensor<f32>) -> tensor<12xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<12xf32>) -> tensor<12x40xf32>
  %3 = stablehlo.subtract %arg0, %2 : tensor<12x40xf32>
  %4 = stablehlo.exponential %3 : tensor<12x40xf32>
  %5 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<12x40xf32>, tensor<f32>) -> tensor<12xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<12xf32>) -> tensor<12x40xf32>
  %8 = stablehlo.divide %4, %7 : tensor<12x40xf32>
  func.return %8 : tensor<12x40xf32>
}
// -----
// CASE: sums_of_columns_share_what_they_read
// RUN-PASS: pipeline
// STEPS: cpu.reduce
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<50x30xf32>) -> (tensor<30xf32>, tensor<30xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<50x30xf32>, tensor<f32>) -> tensor<30xf32>
  %2 = stablehlo.multiply %arg0, %arg0 : tensor<50x30xf32>
  %3 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<50x30xf32>, tensor<f32>) -> tensor<30xf32>
  func.return %1, %4 : tensor<30xf32>, tensor<30xf32>
}
// -----
// CASE: sums_of_different_arrays_do_not
// RUN-PASS: pipeline
// STEPS: cpu.reduce cpu.reduce
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<50x30xf32>, %arg1: tensor<50x30xf32>) -> (tensor<30xf32>, tensor<30xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<50x30xf32>, tensor<f32>) -> tensor<30xf32>
  %2 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %3 = stablehlo.reduce(%arg1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<50x30xf32>, tensor<f32>) -> tensor<30xf32>
  func.return %1, %3 : tensor<30xf32>, tensor<30xf32>
}
// -----
// CASE: gathered_values_are_computed_once
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<10x20xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x20xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<10x20xf32>
  %1 = "stablehlo.gather"(%0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 20>, indices_are_sorted = false}> : (tensor<10x20xf32>, tensor<4x1xi32>) -> tensor<4x20xf32>
  %2 = stablehlo.negate %1 : tensor<4x20xf32>
  func.return %2 : tensor<4x20xf32>
}
// -----
// CASE: gathered_slices_are_read_where_they_lie
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<10x40xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<1x1xi32>) -> (tensor<4x20xf32>) {
  %0 = stablehlo.slice %arg0 [1:9, 3:23] : (tensor<10x40xf32>) -> tensor<8x20xf32>
  %1 = "stablehlo.gather"(%0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 20>}> : (tensor<8x20xf32>, tensor<4x1xi32>) -> tensor<4x20xf32>
  %2 = stablehlo.slice %arg0 [0:8, 4:24] : (tensor<10x40xf32>) -> tensor<8x20xf32>
  %3 = "stablehlo.gather"(%2, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 20>}> : (tensor<8x20xf32>, tensor<1x1xi32>) -> tensor<1x20xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x20xf32>) -> tensor<20xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<20xf32>) -> tensor<4x20xf32>
  %6 = stablehlo.maximum %1, %5 : tensor<4x20xf32>
  func.return %6 : tensor<4x20xf32>
}
// -----
// CASE: what_is_sliced_is_computed_once_before
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<10x20xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x20xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<10x20xf32>
  %1 = stablehlo.slice %0 [1:9, 0:20] : (tensor<10x20xf32>) -> tensor<8x20xf32>
  %2 = "stablehlo.gather"(%1, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 20>}> : (tensor<8x20xf32>, tensor<4x1xi32>) -> tensor<4x20xf32>
  %3 = stablehlo.negate %2 : tensor<4x20xf32>
  func.return %3 : tensor<4x20xf32>
}
// -----
// CASE: little_of_what_is_computed_is_computed_alone
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<1000x20xf32>, %arg1: tensor<4x1xi32>) -> (tensor<4x20xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<1000x20xf32>
  %1 = stablehlo.slice %0 [1:9, 0:20] : (tensor<1000x20xf32>) -> tensor<8x20xf32>
  %2 = "stablehlo.gather"(%1, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 20>}> : (tensor<8x20xf32>, tensor<4x1xi32>) -> tensor<4x20xf32>
  %3 = stablehlo.negate %2 : tensor<4x20xf32>
  func.return %3 : tensor<4x20xf32>
}
// -----
// CASE: large_transposes_stand_alone
// RUN-PASS: pipeline
// STEPS: cpu.loop transpose cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<40x30xf32>) -> (tensor<30x40xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<40x30xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<40x30xf32>) -> tensor<30x40xf32>
  %2 = stablehlo.exponential %1 : tensor<30x40xf32>
  func.return %2 : tensor<30x40xf32>
}
// -----
// CASE: small_ones_do_not
// RUN-PASS: pipeline
// STEPS: cpu.loop
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<4x3xf32>) -> (tensor<3x4xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %2 = stablehlo.exponential %1 : tensor<3x4xf32>
  func.return %2 : tensor<3x4xf32>
}
// -----
// CASE: sort
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.sort
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<40xf32>) -> (tensor<40xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<40xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %2 = stablehlo.compare LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<40xf32>) -> tensor<40xf32>
  func.return %1 : tensor<40xf32>
}
// -----
// CASE: cumulative_sum
// RUN-PASS: pipeline
// STEPS: cpu.scan
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<40xf32>) -> (tensor<40xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 40>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[39, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  func.return %1 : tensor<40xf32>
}
// -----
// CASE: parts_are_written_to_their_places
// RUN-PASS: fusion
// STEPS: cpu.loop
// TOLERANCE: 0
func.func public @main(%arg0: tensor<100xf32>) -> (tensor<100xf32>) {
  %0 = stablehlo.slice %arg0 [97:100] : (tensor<100xf32>) -> tensor<3xf32>
  %1 = stablehlo.slice %arg0 [0:97] : (tensor<100xf32>) -> tensor<97xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<3xf32>, tensor<97xf32>) -> tensor<100xf32>
  %3 = stablehlo.negate %2 : tensor<100xf32>
  func.return %3 : tensor<100xf32>
}
// -----
// CASE: parts_that_are_gathered_lie_in_memory
// RUN-PASS: fusion
// STEPS: cpu.loop cpu.loop
// INPUTS: integers
// TOLERANCE: 0
func.func public @main(%arg0: tensor<100xf32>, %arg1: tensor<40x1xi32>) -> (tensor<40xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<100xf32>
  %1 = stablehlo.concatenate %0, %arg0, dim = 0 : (tensor<100xf32>, tensor<100xf32>) -> tensor<200xf32>
  %2 = stablehlo.reshape %1 : (tensor<200xf32>) -> tensor<10x20xf32>
  %3 = stablehlo.reshape %2 : (tensor<10x20xf32>) -> tensor<200xf32>
  %4 = "stablehlo.gather"(%3, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<200xf32>, tensor<40x1xi32>) -> tensor<40xf32>
  %5 = stablehlo.negate %4 : tensor<40xf32>
  func.return %5 : tensor<40xf32>
}
// -----
// CASE: scan_takes_what_it_reads
// RUN-PASS: fusion
// STEPS: cpu.loop cpu.scan
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<40xf32>) -> (tensor<40xf32>) {
  %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
  %1 = stablehlo.exponential %arg0 : tensor<40xf32>
  %2 = stablehlo.subtract %1, %arg0 : tensor<40xf32>
  %3 = "stablehlo.reduce_window"(%2, %0) <{window_dimensions = array<i64: 40>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[39, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  func.return %3 : tensor<40xf32>
}
// -----
// CASE: views_are_no_step
// RUN-PASS: pipeline
// STEPS:
// INPUTS: integers
// TOLERANCE: 1e-5
func.func public @main(%arg0: tensor<40xf32>) -> (tensor<4x10xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<40xf32>) -> tensor<4x10xf32>
  func.return %0 : tensor<4x10xf32>
}
// -----
// CASE: scatter_takes_the_rows_that_it_adds
// RUN-PASS: pipeline
// STEPS: cpu.scatter
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<4x40xf32>, %arg1: tensor<9x1xi64>, %arg2: tensor<9x1xi64>, %arg3: tensor<9xf32>, %arg4: tensor<5x40xf32>) -> (tensor<4x40xf32>) {
  %0 = "stablehlo.gather"(%arg4, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 40>}> : (tensor<5x40xf32>, tensor<9x1xi64>) -> tensor<9x40xf32>
  %1 = stablehlo.broadcast_in_dim %arg3, dims = [0] : (tensor<9xf32>) -> tensor<9x40xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<9x40xf32>
  %3 = "stablehlo.scatter"(%arg0, %arg2, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %8 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x40xf32>, tensor<9x1xi64>, tensor<9x40xf32>) -> tensor<4x40xf32>
  func.return %3 : tensor<4x40xf32>
}
// -----
// CASE: scatter_of_what_it_updates
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.scatter
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<4x40xf32>, %arg1: tensor<9x1xi64>, %arg2: tensor<9x1xi64>) -> (tensor<4x40xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<4x40xf32>
  %1 = "stablehlo.gather"(%0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 40>}> : (tensor<4x40xf32>, tensor<9x1xi64>) -> tensor<9x40xf32>
  %2 = "stablehlo.scatter"(%0, %arg2, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %8 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<4x40xf32>, tensor<9x1xi64>, tensor<9x40xf32>) -> tensor<4x40xf32>
  func.return %2 : tensor<4x40xf32>
}
// -----
// CASE: scatter_of_the_array_that_it_updates
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.scatter
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<9x40xf32>, %arg1: tensor<9x1xi64>) -> (tensor<9x40xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<9x40xf32>
  %1 = "stablehlo.scatter"(%0, %arg1, %0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %8 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<9x40xf32>, tensor<9x1xi64>, tensor<9x40xf32>) -> tensor<9x40xf32>
  func.return %1 : tensor<9x40xf32>
}
// -----
// CASE: scatter_of_single_elements_does_not
// RUN-PASS: pipeline
// STEPS: cpu.loop cpu.scatter
// INPUTS: integers
// TOLERANCE: 1e-5
// ON-ENGINE
func.func public @main(%arg0: tensor<40xf32>, %arg1: tensor<90x1xi64>, %arg2: tensor<90xf32>) -> (tensor<40xf32>) {
  %0 = stablehlo.negate %arg2 : tensor<90xf32>
  %1 = "stablehlo.scatter"(%arg0, %arg1, %0) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%arg7: tensor<f32>, %arg8: tensor<f32>):
    %8 = stablehlo.add %arg7, %arg8 : tensor<f32>
    stablehlo.return %8 : tensor<f32>
  }) : (tensor<40xf32>, tensor<90x1xi64>, tensor<90xf32>) -> tensor<40xf32>
  func.return %1 : tensor<40xf32>
}
