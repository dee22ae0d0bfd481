// The shape of an instruction's value from its operands and attributes. One function per family of
// operators, in shape_<family>.cc.
#pragma once

#include <span>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::hlo {

// Error: which operand, what was got and wanted. Opcodes whose shape is always declared (parameter,
// constant, convert, reshape, custom-call, …) need `declared`; it is checked against the operands
// and returned.
Result<Shape> infer_shape(Opcode opcode, std::span<const Shape* const> operands, const Attrs& attrs,
                          std::span<Computation* const> called, const Shape* declared = nullptr);
// True where text must write the shape out.
bool shape_is_declared(Opcode opcode);

}  // namespace heddle::hlo
