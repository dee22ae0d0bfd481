// The scalar function of each elementwise operator, by domain. Null: the operator is not defined
// there. Results are not yet rounded to the type. `bits` is the width of the integer type; results
// of integer functions are correct modulo 2^bits.
#pragma once

#include "hlo/attrs.h"
#include "hlo/opcode.h"
#include "interp/numbers.h"

namespace heddle::interp {

using FloatUnary = double (*)(double);
using FloatBinary = double (*)(double, double);
using SignedUnary = int64_t (*)(int64_t, int bits);
using SignedBinary = int64_t (*)(int64_t, int64_t, int bits);
using UnsignedUnary = uint64_t (*)(uint64_t, int bits);
using UnsignedBinary = uint64_t (*)(uint64_t, uint64_t, int bits);
using ComplexUnary = Complex (*)(Complex);
using ComplexBinary = Complex (*)(Complex, Complex);

FloatUnary float_unary(hlo::Opcode opcode);
FloatBinary float_binary(hlo::Opcode opcode);
SignedUnary signed_unary(hlo::Opcode opcode);
SignedBinary signed_binary(hlo::Opcode opcode);
UnsignedUnary unsigned_unary(hlo::Opcode opcode);
UnsignedBinary unsigned_binary(hlo::Opcode opcode);
UnsignedBinary pred_binary(hlo::Opcode opcode);  // on 0 and 1; `bits` unused
ComplexUnary complex_unary(hlo::Opcode opcode);
ComplexBinary complex_binary(hlo::Opcode opcode);

// a `direction` b. NaN is unordered, except in the total order
// -NaN < -inf < … < -0 < +0 < … < +inf < +NaN. Complex: eq and ne only.
using CellTest = bool (*)(Cell, Cell);
CellTest comparison(Domain domain, hlo::Direction direction, bool total_order);

// Rounds the encoding `bits` of a float `type` to fewer exponent and mantissa bits.
uint64_t reduce_precision(Type type, uint64_t bits, int64_t exponent_bits, int64_t mantissa_bits);

// Truncated towards zero and clamped to the integer type; NaN gives 0.
int64_t float_to_signed(double value, int bits);
uint64_t float_to_unsigned(double value, int bits);

}  // namespace heddle::interp
