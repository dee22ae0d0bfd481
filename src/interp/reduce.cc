// reduce, reduce-window, select-and-scatter and scan.
#include <algorithm>
#include <optional>

#include "hlo/combiner.h"
#include "interp/evaluator.h"
#include "interp/scalar_ops.h"
#include "interp/walk.h"

namespace heddle::interp {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

namespace {

// Accumulators of a reduction: one or several cells for each element of the result. A single binary
// operator is applied directly, and narrow floats then accumulate in f32: rounding at each step
// would ruin a long bf16 sum.
class Accumulators {
 public:
  static Result<Accumulators> make(Evaluator& e, const Computation& to_apply,
                                   std::span<const Literal> inits, int64_t elems) {
    const size_t count = inits.size();
    HEDDLE_ASSIGN_OR_RETURN(Function * function, e.function(to_apply, 2 * count, count));
    Accumulators result(*function, count, elems);
    const Type type = inits[0].type();
    if (auto opcode = hlo::combiner_of(to_apply)) {
      result.domain_ = domain_of(type);
      result.round_f32_ = type != Type::f64;
      result.set_direct(*opcode);
    }
    for (int64_t i = 0; i < elems; ++i) {
      for (size_t k = 0; k < count; ++k)
        result.cells_[static_cast<size_t>(i) * count + k] = load_cell(inits[k], 0);
    }
    return result;
  }

  // acc[o] = to_apply(acc[o], x), where x has one cell per accumulator.
  Status add(int64_t o, const Cell* x) {
    Cell* acc = cells_.data() + static_cast<size_t>(o) * count_;
    if (float_ != nullptr) {
      double value = float_(acc->f, x->f);
      acc->f = round_f32_ ? static_cast<double>(static_cast<float>(value)) : value;
    } else if (signed_ != nullptr) {
      acc->s = signed_(acc->s, x->s, 64);
    } else if (unsigned_ != nullptr) {
      acc->u = unsigned_(acc->u, x->u, 64);
    } else {
      std::copy_n(acc, count_, scratch_.begin());
      std::copy_n(x, count_, scratch_.begin() + static_cast<long>(count_));
      return function_->call(scratch_.data(), acc);
    }
    return {};
  }
  const Cell* at(int64_t o) const { return cells_.data() + static_cast<size_t>(o) * count_; }

  Result<Literal> finish(Evaluator& e, const Shape& declared) const {
    HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(declared));
    for (size_t k = 0; k < count_; ++k) {
      Literal& part = out.shape().is_tuple() ? out.mutable_elements()[k] : out;
      void* data = part.mutable_data();
      for (int64_t i = 0; i < part.elems(); ++i) store_cells(part.type(), data, i, 1, at(i) + k);
    }
    return out;
  }

 private:
  Accumulators(Function& function, size_t count, int64_t elems)
      : function_(&function),
        count_(count),
        cells_(static_cast<size_t>(elems) * count),
        scratch_(2 * count) {}
  // For the operators of combiner_of, wrapping to the type may wait until the end.
  void set_direct(Opcode opcode) {
    if (domain_ == Domain::floating) float_ = float_binary(opcode);
    if (domain_ == Domain::is_signed) signed_ = signed_binary(opcode);
    if (domain_ == Domain::is_unsigned) unsigned_ = unsigned_binary(opcode);
    if (domain_ == Domain::pred) unsigned_ = pred_binary(opcode);
  }

  Function* function_;
  size_t count_;
  Domain domain_ = Domain::floating;
  bool round_f32_ = false;
  FloatBinary float_ = nullptr;
  SignedBinary signed_ = nullptr;
  UnsignedBinary unsigned_ = nullptr;
  std::vector<Cell> cells_, scratch_;
};

struct WindowWalk {
  const hlo::Window& window;
  Ints dims;  // of the operand

  Ints sizes() const {
    Ints result;
    for (const hlo::WindowDim& d : window.dims) result.push_back(d.size);
    return result;
  }
  // The operand's position under `offset` of the window at `at`; nothing in padding and between
  // dilated elements.
  std::optional<int64_t> place(const Ints& at, const Ints& offset, const Ints& strides) const {
    int64_t result = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      const hlo::WindowDim& w = window.dims[d];
      int64_t i = at[d] * w.stride - w.pad_low + offset[d] * w.rhs_dilate;
      if (i < 0 || i % w.lhs_dilate != 0 || i / w.lhs_dilate >= dims[d]) return std::nullopt;
      result += i / w.lhs_dilate * strides[d];
    }
    return result;
  }
};

}  // namespace

