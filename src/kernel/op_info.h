// What ops.def says of an operator besides its text and operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/kernel.h"

namespace heddle::kernel {

enum class OpClass : uint8_t {
  plain,    // an instruction of most processors, or few
  inlined,  // a function in line, written for float and double; bounds in docs/numerics.md
  shared,   // a long function of its own, written for double; float goes through it
  binary,   // the same of two operands
  fast,     // a shorter form of another function that a named rewrite asks for; double: that one
};

OpClass op_class(Op op);
// Written as a polynomial or as a call of a library; not an instruction of most processors.
inline bool is_math(Op op) { return op_class(op) != OpClass::plain; }
// The function's name in CUDA C++, for f64; empty: it has none.
std::string_view cuda_name(Op op);
// The operator's fast form; the exact one of a fast form. Nothing: there is none.
std::optional<Op> fast_form(Op op);
std::optional<Op> exact_form(Op op);

}  // namespace heddle::kernel
