// Small programs that check what they compute: each operation whose translation is more than a row.

func.func @quantised_values() {
  %x = stablehlo.constant dense<[1.3, -40.0, 200.0]> : tensor<3xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 0.5:-20>>
  %stored = stablehlo.bitcast_convert %q : (tensor<3x!quant.uniform<i8:f32, 0.5:-20>>) -> tensor<3xi8>
  check.expect_eq_const %stored, dense<[-17, -100, 127]> : tensor<3xi8>
  %back = stablehlo.uniform_dequantize %q : (tensor<3x!quant.uniform<i8:f32, 0.5:-20>>) -> tensor<3xf32>
  check.expect_eq_const %back, dense<[1.5, -40.0, 73.5]> : tensor<3xf32>
  %sum = stablehlo.add %q, %q : (tensor<3x!quant.uniform<i8:f32, 0.5:-20>>, tensor<3x!quant.uniform<i8:f32, 0.5:-20>>) -> tensor<3x!quant.uniform<i8:f32, 1.0:5>>
  %sum_stored = stablehlo.bitcast_convert %sum : (tensor<3x!quant.uniform<i8:f32, 1.0:5>>) -> tensor<3xi8>
  check.expect_eq_const %sum_stored, dense<[8, -75, 127]> : tensor<3xi8>
  func.return
}

// -----

func.func @a_scale_for_each_row() {
  %x = stablehlo.constant dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>
  %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<u8:f32:0, {0.5:10,0.25}>>
  %t = stablehlo.transpose %q, dims = [1, 0] : (tensor<2x2x!quant.uniform<u8:f32:0, {0.5:10,0.25}>>) -> tensor<2x2x!quant.uniform<u8:f32:1, {0.5:10,0.25}>>
  %stored = stablehlo.bitcast_convert %t : (tensor<2x2x!quant.uniform<u8:f32:1, {0.5:10,0.25}>>) -> tensor<2x2xui8>
  check.expect_eq_const %stored, dense<[[12, 4], [14, 8]]> : tensor<2x2xui8>
  %back = stablehlo.uniform_dequantize %t : (tensor<2x2x!quant.uniform<u8:f32:1, {0.5:10,0.25}>>) -> tensor<2x2xf32>
  check.expect_eq_const %back, dense<[[1.0, 1.0], [2.0, 2.0]]> : tensor<2x2xf32>
  func.return
}

// -----

func.func @bits() {
  %x = stablehlo.constant dense<[5, -128]> : tensor<2xi8>
  %b = stablehlo.bitcast_convert %x : (tensor<2xi8>) -> tensor<2x8xi1>
  check.expect_eq_const %b, dense<[[true, false, true, false, false, false, false, false], [false, false, false, false, false, false, false, true]]> : tensor<2x8xi1>
  %y = stablehlo.bitcast_convert %b : (tensor<2x8xi1>) -> tensor<2xi8>
  check.expect_eq %x, %y : tensor<2xi8>
  func.return
}

// -----

func.func @a_loop_with_values_from_around_it() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %table = stablehlo.constant dense<[3.0, 5.0, 7.0]> : tensor<3xf32>
  %start = stablehlo.constant dense<0.0> : tensor<f32>
  %scale = stablehlo.slice %table [0:1] : (tensor<3xf32>) -> tensor<1xf32>
  %factor = stablehlo.reshape %scale : (tensor<1xf32>) -> tensor<f32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %start) : tensor<i32>, tensor<f32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %go = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %table, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
      %value = stablehlo.reshape %row : (tensor<1xf32>) -> tensor<f32>
      %odd = stablehlo.remainder %i, %one : tensor<i32>
      %scaled = "stablehlo.case"(%odd) ({
        %2 = stablehlo.multiply %value, %factor : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }, {
        stablehlo.return %value : tensor<f32>
      }) : (tensor<i32>) -> tensor<f32>
      %next_sum = stablehlo.add %sum, %scaled : tensor<f32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %next_sum : tensor<i32>, tensor<f32>
    }
  check.expect_eq_const %0#0, dense<3> : tensor<i32>
  check.expect_eq_const %0#1, dense<45.0> : tensor<f32>
  func.return
}

// -----

func.func @sums_in_a_wider_type() {
  %x = stablehlo.constant dense<[100, 100, 100]> : tensor<3xi8>
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %sum = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<3xi8>, tensor<i8>) -> tensor<i32>
  check.expect_eq_const %sum, dense<300> : tensor<i32>
  func.return
}

// -----