Result<Literal> eval_reduce(Evaluator& e, const Instr& instr, Operands& operands) {
  const size_t count = operands.size() / 2;
  const Ints dims = operands[0].shape().extents();
  // Strides of the result by operand dimension: 0 for the reduced ones.
  Ints strides(dims.size(), 0);
  int64_t elems = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    const Ints& reduced = instr.dimensions();
    if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) != reduced.end())
      continue;
    strides[d] = elems;
    elems *= dims[d];
  }
  std::span<const Literal> inits(operands.data() + count, count);
  HEDDLE_ASSIGN_OR_RETURN(auto accumulators,
                          Accumulators::make(e, *instr.called()[0], inits, elems));
  // One row of the operand's last dimension at a time.
  const int64_t row = dims.empty() ? 1 : dims.back();
  const int64_t step = dims.empty() ? 0 : strides.back();
  const size_t outer = dims.empty() ? 0 : dims.size() - 1;
  constexpr int64_t kBlock = 256;
  std::vector<Cell> loaded(count * kBlock), x(count);
  int64_t place = 0;
  if (row == 0) return accumulators.finish(e, instr.shape());
  const std::span<const int64_t> outer_dims(dims.data(), outer);
  const std::span<const int64_t> outer_strides(strides.data(), outer);
  for (Walk walk(outer_dims); !walk.done(); walk.next()) {
    int64_t o = walk.offset(outer_strides);
    for (int64_t begin = 0; begin < row; begin += kBlock) {
      const int64_t n = std::min(kBlock, row - begin);
      for (size_t k = 0; k < count; ++k)
        load_cells(operands[k].type(), operands[k].data(), place, n, &loaded[k * kBlock]);
      for (int64_t i = 0; i < n; ++i, o += step) {
        for (size_t k = 0; k < count; ++k) x[k] = loaded[k * kBlock + static_cast<size_t>(i)];
        HEDDLE_RETURN_IF_ERROR(accumulators.add(o, x.data()));
      }
      place += n;
    }
  }
  return accumulators.finish(e, instr.shape());
}

Result<Literal> eval_reduce_window(Evaluator& e, const Instr& instr, Operands& operands) {
  const size_t count = operands.size() / 2;
  const WindowWalk walk{instr.attrs_as<hlo::WindowAttrs>().window, operands[0].shape().extents()};
  const Shape& result = instr.shape().is_tuple() ? instr.shape().elements().at(0) : instr.shape();
  const Ints strides = row_major_strides(walk.dims), sizes = walk.sizes();
  std::span<const Literal> inits(operands.data() + count, count);
  HEDDLE_ASSIGN_OR_RETURN(auto accumulators,
                          Accumulators::make(e, *instr.called()[0], inits, result.elems()));
  std::vector<Cell> x(count);
  int64_t o = 0;
  for (Walk at(result.extents()); !at.done(); at.next(), ++o) {
    for (Walk offset(sizes); !offset.done(); offset.next()) {
      auto place = walk.place(at.index(), offset.index(), strides);
      if (!place) continue;
      for (size_t k = 0; k < count; ++k) x[k] = load_cell(operands[k], *place);
      HEDDLE_RETURN_IF_ERROR(accumulators.add(o, x.data()));
    }
  }
  return accumulators.finish(e, instr.shape());
}

