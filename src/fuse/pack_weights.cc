#include "fuse/fuse.h"
#include "fuse/groups.h"
#include "hlo/builder.h"
#include "schedule/gemm.h"

namespace heddle::fuse {

namespace {

bool is_constant_value(const Instr* instr, const std::unordered_set<const Instr*>& once) {
  return instr->is(Opcode::constant) || once.count(instr) > 0;
}

// dot [M,K] x [K,N] or [N,K], f32, one contracted dimension, no batch.
bool packs(const Instr* dot) {
  if (!dot->is(Opcode::dot) || dot->operands().size() != 2) return false;
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const Instr* rhs = dot->operand(1);
  return attrs.lhs_batch_dims.empty() && attrs.rhs_contracting_dims.size() == 1 &&
         rhs->shape().rank() == 2 && rhs->shape().type() == tensor::Type::f32 &&
         dot->operand(0)->shape().type() == tensor::Type::f32 &&
         dot->shape().type() == tensor::Type::f32 && dot->operand(0)->shape().rank() == 2;
}

void pack(Instr* dot, const target::Target& target) {
  hlo::Builder b(dot->parent());
  auto attrs = dot->attrs_as<hlo::DotAttrs>();
  Instr* w = dot->operand(1);
  bool transposed = attrs.rhs_contracting_dims[0] == 1;
  int64_t k = w->shape().dim(transposed ? 1 : 0), n = w->shape().dim(transposed ? 0 : 1);
  int64_t m = dot->operand(0)->shape().elems() / std::max<int64_t>(k, 1);
  schedule::Gemm gemm = schedule::choose_gemm(m, n, k, true, target);
  int64_t width = int64_t{gemm.nv} * gemm.lanes;
  int64_t panels = (n + width - 1) / width, padded = panels * width;
  if (transposed) w = b.transpose(w, {1, 0});
  if (padded != n)
    w = b.pad(w, b.scalar(tensor::Type::f32, 0), {0, 0}, {0, padded - n}, {0, 0});
  Instr* packed = b.transpose(b.reshape(w, {k, panels, width}), {1, 0, 2});
  auto unpack = [](Instr* instr) {
    instr->annotations().emplace_back(kUnpack, "true");
    return instr;
  };
  Instr* back = unpack(b.reshape(unpack(b.transpose(packed, {1, 0, 2})), {k, padded}));
  if (padded != n) back = unpack(b.slice(back, {0, 0}, {k, n}, {1, 1}));
  attrs.rhs_contracting_dims = {0};
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
