// Operators that move elements without computing with them.
#include <algorithm>
#include <cstring>

#include "interp/evaluator.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Instr;

namespace {

int64_t elem_bytes(const Literal& x) { return tensor::type_bytes(x.type()); }

// The operand's elements, in the same order, with another shape.
Result<Literal> reshaped(const Instr& instr, const Literal& x, const Shape& shape) {
  if (x.elems() != shape.elems()) {
    return user_error("{}: {} does not have as many elements as {}", describe(instr),
                      tensor::to_string(x.shape()), tensor::to_string(shape));
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  if (x.bytes() > 0) std::memcpy(out.mutable_data(), x.data(), static_cast<size_t>(x.bytes()));
  return out;
}

bool is_row_major(const Shape& shape) {
  return !shape.layout() || (shape.layout()->is_row_major());
}

// Reads the elements in the memory order of `from` and writes them in that of `to`.
Result<Literal> relaid(const Instr& instr, const Literal& x, const Shape& from, const Shape& to,
                       Literal out) {
  const Ints from_dims = from.extents(), to_dims = to.extents();
  const tensor::Layout from_layout = from.layout_or_default(), to_layout = to.layout_or_default();
  const int64_t places = tensor::padded_elems(from_layout, from_dims);
  if (places != tensor::padded_elems(to_layout, to_dims) || x.elems() != out.elems()) {
    return user_error("{}: {} and {} do not occupy the same number of bytes", describe(instr),
                      tensor::to_string(from), tensor::to_string(to));
  }
  const Ints from_strides = row_major_strides(from_dims), to_strides = row_major_strides(to_dims);
  Region one;
  void* data = out.mutable_data();
  for (int64_t place = 0; place < places; ++place) {
    Ints source = tensor::multi_index(from_layout, from_dims, place);
    Ints target = tensor::multi_index(to_layout, to_dims, place);
    if ((source.empty() && !from_dims.empty()) || (target.empty() && !to_dims.empty())) continue;
    Region read{0, {}}, write{0, {}};
    for (size_t d = 0; d < source.size(); ++d) read.start += source[d] * from_strides[d];
    for (size_t d = 0; d < target.size(); ++d) write.start += target[d] * to_strides[d];
    copy_box({}, elem_bytes(x), data, write, x.data(), read);
  }
  return out;
}

Ints starts_of(const Operands& operands, size_t first, size_t count) {
  Ints starts;
  if (operands.size() == first + 1 && operands[first].shape().rank() == 1) {  // the old form
    for (int64_t i = 0; i < operands[first].elems(); ++i)
      starts.push_back(index_at(operands[first], i));
  } else {
    for (size_t i = first; i < operands.size(); ++i) starts.push_back(index_at(operands[i], 0));
  }
  starts.resize(count);
  return starts;
}

// Linear start of a slice of `sizes` in `dims`, its start clamped so that it fits.
int64_t clamped_start(Ints starts, std::span<const int64_t> dims, std::span<const int64_t> sizes,
                      std::span<const int64_t> strides) {
  int64_t start = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    start +=
        std::clamp<int64_t>(starts[d], 0, std::max<int64_t>(dims[d] - sizes[d], 0)) * strides[d];
  return start;
}

}  // namespace

Result<Literal> eval_broadcast(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = out.shape().extents();
  const Ints strides = row_major_strides(operands[0].shape().extents());
  Region from{0, Ints(dims.size(), 0)};
  for (size_t d = 0; d < strides.size(); ++d)
    from.strides[static_cast<size_t>(instr.dimensions()[d])] = strides[d];
  copy_box(dims, elem_bytes(out), out.mutable_data(), {0, row_major_strides(dims)},
           operands[0].data(), from);
  return out;
}

// reshape, and bitcast: the same memory with another shape and layout.
Result<Literal> eval_reshape(Evaluator& e, const Instr& instr, Operands& operands) {
  const Shape& from = instr.operand(0)->shape();
  const Shape& to = instr.shape();
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, e.held(to));
  if (!instr.is(hlo::Opcode::bitcast)) return reshaped(instr, operands[0], shape);
  Literal x = operands[0];
  if (from.type() != to.type()) {
    if (bitcast_bits(from.type()) != bitcast_bits(to.type()) || tensor::is_complex(from.type()) ||
        tensor::is_complex(to.type()))
      return user_error("{}: from {} to {}; use bitcast-convert", describe(instr),
                        tensor::to_string(from), tensor::to_string(to));
    Shape same_dims = x.shape();
    same_dims.set_type(shape.type());
    HEDDLE_ASSIGN_OR_RETURN(Literal bits, Literal::make(same_dims));
    for (int64_t i = 0; i < x.elems(); ++i) {
      Cell cell = cell_from_bits(to.type(), cell_to_bits(from.type(), load_cell(x, i)));
      store_cells(shape.type(), bits.mutable_data(), i, 1, &cell);
    }
    x = std::move(bits);
  }
  if (is_row_major(from) && is_row_major(to)) return reshaped(instr, x, shape);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  return relaid(instr, x, from, to, std::move(out));
}