// In each window `select` picks one element, starting with the first; `scatter` combines the
// window's element of the source into the result at its position.
Result<Literal> eval_select_and_scatter(Evaluator& e, const Instr& instr, Operands& operands) {
  const Literal &x = operands[0], &source = operands[1];
  const WindowWalk walk{instr.attrs_as<hlo::WindowAttrs>().window, x.shape().extents()};
  const Ints strides = row_major_strides(walk.dims), sizes = walk.sizes();
  HEDDLE_ASSIGN_OR_RETURN(Function * select, e.function(*instr.called()[0], 2, 1));
  HEDDLE_ASSIGN_OR_RETURN(
      auto accumulators,
      Accumulators::make(e, *instr.called()[1], std::span(&operands[2], 1), x.elems()));
  int64_t o = 0;
  for (Walk at(source.shape().extents()); !at.done(); at.next(), ++o) {
    std::optional<int64_t> chosen;
    for (Walk offset(sizes); !offset.done(); offset.next()) {
      auto place = walk.place(at.index(), offset.index(), strides);
      if (!place) continue;
      if (chosen) {
        Cell pair[2] = {load_cell(x, *chosen), load_cell(x, *place)};
        Cell keep;
        HEDDLE_RETURN_IF_ERROR(select->call(pair, &keep));
        if (keep.u) continue;
      }
      chosen = place;
    }
    if (!chosen) continue;
    Cell value = load_cell(source, o);
    HEDDLE_RETURN_IF_ERROR(accumulators.add(*chosen, &value));
  }
  return accumulators.finish(e, instr.shape());
}

namespace {

// The slice of `x` at index i of `dimension`, without that dimension; and the inverse.
Region slice_region(const Ints& dims, int64_t dimension, int64_t i) {
  Ints strides = row_major_strides(dims);
  Region region{i * strides[static_cast<size_t>(dimension)], strides};
  region.strides.erase(region.strides.begin() + dimension);
  return region;
}

Result<Literal> take_slice(const Literal& x, int64_t dimension, int64_t i) {
  Ints dims = x.shape().extents();
  const Region from = slice_region(dims, dimension, i);
  dims.erase(dims.begin() + dimension);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(Shape::array(x.type(), dims)));
  copy_box(dims, tensor::type_bytes(x.type()), out.mutable_data(), {0, row_major_strides(dims)},
           x.data(), from);
  return out;
}

void put_slice(Literal& x, int64_t dimension, int64_t i, const Literal& slice) {
  const Ints dims = slice.shape().extents();
  copy_box(dims, tensor::type_bytes(x.type()), x.mutable_data(),
           slice_region(x.shape().extents(), dimension, i), slice.data(),
           {0, row_major_strides(dims)});
}

}  // namespace

// to_apply takes a slice of each array and the carries; it gives a slice of each output and the
// next carries. The result is the outputs and the final carries.
Result<Literal> eval_scan(Evaluator& e, const Instr& instr, Operands& operands) {
  const auto& attrs = instr.attrs_as<hlo::ScanAttrs>();
  const size_t arrays = operands.size() - static_cast<size_t>(attrs.num_carries);
  HEDDLE_ASSIGN_OR_RETURN(Literal out, e.zeros(instr.shape()));
  std::vector<Literal> results;
  if (out.shape().is_tuple()) {
    results = std::move(out.mutable_elements());
  } else {
    results.push_back(std::move(out));
  }
  const size_t outputs = results.size() - static_cast<size_t>(attrs.num_carries);
  std::vector<Literal> carries(operands.begin() + static_cast<long>(arrays), operands.end());
  const int64_t n = operands[0].shape().dim(attrs.dimension);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = attrs.is_reverse ? n - 1 - i : i;
    std::vector<Literal> arguments;
    for (size_t k = 0; k < arrays; ++k) {
      HEDDLE_ASSIGN_OR_RETURN(Literal slice, take_slice(operands[k], attrs.dimension, at));
      arguments.push_back(std::move(slice));
    }
    for (Literal& carry : carries) arguments.push_back(std::move(carry));
    HEDDLE_ASSIGN_OR_RETURN(Literal value, e.run(*instr.called()[0], std::move(arguments)));
    std::vector<Literal> values;
    if (value.shape().is_tuple()) {
      values = std::move(value.mutable_elements());
    } else {
      values.push_back(std::move(value));
    }
    for (size_t k = 0; k < outputs; ++k) put_slice(results[k], attrs.dimension, at, values[k]);
    for (size_t k = 0; k < carries.size(); ++k) carries[k] = std::move(values[outputs + k]);
  }
  for (size_t k = 0; k < carries.size(); ++k) results[outputs + k] = std::move(carries[k]);
  if (!instr.shape().is_tuple()) return std::move(results[0]);
  return Literal::tuple(std::move(results));
}

}  // namespace heddle::interp
