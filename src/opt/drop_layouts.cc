// drop_layouts: layouts inside a module are hints of another compiler and are removed. From here on
// every array is a logical one; our own layouts are chosen later. A bitcast, the one operator whose
// value depends on layouts, becomes the equivalent reshape and transpose. Layouts of the entry's
// parameters and result that are not row-major are kept as the module's entry_layout.
#include <algorithm>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

bool is_plain(const Shape& shape) {
  if (shape.is_tuple())
    return std::all_of(shape.elements().begin(), shape.elements().end(), is_plain);
  return !shape.layout() || shape.layout()->is_row_major();
}

// Permutation to memory order, slowest dimension first: extents in memory are list[physical[i]].
Ints physical_order(const tensor::Layout& layout) {
  return {layout.minor_to_major.rbegin(), layout.minor_to_major.rend()};
}

bool is_dense(const tensor::Layout& layout) {
  return layout.tiles.empty() && layout.padded_dimensions.empty();
}

// The same bytes: into memory order, reinterpreted with the other type and extents, and back.
Result<Instr*> expand_bitcast(Instr* bitcast, hlo::Builder& b) {
  Instr* x = bitcast->operand(0);
  const Shape &from = x->shape(), &to = bitcast->shape();
  const tensor::Layout from_layout = from.layout_or_default(), to_layout = to.layout_or_default();
  if (!is_dense(from_layout) || !is_dense(to_layout) || !from.is_static() || !to.is_static())
    return user_error("bitcast %{} from {} to {}: only static arrays without tiles and padding",
                      bitcast->name(), tensor::to_string(from), tensor::to_string(to));
  const Ints from_order = physical_order(from_layout), to_order = physical_order(to_layout);
  if (!is_counting(from_order)) x = b.transpose(x, from_order);
  if (from.type() != to.type()) {
    const int from_bits = tensor::type_bits(from.type()), to_bits = tensor::type_bits(to.type());
    Ints extents = x->shape().extents();
    if (from_bits > to_bits) {
      extents.push_back(from_bits / to_bits);
    } else if (from_bits < to_bits) {
      // The innermost parts of the wider type may span several dimensions.
      x = b.reshape(x, {from.elems() * from_bits / to_bits, to_bits / from_bits});
      extents = {x->shape().dim(0)};
    }
    x = b.bitcast_convert(x, Shape::array(to.type(), extents));
  }
  const Ints to_extents = permuted(to.extents(), to_order);
  if (x->shape().extents() != to_extents) x = b.reshape(x, to_extents);
  if (!is_counting(to_order)) x = b.transpose(x, inverted(to_order));
  if (!b.status()) return tl::unexpected<Error>(b.status().error());
  return x;
}

Result<bool> expand_bitcasts(Computation* computation) {
  bool changed = false;
  const std::vector<Instr*> all = computation->instrs();
  hlo::Builder b(computation);
  for (Instr* instr : all) {
    if (!instr->is(Opcode::bitcast)) continue;
    HEDDLE_ASSIGN_OR_RETURN(Instr * to, expand_bitcast(instr, b));
    computation->replace_all_uses(instr, to);
    if (instr->users().empty() && instr != computation->root()) computation->remove(instr);
    changed = true;
  }
  return changed;
}

bool has_layout(const Shape& shape) {
  if (shape.is_tuple())
    return std::any_of(shape.elements().begin(), shape.elements().end(), has_layout);
  return shape.layout().has_value();
}

void keep_entry_layout(hlo::Module& module) {
  const Computation& entry = *module.entry();
  if (module.entry_layout) return;
  bool plain = is_plain(entry.root()->shape());
  std::vector<Shape> parameters;
  for (const Instr* parameter : entry.parameters()) {
    plain = plain && is_plain(parameter->shape());
    parameters.push_back(parameter->shape());
  }
  if (!plain) module.entry_layout = {std::move(parameters), entry.root()->shape()};
}

}  // namespace

Result<bool> drop_layouts(hlo::Module& module, const PassContext&) {
  bool changed = false;
  keep_entry_layout(module);
  for (const auto& computation : module.computations()) {
    HEDDLE_ASSIGN_OR_RETURN(bool expanded, expand_bitcasts(computation.get()));
    changed |= expanded;
    for (Instr* instr : computation->instrs()) {
      if (!has_layout(instr->shape())) continue;
      instr->set_shape(instr->shape().without_layout());
      changed = true;
    }
  }
  return changed;
}

}  // namespace heddle::opt
