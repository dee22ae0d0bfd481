#include "kernel/math_ops.h"

namespace heddle::kernel {

bool is_math(Op op) {
  switch (op) {
    case Op::rsqrt:
    case Op::cbrt:
    case Op::exp:
    case Op::expm1:
    case Op::log:
    case Op::log1p:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::asin:
    case Op::acos:
    case Op::sinh:
    case Op::cosh:
    case Op::tanh:
    case Op::asinh:
    case Op::acosh:
    case Op::atanh:
    case Op::erf:
    case Op::logistic:
    case Op::exp_fast:
    case Op::tanh_fast:
    case Op::erf_fast:
    case Op::logistic_fast:
    case Op::pow:
    case Op::atan2:
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::kernel
