// batch_groups_to_features: a convolution with batch groups, each with its own filters (the
// gradient of a depthwise filter), becomes one with feature groups, which has kernels. A group of
// images becomes a group of one feature; the features, which are summed anyway, become one more
// spatial dimension that the window covers. No data moves: the rewrite only adds dimensions of
// extent 1 and splits the batch in place. (Making the features part of the groups would need a
// transpose.) It ends: each rewrite leaves one convolution with batch groups fewer.
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;

Ints with_one_before(Ints extents, int64_t d, int64_t extent = 1) {
  extents.insert(extents.begin() + d, extent);
  return extents;
}

// Moves every dimension from `d` on up by one.
void shift(int64_t d, Ints* spatial, std::initializer_list<int64_t*> others) {
  for (int64_t& s : *spatial) s += s >= d ? 1 : 0;
  for (int64_t* other : others) *other += *other >= d ? 1 : 0;
}

// Splits the input's batch into (group, image within group); the group is the new feature
// dimension.
Instr* cut_batch(Instr* input, int64_t groups, hlo::ConvolutionDims* dims, Builder& b) {
  const int64_t at = dims->input_batch;
  Ints extents = with_one_before(input->shape().extents(), at, groups);
  extents[static_cast<size_t>(at) + 1] /= groups;
  shift(at, &dims->input_spatial, {&dims->input_batch, &dims->input_feature});
  dims->input_spatial.insert(dims->input_spatial.begin(), dims->input_feature);
  dims->input_feature = at;
  return b.reshape(input, extents);
}

// The filter's input features become a window dimension; a new dimension of extent 1 replaces them.
Instr* widen_filter(Instr* filter, hlo::ConvolutionDims* dims, Builder& b) {
  const int64_t at = dims->kernel_output_feature;
  shift(at, &dims->kernel_spatial, {&dims->kernel_input_feature, &dims->kernel_output_feature});
  dims->kernel_spatial.insert(dims->kernel_spatial.begin(), dims->kernel_input_feature);
  dims->kernel_input_feature = at;
  return b.reshape(filter, with_one_before(filter->shape().extents(), at));
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!x->is(Opcode::convolution) || !are_static_arrays(x) || x->shape().elems() == 0) return {};
  ConvolutionAttrs attrs = x->attrs_as<ConvolutionAttrs>();
  if (attrs.batch_group_count == 1 || !attrs.rest.empty()) return {};
  Instr *input = x->operand(0), *filter = x->operand(1);
  const int64_t features = input->shape().dim(attrs.dims.input_feature);
  if (features == 0) return {};
  input = cut_batch(input, attrs.batch_group_count, &attrs.dims, b);
  filter = widen_filter(filter, &attrs.dims, b);
  // The result's dimension of extent 1 along the features, before the outermost of its spatial
  // ones.
  const int64_t at =
      attrs.dims.output_spatial.empty() ? attrs.dims.output_feature : attrs.dims.output_spatial[0];
  shift(at, &attrs.dims.output_spatial, {&attrs.dims.output_batch, &attrs.dims.output_feature});
  attrs.dims.output_spatial.insert(attrs.dims.output_spatial.begin(), at);
  const Shape shape = Shape::array(x->shape().type(), with_one_before(x->shape().extents(), at));
  hlo::WindowDim over_features;
  over_features.size = features;
  attrs.window.dims.insert(attrs.window.dims.begin(), over_features);
  attrs.feature_group_count = attrs.batch_group_count;
  attrs.batch_group_count = 1;
  Instr* made = b.make(Opcode::convolution, {input, filter}, std::move(attrs), {}, &shape);
  return {b.reshape(made, x->shape().extents()), "features"};
}

}  // namespace

Result<bool> batch_groups_to_features(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "batch_groups_to_features", visit,
                        [](const Instr* instr) { return instr->is(Opcode::convolution); });
}

}  // namespace heddle::opt
