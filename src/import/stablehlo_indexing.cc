// StableHLO: gather, scatter, dynamic slices, and their common dimension numbers.
#include <algorithm>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

int64_t one_field(const MlirAttr& numbers, std::string_view name) {
  const Ints values = integer_field(numbers, name);
  if (values.size() > 1) fail("{}: wanted one integer", name);
  return values.empty() ? 0 : values[0];
}

hlo::GatherAttrs gather_attrs(const ShloOp& op) {
  const MlirAttr& numbers = op.attr("dimension_numbers");
  hlo::GatherAttrs attrs;
  attrs.offset_dims = integer_field(numbers, "offset_dims");
  attrs.collapsed_slice_dims = integer_field(numbers, "collapsed_slice_dims");
  attrs.start_index_map = integer_field(numbers, "start_index_map");
  attrs.operand_batching_dims = integer_field(numbers, "operand_batching_dims");
  attrs.start_indices_batching_dims = integer_field(numbers, "start_indices_batching_dims");
  attrs.index_vector_dim = one_field(numbers, "index_vector_dim");
  attrs.indices_are_sorted = op.flag("indices_are_sorted");
  return attrs;
}

void gather(ShloOp& op) {
  hlo::GatherAttrs attrs = gather_attrs(op);
  attrs.slice_sizes = op.ints("slice_sizes");
  op.give(op.b.gather(op.operand(0), op.operand(1), std::move(attrs)));
}

bool has(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The sizes are an operand; if the result's type is known, they follow from it.
Ints slice_sizes(const ShloOp& op, const hlo::GatherAttrs& attrs) {
  const MlirType& result = op.result_type(0);
  if (!result.is_static()) return op.known_ints(2);
  Ints sizes;
  size_t next = 0;
  for (int64_t d = 0; d < op.operand(0)->shape().rank(); ++d) {
    if (has(attrs.collapsed_slice_dims, d) || has(attrs.operand_batching_dims, d)) {
      sizes.push_back(1);
      continue;
    }
    const int64_t at = next < attrs.offset_dims.size() ? attrs.offset_dims[next++] : -1;
    if (at < 0 || at >= static_cast<int64_t>(result.dims.size()))
      fail("offset_dims do not fit the result");
    sizes.push_back(result.dims[static_cast<size_t>(at)]);
  }
  return sizes;
}

void dynamic_gather(ShloOp& op) {
  hlo::GatherAttrs attrs = gather_attrs(op);
  attrs.slice_sizes = slice_sizes(op, attrs);
  op.give(op.b.gather(op.operand(0), op.operand(1), std::move(attrs)));
}

void scatter(ShloOp& op) {
  if (op.count() % 2 != 1) fail("{} operands, wanted an odd number", op.count());
  if (op.result_types.size() != op.count() / 2)
    fail("{} results, wanted {}", op.result_types.size(), op.count() / 2);
  const MlirAttr& numbers = op.attr("scatter_dimension_numbers");
  hlo::ScatterAttrs attrs;
  attrs.update_window_dims = integer_field(numbers, "update_window_dims");
  attrs.inserted_window_dims = integer_field(numbers, "inserted_window_dims");
  attrs.scatter_dims_to_operand_dims = integer_field(numbers, "scatter_dims_to_operand_dims");
  attrs.input_batching_dims = integer_field(numbers, "input_batching_dims");
  attrs.scatter_indices_batching_dims = integer_field(numbers, "scatter_indices_batching_dims");
  attrs.index_vector_dim = one_field(numbers, "index_vector_dim");
  attrs.indices_are_sorted = op.flag("indices_are_sorted");
  attrs.unique_indices = op.flag("unique_indices");
  const size_t inputs = op.count() / 2;
  std::vector<Shape> scalars;
  // The combination may use a wider type: the result's.
  for (size_t i = 0; i < 2 * inputs; ++i)
    scalars.push_back(Shape::scalar(op.result_types.at(i % inputs)->element));
  for (size_t i = 0; i < inputs; ++i)
    for (const size_t at : {i, inputs + 1 + i})
      op.operands[at] = op.b.convert(op.operand(at), scalars[i].type());
  hlo::Computation* update = op.importer.scalar_region(op, op.region(0), scalars);
  Instr* result = op.b.make(Opcode::scatter, op.operands, std::move(attrs), {update});
  if (inputs == 1) return op.give(result);
  op.give_tuple(result);
}

void dynamic_slice(ShloOp& op) {
  const Instrs starts(op.operands.begin() + 1, op.operands.end());
  const Ints sizes = op.ints("slice_sizes");
  if (starts.empty()) return op.give(op.operand(0));
  op.give(op.b.dynamic_slice(op.operand(0), starts, sizes));
}

void dynamic_update_slice(ShloOp& op) {
  const Instrs starts(op.operands.begin() + 2, op.operands.end());
  if (starts.empty()) return op.give(op.operand(1));
  op.give(op.b.dynamic_update_slice(op.operand(0), op.operand(1), starts));
}

// Rows of operand 0 along `dim`, one per index; the first `batch_dims` dimensions are batches.
void torch_index_select(ShloOp& op) {
  Instr *x = op.operand(0), *index = op.operand(1);
  const int64_t dim = op.integer("dim"), batch = op.integer("batch_dims", 0);
  const int64_t rank = x->shape().rank(), index_rank = index->shape().rank();
  if (dim < 0 || dim >= rank || batch < 0 || batch > dim || batch > index_rank)
    fail("dim {} and batch_dims {} of {}", dim, batch, tensor::to_string(x->shape(), false));
  hlo::GatherAttrs attrs;
  for (int64_t d = 0; d < rank; ++d) {
    const bool batching = d < batch;
    attrs.slice_sizes.push_back(batching || d == dim ? 1 : x->shape().dim(d));
    if (batching) {
      attrs.operand_batching_dims.push_back(d);
      attrs.start_indices_batching_dims.push_back(d);
    } else if (d < dim) {
      attrs.offset_dims.push_back(d);
    } else if (d > dim) {
      attrs.offset_dims.push_back(d + index_rank - batch - 1);
    }
  }
  attrs.collapsed_slice_dims = {dim};
  attrs.start_index_map = {dim};
  attrs.index_vector_dim = index_rank;
  op.give(op.b.gather(x, index, std::move(attrs)));
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.gather", gather, 2, 2, true},
    {"stablehlo.dynamic_gather", dynamic_gather, 3, 3, true},
    {"stablehlo.scatter", scatter, 3},
    {"stablehlo.dynamic_slice", dynamic_slice, 1, SIZE_MAX, true},
    {"stablehlo.dynamic_update_slice", dynamic_update_slice, 2, SIZE_MAX, true},
    {"stablehlo.torch_index_select", torch_index_select, 2, 2, true},
};

}  // namespace

std::span<const ShloEntry> shlo_indexing_ops() { return kOps; }

}  // namespace heddle::import
