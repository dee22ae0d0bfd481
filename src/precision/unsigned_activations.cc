// unsigned_activations: keeps an s8 value that a run quantises and dequantises as u8, 128 higher:
// byte products read u8 on the left. The zero point of the dequantisation subtracts the 128, the
// addition is merged with that of the zero point of the quantisation:
//
//   q = s8 convert(round(x) + z);  s32 convert(q)
//     =>  u = u8 convert(round(x) + (z + 128));  s32 convert(u) - 128
//
// Whole numbers within the type are added exactly, others are clamped to the same end. A NaN
// becomes the least number instead of 0.
#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Type;

// round(x), possibly plus whole numbers: their sum, and the rounded value.
struct Rounded {
  Instr* value = nullptr;
  double more = 0;
};

Rounded rounded(Instr* x) {
  double more = 0;
  if (x->is(Opcode::add)) {
    const Instr* from = x->operand(1);
    while (from->is(Opcode::broadcast) || from->is(Opcode::convert) || from->is(Opcode::reshape))
      from = from->operand(0);
    const Literal* number = opt::constant_of(from);
    if (!number || number->elems() != 1 || !tensor::is_integer(number->type())) return {};
    more = number->get_f64(0);
    x = x->operand(0);
  }
  return x->is(Opcode::round_nearest_even) ? Rounded{x, more} : Rounded{};
}

// Matches an s8 made from a rounded number where it is converted to a wider type.
opt::Rewriter::Proposal visit(Instr* x, Builder& b) {
  const Type to = x->shape().type();
  if (!x->is(Opcode::convert) || (to != Type::s32 && to != Type::f32)) return {};
  Instr* q = x->operand(0);
  if (!q->is(Opcode::convert) || q->shape().type() != Type::s8) return {};
  const Rounded from = rounded(q->operand(0));
  if (!from.value || from.value->shape().type() != Type::f32 || opt::is_constant_expression(q))
    return {};
  for (const Instr* user : q->users())
    if (!user->is(Opcode::convert)) return {};
  Instr* moved = from.value;
  if (from.more != -128)
    moved = b.binary(Opcode::add, moved, b.full(moved->shape(), from.more + 128));
  Instr* wide = b.convert(b.convert(moved, Type::u8), Type::s32);
  return {b.convert(b.binary(Opcode::subtract, wide, b.full(wide->shape(), 128)), to), "shift"};
}

}  // namespace

Result<bool> unsigned_activations(hlo::Module& module, const PassContext& context) {
  return opt::rewrite_module(module, context, "unsigned_activations", visit,
                             [](const Instr* instr) { return instr->is(Opcode::convert); });
}

}  // namespace heddle::precision
