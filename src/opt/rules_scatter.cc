#include <algorithm>

#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

using hlo::ScatterAttrs;

int64_t place_of(const Ints& list, int64_t value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : found - list.begin();
}

// Broadcasts x to `extents`; `along`: for every dimension of x, the dimension of the result that it
// becomes; -1: it has one element and is dropped.
Instr* spread(Instr* x, const Ints& along, const Ints& extents, Builder& b) {
  std::vector<std::pair<int64_t, int64_t>> kept;  // dimension of the result, of x
  Ints dims, permutation, left, to;
  for (int64_t d = 0; d < std::ssize(along); ++d)
    if (along[static_cast<size_t>(d)] >= 0) {
      left.push_back(x->shape().dim(d));
      kept.emplace_back(along[static_cast<size_t>(d)], std::ssize(kept));
    }
  x = b.reshape(x, left);
  std::sort(kept.begin(), kept.end());
  for (const auto& [result, own] : kept) {
    permutation.push_back(own);
    to.push_back(result);
  }
  return b.broadcast(b.transpose(x, permutation), extents, to);
}

// combine(old, update), for a combiner of one operator.
Instr* combined(const hlo::Computation& combine, Instr* old, Instr* update, Builder& b) {
  auto value = [&](const Instr* parameter) {
    return parameter == combine.parameters()[0] ? old : update;
  };
  const Instr* root = combine.root();
  if (root->is(Opcode::parameter)) return value(root);
  return b.make(root->opcode(), {value(root->operand(0)), value(root->operand(1))}, root->attrs());
}

bool is_one_operator(const hlo::Computation& combine) {
  const Instr* root = combine.root();
  if (root->is(Opcode::parameter)) return true;
  return root->operands().size() == 2 && hlo::has_trait(root->opcode(), hlo::elementwise) &&
         root->operand(0)->is(Opcode::parameter) && root->operand(1)->is(Opcode::parameter);
}

}  // namespace

// The gradient of taking one element from each row: every element compares its index with the
// chosen one.
Instr* scatter_one_each(Instr* x, Builder& b) {
  if (x->operands().size() != 3 || !are_static_arrays(x) || x->shape().elems() == 0 ||
      tensor::type_bytes(x->operand(1)->shape().type()) < 4 || !has_scalar(x->operand(0)) ||
      !is_one_operator(*x->called()[0]))
    return nullptr;
  const auto& attrs = x->attrs_as<ScatterAttrs>();
  Instr *indices = x->operand(1), *updates = x->operand(2);
  const Shape &shape = x->shape(), &index = indices->shape();
  if (attrs.scatter_dims_to_operand_dims.size() != 1) return nullptr;
  const int64_t scattered = attrs.scatter_dims_to_operand_dims[0];
  if (place_of(attrs.inserted_window_dims, scattered) < 0 || attrs.inserted_window_dims.size() != 1)
    return nullptr;
  // The result's dimension for each dimension of the indices: each row has one index.
  Ints index_along, scatter_along;
  for (int64_t d = 0; d < index.rank(); ++d) {
    const int64_t batch = place_of(attrs.scatter_indices_batching_dims, d);
    if (batch < 0 && index.dim(d) != 1) return nullptr;
    index_along.push_back(batch < 0 ? -1 : attrs.input_batching_dims[static_cast<size_t>(batch)]);
    if (d != attrs.index_vector_dim) scatter_along.push_back(index_along.back());
  }
  // Windows must be whole.
  Ints update_along;
  size_t next_scatter = 0;
  int64_t window = 0;
  for (int64_t d = 0; d < updates->shape().rank(); ++d) {
    if (place_of(attrs.update_window_dims, d) < 0) {
      update_along.push_back(scatter_along.at(next_scatter++));
      continue;
    }
    while (window == scattered || place_of(attrs.input_batching_dims, window) >= 0) ++window;
    if (updates->shape().dim(d) != shape.dim(window)) return nullptr;
    update_along.push_back(window++);
  }
  const Ints extents = shape.extents();
  const Shape places = Shape::array(index.type(), extents);
  Instr* here = b.compare(hlo::Direction::eq, b.iota(places, scattered),
                          spread(indices, index_along, extents, b));
  Instr* old = broadcast_scalar(scalar_of(x->operand(0), b), extents, b);
  Instr* update = spread(updates, update_along, extents, b);
  return b.select(here, combined(*x->called()[0], old, update, b), old);
}

// One window at a known position inside the array.
Instr* scatter_one_box(Instr* x, Builder& b) {
  if (x->operands().size() != 3 || !are_static_arrays(x) || x->operand(2)->shape().elems() == 0 ||
      !is_one_operator(*x->called()[0]))
    return nullptr;
  const tensor::Literal* splat = splat_of(x->operand(1));
  if (!splat && !x->operand(1)->is(Opcode::constant)) return nullptr;
  const auto& attrs = x->attrs_as<ScatterAttrs>();
  Instr *array = x->operand(0), *update = x->operand(2);
  const tensor::Literal& indices = splat ? *splat : x->operand(1)->literal();
  const Ints& scattered = attrs.scatter_dims_to_operand_dims;
  if (!attrs.input_batching_dims.empty() || x->operand(1)->shape().elems() != std::ssize(scattered))
    return nullptr;
  const Ints extents = array->shape().extents();
  Ints box, begin(extents.size(), 0), end;
  auto window = attrs.update_window_dims.begin();
  for (int64_t d = 0; d < std::ssize(extents); ++d)
    box.push_back(place_of(attrs.inserted_window_dims, d) >= 0 ? 1
                                                               : update->shape().dim(*window++));
  for (size_t i = 0; i < scattered.size(); ++i)
    begin[static_cast<size_t>(scattered[i])] =
        static_cast<int64_t>(indices.get_f64(splat ? 0 : static_cast<int64_t>(i)));
  std::vector<Instr*> starts;
  for (size_t d = 0; d < extents.size(); ++d) {
    end.push_back(begin[d] + box[d]);
    if (begin[d] < 0 || end[d] > extents[d]) return nullptr;
    starts.push_back(b.scalar(Type::s32, static_cast<double>(begin[d])));
  }
  Instr* old = b.slice(array, begin, end, Ints(extents.size(), 1));
  update = combined(*x->called()[0], old, b.reshape(update, box), b);
  return b.dynamic_update_slice(array, update, starts);
}

}  // namespace heddle::opt::rules
