// Scalar arithmetic of fold.cc: operators on one element, as integers or as floating point.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/opcode.h"

namespace heddle::import {

// Nothing if the operator is not known or has no sensible result. Integers wrap.
std::optional<int64_t> fold_unary(hlo::Opcode opcode, int64_t x, bool is_bool);
std::optional<double> fold_unary(hlo::Opcode opcode, double x);
std::optional<int64_t> fold_binary(hlo::Opcode opcode, int64_t x, int64_t y);
std::optional<double> fold_binary(hlo::Opcode opcode, double x, double y);

}  // namespace heddle::import
