// expand_select_and_scatter: the gradient of a maximum over windows as elementwise operators. First
// finds the offset of the chosen element of each window, element by element in HLO's window order;
// then sends the window's value to that offset:
//   windows that touch but do not overlap: result = select(offset of the element == chosen, value)
//   others: the sum over all offsets of select(offset == chosen, value), spread by the strides
// Sums run in the order of the windows, so that results are bit-identical.
#include "hlo/combiner.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::WindowDim;

constexpr int64_t kMostOffsets = 32;

bool is_plain(const WindowDim& w) {
  return w.lhs_dilate == 1 && w.rhs_dilate == 1 && !w.reversal && w.pad_low >= 0 && w.pad_high >= 0;
}

// The comparison that keeps the chosen element over a new one.
const hlo::CompareAttrs* keeps(const Computation& select) {
  const Instr* root = select.root();
  if (!root->is(Opcode::compare) || select.instrs().size() != 3 ||
      root->operand(0) != select.parameters()[0] || root->operand(1) != select.parameters()[1])
    return nullptr;
  return &root->attrs_as<hlo::CompareAttrs>();
}

bool can_expand(const Instr* instr) {
  if (!instr->is(Opcode::select_and_scatter) || !are_static_arrays(instr) ||
      instr->shape().elems() == 0 || instr->operand(1)->shape().elems() == 0 ||
      !keeps(*instr->called()[0]) || hlo::combiner_of(*instr->called()[1]) != Opcode::add)
    return false;
  int64_t offsets = 1;
  for (const WindowDim& w : instr->attrs_as<hlo::WindowAttrs>().window.dims) {
    if (!is_plain(w) || w.size > kMostOffsets) return false;
    offsets *= w.size;
  }
  return offsets <= kMostOffsets;
}

class Expander {
 public:
  Expander(Instr* instr, hlo::Builder& b)
      : b_(b),
        x_(instr->operand(0)),
        source_(instr->operand(1)),
        start_(instr->operand(2)),
        keeps_(*keeps(*instr->called()[0])),
        dims_(instr->attrs_as<hlo::WindowAttrs>().window.dims),
        in_(x_->shape().extents()),
        out_(source_->shape().extents()) {
    offsets_.push_back(Ints(dims_.size(), 0));
    for (size_t i = 0; i < offsets_.size(); ++i) {  // in window order
      Ints next = offsets_[i];
      for (size_t d = next.size(); d-- > 0;) {
        if (++next[d] < dims_[d].size) {
          offsets_.push_back(next);
          break;
        }
        next[d] = 0;
      }
    }
  }

  Instr* expand() {
    Instr* chosen = choose();
    return touches() ? side_by_side(chosen) : summed(chosen);
  }

