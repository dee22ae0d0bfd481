// Private to mask_padding: what elementwise operators make of what stands behind the elements that
// are there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

// What stands in the padding of one dimension of a value. valid: the value does not depend on that
// dimension, it is what the exact shape would have.
struct Padding {
  enum class Kind { unknown, valid, number } kind = Kind::unknown;
  double value = 0;
  bool is(double number) const { return kind == Kind::number && value == number; }
};
inline constexpr Padding kUnknown{}, kValid{Padding::Kind::valid, 0};

Padding number(double value);  // unknown, if it is no number

// The number that all elements of a constant are.
std::optional<double> splat(const hlo::Instr* instr);
// Of an elementwise operator, from what its operands have there.
Padding computed(const hlo::Instr* instr, const std::vector<Padding>& in);

}  // namespace heddle::opt