Result<Literal> eval_transpose(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = out.shape().extents();
  const Ints strides = row_major_strides(operands[0].shape().extents());
  Region from{0, Ints(dims.size())};
  for (size_t d = 0; d < dims.size(); ++d)
    from.strides[d] = strides[static_cast<size_t>(instr.dimensions()[d])];
  copy_box(dims, elem_bytes(out), out.mutable_data(), {0, row_major_strides(dims)},
           operands[0].data(), from);
  return out;
}

Result<Literal> eval_slice(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::SliceAttrs>();
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = out.shape().extents();
  const Ints strides = row_major_strides(operands[0].shape().extents());
  Region from{0, Ints(dims.size())};
  for (size_t d = 0; d < dims.size(); ++d) {
    from.start += attrs.starts[d] * strides[d];
    from.strides[d] = strides[d] * (d < attrs.strides.size() ? attrs.strides[d] : 1);
  }
  copy_box(dims, elem_bytes(out), out.mutable_data(), {0, row_major_strides(dims)},
           operands[0].data(), from);
  return out;
}

Result<Literal> eval_pad(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::PadAttrs>();
  const Literal& x = operands[0];
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints out_dims = out.shape().extents(), in_dims = x.shape().extents();
  const Ints out_strides = row_major_strides(out_dims), in_strides = row_major_strides(in_dims);
  copy_box(out_dims, elem_bytes(out), out.mutable_data(), {0, out_strides}, operands[1].data(),
           {0, Ints(out_dims.size(), 0)});
  // Element i goes to low + i (interior + 1); elements cut off by negative padding are skipped.
  Region to{0, Ints(in_dims.size())}, from{0, in_strides};
  Ints box(in_dims.size());
  for (size_t d = 0; d < in_dims.size(); ++d) {
    const int64_t low = attrs.low[d];
    const int64_t step = 1 + (d < attrs.interior.size() ? attrs.interior[d] : 0);
    const int64_t first = low >= 0 ? 0 : (-low + step - 1) / step;
    const int64_t room = out_dims[d] - 1 - low;  // last position, relative to element 0
    const int64_t end = room < 0 ? 0 : std::min(in_dims[d], room / step + 1);
    box[d] = std::max<int64_t>(end - first, 0);
    from.start += first * in_strides[d];
    to.start += (low + first * step) * out_strides[d];
    to.strides[d] = step * out_strides[d];
  }
  if (product(box) > 0) copy_box(box, elem_bytes(out), out.mutable_data(), to, x.data(), from);
  return out;
}

Result<Literal> eval_concatenate(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const auto along = static_cast<size_t>(instr.dimensions()[0]);
  const Ints strides = row_major_strides(out.shape().extents());
  int64_t at = 0;
  for (const Literal& x : operands) {
    const Ints dims = x.shape().extents();
    copy_box(dims, elem_bytes(out), out.mutable_data(), {at * strides[along], strides}, x.data(),
             {0, row_major_strides(dims)});
    at += dims[along];
  }
  return out;
}

