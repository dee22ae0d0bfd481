// Dots and convolutions with a constant right operand (in a loop's body: a loop-invariant one) read
// it in the panels of their GEMM record: packing is a pad, reshape and transpose of the constant
// (at load time), and the fusion contains the inverse, which index maps cancel (stages.md 4.6).
#include <algorithm>

#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/builder.h"
#include "schedule/bounded_rows.h"
#include "schedule/gemm_tiles.h"
#include "schedule/windows.h"

namespace heddle::fuse {

namespace {

// The instruction that multiplies the types of a dot's operands; null: none for packed panels.
const kernel::MmaDescriptor* product_of(const Instr* dot, const target::Target& target) {
  const tensor::Type type = dot->shape().type();
  const std::optional<tensor::Type> sums = schedule::sum_type(type);
  const tensor::Type a = dot->operand(0)->shape().type(), b = dot->operand(1)->shape().type();
  if (!sums) return nullptr;
  const kernel::MmaDescriptor* mma = schedule::find_product(a, b, *sums, target);
  const int64_t k =
      dot->operand(1)->shape().dim(dot->attrs_as<hlo::DotAttrs>().rhs_contracting_dims.back());
  if (mma != kernel::plain_mma()) {
    // Types that only tile instructions make faster need whole tiles.
    const kernel::MmaDescriptor* tile = schedule::find_tile(*mma, target);
    const bool faster = target.peak_flops_per_ns(mma->b) > target.peak_flops_per_ns(*sums);
    const int64_t rows = dot->shape().elems() / dot->shape().dim(dot->shape().rank() - 1);
    const bool whole = tile && k % tile->k == 0 && rows >= tile->m && !schedule::is_bounded(dot);
    if (!faster && !whole) return nullptr;
    return k % mma->k == 0 ? mma : nullptr;
  }
  const bool f32 = type == tensor::Type::f32 && a == type && b == type;
  return f32 ? mma : nullptr;
}

// Whether the dot can be packed: no batch, one free dimension of the right operand.
bool packs(const Instr* dot, const target::Target& target) {
  if (!dot->is(Opcode::dot) || dot->operands().size() != 2) return false;
  const auto& attrs = dot->attrs_as<hlo::DotAttrs>();
  const tensor::Shape& rhs = dot->operand(1)->shape();
  return attrs.lhs_batch_dims.empty() && !attrs.rhs_contracting_dims.empty() &&
         rhs.rank() == static_cast<int64_t>(attrs.rhs_contracting_dims.size()) + 1 &&
         rhs.elems() > 0 && product_of(dot, target);
}

Instr* unpack(Instr* instr) {
  set_unpack(instr);
  return instr;
}

// Packs `w`, as [k, groups, n], into panels [groups, panel, k, width], padded with zeros. Returns
// the inverse, a view of these panels as [k, groups·n]. One group is no dimension. With words of k:
// [groups, panel, k/word, width, word].
Instr* through_panels(hlo::Builder& b, Instr* w, int64_t k, int64_t groups, int64_t n,
                      int64_t width, int64_t word) {
  const int64_t panels = (n + width - 1) / width, padded = panels * width;
  auto with_groups = [&](hlo::Ints rest) {
    if (groups > 1) rest.insert(rest.begin() + 1, groups);
    return rest;
  };
  const hlo::Ints plain = with_groups({k, n});
  const hlo::Ints none(plain.size(), 0), ones(plain.size(), 1);
  hlo::Ints more = none;
  more.back() = padded - n;
  w = b.reshape(w, plain);
  if (padded != n) w = b.pad(w, b.scalar(w->shape().type(), 0), none, more, none);
  const bool grouped = groups > 1;
  hlo::Ints apart = with_groups({k, panels, width});
  hlo::Ints order = grouped ? hlo::Ints{1, 2, 0, 3} : hlo::Ints{1, 0, 2};
  if (word > 1) {  // k is the first dimension, its words become the last
    apart[0] /= word;
    apart.insert(apart.begin() + 1, word);
    for (int64_t& d : order) d += d > 0;
    order.push_back(1);
  }
  hlo::Ints inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    inverse[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  w = b.reshape(w, apart);
  Instr* packed = b.transpose(w, order);
  Instr* back = unpack(b.transpose(packed, inverse));
  back = unpack(b.reshape(back, with_groups({k, padded})));
  if (padded != n) back = unpack(b.slice(back, none, plain, ones));
  return grouped ? unpack(b.reshape(back, {k, groups * n})) : back;
}

void replace(Instr* old, Instr* made, hlo::Builder& b) {
  b.check();
  old->parent()->replace_all_uses(old, made);
  old->parent()->remove(old);
}

void pack_dot(Instr* dot, const target::Target& target) {
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
  const kernel::MmaDescriptor* mma = product_of(dot, target);
  const tensor::Type sums = *schedule::sum_type(dot->shape().type());
  const stage::Gemm gemm = schedule::choose_gemm_between(schedule::least_rows(dot, m), m, n, k,
                                                         true, target, 0, sums, mma);
  if (!std::is_sorted(order.begin(), order.end())) w = b.transpose(w, order);
  Instr* back = through_panels(b, w, k, 1, n, int64_t{gemm.nv} * gemm.lanes, mma->k);
  if (extents.size() > 2) back = unpack(b.reshape(back, extents));
  for (size_t i = 0; i < attrs.rhs_contracting_dims.size(); ++i)
    attrs.rhs_contracting_dims[i] = static_cast<int64_t>(i);
  const tensor::Shape shape = dot->shape();
  replace(dot, b.make(Opcode::dot, {dot->operand(0), back}, attrs, {}, &shape), b);
}

// Panels of a convolution's kernel: their width, and the number of groups of features.
struct Panels {
  int64_t width = 0, groups = 1, word = 1;
};

// Width 0: the kernel is not packed. Groups that share lanes (schedule/group_lanes.cc) are
// adjacent.
Panels choose_panels(Instr* conv, const target::Target& target) {
  const stage::PlacedFusion placed = place_alone(conv, target);
  const auto& attrs = conv->attrs_as<hlo::ConvolutionAttrs>();
  const int64_t groups = attrs.feature_group_count;
  if (stage::is_gemm(placed)) {
    const stage::Gemm& gemm = std::get<stage::Row>(placed.schedule.nodes[0]).gemm()->record;
    return {int64_t{gemm.nv} * gemm.lanes, groups, gemm.word()};
  }
  const int64_t features = conv->operand(1)->shape().dim(attrs.dims.kernel_output_feature);
  if (schedule::count_windows(placed) == 0 || groups == features) return {};
  const int64_t lanes = placed.schedule.phases[0][0].lanes;
  int64_t word = 1;
  for (const stage::ScheduleNode& node : placed.schedule.nodes)
    if (const auto* row = std::get_if<stage::Row>(&node); row && row->nest())
      word = std::max<int64_t>(word, row->nest()->mma->k);
  return {features > lanes || word > 1 ? lanes : 0, 1, word};
}

// The depth of a convolution's panels is [spatial…, input feature], in this order whatever the
// kernel's.
bool pack_convolution(Instr* conv, const target::Target& target) {
  const Panels panels = choose_panels(conv, target);
  if (panels.width == 0) return false;
  hlo::Builder b(conv->parent());
  auto attrs = conv->attrs_as<hlo::ConvolutionAttrs>();
  Instr* w = conv->operand(1);
  hlo::Ints order = attrs.dims.kernel_spatial, extents;
  order.push_back(attrs.dims.kernel_input_feature);
  order.push_back(attrs.dims.kernel_output_feature);
  for (int64_t d : order) extents.push_back(w->shape().dim(d));
  const int64_t k = w->shape().elems() / extents.back();
  if (!std::is_sorted(order.begin(), order.end())) w = b.transpose(w, order);
  Instr* back = through_panels(b, w, k, panels.groups, extents.back() / panels.groups, panels.width,
                               panels.word);
  back = unpack(b.reshape(back, extents));
  const int64_t spatial = static_cast<int64_t>(attrs.dims.kernel_spatial.size());
  for (int64_t i = 0; i < spatial; ++i) attrs.dims.kernel_spatial[static_cast<size_t>(i)] = i;
  attrs.dims.kernel_input_feature = spatial;
  attrs.dims.kernel_output_feature = spatial + 1;
  const tensor::Shape shape = conv->shape();
  replace(conv, b.make(Opcode::convolution, {conv->operand(0), back}, attrs, {}, &shape), b);
  return true;
}

bool pack_in(const Covered& covered, const target::Target& target) {
  bool changed = false;
  for (Instr* instr : products_by_constants(covered)) {
    if (is_unpack(instr->operand(1))) continue;  // packed already
    if (instr->is(Opcode::convolution)) {
      changed |= pack_convolution(instr, target);
    } else if (packs(instr, target)) {
      pack_dot(instr, target);
      changed = true;
    }
  }
  if (changed) covered.computation->sort();
  return changed;
}

}  // namespace

std::vector<Instr*> products_by_constants(const Covered& covered) {
  std::unordered_set<const Instr*> constant;  // views of constants too
  find_once(covered, &constant);
  std::vector<Instr*> found;
  for (Instr* instr : covered.computation->instrs()) {
    const bool product =
        instr->is(Opcode::convolution) || (instr->is(Opcode::dot) && instr->operands().size() == 2);
    if (product && constant.count(instr->operand(1)) > 0 && constant.count(instr->operand(0)) == 0)
      found.push_back(instr);
  }
  return found;
}

Result<bool> pack_panels(hlo::Module& module, const Context& context) {
  bool changed = false;
  for (const Covered& covered : covered_computations(module))
    changed |= pack_in(covered, *context.target);
  return changed;
}

}  // namespace heddle::fuse
