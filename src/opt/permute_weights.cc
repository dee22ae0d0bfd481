// permute_weights: x · W, where x is a transpose whose dimensions a reshape merges into the
// contracted one (an image flattened for a linear layer, with its features last by now), reads the
// image without the transpose; instead the rows of the constant W are permuted, at load time. The
// sum runs over the same products in another order, which dots leave open (canonicalize_dot). Each
// rewrite leaves fewer transposes of values that are not constant.
#include <algorithm>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

// Dimensions [begin, end) of the transpose are merged into the contracted dimension.
struct Flattened {
  Instr* image = nullptr;  // under the transpose
  Ints order;              // of the transpose
  int64_t begin = 0, end = 0;
};

std::optional<Flattened> flattened(const Instr* dot) {
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const Instr* flat = dot->operand(0);
  if (!flat->is(Opcode::reshape) || flat->users().size() != 1) return std::nullopt;
  Instr* turned = flat->operand(0);
  if (!turned->is(Opcode::transpose) || turned->users().size() != 1) return std::nullopt;
  for (const ReshapePiece& piece :
       reshape_pieces(turned->shape().extents(), flat->shape().extents())) {
    if (piece.to_begin != attrs.lhs_contracting_dims[0] || piece.to_end != piece.to_begin + 1 ||
        piece.from_end - piece.from_begin < 2)
      continue;
    return Flattened{turned->operand(0), turned->dimensions(), piece.from_begin, piece.from_end};
  }
  return std::nullopt;
}

// The image's contracted dimensions, in its own order; none: they are not adjacent, or the others
// are not in order.
std::optional<Ints> summed_in_place(const Flattened& f) {
  Ints summed(f.order.begin() + f.begin, f.order.begin() + f.end);
  std::sort(summed.begin(), summed.end());
  if (summed.back() - summed.front() + 1 != static_cast<int64_t>(summed.size()))
    return std::nullopt;
  Ints all(f.order.begin(), f.order.begin() + f.begin);
  all.insert(all.end(), summed.begin(), summed.end());
  all.insert(all.end(), f.order.begin() + f.end, f.order.end());
  Ints moved;
  for (int64_t d : all)
    if (f.image->shape().dim(d) != 1) moved.push_back(d);
  if (!is_ascending(moved)) return std::nullopt;
  return summed;
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<hlo::DotAttrs>();
  if (x->operands().size() != 2 || !are_static_arrays(x) || x->shape().elems() == 0 ||
      !attrs.rest.empty() || attrs.lhs_contracting_dims.size() != 1 ||
      !attrs.lhs_batch_dims.empty() || x->operand(1)->users().size() != 1 ||
      !is_constant_expression(x->operand(1)))
    return {};
  const std::optional<Flattened> f = flattened(x);
  if (!f) return {};
  const std::optional<Ints> summed = summed_in_place(*f);
  if (!summed) return {};
  // Rows of W: split into one dimension for each of the image's, in the order of the flattening,
  // then put in the image's order.
  Instr* weights = x->operand(1);
  const Ints extents = weights->shape().extents();
  const int64_t rows = attrs.rhs_contracting_dims[0];
  Ints apart(extents.begin(), extents.begin() + rows), order = counting(rows);
  for (int64_t i = f->begin; i < f->end; ++i)
    apart.push_back(f->image->shape().dim(f->order[static_cast<size_t>(i)]));
  for (int64_t d : *summed)
    order.push_back(rows + (std::find(f->order.begin(), f->order.end(), d) - f->order.begin()) -
                    f->begin);
  for (size_t d = static_cast<size_t>(rows) + 1; d < extents.size(); ++d) {
    order.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(extents[d]);
  }
  weights = b.reshape(b.transpose(b.reshape(weights, apart), order), extents);
  Instr* flat = b.reshape(f->image, x->operand(0)->shape().extents());
  const Shape shape = x->shape().without_layout();
  return {b.make(Opcode::dot, {flat, weights}, attrs, {}, &shape), "flattened"};
}

}  // namespace

Result<bool> permute_weights(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "permute_weights", visit,
                        [](const Instr* instr) { return instr->is(Opcode::dot); });
}

}  // namespace heddle::opt
