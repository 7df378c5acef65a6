
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token, %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>) {
        %0 = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi4>
        %1 = stablehlo.constant dense<[1, 15]> : tensor<2xui4>
        %2 = stablehlo.constant dense<[1, -2]> : tensor<2xi2>
        %3 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3FN>
        %4 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E5M2>
        %5 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3FNUZ>
        %6 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E5M2FNUZ>
        %7 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3B11FNUZ>
        %8 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E3M4>
        %9 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3>
        %10 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf4E2M1FN>
        %11 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf6E2M3FN>
        %12 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf8E8M0FNU>
        %13 = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
        %14 = stablehlo.constant dense<[(1.0, -0.0), (0x7FF0000000000000, 2.0)]> : tensor<2xcomplex<f64>>
        %15 = stablehlo.constant dense<[0x7FC0, 0xFF80, 0x3F80]> : tensor<3xbf16>
        %16 = stablehlo.constant dense<true> : tensor<7xi1>
        %17 = stablehlo.constant dense<> : tensor<0x3xf32>
        func.return
    }