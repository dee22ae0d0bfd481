// Products and convolutions as operations of a library.
#include <algorithm>
#include <optional>

#include "compiler/library_calls.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using library::Operation;
using tensor::Shape;

bool is_plain_f32(const Shape& shape) {
  return shape.is_array() && shape.is_static() && shape.type() == tensor::Type::f32 &&
         shape.elems() > 0 && (!shape.layout() || shape.layout()->is_row_major());
}

Ints row_major(const Shape& shape) {
  Ints strides(static_cast<size_t>(shape.rank()), 1);
  for (int64_t d = shape.rank(); d-- > 1;)
    strides[static_cast<size_t>(d - 1)] = strides[static_cast<size_t>(d)] * shape.dim(d);
  return strides;
}

// Several dimensions as one: an extent and a stride.
struct Merged {
  int64_t extent = 1, stride = 0;  // stride 0: one element
};

// Nullopt: the dimensions do not merge into one stride.
std::optional<Merged> merge(const Shape& shape, const Ints& dims) {
  const Ints strides = row_major(shape);
  Merged merged;
  for (int64_t d : dims) {
    const int64_t extent = shape.dim(d), stride = strides[static_cast<size_t>(d)];
    if (extent == 1) continue;
    if (merged.extent > 1 && merged.stride != extent * stride) return std::nullopt;
    merged.extent *= extent;
    merged.stride = stride;
  }
  return merged;
}

Ints free_dims(const Shape& shape, const Ints& batch, const Ints& contracting) {
  Ints rest;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (std::count(batch.begin(), batch.end(), d) +
            std::count(contracting.begin(), contracting.end(), d) ==
        0)
      rest.push_back(d);
  return rest;
}

// The strides of a matrix; a side of one element gets what a dense matrix would have.
void settle(const Merged& rows, const Merged& columns, int64_t* row, int64_t* column) {
  *row = rows.stride;
  *column = columns.stride;
  if (columns.extent == 1) *column = rows.extent > 1 && rows.stride == 1 ? rows.extent : 1;
  if (rows.extent == 1) *row = *column == 1 ? columns.extent : 1;
}

Decision match_dot(const Instr& dot, Operation* o) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  if (dot.operands().size() != 2 || !attrs.algorithm.empty() || !attrs.rest.empty())
    return Decision::no("library-type", "{} requests a particular algorithm", dot.name());
  const Shape &a = dot.operand(0)->shape(), &b = dot.operand(1)->shape();
  const auto a_batch = merge(a, attrs.lhs_batch_dims), b_batch = merge(b, attrs.rhs_batch_dims);
  const auto a_k = merge(a, attrs.lhs_contracting_dims), b_k = merge(b, attrs.rhs_contracting_dims);
  const auto m = merge(a, free_dims(a, attrs.lhs_batch_dims, attrs.lhs_contracting_dims));
  const auto n = merge(b, free_dims(b, attrs.rhs_batch_dims, attrs.rhs_contracting_dims));
  if (!a_batch || !b_batch || !a_k || !b_k || !m || !n)
    return Decision::no("library-strides", "{}: its dimensions do not merge into matrices",
                        dot.name());
  o->kind = Operation::Kind::product;
  o->batch = a_batch->extent;
  o->m = m->extent;
  o->n = n->extent;
  o->k = a_k->extent;
  o->a = {a_batch->stride, 0, 0};
  o->b = {b_batch->stride, 0, 0};
  settle(*m, *a_k, &o->a[1], &o->a[2]);
  settle(*b_k, *n, &o->b[1], &o->b[2]);
  o->c = {o->m * o->n, o->n, 1};
  if (std::min(o->a[1], o->a[2]) != 1 || std::min(o->b[1], o->b[2]) != 1)
    return Decision::no("library-strides", "{}: a matrix has no contiguous dimension", dot.name());
  return Decision::yes();
}

