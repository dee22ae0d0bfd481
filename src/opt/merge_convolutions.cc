// merge_convolutions: added convolutions of one input with constant filters become one with the sum
// of their filters, a smaller window placed inside the larger one; if the input itself is in the
// sum, plain or times a constant per channel, it counts as a filter of one element. This is the
// form of a RepVGG block's branches after batch normalisation. Constants of the sum are added up
// first. Rounding changes (the filters of two branches are added before they are multiplied; a pass
// of O2), so it is named in the notes. Each rewrite leaves fewer terms in a sum.
#include <algorithm>

#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"
#include "opt/rules.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;

// Sums nested beyond this many terms are treated as single terms.
constexpr size_t kMostTerms = 32;

bool is_sum(const Instr* x) {
  return x->is(Opcode::add) && is_float(x) && is_static_array(x) && x->operand(0) != x->operand(1);
}

// The terms of a sum of sums with no other readers, from left to right.
void collect_terms(Instr* x, std::vector<Instr*>* terms) {
  for (Instr* operand : x->operands()) {
    if (is_sum(operand) && operand->users().size() == 1 && terms->size() < kMostTerms) {
      collect_terms(operand, terms);
    } else {
      terms->push_back(operand);
    }
  }
}

bool is_mergeable(const Instr* x) {
  if (!x->is(Opcode::convolution) || x->users().size() != 1 || !are_static_arrays(x)) return false;
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  return attrs.batch_group_count == 1 && attrs.rest.empty() && attrs.operand_precision.empty() &&
         is_constant_expression(x->operand(1)) &&
         x->operand(1)->shape().type() == x->shape().type() &&
         std::none_of(attrs.window.dims.begin(), attrs.window.dims.end(),
                      [](const auto& d) { return d.reversal && d.size > 1; });
}

// The offset at which a window of `inner` matches one of `outer`, element for element; none: no
// match.
std::optional<Ints> window_inside(const hlo::Window& inner, const hlo::Window& outer) {
  Ints offsets;
  for (size_t i = 0; i < outer.dims.size(); ++i) {
    const hlo::WindowDim &a = inner.dims[i], &b = outer.dims[i];
    const bool steps = a.size == 1 || a.rhs_dilate == b.rhs_dilate;
    if (a.stride != b.stride || a.lhs_dilate != b.lhs_dilate || !steps) return std::nullopt;
    const int64_t shift = b.pad_low - a.pad_low;
    if (shift % b.rhs_dilate != 0) return std::nullopt;
    const int64_t offset = shift / b.rhs_dilate;
    if (offset < 0 || offset + a.size > b.size) return std::nullopt;
    offsets.push_back(offset);
  }
  return offsets;
}

std::optional<Ints> inside(const Instr* inner, const Instr* outer) {
  const auto &a = inner->attrs_as<ConvolutionAttrs>(), &b = outer->attrs_as<ConvolutionAttrs>();
  if (inner->operand(0) != outer->operand(0) || !(a.dims == b.dims) ||
      a.feature_group_count != b.feature_group_count)
    return std::nullopt;
  return window_inside(a.window, b.window);
}

class Merger {
 public:
  Merger(Instr* sum, const PassContext& context, Builder& b)
      : sum_(sum), context_(context), b_(b) {}

  // The sum with fewer terms, or null.
  Instr* run() {
    collect_terms(sum_, &terms_);
    for (size_t base = 0; base < terms_.size(); ++base) {
      if (!is_mergeable(terms_[base])) continue;
      if (Instr* made = merge_into(base)) return made;
    }
    return nullptr;
  }

 private:
  // A term that is merged into the base's filter: a convolution's filter, or the input's.
  struct Part {
    size_t term;
    Ints offsets;
    bool is_input;
  };

  Instr* merge_into(size_t base) {
    const Instr* outer = terms_[base];
    std::vector<Part> parts;
    for (size_t i = 0; i < terms_.size(); ++i) {
      if (i == base) continue;
      if (is_mergeable(terms_[i])) {
        if (std::optional<Ints> offsets = inside(terms_[i], outer))
          parts.push_back({i, *offsets, false});
      } else if (std::optional<Ints> offsets = input_inside(terms_[i], outer)) {
        parts.push_back({i, *offsets, true});
      }
    }
    if (parts.empty() || !context_.allow("merge_convolutions", "branches")) return nullptr;
    context_.note(
        "merge_convolutions: convolutions of one input were merged by adding their filters "
        "(rounding differs)");
    Instr* filter = outer->operand(1);
    for (const Part& part : parts) {
      Instr* other =
          part.is_input ? filter_of_input(terms_[part.term], outer) : terms_[part.term]->operand(1);
      filter = b_.binary(Opcode::add, filter, widened(other, part.offsets, outer));
    }
    const Shape shape = outer->shape().without_layout();
    Instr* merged =
        b_.make(Opcode::convolution, {outer->operand(0), filter}, outer->attrs(), {}, &shape);
    std::vector<Instr*> constants, others;
    for (const Part& part : parts)
      if (Instr* shift = part.is_input ? shift_of(terms_[part.term], outer) : nullptr)
        constants.push_back(shift);
    for (size_t i = 0; i < terms_.size(); ++i) {
      const bool gone = i == base || std::any_of(parts.begin(), parts.end(),
                                                 [&](const Part& part) { return part.term == i; });
      if (!gone) (is_constant_expression(terms_[i]) ? constants : others).push_back(terms_[i]);
    }
    if (Instr* bias = added(constants)) merged = b_.binary(Opcode::add, merged, bias);
    others.insert(others.begin(), merged);
    return added(others);
  }

