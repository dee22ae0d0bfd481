// Where each element of a result comes from in the operands, as index expressions: the links of
// index_map.h, written out.
#pragma once

#include <functional>
#include <vector>

#include "hlo/index_map.h"
#include "index/map.h"

namespace heddle::hlo {

// Operands whose elements appear in the result, lowest layer first: an element comes from the last
// operand in the list that has one there (parts of a concatenate, or an operand that covers
// another).
std::vector<size_t> layers(const Instr& instr);

// The index in operand k of the result's element at `at` (expressions over the domain `box`), and
// the guards under which operand k has that element. No links of the kinds window, reduced or
// opaque.
struct Access {
  std::vector<index::Expr> at;
  std::vector<index::Guard> inside;
  bool is_nowhere = false;  // operand k has no element anywhere in `box`
};
using PositionOf = std::function<index::Expr(const DimLink&)>;
Access access(const Instr& instr, size_t k, const std::vector<index::Expr>& at,
              const std::vector<int64_t>& box, const PositionOf& position);

}  // namespace heddle::hlo
