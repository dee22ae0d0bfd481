// Scalar arithmetic of fold.cc: operators on one element, as integers or as floating point.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/attrs.h"
#include "hlo/opcode.h"

namespace heddle::import {

// Nothing where the operator is not known or has no sensible answer. Integers wrap.
std::optional<int64_t> fold_unary(hlo::Opcode opcode, int64_t x, bool is_bool);
std::optional<double> fold_unary(hlo::Opcode opcode, double x);
std::optional<int64_t> fold_binary(hlo::Opcode opcode, int64_t x, int64_t y);
std::optional<double> fold_binary(hlo::Opcode opcode, double x, double y);

template <typename T>
bool fold_compare(hlo::Direction direction, T x, T y) {
  switch (direction) {
    case hlo::Direction::eq:
      return x == y;
    case hlo::Direction::ne:
      return x != y;
    case hlo::Direction::ge:
      return x >= y;
    case hlo::Direction::gt:
      return x > y;
    case hlo::Direction::le:
      return x <= y;
    case hlo::Direction::lt:
      return x < y;
  }
  return false;
}

}  // namespace heddle::import