Result<Literal> eval_reverse(Evaluator& e, const Instr& instr, Operands& operands) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = out.shape().extents();
  const Ints strides = row_major_strides(dims);
  Region from{0, strides};
  for (int64_t dimension : instr.dimensions()) {
    const auto d = static_cast<size_t>(dimension);
    from.start += (dims[d] - 1) * strides[d];
    from.strides[d] = -strides[d];
  }
  if (out.elems() > 0)
    copy_box(dims, elem_bytes(out), out.mutable_data(), {0, strides}, operands[0].data(), from);
  return out;
}

Result<Literal> eval_iota(Evaluator& e, const Instr& instr, Operands&) {
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = out.shape().extents();
  if (dims.empty() || out.elems() == 0) return out;
  // One line of numbers, then broadcast along the other dimensions.
  const auto along = static_cast<size_t>(instr.attrs_as<hlo::DimensionAttrs>().dimension);
  HEDDLE_ASSIGN_OR_RETURN(Literal line, Literal::make(Shape::array(out.type(), {dims[along]})));
  Cell (*count)(int64_t) = nullptr;
  switch (domain_of(out.type())) {
    case Domain::floating:
      count = [](int64_t i) { return Cell{.f = static_cast<double>(i)}; };
      break;
    case Domain::complex:
      count = [](int64_t i) { return Cell{.z = {static_cast<double>(i), 0}}; };
      break;
    case Domain::pred:
      count = [](int64_t i) { return Cell{.s = i != 0}; };
      break;
    default:
      count = [](int64_t i) { return Cell{.s = i}; };
  }
  void* numbers = line.mutable_data();
  for (int64_t i = 0; i < dims[along]; ++i) {
    const Cell cell = count(i);
    store_cells(line.type(), numbers, i, 1, &cell);
  }
  Region from{0, Ints(dims.size(), 0)};
  from.strides[along] = 1;
  copy_box(dims, elem_bytes(out), out.mutable_data(), {0, row_major_strides(dims)}, line.data(),
           from);
  return out;
}

Result<Literal> eval_dynamic_slice(Evaluator& e, const Instr& instr, Operands& operands) {
  const Literal& x = operands[0];
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  const Ints dims = x.shape().extents(), sizes = out.shape().extents();
  const Ints strides = row_major_strides(dims);
  const int64_t start = clamped_start(starts_of(operands, 1, dims.size()), dims, sizes, strides);
  copy_box(sizes, elem_bytes(out), out.mutable_data(), {0, row_major_strides(sizes)}, x.data(),
           {start, strides});
  return out;
}

Result<Literal> eval_dynamic_update_slice(Evaluator& e, const Instr& instr, Operands& operands) {
  Literal out = std::move(operands[0]);
  const Literal& update = operands[1];
  const Ints dims = out.shape().extents(), sizes = update.shape().extents();
  const Ints strides = row_major_strides(dims);
  const int64_t start = clamped_start(starts_of(operands, 2, dims.size()), dims, sizes, strides);
  if (update.elems() > 0) {
    copy_box(sizes, elem_bytes(out), out.mutable_data(), {start, strides}, update.data(),
             {0, row_major_strides(sizes)});
  }
  return out;
}

// Sizes are static here: a dimension has the size in its shape.
Result<Literal> eval_dimension_size(Evaluator& e, const Instr& instr, Operands& operands) {
  const int64_t dimension = instr.attrs_as<hlo::DimensionAttrs>().dimension;
  const int64_t size = operands[0].shape().dim(dimension);
  if (instr.is(hlo::Opcode::get_dimension_size)) {
    Literal out(Shape::scalar(Type::s32));
    out.set_s64(0, size);
    return out;
  }
  const int64_t wanted = operands[1].get_s64(0);
  if (wanted != size) {
    return user_error("{}: sets dimension {} of {} to {}; only its full size can be evaluated",
                      describe(instr), dimension, tensor::to_string(operands[0].shape()), wanted);
  }
  return std::move(operands[0]);
}

}  // namespace heddle::interp
