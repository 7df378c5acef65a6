
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0 = stablehlo.custom_call @target(%a) {api_version = 4 : i32, backend_config = {
        integer = 1 : i64, short = -2 : i8, string = "x\0A\22", list = [1 : i32, 2.5 : f32, "y"],
        matrix = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, flag = true, nested = {"a b" = false},
        numbers = dense<[1, 2]> : tensor<2xi64>, reals = dense<[0.5, 2.0]> : tensor<2xf64>,
        half = 3.5 : bf16, double = 1.0e-300 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
        func.return
    }