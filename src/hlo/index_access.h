// Where the elements of a result stand in its operands, as index expressions: the links of
// index_map.h, written out.
#pragma once

#include <functional>
#include <vector>

#include "hlo/index_map.h"
#include "index/map.h"

namespace heddle::hlo {

// Operands whose elements the result has, each where none of those behind it in the list has one:
// parts beside one another, or what lies under something else.
std::vector<size_t> layers(const Instr& instr);

// Where the element of operand k is that the result has at `at`, expressions over `box`; and where
// it is there at all. No links of the kinds window, reduced or opaque.
struct Access {
  std::vector<index::Expr> at;
  std::vector<index::Guard> inside;
  bool is_nowhere = false;  // in no part of the box
};
using PositionOf = std::function<index::Expr(const DimLink&)>;
Access access(const Instr& instr, size_t k, const std::vector<index::Expr>& at,
              const std::vector<int64_t>& box, const PositionOf& position);

}  // namespace heddle::hlo
