#include "stage/row_scatter.h"

#include "hlo/combiner.h"

namespace heddle::stage {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;

namespace {

bool has_kernel(Type type) { return type == Type::f32 || type == Type::s32 || type == Type::s64; }

}  // namespace

bool is_row_scatter(const Instr& instr) {
  if (!instr.is(Opcode::scatter) || instr.operands().size() != 3) return false;
  const auto& attrs = instr.attrs_as<hlo::ScatterAttrs>();
  const Shape &table = instr.shape(), &indices = instr.operand(1)->shape();
  const Shape& rows = instr.operand(2)->shape();
  if (!table.is_static() || !rows.is_static() || !indices.is_static()) return false;
  if (!has_kernel(table.type()) || rows.elems() == 0 || table.rank() < 1 ||
      (indices.type() != Type::s32 && indices.type() != Type::s64))
    return false;
  const hlo::Ints first{0};
  if (!attrs.input_batching_dims.empty() || attrs.scatter_dims_to_operand_dims != first ||
      attrs.inserted_window_dims != first)
    return false;
  // Windows are the last dimensions of the updates, and whole rows.
  const int64_t outer = rows.rank() - (table.rank() - 1);
  for (int64_t d = 1; d < table.rank(); ++d)
    if (attrs.update_window_dims[static_cast<size_t>(d - 1)] != outer + d - 1 ||
        rows.dim(outer + d - 1) != table.dim(d))
      return false;
  const bool in_order = attrs.index_vector_dim >= indices.rank() - 1;
  int64_t count = 1;
  for (int64_t d = 0; d < outer; ++d) count *= rows.dim(d);
  if (!in_order || indices.elems() != count) return false;
  const hlo::Computation& body = *instr.called()[0];
  const Instr* root = body.root();
  if (root == body.parameters()[1]) return true;
  return hlo::combiner_of(body).has_value();
}

}  // namespace heddle::stage
