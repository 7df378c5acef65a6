!t = tensor<2xi32>
#place = loc("file.py":7:3 to :9)
func.func @main() -> !t {
  %0 = stablehlo.constant dense_resource<data> : !t loc("one"(#place))
  return %0 : !t loc(#later)
}
#later = loc(callsite("f"(#place) at fused[#place, unknown]))
{-# dialect_resources: { builtin: { data: "0x0400000001000000FFFFFFFF" } } #-}