 private:
  // The elements at `offset` in the windows, one per window.
  Instr* seen(const Ints& offset) {
    Ints low, high, starts, limits, strides;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const WindowDim& w = dims_[d];
      const int64_t end = offset[d] + (out_[d] - 1) * w.stride + 1;
      low.push_back(w.pad_low);
      high.push_back(std::max<int64_t>(0, end - w.pad_low - in_[d]));
      starts.push_back(offset[d]);
      limits.push_back(end);
      strides.push_back(w.stride);
    }
    Instr* padded = x_;
    bool pads = false;
    for (size_t d = 0; d < dims_.size(); ++d) pads |= low[d] > 0 || high[d] > 0;
    if (pads) padded = b_.pad(x_, b_.scalar(x_->shape().type(), 0), low, high, Ints(low.size(), 0));
    return b_.slice(padded, starts, limits, strides);
  }

  // Whether `offset` is an element of the array rather than padding, per window; null: everywhere.
  Instr* inside(const Ints& offset) {
    Instr* all = nullptr;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const WindowDim& w = dims_[d];
      const int64_t first = offset[d] - w.pad_low, last = first + (out_[d] - 1) * w.stride;
      if (first >= 0 && last < in_[d]) continue;
      const Shape places = Shape::array(Type::s32, {out_[d]});
      Instr* at = b_.binary(Opcode::multiply, b_.iota(places, 0),
                            b_.full(places, static_cast<double>(w.stride)));
      at = b_.binary(Opcode::add, at, b_.full(places, static_cast<double>(first)));
      Instr* is = b_.binary(
          Opcode::and_, b_.compare(hlo::Direction::ge, at, b_.full(places, 0)),
          b_.compare(hlo::Direction::lt, at, b_.full(places, static_cast<double>(in_[d]))));
      is = b_.broadcast(is, out_, {static_cast<int64_t>(d)});
      all = all ? b_.binary(Opcode::and_, all, is) : is;
    }
    return all;
  }

  Instr* number(size_t offset, const Ints& extents) {
    return b_.full(Shape::array(Type::s32, extents), static_cast<double>(offset));
  }

  // The index of the offset that each window chooses; -1: the window is all padding.
  Instr* choose() {
    Instr *best = nullptr, *chosen = number(0, out_);
    for (size_t i = 0; i < offsets_.size(); ++i) {
      Instr *x = seen(offsets_[i]), *valid = inside(offsets_[i]);
      Instr* here = number(i, out_);
      if (!best) {
        best = x;
        if (valid) chosen = b_.select(valid, chosen, number_before());
        continue;
      }
      Instr* keep = b_.make(Opcode::compare, {best, x}, keeps_);
      keep = b_.binary(Opcode::and_, keep, b_.compare(hlo::Direction::ge, chosen, number(0, out_)));
      if (valid) keep = b_.binary(Opcode::or_, keep, b_.unary(Opcode::not_, valid));
      best = b_.select(keep, best, x);
      chosen = b_.select(keep, chosen, here);
    }
    return chosen;
  }
  Instr* number_before() { return b_.full(Shape::array(Type::s32, out_), -1); }

  bool touches() const {
    for (size_t d = 0; d < dims_.size(); ++d)
      if (dims_[d].size != dims_[d].stride || dims_[d].pad_low != 0 ||
          out_[d] * dims_[d].size > in_[d])
        return false;
    return start_is_zero();
  }
  bool start_is_zero() const {
    return start_->is(Opcode::constant) && start_->literal().get_f64(0) == 0;
  }

  Instr* side_by_side(Instr* chosen) {
    Ints split, kept, whole, high;
    for (size_t d = 0; d < dims_.size(); ++d) {
      kept.push_back(static_cast<int64_t>(split.size()));
      split.push_back(out_[d]);
      if (dims_[d].size > 1) split.push_back(dims_[d].size);
      whole.push_back(out_[d] * dims_[d].size);
      high.push_back(in_[d] - whole.back());
    }
    const Shape numbers = Shape::array(Type::s32, split);
    Instr* here = b_.full(numbers, 0);
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].size == 1) continue;
      here =
          b_.binary(Opcode::multiply, here, b_.full(numbers, static_cast<double>(dims_[d].size)));
      here = b_.binary(Opcode::add, here, b_.iota(numbers, kept[d] + 1));
    }
    Instr* value = b_.broadcast(source_, split, kept);
    Instr* result =
        b_.select(b_.compare(hlo::Direction::eq, here, b_.broadcast(chosen, split, kept)), value,
                  b_.full(value->shape(), 0));
    result = b_.reshape(result, whole);
    if (whole == in_) return result;
    return b_.pad(result, zero(), Ints(in_.size(), 0), high, Ints(in_.size(), 0));
  }

  Instr* zero() { return b_.scalar(source_->shape().type(), 0); }

  Instr* summed(Instr* chosen) {
    Instr* sum = start_is_zero() ? nullptr : b_.broadcast(start_, in_, {});
    for (size_t i = offsets_.size(); i-- > 0;) {  // earlier windows have later offsets here
      Instr* part = b_.select(b_.compare(hlo::Direction::eq, chosen, number(i, out_)), source_,
                              b_.full(source_->shape(), 0));
      Ints low, high, interior;
      for (size_t d = 0; d < dims_.size(); ++d) {
        low.push_back(offsets_[i][d] - dims_[d].pad_low);
        interior.push_back(dims_[d].stride - 1);
        high.push_back(in_[d] - low.back() - (out_[d] - 1) * dims_[d].stride - 1);
      }
      part = b_.pad(part, zero(), low, high, interior);
      sum = sum ? b_.binary(Opcode::add, sum, part) : part;
    }
    return sum;
  }

  hlo::Builder& b_;
  Instr *x_, *source_, *start_;
  const hlo::CompareAttrs keeps_;
  const std::vector<WindowDim>& dims_;
  const Ints in_, out_;
  std::vector<Ints> offsets_;
};

}  // namespace

Result<bool> expand_select_and_scatter(hlo::Module& module, const PassContext& context) {
  return rewrite_module(
      module, context, "expand_select_and_scatter",
      [](Instr* instr, hlo::Builder& b) -> Rewriter::Proposal {
        return {Expander(instr, b).expand(), "windows"};
      },
      can_expand);
}

}  // namespace heddle::opt
