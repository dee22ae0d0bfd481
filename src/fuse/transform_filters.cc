// Transforms constant filters of convolutions, at load time, for Winograd's algorithm where that is
// predicted to be faster, and accurate enough (schedule/winograd.h). A note says how many, a
// refusal why not.
#include <algorithm>
#include <cmath>

#include "fuse/groups.h"
#include "fuse/passes.h"
#include "hlo/builder.h"
#include "hlo/winograd_filter.h"
#include "schedule/winograd_tuning.h"

namespace heddle::fuse {

namespace {

// G (x) G as f32[points^2, 9]: the factor of each of the nine taps in each point.
tensor::Literal transform_of(int m) {
  const schedule::WinogradMatrices& matrices = schedule::winograd_matrices(m);
  const int64_t side = matrices.points;
  tensor::Literal result(tensor::Shape::array(tensor::Type::f32, {side * side, 9}));
  auto at = [&](int64_t point, int64_t tap) {
    return matrices.filter[static_cast<size_t>(point * 3 + tap)];
  };
  for (int64_t p = 0; p < side * side; ++p)
    for (int64_t tap = 0; tap < 9; ++tap)
      result.set_f64(p * 9 + tap, at(p / side, tap / 3) * at(p % side, tap % 3));
  return result;
}

Decision prefer(Instr* conv, const target::Target& target, stage::Winograd* winograd) {
  const stage::PlacedFusion placed = place_alone(conv, target);
  if (!stage::is_gemm(placed))
    return Decision::no("winograd-window", "{} is not of the GEMM family", conv->name());
  const auto& row = std::get<stage::Row>(placed.schedule.nodes[0]);
  stage::WinogradShape shape;
  const stage::Stage& stage = placed.graph.stage(row.joined[0]);
  Decision fits = schedule::match_winograd(row.gemm()->shape, stage, target, &shape);
  if (!fits || !target.records)
    return fits ? schedule::prefer_winograd(shape, target, winograd) : fits;
  const auto tuned =
      schedule::tuned_winograd(schedule::winograd_key(shape), shape, /*nv=*/0, target);
  if (!tuned) return schedule::prefer_winograd(shape, target, winograd);
  if (tuned->direct)
    return Decision::no("winograd-slower", "the direct form was measured to be faster");
  *winograd = tuned->record;
  return Decision::yes();
}

// No: not changed.
Decision transform_filter(Instr* conv, const target::Target& target) {
  stage::Winograd winograd;
  if (Decision preferred = prefer(conv, target, &winograd); !preferred) return preferred;
  hlo::Builder b(conv->parent());
  auto attrs = conv->attrs_as<hlo::ConvolutionAttrs>();
  Instr* w = conv->operand(1);
  hlo::Ints order = attrs.dims.kernel_spatial;
  order.push_back(attrs.dims.kernel_input_feature);
  order.push_back(attrs.dims.kernel_output_feature);
  const int64_t side = winograd.m + 2;
  const int64_t c = w->shape().dim(order[2]), n = w->shape().dim(order[3]);
  const int64_t width = int64_t{winograd.tile.nv} * winograd.tile.lanes;
  if (!std::is_sorted(order.begin(), order.end())) w = b.transpose(w, order);
  hlo::DotAttrs product;
  product.lhs_contracting_dims = {1};
  product.rhs_contracting_dims = {0};
  w = b.dot(b.constant(transform_of(winograd.m)), b.reshape(w, {9, c * n}), product);
  w = b.transpose(b.reshape(w, {side * side, c, n / width, width}), {0, 2, 1, 3});
  w = b.reshape(w, {side, side, n / width, c, width});
  const tensor::Shape filter = tensor::Shape::array(tensor::Type::f32, {3, 3, c, n});
  hlo::CustomCallAttrs call;
  call.custom_call_target = hlo::kWinogradFilter;
  Instr* back = b.make(Opcode::custom_call, {w}, call, {}, &filter);
  set_unpack(back);
  attrs.dims.kernel_spatial = {0, 1};
  attrs.dims.kernel_input_feature = 2;
  attrs.dims.kernel_output_feature = 3;
  const tensor::Shape shape = conv->shape();
  Instr* made = b.make(Opcode::convolution, {conv->operand(0), back}, attrs, {}, &shape);
  b.check();
  conv->parent()->replace_all_uses(conv, made);
  conv->parent()->remove(conv);
  return Decision::yes();
}

}  // namespace

Instr* transformed_filter(const Instr* conv) {
  if (!conv->is(Opcode::convolution)) return nullptr;
  Instr* filter = conv->operand(1);
  return is_unpack(filter) && hlo::winograd_filter(*filter) > 0 ? filter : nullptr;
}

Result<bool> transform_filters(hlo::Module& module, const Context& context) {
  int64_t transformed = 0;
  for (const Covered& covered : covered_computations(module)) {
    const int64_t before = transformed;
    for (Instr* instr : products_by_constants(covered)) {
      if (!instr->is(Opcode::convolution) || transformed_filter(instr)) continue;
      const std::string filter = instr->operand(1)->name(), name = instr->name();
      const Decision done = transform_filter(instr, *context.target);
      transformed += static_cast<bool>(done);
      if (!done && context.refusals)
        context.refusals->push_back({filter, name, done.code(), done.reason()});
    }
    if (transformed > before) covered.computation->sort();
  }
  if (transformed > 0)
    context.note(fmt::format("winograd: {} convolutions by Winograd's algorithm", transformed));
  return transformed > 0;
}

}  // namespace heddle::fuse
