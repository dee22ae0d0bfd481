// whole_words: what a product sums up is filled up with zeros to whole words, where the target has
// an instruction for words of its types (kernel/mma.def) and multiplies at least as often without
// it: three channels of a picture become four bytes, 77 columns of bf16 become 78. The kernel is
// filled up once where it is a constant; the other side where it is made or turned anyway.
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

// Each element of a copied row is used so often, at least.
constexpr int64_t kUses = 64;

Instr* filled(Instr* x, int64_t dimension, int64_t by, Builder& b) {
  const Ints none(static_cast<size_t>(x->shape().rank()), 0);
  Ints high = none;
  high[static_cast<size_t>(dimension)] = by;
  return b.pad(x, b.scalar(x->shape().type(), 0), none, high, none);
}

// Elements of k in a word of these types; 1: there are no words.
int64_t word_of(const Instr* x) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table())
    if (mma.is_dot() && mma.a == x->operand(0)->shape().type() &&
        mma.b == x->operand(1)->shape().type() && mma.d == x->shape().type())
      return mma.k;
  return 1;
}

// Of `k` elements, those that are missing in the last word; 0: nothing is gained.
int64_t missing(const Instr* x, int64_t k) {
  const int64_t word = word_of(x);
  const int64_t by = (word - k % word) % word;
  return (k + by) / word < k ? by : 0;
}

Instr* convolution(const Instr* x, Builder& b) {
  const auto& attrs = x->attrs_as<ConvolutionAttrs>();
  if (attrs.feature_group_count != 1 || attrs.batch_group_count != 1 || !attrs.rest.empty())
    return nullptr;
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
