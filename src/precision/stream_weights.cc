// stream_weights: one row times a matrix that is unpacked from constants of far fewer bytes
// (weights of 4 or 8 bits in blocks) takes as long as the matrix takes to be read. It becomes a sum
// over what is packed, which fusion then unpacks in registers (fuse/groups.h, find_once) instead of
// once into an array of floats:
//
//   dot(a[1,k], reshape(w[n,parts,blocks,size]))  =>
//     reduce(a[parts,blocks,size] * w[n,parts,blocks,size])
//
// The order of the sum is another one.
#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Type;

// multiply(subtract(convert(bytes), …), …) of constants.
bool is_unpacked(const Instr* w) {
  if (!w->is(Opcode::multiply) || !w->operand(0)->is(Opcode::subtract)) return false;
  const Instr* numbers = w->operand(0)->operand(0);
  return numbers->is(Opcode::convert) && opt::is_integer(numbers->operand(0)) &&
         opt::is_constant_expression(w);
}

opt::Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!x->is(Opcode::dot) || x->operands().size() != 2 || !opt::are_static_arrays(x) ||
      x->shape().type() != Type::f32)
    return {};
  const auto& attrs = x->attrs_as<hlo::DotAttrs>();
  Instr *a = x->operand(0), *merged = x->operand(1);
  const int64_t k = merged->shape().rank() == 2 ? merged->shape().dim(1) : 0;
  if (!attrs.rest.empty() || !attrs.lhs_batch_dims.empty() ||
      attrs.rhs_contracting_dims != Ints{1} || a->shape().elems() != k ||
      !merged->is(Opcode::reshape))
    return {};
  Instr* w = merged->operand(0);
  const Ints packed = w->shape().extents();
  if (packed.size() != 4 || packed[0] != merged->shape().dim(0) || !is_unpacked(w)) return {};
  Instr* row = b.reshape(a, {packed[1], packed[2], packed[3]});
  Instr* products = b.binary(Opcode::multiply, b.broadcast(row, packed, {1, 2, 3}), w);
  return {b.reshape(b.reduce(Opcode::add, products, {1, 2, 3}), x->shape().extents()), "row"};
}

}  // namespace

Result<bool> stream_weights(hlo::Module& module, const PassContext& context) {
  return opt::rewrite_module(module, context, "stream_weights", visit,
                             [](const Instr* instr) { return instr->is(Opcode::dot); });
}

}  // namespace heddle::precision
