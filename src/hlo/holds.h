// Evaluates a comparison's direction on two numbers.
#pragma once

#include "hlo/attrs.h"

namespace heddle::hlo {

// Both of one type; a NaN is not equal to anything.
template <typename T>
bool holds(Direction direction, T a, T b) {
  switch (direction) {
    case Direction::eq:
      return a == b;
    case Direction::ne:
      return a != b;
    case Direction::ge:
      return a >= b;
    case Direction::gt:
      return a > b;
    case Direction::le:
      return a <= b;
    case Direction::lt:
      return a < b;
  }
  return false;
}

}  // namespace heddle::hlo
