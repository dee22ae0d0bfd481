// Properties of operators in ops.def, besides text and operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/kernel.h"

namespace heddle::kernel {

enum class OpClass : uint8_t {
  plain,    // an instruction of most processors, or few
  inlined,  // a function in line, written for float and double; bounds in docs/numerics.md
  shared,   // a long function that is called, written for double; float goes through it
  binary,   // the same of two operands
  fast,     // a shorter form of another function, used by a named rewrite; double: the exact form
};

OpClass op_class(Op op);
// Written as a polynomial or as a call of a library; not an instruction of most processors.
inline bool is_math(Op op) { return op_class(op) != OpClass::plain; }
// The function's name in CUDA C++, for f64; empty: it has none.
std::string_view cuda_name(Op op);
// The operator's fast form; the exact form of a fast one. Nullopt: there is none.
std::optional<Op> fast_form(Op op);
std::optional<Op> exact_form(Op op);

}  // namespace heddle::kernel
