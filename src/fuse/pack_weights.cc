#include <algorithm>

#include "fuse/fuse.h"
#include "fuse/groups.h"
#include "hlo/builder.h"
#include "schedule/gemm.h"

namespace heddle::fuse {

namespace {

bool is_constant_value(const Instr* instr, const std::unordered_set<const Instr*>& once) {
  return instr->is(Opcode::constant) || once.count(instr) > 0;
}

// f32, no batch, one free dimension on the right.
bool packs(const Instr* dot) {
  if (!dot->is(Opcode::dot) || dot->operands().size() != 2) return false;
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const tensor::Shape& rhs = dot->operand(1)->shape();
  auto f32 = [](const Instr* x) { return x->shape().type() == tensor::Type::f32; };
  return attrs.lhs_batch_dims.empty() && !attrs.rhs_contracting_dims.empty() &&
         rhs.rank() == static_cast<int64_t>(attrs.rhs_contracting_dims.size()) + 1 && f32(dot) &&
         f32(dot->operand(0)) && f32(dot->operand(1)) && rhs.elems() > 0;
}

void pack(Instr* dot, const target::Target& target) {
  hlo::Builder b(dot->parent());
  auto attrs = dot->attrs_as<hlo::DotAttrs>();
  Instr* w = dot->operand(1);
  // Contracted dimensions first, in the dot's order, then the free one.
  hlo::Ints order = attrs.rhs_contracting_dims, extents;
  for (int64_t d = 0; d < w->shape().rank(); ++d)
    if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
  for (int64_t d : order) extents.push_back(w->shape().dim(d));
  const int64_t n = extents.back(), k = w->shape().elems() / n;
  const int64_t m = dot->operand(0)->shape().elems() / k;
  schedule::Gemm gemm = schedule::choose_gemm(m, n, k, true, target);
  const int64_t width = int64_t{gemm.nv} * gemm.lanes;
  const int64_t panels = (n + width - 1) / width, padded = panels * width;
  if (!std::is_sorted(order.begin(), order.end())) w = b.transpose(w, order);
  w = b.reshape(w, {k, n});
  if (padded != n)
    w = b.pad(w, b.scalar(tensor::Type::f32, 0), {0, 0}, {0, padded - n}, {0, 0});
  Instr* packed = b.transpose(b.reshape(w, {k, panels, width}), {1, 0, 2});
  auto unpack = [](Instr* instr) {
    instr->annotations().emplace_back(kUnpack, "true");
    return instr;
  };
  Instr* back = unpack(b.reshape(unpack(b.transpose(packed, {1, 0, 2})), {k, padded}));
  if (padded != n) back = unpack(b.slice(back, {0, 0}, {k, n}, {1, 1}));
  if (extents.size() > 2) back = unpack(b.reshape(back, extents));
  for (size_t i = 0; i < attrs.rhs_contracting_dims.size(); ++i)
    attrs.rhs_contracting_dims[i] = static_cast<int64_t>(i);
  Instr* made = b.make(Opcode::dot, {dot->operand(0), back}, attrs);
  b.check();
  dot->parent()->replace_all_uses(dot, made);
  dot->parent()->remove(dot);
}

}  // namespace

Result<bool> pack_weights(hlo::Module* module, const target::Target& target) {
  Computation* entry = module->entry();
  std::unordered_set<const Instr*> once = find_once(*entry);
  std::vector<Instr*> dots;
  for (Instr* instr : entry->instrs())
    if (packs(instr) && is_constant_value(instr->operand(1), once) &&
        !is_constant_value(instr->operand(0), once))
      dots.push_back(instr);
  for (Instr* dot : dots) pack(dot, target);
  if (!dots.empty()) entry->sort();
  return !dots.empty();
}

}  // namespace heddle::fuse