func.func @older_operations() {
  %a = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>
  %0 = stablehlo.dot %a, %b, precision = [DEFAULT, DEFAULT] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %0, dense<[[3.0, 2.0], [7.0, 4.0]]> : tensor<2x2xf32>
  %1 = stablehlo.einsum %a, %b, config = "ij,jk->ki" : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %1, dense<[[3.0, 7.0], [2.0, 4.0]]> : tensor<2x2xf32>
  %2 = stablehlo.unary_einsum %a, config = "ij->j" : (tensor<2x2xf32>) -> tensor<2xf32>
  check.expect_eq_const %2, dense<[4.0, 6.0]> : tensor<2xf32>
  %3 = stablehlo.broadcast %2, sizes = [2] : (tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %3, dense<[[4.0, 6.0], [4.0, 6.0]]> : tensor<2x2xf32>
  %index = stablehlo.constant dense<[1, 0, 1]> : tensor<3xi32>
  %4 = stablehlo.torch_index_select %a, %index, dim = 1, batch_dims = 0 : (tensor<2x2xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  check.expect_eq_const %4, dense<[[2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]> : tensor<2x3xf32>
  %5 = "chlo.broadcast_subtract"(%a, %2) {broadcast_dimensions = array<i64: 0>} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %5, dense<[[-3.0, -2.0], [-3.0, -2.0]]> : tensor<2x2xf32>
  func.return
}

// -----

module @two_processes {
  func.func @work(%x: tensor<2xi64>) -> (tensor<2xi64>, tensor<1xi64>, tensor<2xi64>) {
    %id = stablehlo.replica_id : tensor<ui32>
    %wide = stablehlo.convert %id : (tensor<ui32>) -> tensor<i64>
    %ids = stablehlo.broadcast_in_dim %wide, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %y = stablehlo.add %x, %ids : tensor<2xi64>
    %sum = "stablehlo.all_reduce"(%y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %1 = stablehlo.add %a, %b : tensor<i64>
      stablehlo.return %1 : tensor<i64>
    }) : (tensor<2xi64>) -> tensor<2xi64>
    %part = "stablehlo.reduce_scatter"(%y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %1 = stablehlo.maximum %a, %b : tensor<i64>
      stablehlo.return %1 : tensor<i64>
    }) : (tensor<2xi64>) -> tensor<1xi64>
    %turned = "stablehlo.collective_permute"(%y) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<2xi64>) -> tensor<2xi64>
    return %sum, %part, %turned : tensor<2xi64>, tensor<1xi64>, tensor<2xi64>
  }
  func.func @main() {
    %a = stablehlo.constant dense<[1, 20]> : tensor<2xi64>
    %b = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
    %0:6 = "interpreter.run_parallel"(%a, %b) {programs = [[@work], [@work]]} : (tensor<2xi64>, tensor<2xi64>) -> (tensor<2xi64>, tensor<1xi64>, tensor<2xi64>, tensor<2xi64>, tensor<1xi64>, tensor<2xi64>)
    check.expect_eq_const %0#0, dense<[5, 25]> : tensor<2xi64>
    check.expect_eq_const %0#1, dense<[4]> : tensor<1xi64>
    check.expect_eq_const %0#2, dense<[4, 5]> : tensor<2xi64>
    check.expect_eq_const %0#4, dense<[20]> : tensor<1xi64>
    check.expect_eq_const %0#5, dense<[1, 20]> : tensor<2xi64>
    func.return
  }
}

// -----

func.func @special_functions() {
  %x = stablehlo.constant dense<[0.5, 4.0, -1.5]> : tensor<3xf64>
  %lgamma = chlo.lgamma %x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %lgamma, dense<[0.5723649429247001, 1.791759469228055, 0.8600470153764810]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %digamma = chlo.digamma %x : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %digamma, dense<[-1.9635100260214235, 1.2561176684318005, 0.7031566406452432]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %y = stablehlo.constant dense<[0.5, -0.999, 0.0]> : tensor<3xf64>
  %erf_inv = chlo.erf_inv %y : tensor<3xf64> -> tensor<3xf64>
  check.expect_almost_eq_const %erf_inv, dense<[0.4769362762044699, -2.326753765513525, 0.0]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %two = stablehlo.constant dense<2.0> : tensor<3xf64>
  %q = stablehlo.constant dense<[1.0, 2.0, 0.5]> : tensor<3xf64>
  %zeta = "chlo.zeta"(%two, %q) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  check.expect_almost_eq_const %zeta, dense<[1.6449340668482264, 0.6449340668482264, 4.934802200544679]> : tensor<3xf64> {tolerance = 1.0e-12 : f64}
  %up = stablehlo.constant dense<[1.0, -1.0, 0.0]> : tensor<3xf32>
  %to = stablehlo.constant dense<[2.0, -2.0, -1.0]> : tensor<3xf32>
  %next = "chlo.next_after"(%up, %to) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq_const %next, dense<[0x3F800001, 0xBF800001, 0x80000001]> : tensor<3xf32>
  func.return
}
