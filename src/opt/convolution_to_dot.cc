// convolution_to_dot: a convolution whose windows do not overlap is a matrix product.
//  - 1x1 with stride 1: a product over the features; input or kernel comes first, whichever gives
//    the result its dimensions in order; if neither does, the result is transposed.
//  - patches (a window as large as its stride, without padding, over a multiple of it): a reshape
//    and a transpose cut the input into patches, and the product runs over the elements of a patch.
#include <algorithm>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;

bool is_simple(const Instr* x) {
  if (!x->is(Opcode::convolution) || !are_static_arrays(x) || x->shape().elems() == 0) return false;
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  if (attrs.feature_group_count != 1 || attrs.batch_group_count != 1) return false;
  if (!attrs.rest.empty()) return false;
  return std::all_of(attrs.window.dims.begin(), attrs.window.dims.end(), [](const auto& d) {
    return d.pad_low == 0 && d.pad_high == 0 && d.lhs_dilate == 1 && d.rhs_dilate == 1 &&
           (!d.reversal || d.size == 1);
  });
}

hlo::DotAttrs product_over(Ints lhs, Ints rhs, const ConvolutionAttrs& attrs) {
  hlo::DotAttrs dot;
  dot.lhs_contracting_dims = std::move(lhs);
  dot.rhs_contracting_dims = std::move(rhs);
  dot.operand_precision = attrs.operand_precision;
  return dot;
}

Instr* make_dot(Instr* x, Instr* lhs, Instr* rhs, const hlo::DotAttrs& attrs, const Ints& extents,
                Builder& b) {
  const Shape shape = Shape::array(x->shape().type(), extents);
  return b.make(Opcode::dot, {lhs, rhs}, attrs, {}, &shape);
}

// The position of each dimension of the convolution's result in [batch, spatial…, feature].
Ints result_order(const ConvolutionAttrs& attrs, bool feature_first,
                  const Ints& input_dims_in_order) {
  const auto& dims = attrs.dims;
  Ints order(dims.output_spatial.size() + 2);
  const int64_t shift = feature_first ? 1 : 0;
  auto place_of = [&](int64_t input_dim) {
    return std::find(input_dims_in_order.begin(), input_dims_in_order.end(), input_dim) -
           input_dims_in_order.begin() + shift;
  };
  order[static_cast<size_t>(dims.output_batch)] = place_of(dims.input_batch);
  for (size_t i = 0; i < dims.output_spatial.size(); ++i)
    order[static_cast<size_t>(dims.output_spatial[i])] = place_of(dims.input_spatial[i]);
  order[static_cast<size_t>(dims.output_feature)] =
      feature_first ? 0 : static_cast<int64_t>(order.size()) - 1;
  return order;
}

// Transposing by `order` moves nothing but extents of 1.
bool moves_nothing(const Ints& order, const Ints& result_extents) {
  Ints moved;
  for (size_t i = 0; i < order.size(); ++i)
    if (result_extents[i] != 1) moved.push_back(order[i]);
  return is_ascending(moved);
}

Instr* pointwise(Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  const auto& dims = attrs.dims;
  for (const auto& d : attrs.window.dims)
    if (d.size != 1 || d.stride != 1) return nullptr;
  Instr *input = x->operand(0), *kernel = x->operand(1);
  Ints free;  // the input's dimensions without the feature, in the order of the dot's result
  for (int64_t d = 0; d < input->shape().rank(); ++d)
    if (d != dims.input_feature) free.push_back(d);
  const Ints extents = x->shape().extents();
  // Prefers the operand order that leaves the result in order; if neither does, the one with the
  // features on the same side as in the result: then only whole rows move.
  bool feature_first = dims.output_spatial.empty() || dims.output_feature < dims.output_spatial[0];
  for (bool first : {true, false})  // prefer the weights on the right: their panels are packed
    if (moves_nothing(result_order(attrs, first, free), extents)) feature_first = first;
  const Ints order = result_order(attrs, feature_first, free);
  const int64_t in = kernel->shape().dim(dims.kernel_input_feature);
  const int64_t out = kernel->shape().dim(dims.kernel_output_feature);
  const bool in_first = dims.kernel_input_feature < dims.kernel_output_feature;
  Instr* matrix = b.reshape(kernel, in_first ? Ints{in, out} : Ints{out, in});
  const Ints over{in_first ? 0 : 1};
  const Ints product_extents = permuted(extents, inverted(order));
  Instr* dot = feature_first
                   ? make_dot(x, matrix, input, product_over(over, {dims.input_feature}, attrs),
                              product_extents, b)
                   : make_dot(x, input, matrix, product_over({dims.input_feature}, over, attrs),
                              product_extents, b);
  return moves_nothing(order, extents) ? b.reshape(dot, extents) : b.transpose(dot, order);
}

