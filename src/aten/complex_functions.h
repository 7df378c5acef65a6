// Functions of complex numbers that StableHLO does not have, by their parts. Those of infinities
// and NaN are as in C's Annex G. All take complex values.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

Value ComplexExp2(Builder& b, Value z);
Value ComplexSinh(Builder& b, Value z);
Value ComplexCosh(Builder& b, Value z);
Value ComplexAsin(Builder& b, Value z);
Value ComplexAcos(Builder& b, Value z);
Value ComplexAtan(Builder& b, Value z);
Value ComplexAsinh(Builder& b, Value z);
Value ComplexAcosh(Builder& b, Value z);
Value ComplexAtanh(Builder& b, Value z);

}  // namespace torch_xla
