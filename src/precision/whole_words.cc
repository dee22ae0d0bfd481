// whole_words: pads the contracted dimension of a product with zeros to whole words, if the target
// has an instruction for words of its types (kernel/mma.def) and would otherwise need at least as
// many multiplications: three channels of a picture become four bytes, 77 columns of bf16 become
// 78. A constant kernel is padded at load time; the other side where it is computed or transposed
// anyway. If the features along a line of the window are contiguous and together make fewer words,
// the picture becomes one with a single channel: 7 times 3 features by 22 of bf16, instead of 7
// times 4.
#include "kernel/mma.h"
#include "opt/match.h"
#include "opt/rewriter.h"
#include "precision/passes.h"

namespace heddle::precision {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttrs;
using hlo::DotAttrs;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;

// Each element of a copied row must be used at least so often.
constexpr int64_t kUses = 64;

Instr* filled(Instr* x, int64_t dimension, int64_t by, Builder& b) {
  const Ints none(static_cast<size_t>(x->shape().rank()), 0);
  Ints high = none;
  high[static_cast<size_t>(dimension)] = by;
  return b.pad(x, b.scalar(x->shape().type(), 0), none, high, none);
}

// Elements of k in a word of these types; 1: no word instruction.
int64_t word_of(const Instr* x) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (mma.is_dot() && mma.a == x->operand(0)->shape().type() &&
        mma.b == x->operand(1)->shape().type() && mma.d == x->shape().type())
      return mma.k;
  return 1;
}

// Number of elements missing from the last word of `k`; 0: no gain.
int64_t missing(const Instr* x, int64_t k) {
  const int64_t word = word_of(x);
  const int64_t by = (word - k % word) % word;
  return (k + by) / word < k ? by : 0;
}

// A convolution in which the last window dimension and the features are merged into one dimension.
class JoinedLines {
 public:
  explicit JoinedLines(const Instr* x)
      : x_(x),
        attrs_(x->attrs_as<ConvolutionAttrs>()),
        features_(x->operand(0)->shape().dim(attrs_.dims.input_feature)),
        word_(word_of(x)) {}

  // The picture's features must directly follow its last spatial dimension, at the end, and the
  // kernel's features its last spatial dimension; the stride must be a whole number of words.
  bool gains() const {
    const hlo::ConvolutionDims& dims = attrs_.dims;
    if (attrs_.window.dims.empty() || word_ == 1) return false;
    const hlo::WindowDim& last = attrs_.window.dims.back();
    const bool is_plain = last.lhs_dilate == 1 && last.rhs_dilate == 1 && !last.reversal &&
                          last.pad_low >= 0 && last.pad_high >= 0;
    const bool is_last = dims.input_feature == x_->operand(0)->shape().rank() - 1 &&
                         dims.input_spatial.back() == dims.input_feature - 1 &&
                         dims.kernel_input_feature == dims.kernel_spatial.back() + 1;
    const bool is_joined =
        features_ == 1 && last.size % word_ == 0 && last.pad_low == 0 && last.pad_high == 0;
    return is_plain && is_last && !is_joined && last.stride * features_ % word_ == 0 &&
           words(last.size * features_) < last.size * words(features_);
  }

  Instr* build(Builder& b) const {
    ConvolutionAttrs attrs = attrs_;
    hlo::WindowDim& last = attrs.window.dims.back();
    const int64_t taps = last.size * features_, all = words(taps) * word_;
    const int64_t outputs = x_->shape().dim(attrs.dims.output_spatial.back());
    // As many pixels as the last word of the last column needs.
    const int64_t step = last.stride * features_;
    const int64_t pixels = ((outputs - 1) * step + all + features_ - 1) / features_;
    Instr* picture = with_pixels(pixels, last.pad_low, b);
    picture = b.reshape(picture, joined(picture, attrs.dims.input_spatial.back()));
    Instr* kernel = x_->operand(1);
    kernel = b.reshape(kernel, joined(kernel, attrs.dims.kernel_spatial.back()));
    if (all > taps) kernel = filled(kernel, attrs.dims.kernel_spatial.back(), all - taps, b);
    last.size = all;
    last.stride = step;
    last.pad_low = last.pad_high = 0;
    return b.make(Opcode::convolution, {picture, kernel}, attrs, {}, &x_->shape());
  }

 private:
  int64_t words(int64_t elements) const { return (elements + word_ - 1) / word_; }

  Instr* with_pixels(int64_t pixels, int64_t low, Builder& b) const {
    Instr* picture = x_->operand(0);
    const auto at = static_cast<size_t>(attrs_.dims.input_spatial.back());
    const Ints none(static_cast<size_t>(picture->shape().rank()), 0);
    Ints before = none, behind = none;
    before[at] = low;
    behind[at] = pixels - low - picture->shape().dim(static_cast<int64_t>(at));
    if (before == none && behind == none) return picture;
    return b.pad(picture, b.scalar(picture->shape().type(), 0), before, behind, none);
  }

  // Merges dimension `at` with the next one; the next one gets extent 1.
  static Ints joined(const Instr* x, int64_t at) {
    Ints extents = x->shape().extents();
    extents[static_cast<size_t>(at)] *= extents[static_cast<size_t>(at) + 1];
    extents[static_cast<size_t>(at) + 1] = 1;
    return extents;
  }

  const Instr* x_;
  const ConvolutionAttrs& attrs_;
  int64_t features_, word_;
};

Instr* convolution(const Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  if (attrs.feature_group_count != 1 || attrs.batch_group_count != 1 || !attrs.rest.empty())
    return nullptr;
  if (const JoinedLines lines(x); lines.gains()) return lines.build(b);
  const int64_t dimension = attrs.dims.input_feature;
  const int64_t by = missing(x, x->operand(0)->shape().dim(dimension));
  if (by == 0) return nullptr;
  return b.make(Opcode::convolution,
                {filled(x->operand(0), dimension, by, b),
                 filled(x->operand(1), attrs.dims.kernel_input_feature, by, b)},
                attrs, {}, &x->shape());
}

Instr* dot(const Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<DotAttrs>();
  if (!attrs.rest.empty() || attrs.lhs_contracting_dims.size() != 1) return nullptr;
  const Instr* left = x->operand(0);
  const Instr* right = x->operand(1);
  const int64_t l = attrs.lhs_contracting_dims[0], r = attrs.rhs_contracting_dims[0];
  const int64_t k = left->shape().dim(l);
  const auto uses = [&](const Instr* side) {
    return side->shape().elems() == 0 ? 0 : x->shape().elems() * k / side->shape().elems();
  };
  const int64_t by = missing(x, k);
  if (by == 0 || uses(left) < kUses || (uses(right) < kUses && !opt::is_constant_like(right)))
    return nullptr;
  return b.make(Opcode::dot, {filled(x->operand(0), l, by, b), filled(x->operand(1), r, by, b)},
                attrs, {}, &x->shape());
}

}  // namespace

Result<bool> whole_words(hlo::Module& module, const PassContext& context) {
  const auto visit = [](Instr* x, Builder& b) -> opt::Rewriter::Proposal {
    if (!opt::are_static_arrays(x) || x->shape().elems() == 0 || x->operands().size() != 2)
      return {};
    Instr* made = x->is(Opcode::dot) ? dot(x, b) : convolution(x, b);
    if (!made) return {};
    return {made, "product"};
  };
  return opt::rewrite_module(module, context, "whole_words", visit, [](const Instr* instr) {
    return instr->is(Opcode::dot) || instr->is(Opcode::convolution);
  });
}

}  // namespace heddle::precision