// Whether a dimension is cut into patches whatever its extent in a run: the elements behind the
// last whole patch have no place in a reshape.
bool has_whole_patches(const Instr* x, int64_t extent, int64_t size) {
  const std::vector<hlo::Symbol>& symbols = x->parent()->module()->symbols;
  return extent % size == 0 && std::none_of(symbols.begin(), symbols.end(), [&](const auto& one) {
           return one.bound > 1 && extent % one.bound == 0 && extent / one.bound % size != 0;
         });
}

Instr* patches(Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  const auto& dims = attrs.dims;
  Instr *input = x->operand(0), *kernel = x->operand(1);
  const size_t spatial = attrs.window.dims.size();
  for (size_t i = 0; i < spatial; ++i) {
    const auto& d = attrs.window.dims[i];
    if (d.size != d.stride ||
        !has_whole_patches(x, input->shape().dim(dims.input_spatial[i]), d.size))
      return nullptr;
  }
  // Each spatial dimension becomes (patch, element within patch).
  Ints split, place(static_cast<size_t>(input->shape().rank()));
  for (int64_t d = 0; d < input->shape().rank(); ++d) {
    place[static_cast<size_t>(d)] = static_cast<int64_t>(split.size());
    const auto found = std::find(dims.input_spatial.begin(), dims.input_spatial.end(), d);
    if (found == dims.input_spatial.end()) {
      split.push_back(input->shape().dim(d));
      continue;
    }
    const int64_t size =
        attrs.window.dims[static_cast<size_t>(found - dims.input_spatial.begin())].size;
    split.insert(split.end(), {input->shape().dim(d) / size, size});
  }
  auto at = [&](int64_t d) { return place[static_cast<size_t>(d)]; };
  // [batch, patches…, then the contracted dimensions in the kernel's order].
  Ints order{at(dims.input_batch)}, over;
  for (int64_t d : dims.input_spatial) order.push_back(at(d));
  Ints product_extents = permuted(split, order), kernel_over;
  for (int64_t d = 0; d < kernel->shape().rank(); ++d) {
    if (d == dims.kernel_output_feature) continue;
    const auto found = std::find(dims.kernel_spatial.begin(), dims.kernel_spatial.end(), d);
    const bool feature = found == dims.kernel_spatial.end();
    over.push_back(static_cast<int64_t>(order.size()));
    order.push_back(
        feature
            ? at(dims.input_feature)
            : at(dims.input_spatial[static_cast<size_t>(found - dims.kernel_spatial.begin())]) + 1);
    kernel_over.push_back(d);
  }
  product_extents.push_back(kernel->shape().dim(dims.kernel_output_feature));
  Instr* cut = b.transpose(b.reshape(input, split), order);
  Instr* dot = make_dot(x, cut, kernel, product_over(over, kernel_over, attrs), product_extents, b);
  Ints in_order{dims.input_batch};
  in_order.insert(in_order.end(), dims.input_spatial.begin(), dims.input_spatial.end());
  return b.transpose(dot, result_order(attrs, /*feature_first=*/false, in_order));
}

Rewriter::Proposal visit(Instr* x, Builder& b) {
  if (!is_simple(x)) return {};
  if (Instr* to = pointwise(x, b)) return {to, "pointwise"};
  const auto& window = x->attrs_as<ConvolutionAttrs>().window.dims;
  const bool larger =
      std::any_of(window.begin(), window.end(), [](const auto& d) { return d.size > 1; });
  if (!larger) return {};
  return {patches(x, b), "patches"};
}

}  // namespace

Result<bool> convolution_to_dot(hlo::Module& module, const PassContext& context) {
  return rewrite_module(module, context, "convolution_to_dot", visit,
                        [](const Instr* instr) { return instr->is(Opcode::convolution); });
}

}  // namespace heddle::opt