Decision match_convolution(const Instr& conv, Operation* o) {
  const auto& attrs = conv.attrs_as<hlo::ConvolutionAttrs>();
  if (!attrs.rest.empty())
    return Decision::no("library-type", "{} requests a particular algorithm", conv.name());
  const hlo::ConvolutionDims& dims = attrs.dims;
  const Shape &a = conv.operand(0)->shape(), &b = conv.operand(1)->shape(), &c = conv.shape();
  const Ints as = row_major(a), bs = row_major(b), cs = row_major(c);
  auto at = [](const Ints& values, int64_t d) { return values[static_cast<size_t>(d)]; };
  o->kind = Operation::Kind::convolution;
  o->images = a.dim(dims.input_batch);
  o->groups = attrs.feature_group_count;
  o->in = a.dim(dims.input_feature);
  o->out = c.dim(dims.output_feature);
  o->a = {at(as, dims.input_batch), at(as, dims.input_feature)};
  o->b = {at(bs, dims.kernel_output_feature), at(bs, dims.kernel_input_feature)};
  o->c = {at(cs, dims.output_batch), at(cs, dims.output_feature)};
  for (size_t i = 0; i < attrs.window.dims.size(); ++i) {
    const hlo::WindowDim& window = attrs.window.dims[i];
    if (window.lhs_dilate != 1 || window.reversal || window.pad_low < 0 || window.pad_high < 0)
      return Decision::no("library-window", "{}: its window dilates, reverses or cuts the input",
                          conv.name());
    o->input.push_back(a.dim(dims.input_spatial[i]));
    o->kernel.push_back(b.dim(dims.kernel_spatial[i]));
    o->output.push_back(c.dim(dims.output_spatial[i]));
    o->stride.push_back(window.stride);
    o->dilation.push_back(window.rhs_dilate);
    o->low.push_back(window.pad_low);
    o->high.push_back(window.pad_high);
    o->a.push_back(at(as, dims.input_spatial[i]));
    o->b.push_back(at(bs, dims.kernel_spatial[i]));
    o->c.push_back(at(cs, dims.output_spatial[i]));
  }
  if (attrs.batch_group_count != 1 || o->input.empty() || o->input.size() > 3)
    return Decision::no("library-window", "{}: {} spatial dimensions, {} groups of images",
                        conv.name(), o->input.size(), attrs.batch_group_count);
  return Decision::yes();
}

// The only reader of a value inside its computation; null: there are several, or control edges, or
// the value is the root.
Instr* only_reader(const Instr* value) {
  if (value == value->parent()->root() || value->users().size() != 1) return nullptr;
  Instr* reader = value->users()[0];
  const bool ordered =
      !reader->control_predecessors().empty() || !reader->control_successors().empty();
  return ordered ? nullptr : reader;
}

// The dimension of the product's shape that numbers its columns or features; -1: there is none.
int64_t column_dim(const Instr& product) {
  if (product.is(Opcode::convolution))
    return product.attrs_as<hlo::ConvolutionAttrs>().dims.output_feature;
  const auto& attrs = product.attrs_as<hlo::DotAttrs>();
  const Shape& b = product.operand(1)->shape();
  const bool one = free_dims(b, attrs.rhs_batch_dims, attrs.rhs_contracting_dims).size() == 1;
  return one ? product.shape().rank() - 1 : -1;
}

// The bias that `sum` adds to `value` in every column: f32[n], or null.
Instr* added_bias(const Instr& sum, const Instr* value, int64_t column) {
  if (!sum.is(Opcode::add) || sum.operand(0) == sum.operand(1) || column < 0) return nullptr;
  const Instr* other = sum.operand(sum.operand(0) == value ? 1 : 0);
  if (!other->is(Opcode::broadcast) || other->dimensions() != Ints{column}) return nullptr;
  Instr* bias = other->operand(0);
  const bool fits = is_plain_f32(bias->shape()) && bias->shape().rank() == 1 &&
                    bias->shape().dim(0) == value->shape().dim(column);
  return fits ? bias : nullptr;
}

}  // namespace

Decision match_library(Instr* product, LibraryProduct* found) {
  for (const Shape* shape :
       {&product->shape(), &product->operand(0)->shape(), &product->operand(1)->shape()})
    if (!is_plain_f32(*shape))
      return Decision::no("library-type", "{} has a side of {}", product->name(),
                          tensor::to_string(*shape));
  Operation operation;
  Decision fits = product->is(Opcode::dot) ? match_dot(*product, &operation)
                                           : match_convolution(*product, &operation);
  if (!fits) return fits;
  found->product = found->root = product;
  if (Instr* reader = only_reader(product))
    if (Instr* bias = added_bias(*reader, product, column_dim(*product))) {
      found->root = reader;
      found->bias = bias;
      operation.bias = true;
    }
  found->operation = std::move(operation);
  return Decision::yes();
}

}  // namespace heddle::compiler
