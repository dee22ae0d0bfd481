// gather and scatter, by the published definition of both: an index vector, taken from the indices
// array along index_vector_dim, gives the start of a window in the operand.
#include <algorithm>

#include "interp/evaluator.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Common to gather and scatter.
struct WindowIndex {
  const Literal& indices;
  int64_t index_vector_dim;
  const Ints& index_map;              // operand dimension of each component of the index vector
  const Ints& operand_batching_dims;  // operand dimension of each batching dimension …
  const Ints& indices_batching_dims;  // … and its position in the indices

  // Dimensions of the indices without the index vector's.
  Ints batch_dims() const {
    Ints dims = indices.shape().extents();
    if (index_vector_dim < static_cast<int64_t>(dims.size()))
      dims.erase(dims.begin() + index_vector_dim);
    return dims;
  }

  // Start of the window at a batch index, in each operand dimension; not clamped.
  Ints start(const Ints& batch, size_t operand_rank) const {
    const Ints strides = row_major_strides(indices.shape().extents());
    Ints start(operand_rank, 0);
    int64_t base = 0, step = 0;
    for (size_t d = 0, b = 0; d < strides.size(); ++d) {
      if (static_cast<int64_t>(d) == index_vector_dim) {
        step = strides[d];
      } else {
        base += batch[b++] * strides[d];
      }
    }
    for (size_t k = 0; k < index_map.size(); ++k)
      start[static_cast<size_t>(index_map[k])] =
          index_at(indices, base + static_cast<int64_t>(k) * step);
    for (size_t k = 0; k < operand_batching_dims.size(); ++k) {
      int64_t d = indices_batching_dims[k];
      if (d > index_vector_dim) --d;
      start[static_cast<size_t>(operand_batching_dims[k])] = batch[static_cast<size_t>(d)];
    }
    return start;
  }
};

// The dimensions below `rank` that are not in `window`: the batch dimensions.
Ints other_dims(int64_t rank, const Ints& window) {
  Ints result;
  for (int64_t d = 0; d < rank; ++d) {
    if (!contains(window, d)) result.push_back(d);
  }
  return result;
}

// The strides of `dims`, a subset of an array's dimensions.
Ints strides_of(const Ints& strides, const Ints& dims) {
  Ints result;
  for (int64_t d : dims) result.push_back(strides[static_cast<size_t>(d)]);
  return result;
}

}  // namespace

Result<Literal> eval_gather(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::GatherAttrs>();
  const Literal& x = operands[0];
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const WindowIndex where{operands[1], attrs.index_vector_dim, attrs.start_index_map,
                          attrs.operand_batching_dims, attrs.start_indices_batching_dims};
  const Ints dims = x.shape().extents(), strides = row_major_strides(dims);
  const Ints out_strides = row_major_strides(out.shape().extents());
  const Ints batch_strides =
      strides_of(out_strides, other_dims(out.shape().rank(), attrs.offset_dims));
  // The window without dimensions of size 1 that do not appear in the output.
  Ints box;
  Region to, from;
  for (size_t d = 0, o = 0; d < dims.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (contains(attrs.collapsed_slice_dims, dim) || contains(attrs.operand_batching_dims, dim))
      continue;
    box.push_back(attrs.slice_sizes[d]);
    from.strides.push_back(strides[d]);
    to.strides.push_back(out_strides[static_cast<size_t>(attrs.offset_dims[o++])]);
  }
  if (out.elems() == 0) return out;
  void* data = out.mutable_data();
  for (Walk batch(where.batch_dims()); !batch.done(); batch.next()) {
    const Ints start = where.start(batch.index(), dims.size());
    to.start = batch.offset(batch_strides);
    from.start = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      from.start += std::clamp<int64_t>(start[d], 0, dims[d] - attrs.slice_sizes[d]) * strides[d];
    copy_box(box, tensor::type_bytes(x.type()), data, to, x.data(), from);
  }
  return out;
}

namespace {

// Combines updates into the operands at one position, through to_apply.
class Combiner {
 public:
  Combiner(Function& function, Operands& operands, size_t count)
      : function_(function), operands_(operands), count_(count), cells_(2 * count) {
    for (size_t k = 0; k < count; ++k) targets_.push_back(operands[k].mutable_data());
  }
  Status combine(int64_t target, int64_t update) {
    for (size_t k = 0; k < count_; ++k) {
      cells_[k] = load_cell(operands_[k], target);
      cells_[count_ + k] = load_cell(operands_[count_ + 1 + k], update);
    }
    HEDDLE_RETURN_IF_ERROR(function_.call(cells_.data(), cells_.data()));
    for (size_t k = 0; k < count_; ++k)
      store_cells(operands_[k].type(), targets_[k], target, 1, &cells_[k]);
    return {};
  }

 private:
  Function& function_;
  Operands& operands_;
  size_t count_;
  std::vector<Cell> cells_;
  std::vector<void*> targets_;
};

}  // namespace

// Updates are combined in row-major order of the updates array; elements of a window that are
// outside the operand are skipped.
Result<Literal> eval_scatter(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::ScatterAttrs>();
  const size_t count = operands.size() / 2;
  const WindowIndex where{operands[count], attrs.index_vector_dim,
                          attrs.scatter_dims_to_operand_dims, attrs.input_batching_dims,
                          attrs.scatter_indices_batching_dims};
  HEDDLE_ASSIGN_OR_RETURN(Function * function, e.function(*instr.called()[0], 2 * count, count));
  const Ints dims = operands[0].shape().extents(), strides = row_major_strides(dims);
  const Shape& updates = operands[count + 1].shape();
  const Ints update_strides = row_major_strides(updates.extents());
  const Ints batch_strides =
      strides_of(update_strides, other_dims(updates.rank(), attrs.update_window_dims));
  // The window: its extents, and the operand dimension of each of them.
  Ints box, window_dims, window_strides;
  for (int64_t d : attrs.update_window_dims) {
    box.push_back(updates.dim(d));
    window_strides.push_back(update_strides[static_cast<size_t>(d)]);
  }
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (!contains(attrs.inserted_window_dims, d) && !contains(attrs.input_batching_dims, d))
      window_dims.push_back(d);
  }
  Combiner combiner(*function, operands, count);
  if (updates.elems() > 0) {
    for (Walk batch(where.batch_dims()); !batch.done(); batch.next()) {
      const Ints start = where.start(batch.index(), dims.size());
      const int64_t update_start = batch.offset(batch_strides);
      for (Walk window(box); !window.done(); window.next()) {
        Ints place = start;
        for (size_t k = 0; k < box.size(); ++k)
          place[static_cast<size_t>(window_dims[k])] += window[k];
        int64_t target = 0;
        bool inside = true;
        for (size_t d = 0; d < dims.size(); ++d) {
          inside = inside && place[d] >= 0 && place[d] < dims[d];
          target += inside ? place[d] * strides[d] : 0;
        }
        if (!inside) continue;
        HEDDLE_RETURN_IF_ERROR(
            combiner.combine(target, update_start + window.offset(window_strides)));
      }
    }
  }
  if (count == 1) return std::move(operands[0]);
  operands.resize(count);
  return Literal::tuple(std::move(operands));
}

}  // namespace heddle::interp
