module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32> {jax.result_info = "result[0]"}, tensor<4x8xf32> {jax.result_info = "result[1]"}, tensor<4x8xf32> {jax.result_info = "result[2]"}, tensor<4x8xf32> {jax.result_info = "result[3]"}, tensor<4x8xf32> {jax.result_info = "result[4]"}, tensor<4x8xf32> {jax.result_info = "result[5]"}, tensor<4x8xf32> {jax.result_info = "result[6]"}) {
    %0 = chlo.lgamma %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %1 = chlo.digamma %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %2 = stablehlo.tanh %arg0 : tensor<4x8xf32>
    %3 = chlo.erf_inv %2 : tensor<4x8xf32> -> tensor<4x8xf32>
    %4 = chlo.bessel_i1e %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
    %5 = stablehlo.negate %arg0 : tensor<4x8xf32>
    %6 = chlo.next_after %arg0, %5 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %7 = stablehlo.abs %arg0 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %9 = stablehlo.add %7, %8 : tensor<4x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %11 = chlo.polygamma %10, %9 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %12 = stablehlo.abs %arg0 : tensor<4x8xf32>
    %cst_1 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %14 = stablehlo.add %12, %13 : tensor<4x8xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %15 = stablehlo.convert %cst_2 : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %17 = chlo.zeta %14, %16 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    return %0, %1, %3, %4, %6, %11, %17 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
}