  Instr* added(const std::vector<Instr*>& terms) {
    Instr* sum = nullptr;
    for (Instr* term : terms) sum = sum ? b_.binary(Opcode::add, sum, term) : term;
    return sum;
  }

  static bool is_channel_constant(const Instr* x, const Instr* outer) {
    const int64_t channel = outer->attrs_as<ConvolutionAttrs>().dims.output_feature;
    return splat_of(x) || (x->is(Opcode::broadcast) && x->dimensions() == Ints{channel} &&
                           is_constant_expression(x->operand(0)));
  }

  // The input, or the input minus a constant per channel.
  static bool is_shifted_input(const Instr* x, const Instr* outer) {
    if (x == outer->operand(0)) return true;
    return x->is(Opcode::subtract) && x->operand(0) == outer->operand(0) &&
           is_channel_constant(x->operand(1), outer);
  }

  // The operand of a product of the (shifted) input that is a constant per channel; -1: none.
  static int factor_side(const Instr* term, const Instr* outer) {
    if (!term->is(Opcode::multiply) || term->users().size() != 1) return -1;
    for (int side : {1, 0})
      if (is_shifted_input(term->operand(static_cast<size_t>(1 - side)), outer) &&
          is_channel_constant(term->operand(static_cast<size_t>(side)), outer))
        return side;
    return -1;
  }

  // The difference of (x - m) * f from x * f: -m * f. Null: none.
  Instr* shift_of(Instr* term, const Instr* outer) {
    const int side = factor_side(term, outer);
    if (side < 0) return nullptr;
    Instr* shifted = term->operand(static_cast<size_t>(1 - side));
    if (shifted == outer->operand(0)) return nullptr;
    return b_.unary(Opcode::negate, b_.binary(Opcode::multiply, shifted->operand(1),
                                              term->operand(static_cast<size_t>(side))));
  }

  std::optional<Ints> input_inside(Instr* term, const Instr* outer) {
    const Instr* input = outer->operand(0);
    if (term != input && factor_side(term, outer) < 0) return std::nullopt;
    const auto& attrs = outer->attrs_as<ConvolutionAttrs>();
    const hlo::ConvolutionDims& dims = attrs.dims;
    if (dims.input_batch != dims.output_batch || dims.input_feature != dims.output_feature ||
        dims.input_spatial != dims.output_spatial ||
        input->shape().extents() != outer->shape().extents() ||
        input->shape().type() != outer->shape().type())
      return std::nullopt;
    hlo::Window one;
    one.dims.resize(attrs.window.dims.size());
    return window_inside(one, attrs.window);
  }

  // A filter of one element: feature o is the input's feature o times its factor.
  Instr* filter_of_input(Instr* term, const Instr* outer) {
    const auto& attrs = outer->attrs_as<ConvolutionAttrs>();
    const hlo::ConvolutionDims& dims = attrs.dims;
    Ints extents = outer->operand(1)->shape().extents();
    for (int64_t d : dims.kernel_spatial) extents[static_cast<size_t>(d)] = 1;
    const Shape numbers = Shape::array(Type::s32, extents);
    const auto in_group =
        static_cast<double>(outer->operand(1)->shape().dim(dims.kernel_input_feature));
    Instr* feature = b_.binary(Opcode::remainder, b_.iota(numbers, dims.kernel_output_feature),
                               b_.full(numbers, in_group));
    Instr* same =
        b_.compare(hlo::Direction::eq, b_.iota(numbers, dims.kernel_input_feature), feature);
    const Shape shape = Shape::array(outer->shape().type(), extents);
    Instr* factor = b_.full(shape, 1);
    if (term != outer->operand(0)) {
      Instr* given = term->operand(static_cast<size_t>(factor_side(term, outer)));
      factor = has_scalar(given)
                   ? broadcast_scalar(scalar_of(given, b_), extents, b_)
                   : b_.broadcast(given->operand(0), extents, {dims.kernel_output_feature});
    }
    return b_.select(same, factor, b_.full(shape, 0));
  }

  // The filter padded to the window of the base.
  Instr* widened(Instr* filter, const Ints& offsets, const Instr* outer) {
    const auto& spatial = outer->attrs_as<ConvolutionAttrs>().dims.kernel_spatial;
    const Shape& wanted = outer->operand(1)->shape();
    if (filter->shape().extents() == wanted.extents()) return filter;
    const auto rank = static_cast<size_t>(wanted.rank());
    Ints low(rank, 0), high(rank, 0);
    for (size_t i = 0; i < spatial.size(); ++i) {
      const auto d = static_cast<size_t>(spatial[i]);
      low[d] = offsets[i];
      high[d] = wanted.dim(spatial[i]) - filter->shape().dim(spatial[i]) - offsets[i];
    }
    return b_.pad(filter, b_.scalar(wanted.type(), 0), low, high, Ints(rank, 0));
  }

  Instr* sum_;
  const PassContext& context_;
  Builder& b_;
  std::vector<Instr*> terms_;
};

// Part of a larger sum, which is handled as a whole.
bool is_inner(const Instr* x) { return x->users().size() == 1 && is_sum(x->users()[0]); }

}  // namespace

Result<bool> merge_convolutions(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    Rewriter rewriter(computation, context, "merge_convolutions", is_sum);
    changed |= rewriter.run([&](Instr* x) -> Rewriter::Proposal {
      if (is_inner(x)) return {};
      return {Merger(x, context, rewriter.builder()).run(), ""};  // Merger has asked
    });
  }
  return changed;
}

}  // namespace heddle::opt
